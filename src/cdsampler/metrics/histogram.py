"""Total variation between histograms of energies.

Source: Castro-Macías et al. 2026, 'Conditional Diffusion Sampling', appendix 'Evaluation Metrics'.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cdsampler.metrics._validate import FloatArray, as_vector, require_at_least


def plausible_range(energies: ArrayLike) -> tuple[float, float]:
    """Return the range of exact energies, wider by half its width on either side.

    Parameters
    ----------
    energies : array_like, [n]
        Energies of exact draws; those that aren't finite are left out.
    """
    values = as_vector("energies", energies)
    values = values[np.isfinite(values)]
    if not len(values):
        return -np.inf, np.inf
    low, high = float(values.min()), float(values.max())
    margin = 0.5 * (high - low)
    return low - margin, high + margin


def energy_total_variation(
    u: ArrayLike, v: ArrayLike, bins: int = 200, limits: tuple[float, float] | None = None
) -> float:
    """Total variation between the histograms of two samples of energies (negative log densities).

    Parameters
    ----------
    u : array_like, [n]
        Energies of the first sample.
    v : array_like, [m]
        Energies of the second sample; its size may differ.
    bins : int
        Number of equal bins on the range of all values of both samples that are finite and within the limits.
    limits : tuple of float, optional
        Values outside count like those that aren't finite. From `plausible_range`, they keep one extreme value from
        widening every bin.

    Returns
    -------
    float
        ``½ (Σ_i |H_u(i) − H_v(i)| + share of u in no bin + share of v in no bin)``, in [0, 1]. Energies that are not
        finite, or beyond the limits, lie in no bin and count fully as different, even from each other.

    Raises
    ------
    InvalidInputError
        If a sample is empty or not one-dimensional, or ``bins < 1``.

    Notes
    -----
    Without limits the range follows the data, as in the published benchmark. One extreme finite value then widens
    every bin until all samples share one, which hides any difference between the bulks.
    """
    energies_u, energies_v = as_vector("u", u), as_vector("v", v)
    require_at_least("bins", bins, 1)
    low_limit, high_limit = (-np.inf, np.inf) if limits is None else limits
    finite_u, finite_v = (e[np.isfinite(e) & (e >= low_limit) & (e <= high_limit)] for e in (energies_u, energies_v))
    overflow = 2 - len(finite_u) / len(energies_u) - len(finite_v) / len(energies_v)
    pooled = np.concatenate([finite_u, finite_v])
    if not len(pooled):
        return 1.0
    low, high = pooled.min(), pooled.max()
    share_u = _counts(finite_u, low, high, bins) / len(energies_u)
    share_v = _counts(finite_v, low, high, bins) / len(energies_v)
    return float((np.abs(share_u - share_v).sum() + overflow) / 2)


def _counts(values: FloatArray, low: float, high: float, bins: int) -> NDArray[np.int64]:
    """Histogram of values in [low, high]; halves keep a range that spans all of float64 finite."""
    width = high / 2 - low / 2
    places = (values / 2 - low / 2) / width if width > 0 else np.zeros(len(values))
    return np.bincount(np.minimum((places * bins).astype(np.int64), bins - 1), minlength=bins)
