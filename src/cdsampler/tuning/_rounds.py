"""One round of a tempering pilot: chains advance together, step sizes adapt, rates are measured."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array, PRNGKey
from cdsampler.density import AbstractLogDensity, Point
from cdsampler.journal import AbstractEntry, NoEntry
from cdsampler.kernels import adapt_step_size
from cdsampler.samplers import NRPT, AbstractStage, in_blocks, swap_records

# Times in a round's second half at which the coldest replica of each chain is kept.
N_KEPT = 16
# Last steps of a round in which the walk of the first chain's replicas is kept.
N_WALK = 100


class Measured(NamedTuple):
    """What the second half of a round measured.

    Attributes
    ----------
    step_sizes, acceptance : ndarray, shape (n_replicas,)
    rejection : ndarray, shape (n_replicas - 1,)
    cold : ndarray, shape (n_kept, n_chains, dim)
        Positions of the coldest replicas.
    cold_log_density : ndarray, shape (n_kept, n_chains)
    restarts : ndarray, shape (n_chains,)
        Reference draws that reached the coldest replica in the round.
    jump : ndarray, shape (n_replicas,)
        Mean squared distance of a local move.
    walk : ndarray of int, shape (at most N_WALK, n_replicas)
        Which replica was on each rung of the first chain's ladder, over the round's last steps.
    points : Point, leaves of shape (n_chains, n_replicas, ...)
        Every replica at the round's end, with all that is cached there.
    """

    step_sizes: np.ndarray
    acceptance: np.ndarray
    rejection: np.ndarray
    cold: np.ndarray
    cold_log_density: np.ndarray
    restarts: np.ndarray
    jump: np.ndarray
    walk: np.ndarray
    points: Point


def with_numbers(nrpt: NRPT, betas: np.ndarray, step_sizes: np.ndarray) -> NRPT:
    """Return the sampler with another schedule of the same length and other step sizes."""
    new = jnp.asarray(betas, nrpt.betas.dtype), jnp.asarray(step_sizes, nrpt.kernel.step_size.dtype)
    return eqx.tree_at(lambda s: (s.betas, s.kernel.step_size), nrpt, new)


def interpolated_steps(new: np.ndarray, betas: np.ndarray, step_sizes: np.ndarray) -> np.ndarray:
    """Return step sizes at new β, linear in log β and log step; β = 0 has none and takes its neighbour's."""
    positive = betas > 0
    log_new = np.log(np.maximum(new, betas[positive][0]))
    return np.exp(np.interp(log_new, np.log(betas[positive]), np.log(step_sizes[positive])))


@eqx.filter_jit
def start_chains(
    nrpt: NRPT,
    stage: AbstractStage,
    density: AbstractLogDensity,
    keys: Array,
    anchors: Array,
    positions: Array | None = None,
) -> Any:
    """Return the chains' first states; with `positions`, the last chains start with every replica at one of them.

    Parameters
    ----------
    nrpt
        Tempering sampler.
    stage
        Defines the path; `nrpt` itself or what wraps it.
    density
        Target.
    keys : Array of keys, shape (n_chains,)
    anchors : Array, shape (n_chains, dim)
    positions : Array, shape (n_moved, dim), optional
        Each costs an evaluation.
    """
    states = jax.vmap(lambda k, z: nrpt.init(jax.random.fold_in(k, 0), stage.path(density, z), None))(keys, anchors)
    if positions is None:
        return states
    n_moved = positions.shape[0]
    points, costs = jax.vmap(lambda y, z: stage.path(density, z).evaluate_available(y))(positions, anchors[-n_moved:])

    def place(old: Array, new: Array) -> Array:
        return old.at[-n_moved:].set(jnp.broadcast_to(new[:, None], (n_moved, nrpt.n_replicas, *new.shape[1:])))

    placed = jax.tree.map(place, states.points, points)
    charged = jax.tree.map(lambda old, new: old.at[-n_moved:].add(new), states.evaluations, costs)
    return eqx.tree_at(lambda s: (s.points, s.evaluations), states, (placed, charged))


