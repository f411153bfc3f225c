"""From a density to a plan: survey, learn, compare, verify, allocate."""

from collections.abc import Callable

import jax
import numpy as np

from cdsampler.charts import AffineChart, TransformedLogDensity
from cdsampler.density import AbstractLogDensity, coordinate_names
from cdsampler.errors import InvalidInputError
from cdsampler.kernels import HMC, MALA, AbstractKernel
from cdsampler.paths import GaussianReference, equal_rejection_schedule
from cdsampler.tuning._account import Account
from cdsampler.tuning._annealing import anneal
from cdsampler.tuning._checks import Checks, take_checks
from cdsampler.tuning._draws import Draws
from cdsampler.tuning._first_look import FirstLook, find_anchor, first_look
from cdsampler.tuning._fit import MixtureFit, fit_mixture
from cdsampler.tuning._learning import learn, mixture_of
from cdsampler.tuning._local import LocalTrial, try_local
from cdsampler.tuning._plan import Plan, RoundSummary
from cdsampler.tuning._rounds import interpolated_steps
from cdsampler.tuning._scan import scan
from cdsampler.tuning._slowness import SLOW, local_autocorrelation
from cdsampler.tuning._survey import Survey, survey
from cdsampler.tuning._tempering import (
    Ladder,
    PilotGroup,
    Verified,
    cheapest_count,
    restart_cost,
    spread_starts,
    verify,
)

N_PILOT_CHAINS = 64
# Tuning gets this share of a limited budget, and shrinks its groups below this many evaluations.
TUNING_SHARE, FULL_EFFORT = 0.4, 40_000
# Restarts that the burn-in waits for, and between two draws of one chain.
BURN_IN_RESTARTS, RESTARTS_PER_DRAW = 3.0, 2.0
MAX_TRANSPORT_STEPS = 64
# Trajectory lengths of HMC that are tried where MALA mixes slowly.
TRAJECTORIES = (4, 12)
# Autocorrelation times before the first draw of chains that start where the pilot's had forgotten their starts.
BURN_IN_LOCAL = 2


