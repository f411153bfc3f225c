import jax.numpy as jnp

from cdsampler._typing import Array


def dot(a: Array, b: Array) -> Array:
    """Return the scalar products of vectors with their components along the first axis."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a: Array, b: Array) -> Array:
    """Return the vector products of vectors with their components along the first axis."""
    return jnp.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])
