"""The exact reference that a sample is judged against: callables that the caller supplies."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from cdsampler.errors import InvalidInputError
from cdsampler.metrics._validate import FloatArray, as_finite_rows, as_vector, require_at_least
from cdsampler.metrics.floors import ExactSampler
from cdsampler.metrics.transport import wasserstein_1_and_2

TransportMetrics = Callable[[FloatArray, FloatArray], Mapping[str, float]]
"""``([n, dim], [n, dim]) -> {name: distance}``: distances that share their costly part."""

TwoSampleMetric = Callable[[FloatArray, FloatArray], float]
"""``([n, dim], [n, dim]) -> float``: the judged sample comes first, the exact one second."""

Quantity = Callable[[FloatArray], float]
"""``[n, dim] -> float``: a number of one sample that is no error, such as the weight of a basin."""


def euclidean_transport(x: FloatArray, y: FloatArray) -> dict[str, float]:
    """Return ``wasserstein_2`` and ``wasserstein_1`` at the Euclidean distance."""
    first, second = wasserstein_1_and_2(x, y)
    return {"wasserstein_2": second, "wasserstein_1": first}


@dataclass(frozen=True)
class ExactReference:
    """A target with an exact sampler, as `cdsampler.metrics.evaluate` needs it.

    Parameters
    ----------
    sample : callable
        ``(seed, n) -> [n, dim]``: n independent exact draws, a function of the seed (a whole number below
        2³¹) alone. From a finite pool they are drawn without replacement.
    log_density : callable
        ``[n, dim] -> [n]``: log density of the target, up to a constant.
    responsibilities : callable, optional
        ``[n, dim] -> [n, k]``: posterior component probabilities of a mixture.
    weights : array_like, [k], optional
        Exact weights of the components.
    size : int, optional
        Number of rows of a finite pool: the most that one call of ``sample`` gives. None if there is no limit.
    energy : callable, optional
        ``[n, dim] -> [n]``: the energy whose law is compared; by default minus the log density.
    transport : callable
        Wasserstein distances of this target; by default the Euclidean ones.
    extra : mapping of str to callable
        Further metrics of two samples that suit this target, by name.
    quantities : mapping of str to callable
        Numbers of one sample that are reported beside those of exact samples, by name.

    Raises
    ------
    InvalidInputError
        If only one of ``responsibilities`` and ``weights`` is given, or ``size < 4``.
    """

    sample: ExactSampler
    log_density: Callable[[np.ndarray], np.ndarray]
    responsibilities: Callable[[np.ndarray], ArrayLike] | None = None
    weights: np.ndarray | None = None
    size: int | None = None
    energy: Callable[[np.ndarray], ArrayLike] | None = None
    transport: TransportMetrics = euclidean_transport
    extra: Mapping[str, TwoSampleMetric] = field(default_factory=dict)
    quantities: Mapping[str, Quantity] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.responsibilities is None) != (self.weights is None):
            raise InvalidInputError(
                "Only one of responsibilities and weights is given; the mode metrics need both: pass both or none."
            )
        if self.size is not None:
            require_at_least("The size of the reference's pool", self.size, 4)

    def draw(self, seed: int, n: int) -> FloatArray:
        """Return n exact draws as float64 [n, dim].

        Raises
        ------
        InvalidInputError
            If n is above the size of the pool, or the sampler returns another number of rows or a non-finite
            one.
        """
        if self.size is not None and n > self.size:
            raise InvalidInputError(f"The reference's pool has {self.size} rows, {n} were asked for: ask for fewer.")
        rows = as_finite_rows("The reference's exact sample", self.sample(seed, n))
        if len(rows) != n:
            raise InvalidInputError(
                f"The reference's sampler returned {len(rows)} rows where {n} were asked for; "
                "sample(seed, n) must return an array [n, dim]."
            )
        return rows

    def usable(self, n: int) -> int:
        """Return how many of n rows can be judged: no more than half of the pool, as floors need disjoint halves."""
        return n if self.size is None else min(n, self.size // 2)

    def energies(self, x: FloatArray) -> FloatArray:
        """Return the energies as float64 [n], by default minus the log density; outside the support they are +inf.

        Raises
        ------
        InvalidInputError
            If the energy or the log density does not return one number per row.
        """
        name = "log density" if self.energy is None else "energy"
        values = as_vector(f"The reference's {name}", self.log_density(x) if self.energy is None else self.energy(x))
        if len(values) != len(x):
            raise InvalidInputError(
                f"The reference's {name} returned {len(values)} numbers for {len(x)} rows; it must map [n, dim] to [n]."
            )
        return -values if self.energy is None else values