def make_plan(
    density: AbstractLogDensity,
    *,
    seed: int = 0,
    start: np.ndarray | None = None,
    anchor: np.ndarray | None = None,
    scale: float = 1.0,
    reference_scale: float | None = None,
    n_replicas: int | None = None,
    max_evaluations: int | None = None,
    on_round: Callable[[RoundSummary], None] = lambda summary: None,
) -> Plan:
    """Choose everything that a production run needs, on a pilot group of chains, and freeze it.

    Parameters
    ----------
    density
        Target.
    seed
        The pilot's stream is none of the production's.
    start : array_like, shape (dim,), optional
        Where the mode search starts; default the origin or, if the density isn't finite there, the best of some draws.
    anchor : array_like, shape (dim,), optional
        Where the survey, or a forced reference, is centred; default the mode that the search finds.
    scale
        Standard deviation, in target units, to assume where the density doesn't tell; a hint.
    reference_scale
        If given, the reference is forced to be `N(anchor, reference_scale² I)`, and nothing is learned.
    n_replicas
        Default chosen.
    max_evaluations
        Limit for the whole job; tuning stays within two fifths of it.
    on_round
        Called after each round of tempering.

    Returns
    -------
    Plan

    Raises
    ------
    InvalidInputError
        A bad argument, or a budget that doesn't pay for one round.
    DensityError
        The log density is not finite at any start, or plus infinity somewhere.
    """
    limit = None if max_evaluations is None else int(TUNING_SHARE * max_evaluations)
    # Without a measured round there is no plan, so that one's share is kept from survey and learning.
    account = Account(limit, reserve=0 if limit is None else limit // 3)
    effort = 1.0 if limit is None else min(1.0, limit / FULL_EFFORT)
    keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), 2**32 - 1), 3)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(keys[2])))
    key_mode, key_survey = jax.random.split(keys[0])
    centre = find_anchor(density, start, scale, key_mode, account) if anchor is None else anchor
    if reference_scale is None:
        look = first_look(density, centre, key_survey, account, scale=scale, effort=effort)
        local = None
        if n_replicas is None:
            local = try_local(density, look, jax.random.fold_in(keys[1], 2**31), account, on_round)
        if local is not None:
            return _frozen_local(density, look, local, account)
        found = survey(look, key_survey, account, effort=effort)
    else:
        found = _forced(density, centre, reference_scale, key_survey, account, effort, rng)
    n_chains = max(2 * int(effort * N_PILOT_CHAINS / 2), 8)
    pilot = PilotGroup(
        found.density, found.centre, keys[1], account, n_chains=n_chains, n_replicas=n_replicas, on_round=on_round
    )
    draws, surprise, learned = found.draws, 0.0, None
    wide = _wide_ladder(found, n_replicas)
    if reference_scale is None:
        learned, draws, surprise = learn(pilot, found, rng)
    ladder = wide if learned is None or _is_cheaper(wide, learned) else learned
    starts = spread_starts(draws, ladder.fit or found.fit, n_chains // 2, rng)
    length = _first_length(ladder)
    account.release()
    verified = verify(pilot, ladder, MALA(1.0), starts, length)
    if verified is None:
        spent, round_cost = int(account.spent.count), n_chains * len(ladder.betas) * (length + len(ladder.betas) + 1)
        raise InvalidInputError(
            f"max_evaluations={max_evaluations} is too small: tuning may take {limit} of it, has made {spent} "
            f"evaluations and can't pay for a round of {n_chains} chains with {len(ladder.betas)} replicas. Allow "
            f"about {int((spent + round_cost) / TUNING_SHARE)}."
        )
    kernel, verified = _faster_kernel(pilot, verified, starts, found.fit)
    checks = take_checks(found, verified, draws, surprise, density, rng)
    return _frozen(density, found, verified, kernel, pilot, checks)


def _forced(
    density: AbstractLogDensity,
    anchor: np.ndarray,
    scale: float,
    rng_key: jax.Array,
    account: Account,
    effort: float,
    rng: np.random.Generator,
) -> Survey:
    """Return the survey of a reference that the caller insists on: one annealing from it, in units of its width.

    A scan with wider references gives the pilot starts that this one may not reach: whether it does is what the checks
    then see.
    """
    chart = AffineChart(anchor, scale * np.eye(density.dim))
    seen = TransformedLogDensity(density, chart)
    n = max(int(128 * effort), 16)
    origin = np.zeros(density.dim)
    annealed = anneal(
        seen,
        GaussianReference(1.0),
        origin,
        rng_key,
        n_chains=n,
        step_size=density.dim ** (-1 / 3),
        max_evaluations=account.share(0.5),
    )
    account.charge(annealed.evaluations)
    if len(annealed.positions) == 0:
        raise InvalidInputError(
            f"None of {n} draws of the reference N(anchor, {scale:g}² I) lies inside the support: move or widen it."
        )
    draws = Draws.none(density.dim).joined(annealed.positions, annealed.log_density, np.arange(n))
    wider = scan(seen, jax.random.fold_in(rng_key, 1), account, effort)
    draws = draws.joined(wider.positions, wider.log_density, np.arange(len(wider.positions)))
    fit = fit_mixture(draws.positions, draws.chains, origin, 1.0, rng)
    return Survey(chart, seen, origin, 1.0, annealed, draws, fit, unseen=0.0, is_bounded=wider.is_bounded)


def _wide_ladder(found: Survey, n_replicas: int | None) -> Ladder:
    """Return the ladder of the Gaussian reference, with the schedule that the annealing measured for free."""
    reference = GaussianReference(found.width)
    if found.annealed is None:
        n = n_replicas or 8
        step = found.density.dim ** (-1 / 3)
        return Ladder(reference, None, np.linspace(0, 1, n), np.full(n, step), np.full(n - 1, 0.5))
    annealed = found.annealed
    barrier = float(annealed.rejection.sum())
    n = n_replicas or cheapest_count(barrier)
    betas = equal_rejection_schedule(annealed.betas, annealed.rejection, n)
    steps = interpolated_steps(betas, annealed.betas, annealed.step_sizes)
    return Ladder(reference, None, betas, steps, np.full(n - 1, barrier / (n - 1)))


def _first_length(ladder: Ladder) -> int:
    return max(32, 4 * len(ladder.betas))


def _is_cheaper(wide: Ladder, learned: Ladder) -> bool:
    cost_wide = restart_cost(float(wide.rejection.sum()), len(wide.betas))
    return cost_wide < restart_cost(float(learned.rejection.sum()), len(learned.betas))


def _faster_kernel(
    pilot: PilotGroup, verified: Verified, starts: np.ndarray, fit: MixtureFit
) -> tuple[AbstractKernel, Verified]:
    """Return MALA, or HMC where MALA is slow and HMC moves farther per evaluation on the geometric mean over β."""
    ladder, measured = verified.ladder, verified.measured
    if local_autocorrelation(float(measured.jump[-1]), fit.local_variance()) <= SLOW:
        return MALA(1.0), verified
    first = int(ladder.reference.is_proper)
    best: AbstractKernel = MALA(1.0)
    gain = np.log(np.maximum(measured.jump[first:], 1e-300))
    for length in TRAJECTORIES:
        kernel = HMC(1.0, length)
        n = max(pilot.n_chains // 4, 8)
        trial = ladder._replace(step_sizes=np.sqrt(2 * ladder.step_sizes))
        tried = pilot.run(f"try HMC-{length}", trial, kernel, 24, starts[: n // 2], n_chains=n)
        if tried is None:
            break
        new = np.log(np.maximum(tried.jump[first:], 1e-300) / length)
        if new.mean() > gain.mean():
            gain, best = new, kernel
            trial_ladder = ladder._replace(step_sizes=tried.step_sizes)
    if isinstance(best, MALA):
        return best, verified
    again = verify(pilot, trial_ladder, best, starts, _first_length(ladder))
    return (MALA(1.0), verified) if again is None else (best, again)


def _frozen_local(density: AbstractLogDensity, look: FirstLook, local: LocalTrial, account: Account) -> Plan:
    thinning = int(np.ceil(local.tau))
    typical = float(np.max(np.abs(local.log_density)))
    checks = Checks(
        is_bounded=look.scanned.is_bounded,
        resolution=float(np.finfo(density.dtype).eps) * typical,
        smallest_acceptance=local.acceptance,
        memory=local.memory,
    )
    return Plan(
        names=coordinate_names(density),
        shift=np.asarray(local.chart.shift, dtype=np.float64),
        scale_tril=np.asarray(local.chart.scale_tril, dtype=np.float64),
        centre=np.zeros(density.dim),
        width=1.0,
        mixture=None,
        betas=np.ones(1),
        step_sizes=np.asarray([local.kernel.step_size], dtype=np.float64),
        rejection=np.zeros(0),
        kernel="hmc",
        num_integration_steps=local.kernel.evaluations_per_step,
        restart_rate=1 / local.tau,
        burn_in=BURN_IN_LOCAL * thinning,
        thinning=thinning,
        n_transport=0,
        transport_step=0.0,
        walk=np.zeros((0, 1), np.int64),
        starts=local.positions,
        rounds=local.rounds,
        checks=checks,
        value_evaluations=int(account.spent.value),
        gradient_evaluations=int(account.spent.gradient),
    )


def _frozen(
    density: AbstractLogDensity,
    found: Survey,
    verified: Verified,
    kernel: AbstractKernel,
    pilot: PilotGroup,
    checks: Checks,
) -> Plan:
    ladder, measured = verified.ladder, verified.measured
    length = kernel.evaluations_per_step
    is_mala = isinstance(kernel, MALA)
    cold_step = float(measured.step_sizes[-1])
    langevin = cold_step if is_mala else 0.5 * cold_step**2
    tau = local_autocorrelation(float(measured.jump[-1]), found.fit.local_variance())
    n_transport = int(np.clip(np.ceil(tau * length), 1, MAX_TRANSPORT_STEPS))
    per_restart = 1 / verified.restart_rate if verified.restart_rate > 0 else 16.0 * len(ladder.betas)
    ramp = len(ladder.betas) - 1
    spent = pilot.account.spent
    return Plan(
        names=coordinate_names(density),
        shift=np.asarray(found.chart.shift, dtype=np.float64),
        scale_tril=np.asarray(found.chart.scale_tril, dtype=np.float64),
        centre=found.centre,
        width=float(found.width),
        mixture=None if ladder.fit is None else mixture_of(ladder.fit),
        betas=ladder.betas,
        step_sizes=measured.step_sizes,
        rejection=measured.rejection,
        kernel="mala" if is_mala else "hmc",
        num_integration_steps=length,
        restart_rate=verified.restart_rate,
        burn_in=ramp + int(np.ceil(BURN_IN_RESTARTS * per_restart)),
        thinning=max(1, int(np.ceil(RESTARTS_PER_DRAW * per_restart))),
        n_transport=n_transport,
        transport_step=langevin,
        walk=measured.walk,
        starts=None,
        rounds=tuple(pilot.rounds),
        checks=checks,
        value_evaluations=int(spent.value),
        gradient_evaluations=int(spent.gradient),
    )
