from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import PRNGKey
from cdsampler.density import AbstractLogDensity, Evaluations
from cdsampler.errors import InvalidInputError
from cdsampler.paths import equal_rejection_schedule
from cdsampler.samplers import CDS, NRPT, AbstractStage, InPathCoordinates, chain_keys
from cdsampler.tuning._rounds import interpolated_steps, run_round, start_chains, with_numbers


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
    state = start_chains(nrpt, stage, density, keys, anchors)
    n_steps = int(nrpt.ramp_length) + 32 if first_round is None else first_round
    done, rounds = 0, []
    for number in range(n_rounds):
        state, measured = run_round(nrpt, stage, density, keys, anchors, state, done, n_steps)
        step_sizes, acceptance, rejection = measured.step_sizes, measured.acceptance, measured.rejection
        betas = np.asarray(nrpt.betas, dtype=np.float64)
        rounds.append(PilotRound(n_steps, betas, rejection, acceptance, step_sizes))
        nrpt = with_numbers(nrpt, betas, step_sizes)
        if adapts_schedule and number < n_rounds - 1:
            moved = equal_rejection_schedule(betas, rejection)
            nrpt = with_numbers(nrpt, moved, interpolated_steps(moved, betas, step_sizes))
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
