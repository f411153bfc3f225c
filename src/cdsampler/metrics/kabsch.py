"""Root-mean-square deviation of particle configurations after the best translation and proper rotation.

With centred configurations a and b, ``M = aᵀ b`` [3, 3] and singular values s₁ ≥ s₂ ≥ s₃ of M, the squared
deviation is ``(|a|² + |b|² − 2 λ) / n_particles``, where ``λ = s₁ + s₂ + sign(det M) s₃`` is the largest root of
``(λ² − p)² − 8 det(M) λ − 4 q``; p and q are the sums of the squared entries and of the squared 2 x 2 minors of
M. Newton's iteration from above finds it for all pairs at once.

The metric tells identical particles apart, and mirror images too; `cdsampler.metrics.unlabelled` does not.

Source: Theobald 2005, 'Rapid calculation of RMSDs using a quaternion-based characteristic polynomial'.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cdsampler.errors import InvalidInputError
from cdsampler.metrics._validate import FloatArray, as_finite_rows, require_same_dim
from cdsampler.metrics.transport import require_same_size, transport_costs

_TILE = 128  # configurations a side: arrays stay in cache, and products too small for BLAS threads, which may be busy
_MAX_STEPS = 25  # Newton halves its error at worst, so this resolves every root that _MIN_SLOPE lets through
_MIN_SLOPE = 1e-3  # of the polynomial at its root, in units of λ³: below it two roots nearly coincide
_MIN_DEVIATION = 1e-6  # squared, in units of |a|² + |b|²: below it the difference cancels
_CONVERGED = 1e-14  # change of a root between unit configurations
_DECOMPOSED = 4096  # pairs superposed at once


def kabsch_distances(x: ArrayLike, y: ArrayLike) -> FloatArray:
    """Root-mean-square deviation of every pair of configurations after optimal superposition.

    Parameters
    ----------
    x : array_like, [n, n_particles, 3] or [n, 3 n_particles]
        First sample of configurations.
    y : array_like, [m, n_particles, 3] or [m, 3 n_particles]
        Second sample; its size may differ.

    Returns
    -------
    ndarray, [n, m]
        The root of the mean over particles of the squared distance, minimised over translations and proper
        rotations, in the units of ``x``.

    Raises
    ------
    InvalidInputError
        If a shape is not one of configurations in three dimensions, the numbers of particles differ, or a
        configuration is not finite.

    Notes
    -----
    Particles keep their labels and reflections are not allowed: two configurations that differ by a
    permutation of identical particles, or that are mirror images, are apart.

    Everything is in float64, whatever JAX is set to; the error is below 1e-8 of a configuration's root-mean-square
    radius. Pairs where the polynomial would lose more (nearly equal or collinear configurations, symmetric ones
    facing their mirror image) are superposed by a singular value decomposition instead. That is ten times
    slower, which matters only where most pairs are of this kind. Otherwise 10⁴ by 10⁴ pairs of 13 particles take
    about 15 s on an idle core; memory is that of the result.
    """
    return _distances(*two_samples(x, y))


def kabsch_wasserstein_1_and_2(x: ArrayLike, y: ArrayLike) -> tuple[float, float]:
    """``W_1`` and ``W_2`` between two samples of configurations, at the distance of `kabsch_distances`.

    Parameters
    ----------
    x, y : array_like, [n, n_particles, 3] or [n, 3 n_particles]
        The samples, of equal size.

    Returns
    -------
    tuple of float
        ``(W_1, W_2)``, each with its own optimal plan, in the units of the samples; ``W_1 <= W_2``.

    Raises
    ------
    InvalidInputError
        If sizes, shapes or numbers of particles differ, or a configuration is not finite.

    Notes
    -----
    Like the distance, blind to translations and rotations, and not to permutations and reflections. Time grows
    as n³ and memory is 16 n² bytes.
    """
    a, b = two_samples(x, y)
    require_same_size(a, b)
    first, second = transport_costs(_distances(a, b), (1, 2))
    return first, second


def two_samples(x: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return both samples as centred float64 [n, n_particles, 3]."""
    a, b = _centred("x", x), _centred("y", y)
    require_same_dim(a.reshape(len(a), -1), b.reshape(len(b), -1))
    return a, b


