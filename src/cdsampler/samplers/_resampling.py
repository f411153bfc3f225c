"""Selection of weighted particles; whole points are moved, so it costs no evaluation."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array, PRNGKey, Scalar

Resampling = Callable[[PRNGKey, Array], Array]


def systematic(rng_key: PRNGKey, log_weights: Array) -> Array:
    """Return the index of the particle that each place gets, shape (n_particles,), from one uniform number.

    Parameters
    ----------
    rng_key
    log_weights : Array, shape (n_particles,)
        Up to a constant.

    Notes
    -----
    Carpenter, Clifford and Fearnhead 1999. A particle of weight w gets ⌊n w⌋ or ⌈n w⌉ places.
    """
    return select(_comb(jax.random.uniform(rng_key, (), log_weights.dtype), log_weights.shape[0]), log_weights)


def multinomial(rng_key: PRNGKey, log_weights: Array) -> Array:
    """Return the index of the particle that each place gets, shape (n_particles,), each drawn for itself."""
    return select(jax.random.uniform(rng_key, log_weights.shape, log_weights.dtype), log_weights)


def select(uniforms: Array, log_weights: Array) -> Array:
    """Return the particle that each uniform number falls on, by the cumulative weights; never one of weight zero.

    Parameters
    ----------
    uniforms : Array, shape (n,)
        In [0, 1).
    log_weights : Array, shape (n_particles,)
        Up to a constant. If all are minus infinity, all particles count the same.
    """
    largest = jnp.max(log_weights)
    weights = jnp.where(largest == -jnp.inf, 1.0, jnp.exp(log_weights - jnp.where(largest == -jnp.inf, 0, largest)))
    cumulative = jnp.cumsum(weights)
    # Rounding may bring a number next to 1 up to 1, and the sum of the last weights down to nothing.
    last = jnp.argmax(cumulative == cumulative[-1])
    return jnp.minimum(jnp.searchsorted(cumulative, uniforms * cumulative[-1], side="right"), last)


def systematic_on_host(rng: np.random.Generator, log_weights: np.ndarray, n: int) -> np.ndarray:
    """Return `n` indices by systematic resampling, in random order.

    Parameters
    ----------
    rng
    log_weights : ndarray, shape (n_particles,)
        Up to a constant.
    n
        Places.
    """
    largest = np.max(log_weights)
    weights = np.exp(log_weights - largest) if np.isfinite(largest) else np.ones(len(log_weights))
    cumulative = np.cumsum(weights, dtype=np.float64)
    chosen = np.searchsorted(cumulative, (rng.uniform() + np.arange(n)) / n * cumulative[-1], side="right")
    return rng.permutation(np.minimum(chosen, int(np.argmax(cumulative == cumulative[-1]))))


def _comb(uniform: Scalar, n: int) -> Array:
    return (uniform + jnp.arange(n, dtype=uniform.dtype)) / n


RESAMPLING: dict[str, Resampling] = {"systematic": systematic, "multinomial": multinomial}
