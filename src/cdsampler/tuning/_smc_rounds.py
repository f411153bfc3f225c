"""Schedule and step sizes of annealed particles, in rounds (Syed, Bouchard-Côté, Chern and Doucet 2024)."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array, PRNGKey
from cdsampler.density import AbstractLogDensity, Evaluations, check_bounded
from cdsampler.errors import InvalidInputError
from cdsampler.paths import equal_rejection_schedule
from cdsampler.samplers import SMC, AbstractStage
from cdsampler.tuning._steps import Adapted

# Temperatures of the last round's schedule; production interpolates it.
N_KNOTS = 129
STEP_GAIN = 1.5


class _Ladder(NamedTuple):
    """What one pass down the ladder measured; `divergence` has one entry fewer than the others."""

    betas: np.ndarray
    step_sizes: np.ndarray
    divergence: np.ndarray


def tune_smc(
    stage: SMC,
    path_of: AbstractStage,
    density: AbstractLogDensity,
    anchor: np.ndarray,
    rng_key: PRNGKey,
    *,
    n_particles: int = 256,
    n_rounds: int = 4,
    first_round: int = 16,
    adapts_schedule: bool = True,
) -> Adapted:
    """Tune the schedule to equal divergences of neighbouring temperatures, and step sizes along it.

    The local divergence is `D = log(E[w²]/E[w]²)` of the incremental weights, whose root is additive along the path:
    the schedule of least variance has it equal everywhere.

    Parameters
    ----------
    stage
        Its schedule and step sizes are where tuning starts.
    path_of
        The stage that defines the path: `stage` itself or what wraps it.
    density
        Target.
    anchor : array_like, shape (dim,)
    rng_key
        Typed PRNG key; the pilot's particles are none of the production's.
    n_particles
        Of the pilot's one group.
    n_rounds
        Each has twice the temperatures of the one before. After the last the schedule stays.
    first_round
        Temperatures of the first. The cost is `n_particles · first_round · 2^n_rounds` moves.
    adapts_schedule
        Whether β moves, or only step sizes are tuned along the given schedule.

    Returns
    -------
    Adapted
        Its stage has as many steps as before, along the tuned curve.
    """
    if n_particles < 2 or n_rounds < 1 or first_round < 2:
        raise InvalidInputError(
            f"The rounds need at least 2 particles, 1 round and 2 temperatures, got {n_particles}, {n_rounds} and "
            f"{first_round}."
        )
    pilot = _with_particles(stage, n_particles)
    at = jnp.asarray(anchor, density.dtype)
    made = Evaluations.zero().total()
    for number in range(n_rounds):
        n_steps = first_round * 2**number
        key = jax.random.fold_in(rng_key, number)
        ladder, cost = _descend(pilot.with_steps(n_steps), path_of, density, at, key)
        made = made + cost
        betas = ladder.betas
        if adapts_schedule:
            betas = equal_rejection_schedule(betas, np.sqrt(ladder.divergence), n_steps + 1)
        pilot = pilot.with_schedule(betas, _at(betas, ladder))
    knots, step_sizes = pilot.with_steps(N_KNOTS - 1).schedule()
    return Adapted(stage.with_schedule(knots, step_sizes), made)


def _with_particles(stage: SMC, n_particles: int) -> SMC:
    return SMC(
        stage.reference,
        stage.betas,
        eqx.tree_at(lambda k: k.step_size, stage.kernel, jnp.asarray(stage.step_sizes)),
        n_particles=n_particles,
        n_moves=int(stage.n_moves),
        ess_threshold=0.5,
        start=stage.start,
    )


def _descend(
    stage: SMC, path_of: AbstractStage, density: AbstractLogDensity, anchor: Array, rng_key: PRNGKey
) -> tuple[_Ladder, Evaluations]:
    """Take one group down the ladder; step sizes adapt from temperature to temperature."""
    betas, planned = stage.schedule()
    part = stage.compiled_part()
    state = _start(part, path_of, density, anchor, jax.random.fold_in(rng_key, 0))
    check_bounded(state.evaluations, state.points)
    # How far the acceptances so far called for other steps than planned.
    log_shift, used, divergence = 0.0, [planned[0]], []
    for i in range(len(betas) - 1):
        step_size = planned[i + 1] * np.exp(log_shift)
        row = (jnp.asarray(betas[i]), jnp.asarray(betas[i + 1]), jnp.asarray(step_size))
        state, info = _step(part, path_of, density, anchor, jax.random.fold_in(rng_key, i + 1), state, row)
        check_bounded(state.evaluations, state.points)
        log_shift += STEP_GAIN * (float(info.acceptance) - stage.kernel.target_acceptance)
        used.append(planned[i + 1] * np.exp(log_shift))
        divergence.append(float(info.divergence))
    finite = np.asarray(divergence)
    # No particle inside the support: as far apart as n particles can tell.
    finite = np.where(np.isfinite(finite), finite, np.log(stage.n_particles))
    return _Ladder(betas, np.asarray(used), finite), state.evaluations.total()


def _at(betas: np.ndarray, ladder: _Ladder) -> np.ndarray:
    """Return step sizes at new β, linear in log β and log step; β = 0 has none and takes its neighbour's."""
    positive = ladder.betas > 0
    log_new = np.log(np.maximum(betas, ladder.betas[positive][0]))
    return np.exp(np.interp(log_new, np.log(ladder.betas[positive]), np.log(ladder.step_sizes[positive])))


@eqx.filter_jit
def _start(stage: SMC, path_of: AbstractStage, density: AbstractLogDensity, anchor: Array, key: PRNGKey) -> Any:
    return stage.init(key, path_of.path(density, anchor), None)


@eqx.filter_jit
def _step(
    stage: SMC,
    path_of: AbstractStage,
    density: AbstractLogDensity,
    anchor: Array,
    key: PRNGKey,
    state: Any,
    row: tuple[Array, Array, Array],
) -> Any:
    return stage.step_with_info(key, state, row, path_of.path(density, anchor))