def _centred(name: str, values: ArrayLike) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0 or array.ndim not in (2, 3) or array.shape[-1] % 3 or (array.ndim == 3 and array.shape[2] != 3):
        raise InvalidInputError(
            f"{name} has shape {array.shape}; pass configurations [n, n_particles, 3] or [n, 3 n_particles]."
        )
    rows = as_finite_rows(name, array.reshape(len(array), -1)).reshape(len(array), -1, 3)
    return rows - rows.mean(axis=1, keepdims=True)


def best_rotations(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the proper rotations R [k, 3, 3] that bring ``a @ R`` closest to ``b``, both [k, n_particles, 3]."""
    left, _, right = np.linalg.svd(np.matmul(a.transpose(0, 2, 1), b))
    # A rotation, not a reflection: the least singular direction changes sign if it must.
    left[:, :, 2] *= np.sign(np.linalg.det(left) * np.linalg.det(right))[:, None]
    return np.matmul(left, right)


def superposed_deviations(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the deviation [k] of each ``a[i]`` from ``b[i]``, centred, both [k, n_particles, 3]."""
    moved = np.matmul(a, best_rotations(a, b))
    return np.sqrt(((moved - b) ** 2).sum(axis=2).mean(axis=1))


def _distances(x: FloatArray, y: FloatArray) -> FloatArray:
    result = np.empty((len(x), len(y)))
    for i in range(0, len(x), _TILE):
        for j in range(0, len(y), _TILE):
            result[i : i + _TILE, j : j + _TILE] = _tile(x[i : i + _TILE], y[j : j + _TILE])
    return result


def _tile(x: FloatArray, y: FloatArray) -> FloatArray:
    squares_x, squares_y = (x**2).sum(axis=(1, 2))[:, None], (y**2).sum(axis=(1, 2))[None, :]
    products = np.matmul(x.transpose(2, 0, 1)[:, None], y.transpose(2, 1, 0)[None, :])  # [3, 3, n, m]
    # Scaled to unit configurations; one with all particles at a point has products 0 and goes to the decomposition.
    scales = np.sqrt(squares_x * squares_y)
    products /= np.where(scales > 0, scales, 1.0)
    roots, doubtful = _largest_roots(products)
    total = squares_x + squares_y
    squared = total - 2 * scales * roots
    rows, columns = np.nonzero(doubtful | (squared <= _MIN_DEVIATION * total))
    squared[rows, columns] = 0  # rounding may have left it negative
    distances = np.sqrt(squared / x.shape[1])
    for start in range(0, len(rows), _DECOMPOSED):
        i, j = rows[start : start + _DECOMPOSED], columns[start : start + _DECOMPOSED]
        distances[i, j] = superposed_deviations(x[i], y[j])
    return distances


def _largest_roots(m: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return λ of the matrices m [3, 3, ...], and where a second root is too close for it to be accurate."""
    minors = np.stack([_cross(m[1], m[2]), _cross(m[2], m[0]), _cross(m[0], m[1])])
    squares, minor_squares = (m**2).sum(axis=(0, 1)), (minors**2).sum(axis=(0, 1))
    determinants = (m[0] * minors[0]).sum(axis=0)
    # λ <= s₁ + s₂ + s₃ <= √(p + 2 √(3 q)), and from above Newton falls to the largest root without overshooting.
    roots = np.sqrt(squares + 2 * np.sqrt(3 * minor_squares))
    least_slope = _MIN_SLOPE * roots**3 + np.finfo(np.float64).tiny
    for _ in range(_MAX_STEPS):
        excess = roots**2 - squares
        steps = (excess**2 - 8 * determinants * roots - 4 * minor_squares) / np.maximum(
            4 * roots * excess - 8 * determinants, least_slope
        )
        roots -= steps
        if np.abs(steps).max() < _CONVERGED:
            break
    return roots, 4 * roots * (roots**2 - squares) - 8 * determinants <= least_slope


def _cross(u: FloatArray, v: FloatArray) -> FloatArray:
    """Cross product over the first axis, three times faster than NumPy's."""
    return np.stack([u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]])
