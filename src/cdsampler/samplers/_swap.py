"""Swaps of whole points between neighbouring replicas; they cost no evaluation."""

from typing import TypeVar

import jax
import jax.numpy as jnp

from cdsampler._typing import Array, BoolScalar, IntScalar, PRNGKey

Tree = TypeVar("Tree")


def swap_acceptance(betas: Array, log_ratio: Array) -> Array:
    """Return the acceptance probability of each neighbouring swap.

    Parameters
    ----------
    betas : Array, shape (n_replicas,)
    log_ratio : Array, shape (n_replicas,)
        `r = ℓ - log ref` at each replica's point; minus infinity outside the support.

    Returns
    -------
    Array, shape (n_replicas - 1,)
        `min(1, exp[(β_{n+1} - β_n)(r_n - r_{n+1})])`, always in [0, 1].

    Notes
    -----
    Paper, app. B, whose print has max for min and the inverse ratio.
    """
    hot, cold = log_ratio[:-1], log_ratio[1:]
    gap = jnp.diff(betas)
    # Two β that rounding merged swap freely: 0·∞ must not become NaN. A point outside the support never moves to a
    # colder replica, even past another such point.
    log_alpha = jnp.where(hot == -jnp.inf, -jnp.inf, jnp.where(gap > 0, gap * (hot - cold), 0))
    return jnp.exp(jnp.minimum(log_alpha, 0))


def draw_swaps(rng_key: PRNGKey, acceptance: Array, parity: int | IntScalar, is_enabled: bool | BoolScalar) -> Array:
    """Decide which pairs of one parity swap.

    Parameters
    ----------
    rng_key
        Typed PRNG key.
    acceptance : Array, shape (n_replicas - 1,)
    parity
        0 proposes the pairs (0, 1), (2, 3) …, 1 the others.
    is_enabled
        False proposes none.

    Returns
    -------
    Array of bool, shape (n_replicas - 1,)
    """
    uniform = jax.random.uniform(rng_key, acceptance.shape, acceptance.dtype)
    is_proposed = (jnp.arange(acceptance.shape[0]) % 2 == parity) & is_enabled
    return is_proposed & (uniform < acceptance)


def swap_records(records: Tree, is_swapped: Array) -> Tree:
    """Exchange the records of each swapped pair.

    Parameters
    ----------
    records
        Pytree of arrays with the replicas along the first axis.
    is_swapped : Array of bool, shape (n_replicas - 1,)
        No two neighbouring pairs at once.
    """
    never = jnp.zeros((1,), jnp.int32)
    swapped = is_swapped.astype(jnp.int32)
    source = jnp.arange(is_swapped.shape[0] + 1) + jnp.concatenate([swapped, never]) - jnp.concatenate([never, swapped])
    return jax.tree.map(lambda a: a.at[source].get(mode="promise_in_bounds", unique_indices=True), records)
