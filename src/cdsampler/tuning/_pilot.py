from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array, PRNGKey
from cdsampler.density import AbstractLogDensity, Evaluations
from cdsampler.errors import InvalidInputError
from cdsampler.kernels import adapt_step_size
from cdsampler.paths import equal_rejection_schedule
from cdsampler.samplers import CDS, NRPT, AbstractStage, InPathCoordinates, chain_keys


class PilotRound(NamedTuple):
    """What one round of tuning measured, and at which schedule.

    Attributes
    ----------
    n_steps : int
    betas : ndarray, shape (n_replicas,)
    rejection : ndarray, shape (n_replicas - 1,)
    acceptance : ndarray, shape (n_replicas,)
    step_sizes : ndarray, shape (n_replicas,)
    """

    n_steps: int
    betas: np.ndarray
    rejection: np.ndarray
    acceptance: np.ndarray
    step_sizes: np.ndarray


class Pilot(NamedTuple):
    """A tuned sampler, what tuning cost and what each round measured."""

    sampler: NRPT | CDS
    evaluations: Evaluations
    rounds: tuple[PilotRound, ...]


def tune(
    sampler: NRPT | CDS,
    density: AbstractLogDensity,
    anchor: np.ndarray,
    rng_key: PRNGKey,
    *,
    n_chains: int = 64,
    n_rounds: int = 4,
    first_round: int | None = None,
    adapts_schedule: bool = True,
) -> Pilot:
    """Tune step sizes, and the schedule to equal rejections, on a pilot group of chains in rounds of doubling length.

    The production run that follows uses the frozen result, so it is a valid Markov chain per sample.

    Parameters
    ----------
    sampler
        Its schedule and step sizes are where tuning starts. Of CDS, stage 1 is tuned, and has to be an `NRPT`.
    density
        Target.
    anchor : array_like, shape (dim,)
    rng_key
        Typed PRNG key; the pilot's chains are none of the production's.
    n_chains
        Size of the pilot group. Acceptances are pooled over it.
    n_rounds
        Rounds; in the last one the schedule stays.
    first_round
        Steps of the first round; default 32 and the ramp. The cost is about `2^n_rounds` times this, times the cost of
        a step and `n_chains`.
    adapts_schedule
        Whether to move β to equal rejections between rounds (needs a proper or flat path alike).

    Returns
    -------
    Pilot

    Raises
    ------
    InvalidInputError
        No chains, no rounds, or a stage 1 that isn't tempering.
    """
    stage, nrpt = _tempering_stage(sampler)
    if n_chains < 1 or n_rounds < 1:
        raise InvalidInputError(f"A pilot needs at least 1 chain and 1 round, got {n_chains} and {n_rounds}.")
    keys = chain_keys(rng_key, np.arange(n_chains))
    anchors = jnp.broadcast_to(jnp.asarray(anchor, density.dtype), (n_chains, density.dim))
    state = _init(nrpt, stage, density, keys, anchors)
    n_steps = int(nrpt.ramp_length) + 32 if first_round is None else first_round
    done, rounds = 0, []
    for number in range(n_rounds):
        state, measured = _round(nrpt, stage, density, keys, anchors, state, jnp.int32(done), jnp.int32(n_steps))
        step_sizes, acceptance, rejection = (np.asarray(a, dtype=np.float64) for a in measured)
        betas = np.asarray(nrpt.betas, dtype=np.float64)
        rounds.append(PilotRound(n_steps, betas, rejection, acceptance, step_sizes))
        nrpt = _with(nrpt, betas, step_sizes)
        if adapts_schedule and number < n_rounds - 1:
            moved = equal_rejection_schedule(betas, rejection)
            nrpt = _with(nrpt, moved, _interpolated(moved, betas, step_sizes))
        done += n_steps
        n_steps *= 2
    return Pilot(_replaced(sampler, nrpt), state.evaluations.total(), tuple(rounds))


