"""A mixture reference that learns from its own tempered draws."""

from typing import NamedTuple

import numpy as np

from cdsampler.kernels import HMC, MALA, AbstractKernel
from cdsampler.paths import MixtureReference
from cdsampler.tuning._draws import Draws
from cdsampler.tuning._fit import MixtureFit, fit_mixture
from cdsampler.tuning._slowness import SLOW, local_autocorrelation
from cdsampler.tuning._survey import Survey
from cdsampler.tuning._tempering import (
    Ladder,
    PilotGroup,
    rescheduled,
    restart_cost,
    spread_starts,
)

FIRST_REPLICAS, FIRST_ROUND, MAX_ROUNDS = 4, 16, 5
# Learning stops when it finds nothing new and costs more than it could save: production makes some thousand restarts,
# none of which can cost less than one of two replicas that always swap.
FEW_SURPRISES, TYPICAL_RESTARTS, LEAST_COST = 0.005, 2000, 4.0
# Change of log Z from one round to the next above which mass is still being found; less where moves are slow.
STEADY = 0.5
# Nats by which the reference may cover a hundredth of the draws, and any of them, worse than the median one.
THIN, THINNEST = 3.0, 5.0
# Share of the components' wider copies, and by how many standard deviations of a component's radius they are wider.
WIDER_WEIGHT, WIDER_BY = 0.05, 3.0
# Where local moves are slow, rounds are stretched in proportion, up to this.
MAX_STRETCH = 16.0


class Learned(NamedTuple):
    """What learning came to.

    Attributes
    ----------
    ladder : Ladder or None
        Fitted to all draws, not yet measured itself; its rejections are those of the round before. None if not even
        one round could be paid for.
    draws : Draws
        The survey's and the rounds'.
    surprise : float
        Share of the last round's draws that no component explained.
    """

    ladder: Ladder | None
    draws: Draws
    surprise: float


def learn(pilot: PilotGroup, survey: Survey, kernel: AbstractKernel, rng: np.random.Generator) -> Learned:
    """Let a mixture reference learn from its own tempered draws, round after round.

    Parameters
    ----------
    pilot
        Charged for the rounds.
    survey
        Its draws are the first particles.
    kernel
        Local kernel. MALA's steps, and a random walk's, start at the survey's size.
    rng
    """
    draws, fit, surprise = survey.draws, survey.fit, 0.0
    step = _first_step(survey, kernel)
    n = pilot.n_replicas or FIRST_REPLICAS
    ladder = Ladder(_reference(fit), fit, np.linspace(0, 1, n), np.full(n, step), np.zeros(n - 1))
    is_measured, stretch, log_z = False, 1.0, np.inf
    for number in range(MAX_ROUNDS):
        starts = spread_starts(draws, fit, pilot.n_chains, rng)
        measured = pilot.run("learn", ladder, kernel, int(stretch * FIRST_ROUND) * 2**number, starts)
        if measured is None:
            break
        is_measured = True
        n_kept, n_chains, dim = measured.cold.shape
        cold, cold_log_density = measured.cold.reshape(-1, dim), measured.cold_log_density.reshape(-1)
        # Jittered trajectories leave thin places by themselves.
        is_covered = kernel.is_jittered or _is_covered(fit, cold, cold_log_density)
        surprise = fit.wide_share(np.unique(cold, axis=0))
        draws = draws.joined(cold, cold_log_density, np.tile(np.arange(n_chains), n_kept))
        fit = fit_mixture(draws.positions, draws.chains, survey.centre, survey.width, rng, groups=draws.groups)
        ladder = rescheduled(ladder._replace(reference=_reference(fit), fit=fit), measured, pilot.n_replicas)
        # Where local moves are slow, a short round says only what the reference knew already.
        tau = local_autocorrelation(float(measured.jump[-1]), fit.local_variance())
        stretch = float(np.clip(tau / SLOW, stretch, MAX_STRETCH))
        is_steady, log_z = abs(pilot.rounds[-1].log_z - log_z) <= STEADY / stretch, pilot.rounds[-1].log_z
        cost = restart_cost(float(measured.rejection.sum()), len(measured.rejection) + 1)
        next_round = pilot.n_chains * len(ladder.betas) * int(stretch * FIRST_ROUND) * 2 ** (number + 1)
        is_worth_it = TYPICAL_RESTARTS * (cost - LEAST_COST) >= next_round
        if number >= 1 and is_steady and is_covered and surprise <= FEW_SURPRISES and not is_worth_it:
            break
    return Learned(ladder if is_measured else None, draws, surprise)


def _first_step(survey: Survey, kernel: AbstractKernel) -> float:
    if isinstance(kernel, HMC):
        return float(kernel.step_size)
    step = float(survey.annealed.step_sizes[-1]) if survey.annealed is not None else survey.density.dim ** (-1 / 3)
    return step if isinstance(kernel, MALA) else float(np.sqrt(2 * step))


def _is_covered(fit: MixtureFit, positions: np.ndarray, log_density: np.ndarray) -> bool:
    """Return whether the fit, its wider copies left out, is nowhere so thin that a chain which gets there stays."""
    log_weights = log_density - fit.log_density(positions)
    excess = np.quantile(log_weights, [0.99, 1.0]) - np.median(log_weights)
    return bool(excess[0] <= THIN and excess[1] <= THINNEST)


def mixture_of(fit: MixtureFit) -> dict[str, np.ndarray]:
    """Return the arguments of a `MixtureReference`: the fit, with wider copies of its components.

    The copies bound the weight of draws beyond a component's rim, at the price of a few more rejections.
    """
    wider = 1 + WIDER_BY / np.sqrt(fit.means.shape[1])
    n_covariances, share = len(fit.scale_trils) - 1, WIDER_WEIGHT / (1 - fit.weights[-1])
    narrow = fit.weights[:-1]
    return {
        "means": np.concatenate([fit.means[:-1], fit.means]),
        "scale_trils": np.concatenate([wider * fit.scale_trils[:-1], fit.scale_trils]),
        "labels": np.concatenate([fit.labels[:-1], fit.labels + n_covariances]),
        "weights": np.concatenate([share * narrow, (1 - share) * narrow, fit.weights[-1:]]),
    }


def _reference(fit: MixtureFit) -> MixtureReference:
    return MixtureReference(**mixture_of(fit))
