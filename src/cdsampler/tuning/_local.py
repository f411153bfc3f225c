"""Where local moves are slow but do reach everything, long trajectories alone are cheaper than any tempering.

Tempering pays for a replica at every β. On a target with one large, rugged basin (a liquid, say) those replicas bring
nothing that trajectories of the cold chain don't reach themselves. So where the survey finds that local moves are slow,
chains from its scattered draws, and from the mode, are run by Hamiltonian Monte Carlo; if they forget where they
started, that is the plan.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array, PRNGKey
from cdsampler.charts import AffineChart, TransformedLogDensity
from cdsampler.density import AbstractLogDensity, Point, check_bounded
from cdsampler.kernels import HMC, MALA
from cdsampler.tuning._account import Account
from cdsampler.tuning._agreement import energy_test
from cdsampler.tuning._basins import evaluate_all
from cdsampler.tuning._first_look import FirstLook
from cdsampler.tuning._plan import RoundSummary
from cdsampler.tuning._slowness import VERY_SLOW, local_autocorrelation
from cdsampler.tuning._trajectories import Moments, trajectories, variances

N_CHAINS, N_FROM_MODE, N_FROM_BASINS = 32, 2, 8
# Leapfrog steps of the trajectories that are tried: the shorter in either coordinates, the longer in the better.
SHORT, LONG = 16, 48
# Mean squared jumps see mostly the fast coordinates, which short trajectories serve as well; the slow ones, on which
# the distance between draws depends, gain with length. So the longer must cost clearly more to be left out.
CLEARLY_DEARER = 1.25
# Trajectories of a trial: half of them adapt the step size.
TRIAL = 16
# Chains have forgotten their starts when this share of a variance, at most and on average, is between them, and when
# chains twice as long give the autocorrelation time to within this factor; those of stuck chains double.
FORGOTTEN, FORGOTTEN_ON_AVERAGE, STEADY = 0.7, 0.45, 1.6
# In chains twice as long, the ratio of the variance within chains to that between them is twice as large; in chains
# that are stuck it stays as it was, and nearly all of the variance is between them.
LEAST_GROWTH, STUCK, FIRST_ROUND, MOST_ROUNDS = 1.25, 0.97, 16, 10
# Trajectories of the first round after which chains may be called stuck; with jittered steps, most of which are short.
PATIENCE, JITTERED_PATIENCE = 64, 256
# Chains from other basins are elsewhere if the permutation test's p-value is below this.
DIFFERENT = 0.001
# A tempering would need a ladder as long as this.
MANY_TEMPERATURES = 100
# Trajectories with jittered steps, for densities whose scale varies from place to place: leapfrog steps, and the
# smallest step as a share of the largest.
JITTERED, SMALLEST_STEP = 64, 0.03
# Of what the account still allows; jittered chains leave enough for the survey.
LARGEST_SHARE, JITTERED_SHARE = 0.95, 0.5


class LocalTrial(NamedTuple):
    """Chains of Hamiltonian trajectories that forgot where they started.

    Attributes
    ----------
    chart : AffineChart
        Coordinates in which the trajectories have unit mass.
    kernel : HMC
    tau : float
        Integrated autocorrelation time of the slowest coordinates, in trajectories.
    memory : float
        Largest share of a coordinate's variance that is between chains: 1 for chains that stay where they start.
    acceptance : float
    positions : ndarray, shape (n_chains, dim)
        Where the chains ended, in chart coordinates.
    log_density : ndarray, shape (n_chains,)
        There, of the chart's density.
    rounds : tuple of RoundSummary
    """

    chart: AffineChart
    kernel: HMC
    tau: float
    memory: float
    acceptance: float
    positions: np.ndarray
    log_density: np.ndarray
    rounds: tuple[RoundSummary, ...]


class _Candidate(NamedTuple):
    """Coordinates and a trajectory length, with the chains that tried them."""

    density: TransformedLogDensity
    points: Point
    kernel: HMC
    cost: float


def try_local(
    density: AbstractLogDensity,
    look: FirstLook,
    rng_key: PRNGKey,
    account: Account,
    on_round: Callable[[RoundSummary], None],
) -> LocalTrial | None:
    """Run trajectories from scattered starts if local moves are slow; None if they aren't, or starts aren't forgotten.

    Parameters
    ----------
    density
        Target.
    look
        A first look at it.
    rng_key
    account
        Charged; the trial takes most of what is left, and is given up where that isn't enough.
    on_round
        Called after every round.
    """
    if not density.has_gradient or not _is_slow(look) or len(look.scanned.ends) == 0:
        return None
    end = int(account.spent.count) + LARGEST_SHARE * account.left_with_reserve
    candidates: list[_Candidate] = []
    keys = jax.random.split(rng_key, 4 + MOST_ROUNDS)
    starts = _starts(density, look, look.scanned.ends, keys[3])
    scale = np.maximum(np.asarray(starts, np.float64).std(axis=0), 1e-300)
    charts = (look.chart, AffineChart(np.asarray(starts, np.float64).mean(axis=0), np.diag(scale)))
    if int(account.spent.count) + N_CHAINS * (2 + 2 * TRIAL * SHORT) > end:
        return None
    for chart, key in zip(charts, keys, strict=False):
        seen = TransformedLogDensity(density, chart)
        points, cost = account.journal.call("evaluate", evaluate_all, seen, jax.vmap(chart.to_chart)(starts))
        account.charge(cost)
        kernel = HMC(0.5 * density.dim**-0.25, SHORT)
        candidates.append(_tried(seen, points, kernel, key, account))
    best = min(candidates, key=lambda c: c.cost)
    if int(account.spent.count) + N_CHAINS * _trial_length(LONG) * LONG <= end:
        longer = _tried(best.density, best.points, HMC(best.kernel.step_size, LONG), keys[2], account)
        best = longer if longer.cost <= CLEARLY_DEARER * best.cost else best
    return _verified(best, _n_from_basins(look), keys[4:], account, end, on_round)


def try_jittered(
    density: AbstractLogDensity,
    look: FirstLook,
    rng_key: PRNGKey,
    account: Account,
    on_round: Callable[[RoundSummary], None],
) -> LocalTrial | None:
    """Run trajectories of random step sizes where annealing is hard; None if it isn't, or starts aren't forgotten.

    Along a curved ridge or down a funnel, trajectories of any one step size are stuck in some places.

    Parameters
    ----------
    density, look, rng_key, account, on_round
        As for `try_local`.
    """
    if (
        not (density.has_gradient and is_long(look.scanned.n_temperatures))
        or len(look.scanned.positions) == 0
        or len(look.basins) > 0
    ):
        return None
    end = int(account.spent.count) + JITTERED_SHARE * account.left
    if int(account.spent.count) + N_CHAINS * JITTERED * (_trial_length(JITTERED) + 2 * FIRST_ROUND) > end:
        return None
    keys = jax.random.split(rng_key, 2 + MOST_ROUNDS)
    seen = TransformedLogDensity(density, look.chart)
    starts = _starts(density, look, look.scanned.positions, keys[0])
    points, cost = account.journal.call("evaluate", evaluate_all, seen, jax.vmap(look.chart.to_chart)(starts))
    account.charge(cost)
    kernel = HMC(density.dim**-0.25, JITTERED, SMALLEST_STEP)
    tried = _tried(seen, points, kernel, keys[1], account)
    return _verified(tried, 0, keys[2:], account, end, on_round)


def _is_slow(look: FirstLook) -> bool:
    """Return whether MALA takes long to forget where it was, or annealing took many temperatures."""
    jump = 2 * look.scanned.step_size * MALA.target_acceptance * look.density.dim
    return is_long(look.scanned.n_temperatures) or local_autocorrelation(jump, look.fit().local_variance()) > VERY_SLOW


def is_long(n_temperatures: int) -> bool:
    """Return whether annealing took so many temperatures that other ways are worth a trial."""
    return n_temperatures > MANY_TEMPERATURES


def _n_from_basins(look: FirstLook) -> int:
    """Return how many of the chains, the first ones, start in basins that annealing doesn't reach."""
    return N_FROM_BASINS if len(look.basins) else 0


