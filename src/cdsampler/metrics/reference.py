"""The exact reference that a sample is judged against: callables that the caller supplies."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cdsampler.errors import InvalidInputError
from cdsampler.metrics._validate import FloatArray, as_finite_rows, as_vector
from cdsampler.metrics.floors import ExactSampler


@dataclass(frozen=True)
class ExactReference:
    """A target with an exact sampler, as `cdsampler.metrics.evaluate` needs it.

    Parameters
    ----------
    sample : callable
        ``(seed, n) -> [n, dim]``: n independent exact draws, a function of the seed (a whole number below
        2³¹) alone.
    log_density : callable
        ``[n, dim] -> [n]``: log density of the target, up to a constant.
    responsibilities : callable, optional
        ``[n, dim] -> [n, k]``: posterior component probabilities of a mixture.
    weights : array_like, [k], optional
        Exact weights of the components.

    Raises
    ------
    InvalidInputError
        If only one of ``responsibilities`` and ``weights`` is given.
    """

    sample: ExactSampler
    log_density: Callable[[np.ndarray], np.ndarray]
    responsibilities: Callable[[np.ndarray], ArrayLike] | None = None
    weights: np.ndarray | None = None

    def __post_init__(self) -> None:
        if (self.responsibilities is None) != (self.weights is None):
            raise InvalidInputError(
                "Only one of responsibilities and weights is given; the mode metrics need both: pass both or none."
            )

    def draw(self, seed: int, n: int) -> FloatArray:
        """Return n exact draws as float64 [n, dim].

        Raises
        ------
        InvalidInputError
            If the sampler returns another number of rows, or a non-finite one.
        """
        rows = as_finite_rows("The reference's exact sample", self.sample(seed, n))
        if len(rows) != n:
            raise InvalidInputError(
                f"The reference's sampler returned {len(rows)} rows where {n} were asked for; "
                "sample(seed, n) must return an array [n, dim]."
            )
        return rows

    def energies(self, x: FloatArray) -> FloatArray:
        """Return the energies, minus the log density, as float64 [n]; outside the support they are +inf.

        Raises
        ------
        InvalidInputError
            If the log density does not return one number per row.
        """
        values = as_vector("The reference's log density", self.log_density(x))
        if len(values) != len(x):
            raise InvalidInputError(
                f"The reference's log density returned {len(values)} numbers for {len(x)} rows; "
                "it must map [n, dim] to [n]."
            )
        return -values