def _tempering_stage(sampler: NRPT | CDS) -> tuple[AbstractStage, NRPT]:
    """Return the stage that defines the path, and the tempering sampler that runs on it."""
    stage = sampler.stages()[0]
    nrpt = stage.stage if isinstance(stage, InPathCoordinates) else stage
    if not isinstance(nrpt, NRPT):
        raise InvalidInputError(f"Only tempering can be tuned, and this stage 1 is {type(nrpt).__name__}.")
    return stage, nrpt


def _replaced(sampler: NRPT | CDS, tuned: NRPT) -> NRPT | CDS:
    def numbers(s: Any) -> Any:
        nrpt = s.stage1 if isinstance(sampler, CDS) else s
        return nrpt.betas, nrpt.kernel.step_size

    return eqx.tree_at(numbers, sampler, (tuned.betas, tuned.kernel.step_size))


def _with(nrpt: NRPT, betas: np.ndarray, step_sizes: np.ndarray) -> NRPT:
    new = jnp.asarray(betas, nrpt.betas.dtype), jnp.asarray(step_sizes, nrpt.kernel.step_size.dtype)
    return eqx.tree_at(lambda s: (s.betas, s.kernel.step_size), nrpt, new)


def _interpolated(new: np.ndarray, betas: np.ndarray, step_sizes: np.ndarray) -> np.ndarray:
    """Return step sizes at new β, linear in log β and log step; β = 0 has none and takes its neighbour's."""
    positive = betas > 0
    log_new = np.log(np.maximum(new, betas[positive][0]))
    return np.exp(np.interp(log_new, np.log(betas[positive]), np.log(step_sizes[positive])))


@eqx.filter_jit
def _init(nrpt: NRPT, stage: AbstractStage, density: AbstractLogDensity, keys: Array, anchors: Array) -> Any:
    return jax.vmap(lambda k, z: nrpt.init(jax.random.fold_in(k, 0), stage.path(density, z), None))(keys, anchors)


@eqx.filter_jit
def _round(
    nrpt: NRPT,
    stage: AbstractStage,
    density: AbstractLogDensity,
    keys: Array,
    anchors: Array,
    state: Any,
    start: Array,
    length: Array,
) -> tuple[Any, tuple[Array, Array, Array]]:
    """Run a round; return the state and, over the round's second half, step sizes, acceptances and rejections."""

    def body(i: Array, carry: tuple[Any, Array, Any]) -> tuple[Any, Array, Any]:
        states, step_sizes, sums = carry
        index = start + i
        tuned = eqx.tree_at(lambda s: s.kernel.step_size, nrpt, step_sizes)

        def step(key: PRNGKey, one: Any, anchor: Array) -> Any:
            key = jax.random.fold_in(key, index + 1)
            return tuned.step_with_info(key, one, index, stage.path(density, anchor))

        states, info = jax.vmap(step)(keys, states, anchors)
        acceptance, rejection = jnp.mean(info.acceptance, axis=0), jnp.mean(info.rejection, axis=0)
        # Replicas that the ramp still holds on a hotter rung say nothing about their own step size, and the one that
        # is drawn from the reference has none.
        own = jnp.arange(nrpt.n_replicas)
        is_home = (tuned.level(index) == own) & (own >= int(nrpt.reference.is_proper))
        adapted = adapt_step_size(tuned.kernel, acceptance, i, delay=length // 4)
        step_sizes = jnp.where(is_home, adapted, step_sizes)
        weight = (i >= length // 2).astype(acceptance.dtype)
        new = (jnp.log(step_sizes).astype(acceptance.dtype), acceptance, rejection)
        return states, step_sizes, jax.tree.map(lambda s, a: s + weight * a, sums, new)

    n = nrpt.n_replicas
    zeros = (jnp.zeros(n, density.dtype), jnp.zeros(n, density.dtype), jnp.zeros(n - 1, density.dtype))
    state, _, sums = jax.lax.fori_loop(0, length, body, (state, nrpt.kernel.step_size, zeros))
    log_step, acceptance, rejection = jax.tree.map(lambda s: s / (length - length // 2), sums)
    return state, (jnp.exp(log_step), acceptance, rejection)