def _starts(density: AbstractLogDensity, look: FirstLook, ends: np.ndarray, rng_key: PRNGKey) -> Array:
    """Return starts of which a few are at the mode, some in other basins, and the rest where annealed chains ended."""
    at_mode = look.draws.positions[np.flatnonzero(look.draws.groups == 0)[:N_FROM_MODE]]
    rng = np.random.default_rng(np.asarray(jax.random.key_data(rng_key)))
    order = np.concatenate([rng.permutation(len(ends)) for _ in range(-(-N_CHAINS // len(ends)))])
    basins = look.basins[np.resize(np.arange(len(look.basins)), _n_from_basins(look))]
    starts = np.concatenate([basins, at_mode, ends[order[: N_CHAINS - len(basins) - len(at_mode)]]])
    return jax.vmap(lambda q: look.chart.to_target(q)[0])(jnp.asarray(starts, density.dtype))


def _trial_length(length: int) -> int:
    """Return the trajectories of a trial: fewer long ones, and enough short ones to move at all."""
    return int(np.clip(TRIAL * SHORT // length, 8, 48))


def _tried(
    density: TransformedLogDensity, points: Point, kernel: HMC, rng_key: PRNGKey, account: Account
) -> _Candidate:
    """Return a candidate with its evaluations for an independent draw, from mean squared jumps."""
    n = _trial_length(kernel.evaluations_per_step)
    points, kernel, moments, cost = account.journal.call_in_parts(
        "try", trajectories, density, points, kernel, rng_key, n // 2, n
    )
    account.charge(cost)
    check_bounded(cost, points)
    within, between = variances(moments)
    variance, jump = within + between, np.asarray(moments.jump, np.float64)
    # Of the log density alone, and of all coordinates together.
    tau = max(
        local_autocorrelation(float(jump[part].sum()), max(float(variance[part].sum()), 1e-300))
        for part in (slice(-1, None), slice(0, -1))
    )
    return _Candidate(density, points, kernel, tau * kernel.evaluations_per_step)


def _verified(
    best: _Candidate,
    n_from_basins: int,
    keys: Array,
    account: Account,
    end: float,
    on_round: Callable[[RoundSummary], None],
) -> LocalTrial | None:
    """Run the best candidate in rounds of doubling length until starts are forgotten, or chains prove stuck.

    Where the account ends first, chains that do forget are still worth more than a tempering that it can't pay for.
    """
    points, kernel, n = best.points, best.kernel, FIRST_ROUND
    patience = JITTERED_PATIENCE if kernel.is_jittered else PATIENCE
    per_step = kernel.evaluations_per_step
    rounds: list[RoundSummary] = []
    trial: LocalTrial | None = None
    differed = False
    for key in keys:
        if int(account.spent.count) + N_CHAINS * per_step * n > end:
            return trial if len(rounds) > 1 else None
        points, kernel, moments, cost = account.journal.call_in_parts(
            "local", trajectories, best.density, points, kernel, key, n // 4, n
        )
        account.charge(cost)
        check_bounded(cost, points)
        within, between = variances(moments)
        shares = between / np.maximum(within + between, 1e-300)
        tau = (n - n // 4) * float(np.quantile(shares, 0.9))
        rounds.append(RoundSummary("local", 1, n, 0.0, 1 / max(tau, 1.0), np.nan, int(account.spent.count), per_step))
        on_round(rounds[-1])
        last, trial = trial, _trial(best._replace(points=points, kernel=kernel), moments, shares, tau, rounds)
        is_steady = last is not None and trial.tau <= STEADY * last.tau
        if trial.memory <= FORGOTTEN and shares.mean() <= FORGOTTEN_ON_AVERAGE and is_steady:
            if _basins_agree(moments, n_from_basins):
                return trial
            if differed:
                return None
            differed = True
        if n >= patience and last is not None and _is_stuck(last, trial, shares):
            return None
        n *= 2
    return None


def _basins_agree(moments: Moments, n_from_basins: int) -> bool:
    """Return whether chains from basins that annealing doesn't reach are where the others are.

    A few of many chains hardly add to the variance between them, wherever they are.
    """
    if n_from_basins == 0:
        return True
    means = np.asarray(moments.mean, np.float64)[:, None, :]
    _, p = energy_test(means[:n_from_basins], means[n_from_basins:], np.random.default_rng(0))
    return p >= DIFFERENT


def _is_stuck(last: LocalTrial, trial: LocalTrial, shares: np.ndarray) -> bool:
    before, after = (1 / max(t.memory, 1e-9) - 1 for t in (last, trial))
    return after < LEAST_GROWTH * before or not np.quantile(shares, 0.9) < STUCK


def _trial(
    candidate: _Candidate, moments: Moments, shares: np.ndarray, tau: float, rounds: list[RoundSummary]
) -> LocalTrial:
    chart = candidate.density.chart
    assert isinstance(chart, AffineChart)
    return LocalTrial(
        chart,
        candidate.kernel,
        max(tau, candidate.cost / candidate.kernel.evaluations_per_step, 1.0),
        float(shares.max()),
        float(moments.acceptance),
        np.asarray(candidate.points.position, np.float64),
        np.asarray(candidate.points.target.log_density, np.float64),
        tuple(rounds),
    )
