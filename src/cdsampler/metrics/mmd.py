"""Maximum mean discrepancy with a Gaussian kernel.

Source: Castro-Macías et al. 2026, 'Conditional Diffusion Sampling', appendix 'Evaluation Metrics', which
follows Gretton et al. 2012. The benchmark applies it to the energies (negative log densities) of the samples.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist, pdist

from cdsampler.errors import InvalidInputError
from cdsampler.metrics._validate import FloatArray, as_rows, require_at_least, require_same_dim

_HEURISTIC_POINTS = 1000
_BLOCK_ENTRIES = 2**20  # kernel or phase entries held at once: 8 to 16 MB an array
_REACH = 9.0  # in bandwidths: exp(-9²/2) = 3e-18 is below rounding


def mmd_squared(u: ArrayLike, v: ArrayLike, bandwidth: float | None = None) -> float:
    """Unbiased estimate of the squared maximum mean discrepancy, kernel ``k(d) = exp(−d² / (2 b²))``.

    Parameters
    ----------
    u : array_like, [n] or [n, dim]
        First sample.
    v : array_like, [m] or [m, dim]
        Second sample; its size may differ.
    bandwidth : float, optional
        The kernel's ``b``; by default `median_bandwidth` of the two samples.

    Returns
    -------
    float
        ``Σ_{i≠j} k(u_i, u_j)/(n(n−1)) − 2 Σ_ij k(u_i, v_j)/(nm) + Σ_{i≠j} k(v_i, v_j)/(m(m−1))``. Its mean is
        zero if both laws are equal, so it is negative about half of the time then.

    Raises
    ------
    InvalidInputError
        If a sample has fewer than two rows, dimensions differ, or the bandwidth is not positive and finite.

    Notes
    -----
    A row with a non-finite number matches nothing: its kernel with every other row is 0, but it
    counts in n.

    In one dimension the sums are taken in frequency space, where the Gaussian kernel needs only a few dozen
    terms to reach rounding error (Poisson summation with a period of the data's range plus nine bandwidths):
    time grows as n rather than n². Otherwise, or where the range is too many bandwidths wide, the kernel
    matrix is summed block by block. Memory stays below about 50 MB for any n.
    """
    rows_u, rows_v = as_rows("u", u), as_rows("v", v)
    require_same_dim(rows_u, rows_v)
    n, m = len(rows_u), len(rows_v)
    require_at_least("The number of rows of u", n, 2)
    require_at_least("The number of rows of v", m, 2)
    if bandwidth is None:
        bandwidth = median_bandwidth(rows_u, rows_v)
    if not (np.isfinite(bandwidth) and bandwidth > 0):
        raise InvalidInputError(f"bandwidth is {bandwidth}; pass a positive number, or None for the median.")
    # In units of the bandwidth the kernel is exp(-d²/2).
    with np.errstate(over="ignore"):  # an overflow is dropped like any other non-finite row
        finite_u, finite_v = _finite(rows_u / bandwidth), _finite(rows_v / bandwidth)
    sum_uu, sum_uv, sum_vv = _kernel_sums(finite_u, finite_v)
    within_u = (sum_uu - len(finite_u)) / (n * (n - 1))
    within_v = (sum_vv - len(finite_v)) / (m * (m - 1))
    return float(within_u - 2 * sum_uv / (n * m) + within_v)


def median_bandwidth(u: ArrayLike, v: ArrayLike) -> float:
    """Bandwidth of the median heuristic: the median distance between two pooled points.

    Parameters
    ----------
    u, v : array_like, [n] or [n, dim], and [m] or [m, dim]
        The samples, pooled; non-finite rows are left out.

    Returns
    -------
    float
        The median of `|z_i − z_j|` over all pairs i < j of the pooled rows z, or of 1000 of them taken at
        random by a generator with a fixed seed. If half of the distances are 0, their mean instead; 1 if all
        are.

    Raises
    ------
    InvalidInputError
        If dimensions differ or fewer than two rows are finite.
    """
    rows_u, rows_v = as_rows("u", u), as_rows("v", v)
    require_same_dim(rows_u, rows_v)
    pooled = _finite(np.concatenate([rows_u, rows_v]))
    require_at_least("The number of finite rows of both samples together", len(pooled), 2)
    if len(pooled) > _HEURISTIC_POINTS:
        pooled = np.random.default_rng(0).choice(pooled, _HEURISTIC_POINTS, replace=False)
    distances = pdist(pooled)
    return float(np.median(distances) or np.mean(distances) or 1.0)


def _finite(rows: FloatArray) -> FloatArray:
    return rows[np.isfinite(rows).all(axis=1)]


def _kernel_sums(u: FloatArray, v: FloatArray) -> tuple[float, float, float]:
    """Sum exp(-d²/2) over all pairs (u, u), (u, v) and (v, v)."""
    if u.shape[1] == 1 and len(u) and len(v):
        low, high = min(u.min(), v.min()), max(u.max(), v.max())
        period = float(high) - float(low) + _REACH  # infinite if it overflows, without a warning
        if _REACH * period / (2 * np.pi) < min(len(u), len(v)):
            middle = low + (high - low) / 2
            return _sums_in_frequency(u[:, 0] - middle, v[:, 0] - middle, period)
    return _sum_by_blocks(u, u), _sum_by_blocks(u, v), _sum_by_blocks(v, v)


def _sums_in_frequency(u: FloatArray, v: FloatArray, period: float) -> tuple[float, float, float]:
    """Kernel sums of values whose range is at least ``_REACH`` shorter than ``period``.

    The kernel repeated with that period has the Fourier coefficients ``√(2π)/period · exp(−ω²/2)``, and a sum
    of it over pairs is a sum over frequencies of products of the samples' characteristic functions.
    """
    frequencies = 2 * np.pi / period * np.arange(np.ceil(_REACH * period / (2 * np.pi)) + 1, dtype=np.float64)
    coefficients = np.sqrt(2 * np.pi) / period * np.exp(-(frequencies**2) / 2)
    coefficients[1:] *= 2  # the negative frequencies
    waves_u, waves_v = _characteristic_sum(u, frequencies), _characteristic_sum(v, frequencies)
    sum_uu = float(coefficients @ np.abs(waves_u) ** 2)
    sum_vv = float(coefficients @ np.abs(waves_v) ** 2)
    return sum_uu, float(coefficients @ np.real(waves_u * np.conj(waves_v))), sum_vv


def _characteristic_sum(values: FloatArray, frequencies: FloatArray) -> np.ndarray:
    """``Σ_i exp(iωu_i)`` at every frequency ω."""
    total = np.zeros(len(frequencies), dtype=np.complex128)
    step = max(1, _BLOCK_ENTRIES // len(frequencies))
    for start in range(0, len(values), step):
        phases = np.multiply.outer(frequencies, values[start : start + step])
        total += np.cos(phases).sum(axis=1) + 1j * np.sin(phases).sum(axis=1)
    return total


def _sum_by_blocks(u: FloatArray, v: FloatArray) -> float:
    if not (len(u) and len(v)):
        return 0.0
    total = 0.0
    step = max(1, _BLOCK_ENTRIES // len(v))
    for start in range(0, len(u), step):
        block = cdist(u[start : start + step], v, "sqeuclidean")
        block *= -0.5
        total += float(np.exp(block, out=block).sum())
    return total