def run_round(
    nrpt: NRPT,
    stage: AbstractStage,
    density: AbstractLogDensity,
    keys: Array,
    anchors: Array,
    state: Any,
    start: int,
    length: int,
    *,
    keep: AbstractEntry = NoEntry(),  # noqa: B008 - it has no state
) -> tuple[Any, Measured]:
    """Advance all chains together, adapting step sizes to pooled acceptances, and measure over the round's second half.

    Parameters
    ----------
    nrpt, stage, density, keys, anchors
        As for `start_chains`.
    state
        From `start_chains` or the round before.
    start
        Steps made so far.
    length
        Steps of this round.
    keep
        Is told how far the round is, and it begins where it was in an earlier session.
    """
    before = np.asarray(state.statistics.restarts)
    carry = _first_tally(nrpt, density, anchors, state)
    numbers = jnp.int32(start), jnp.int32(length)
    carry = in_blocks(
        lambda carry, first, last: _advance(nrpt, stage, density, keys, anchors, carry, *numbers, first, last),
        carry,
        length,
        keep=keep,
    )
    state, walk = carry.states, carry.walk
    measured = (*_rates(carry.sums, jnp.int32(length - length // 2)), *carry.kept)
    steps, acceptance, rejection, jump, cold, cold_log_density = (np.asarray(a, dtype=np.float64) for a in measured)
    restarts = np.asarray(state.statistics.restarts) - before
    n_recorded = length - length // 2
    filled = np.unique(np.arange(n_recorded) * N_KEPT // n_recorded)
    return state, Measured(
        steps,
        acceptance,
        rejection,
        cold[filled],
        cold_log_density[filled],
        restarts,
        jump,
        np.asarray(walk)[max(N_WALK - length, 0) :],
        state.points,
    )


class _Tally(NamedTuple):
    """What a round carries from step to step."""

    states: Any
    step_sizes: Array
    sums: tuple[Array, ...]
    kept: tuple[Array, Array]
    walk: Array


def _first_tally(nrpt: NRPT, density: AbstractLogDensity, anchors: Array, state: Any) -> _Tally:
    n, n_chains = nrpt.n_replicas, anchors.shape[0]
    zeros = tuple(jnp.zeros(size, density.dtype) for size in (n, n, n - 1, n))
    kept = jnp.zeros((N_KEPT, *anchors.shape), density.dtype), jnp.zeros((N_KEPT, n_chains), density.dtype)
    return _Tally(state, nrpt.kernel.step_size, zeros, kept, jnp.tile(jnp.arange(n), (N_WALK, 1)))


@eqx.filter_jit
def _rates(sums: tuple[Array, ...], n_recorded: Array) -> tuple[Array, ...]:
    log_step, *rates = jax.tree.map(lambda s: s / n_recorded, sums)
    return jnp.exp(log_step), *rates


@eqx.filter_jit
def _advance(
    nrpt: NRPT,
    stage: AbstractStage,
    density: AbstractLogDensity,
    keys: Array,
    anchors: Array,
    carry: _Tally,
    start: Array,
    length: Array,
    first: Array,
    last: Array,
) -> _Tally:
    """Take the round's steps from `first` to `last`."""
    half = length // 2
    own = jnp.arange(nrpt.n_replicas)

    def body(i: Array, carry: _Tally) -> _Tally:
        states, step_sizes, sums, (cold, cold_log_density), walk = carry
        index = start + i
        tuned = eqx.tree_at(lambda s: s.kernel.step_size, nrpt, step_sizes)

        def step(key: PRNGKey, one: Any, anchor: Array) -> Any:
            key = jax.random.fold_in(key, index + 1)
            return tuned.step_with_info(key, one, index, stage.path(density, anchor))

        states, info = jax.vmap(step)(keys, states, anchors)
        acceptance, rejection = jnp.mean(info.acceptance, axis=0), jnp.mean(info.rejection, axis=0)
        # Replicas that the ramp still holds on a hotter rung say nothing about their own step size, and the one that
        # is drawn from the reference has none.
        is_home = (tuned.level(index) == own) & (own >= int(nrpt.reference.is_proper))
        adapted = adapt_step_size(tuned.kernel, acceptance, i, delay=length // 4)
        step_sizes = jnp.where(is_home, adapted, step_sizes)
        weight = (i >= half).astype(acceptance.dtype)
        jump = jnp.mean(info.jump, axis=0)
        new = (jnp.log(step_sizes).astype(acceptance.dtype), acceptance, rejection, jump)
        sums = jax.tree.map(lambda s, a: s + weight * a, sums, new)
        # In the first half every step overwrites slot 0, which the second half then overwrites in its turn.
        slot = jnp.maximum((i - half) * N_KEPT // (length - half), 0)
        now = jax.vmap(nrpt.point)(states)
        kept = (cold.at[slot].set(now.position), cold_log_density.at[slot].set(now.target.log_density))
        # The last row is the present; older ones move up.
        rungs = swap_records(walk[-1], info.is_swapped[0])
        return _Tally(states, step_sizes, sums, kept, jnp.roll(walk, -1, axis=0).at[-1].set(rungs))

    return jax.lax.fori_loop(first, last, body, carry)
