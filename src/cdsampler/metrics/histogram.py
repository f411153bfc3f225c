"""Total variation between histograms of energies.

Source: Castro-Macías et al. 2026, 'Conditional Diffusion Sampling', appendix 'Evaluation Metrics'.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cdsampler.metrics._validate import FloatArray, as_vector, require_at_least


def energy_total_variation(u: ArrayLike, v: ArrayLike, bins: int = 200) -> float:
    """Total variation between the histograms of two samples of energies (negative log densities).

    Parameters
    ----------
    u : array_like, [n]
        Energies of the first sample.
    v : array_like, [m]
        Energies of the second sample; its size may differ.
    bins : int
        Number of equal bins on the range of all finite values of both samples.

    Returns
    -------
    float
        ``½ (Σ_i |H_u(i) − H_v(i)| + share of u that is not finite + share of v that is not finite)``, in [0,
        1]. Non-finite energies lie in no bin and count fully as different, even from each other.

    Raises
    ------
    InvalidInputError
        If a sample is empty or not one-dimensional, or ``bins < 1``.

    Notes
    -----
    The range follows the data, as in the benchmark. One extreme finite value therefore widens every bin and
    can hide a difference between the bulks; the MMD of the same energies does not have this weakness.
    """
    energies_u, energies_v = as_vector("u", u), as_vector("v", v)
    require_at_least("bins", bins, 1)
    finite_u, finite_v = energies_u[np.isfinite(energies_u)], energies_v[np.isfinite(energies_v)]
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
