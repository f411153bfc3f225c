import math

import jax.numpy as jnp

from cdsampler._typing import Array


def from_free(free: Array) -> Array:
    """Map N-1 free points to N points with centroid zero, by an isometry.

    Parameters
    ----------
    free : Array, shape (n_points - 1, ...)

    Returns
    -------
    Array, shape (n_points, ...)
        Distances between configurations are kept, so a density keeps its normalising constant on the subspace.

    Notes
    -----
    The Householder reflection that takes the constant vector 1/√N to the last axis takes the hyperplane of the other
    axes to the vectors of zero sum; it costs O(N).
    """
    n = free.shape[0] + 1
    root = math.sqrt(n)  # a NumPy scalar would promote single precision to double
    total = jnp.sum(free, axis=0, keepdims=True)
    return jnp.concatenate([free - total / (n - root), total / root], axis=0)


def to_free(points: Array) -> Array:
    """Invert `from_free`, whatever the centroid.

    Parameters
    ----------
    points : Array, shape (n_points, ...)

    Returns
    -------
    Array, shape (n_points - 1, ...)
    """
    n = points.shape[0]
    root = math.sqrt(n)  # a NumPy scalar would promote single precision to double
    centred = points - jnp.mean(points, axis=0, keepdims=True)
    # The last coordinate fixes the sum of the free ones.
    return centred[:-1] + centred[-1:] * (root / (n - root))
