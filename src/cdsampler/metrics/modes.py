"""How well a sample weighs the modes of a mixture.

The metrics take soft assignments: the posterior probability ``r_nk`` of component k at sample n. Over exact
draws their mean is exactly the vector of weights, so overlapping components bring no bias.
"""

import numpy as np
from numpy.typing import ArrayLike

from cdsampler.errors import InvalidInputError
from cdsampler.metrics._validate import FloatArray, as_finite_rows, as_vector

_SUM_TOLERANCE = 1e-4  # allows for responsibilities computed in float32


def mode_weights(responsibilities: ArrayLike) -> FloatArray:
    """Weight that a sample gives to each mode.

    Parameters
    ----------
    responsibilities : array_like, [n, k]
        Posterior component probabilities at each sample; rows sum to 1.

    Returns
    -------
    ndarray, [k]
        The mean over the samples.

    Raises
    ------
    InvalidInputError
        If a row is not finite, has a negative entry or does not sum to 1.
    """
    return _require_probabilities("responsibilities", responsibilities).mean(axis=0)


def mode_weight_total_variation(responsibilities: ArrayLike, weights: ArrayLike) -> float:
    """Total variation between the weights a sample gives to the modes and their exact weights.

    Parameters
    ----------
    responsibilities : array_like, [n, k]
        Posterior component probabilities at each sample; rows sum to 1.
    weights : array_like, [k]
        The exact weights of the components; they sum to 1.

    Returns
    -------
    float
        ``½ Σ_k |mean_n r_nk − w_k|``, in [0, 1].

    Raises
    ------
    InvalidInputError
        If either array is not made of probabilities that sum to 1, or their k differ.
    """
    observed, expected = _observed_and_expected(responsibilities, weights)
    return float(np.abs(observed - expected).sum() / 2)


def modes_found(responsibilities: ArrayLike, weights: ArrayLike, fraction: float = 0.1) -> int:
    """Count the modes that hold at least ``fraction`` of their expected mass.

    Parameters
    ----------
    responsibilities : array_like, [n, k]
        Posterior component probabilities at each sample; rows sum to 1.
    weights : array_like, [k]
        The exact weights of the components; they sum to 1.
    fraction : float
        Share of the expected mass that counts as found, in (0, 1].

    Returns
    -------
    int
        The number of such modes; a mode of weight 0 is never counted.

    Raises
    ------
    InvalidInputError
        If either array is not made of probabilities that sum to 1, their k differ, or ``fraction`` is out of
        range.
    """
    if not 0 < fraction <= 1:
        raise InvalidInputError(f"fraction is {fraction}; it must be above 0 and at most 1.")
    observed, expected = _observed_and_expected(responsibilities, weights)
    return int(np.count_nonzero((observed >= fraction * expected) & (expected > 0)))


def _observed_and_expected(responsibilities: ArrayLike, weights: ArrayLike) -> tuple[FloatArray, FloatArray]:
    observed = mode_weights(responsibilities)
    expected = _require_probabilities("weights", as_vector("weights", weights)[None, :])[0]
    if len(observed) != len(expected):
        raise InvalidInputError(
            f"responsibilities has {len(observed)} columns but there are {len(expected)} weights; "
            "pass one column for each component."
        )
    return observed, expected


def _require_probabilities(name: str, values: ArrayLike) -> FloatArray:
    """Return rows of probabilities as float64 [n, k], scaled to sum to 1 exactly."""
    rows = as_finite_rows(name, np.atleast_2d(np.asarray(values, dtype=np.float64)))
    sums = rows.sum(axis=1)
    if rows.min() < 0:
        raise InvalidInputError(f"{name} has a negative entry, {rows.min()}; pass probabilities.")
    worst = sums[np.argmax(np.abs(sums - 1))]
    if abs(worst - 1) > _SUM_TOLERANCE:
        raise InvalidInputError(f"{name} sums to {worst} over the components; it must sum to 1.")
    return rows / sums[:, None]
