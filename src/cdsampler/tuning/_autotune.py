"""From a density to a plan: survey, learn, compare, verify, allocate."""

from collections.abc import Callable

import jax
import numpy as np

from cdsampler.charts import AffineChart, TransformedLogDensity
from cdsampler.density import AbstractLogDensity
from cdsampler.errors import InvalidInputError
from cdsampler.journal import AbstractJournal
from cdsampler.kernels import HMC, MALA, AbstractKernel, RandomWalk
from cdsampler.paths import AbstractReference, GaussianReference, PriorReference, equal_rejection_schedule
from cdsampler.tuning._account import Account
from cdsampler.tuning._annealing import Annealed, anneal
from cdsampler.tuning._basins import evaluate_all
from cdsampler.tuning._checks import take_checks
from cdsampler.tuning._draws import Draws
from cdsampler.tuning._first_look import find_anchor, first_look
from cdsampler.tuning._fit import MixtureFit, fit_mixture
from cdsampler.tuning._freezing import frozen, frozen_local
from cdsampler.tuning._learning import learn
from cdsampler.tuning._local import LocalTrial, is_long, try_jittered, try_local
from cdsampler.tuning._plan import Plan, RoundSummary
from cdsampler.tuning._rounds import interpolated_steps
from cdsampler.tuning._scan import scan
from cdsampler.tuning._slowness import SLOW, local_autocorrelation
from cdsampler.tuning._survey import Survey, anneal_from_prior, survey
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
# Trajectory lengths of HMC that are tried where MALA mixes slowly.
TRAJECTORIES = (4, 12)


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
    prior: PriorReference | None = None,
    on_round: Callable[[RoundSummary], None] = lambda summary: None,
    journal: AbstractJournal | None = None,
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
    prior
        Of the model, where it can be sampled: a further reference, which is used if it makes restarts cheapest.
    on_round
        Called after each round of tempering.
    journal
        Answers the expensive calls that an earlier session has made already, in order. All else is done again, so it
        must be deterministic.

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
    account = Account(limit, reserve=0 if limit is None else limit // 3, journal=journal)
    effort = 1.0 if limit is None else min(1.0, limit / FULL_EFFORT)
    keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), 2**32 - 1), 3)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(keys[2])))
    key_mode, key_survey = jax.random.split(keys[0])
    kernel: AbstractKernel = MALA(1.0) if density.has_gradient else RandomWalk(1.0)
    ridge, from_prior = None, None
    centre = find_anchor(density, start, scale, key_mode, account, prior) if anchor is None else anchor
    if reference_scale is None:
        look = first_look(density, centre, key_survey, account, scale=scale, effort=effort)
        if prior is not None:
            from_prior = anneal_from_prior(look, prior, jax.random.fold_in(key_survey, 2**31), account, effort)
        # Where the way from the prior is short, it doesn't matter how long those from wide Gaussians are.
        if from_prior is None or is_long(len(from_prior.betas)):
            if n_replicas is None:
                local = try_local(density, look, jax.random.fold_in(keys[1], 2**31), account, on_round)
                if local is not None:
                    return frozen_local(density, look, local, account)
            ridge = try_jittered(density, look, jax.random.fold_in(keys[1], 2**31 + 1), account, on_round)
        found = survey(look, key_survey, account, effort=effort, from_prior=from_prior)
        if ridge is not None:
            found, kernel = _with_ridge(found, ridge, account), ridge.kernel
    else:
        found = _forced(density, centre, reference_scale, key_survey, account, effort, rng)
    n_chains = max(2 * int(effort * N_PILOT_CHAINS / 2), 8)
    pilot = PilotGroup(
        found.density, found.centre, keys[1], account, n_chains=n_chains, n_replicas=n_replicas, on_round=on_round
    )
    draws, surprise, learned = found.draws, 0.0, None
    wide = _wide_ladder(found, n_replicas, prior)
    if not isinstance(kernel, MALA):
        wide = _with_lengths(wide)
    if reference_scale is None:
        learned, draws, surprise = learn(pilot, found, kernel, rng)
    ladder = wide if learned is None or _is_cheaper(wide, learned) else learned
    starts = spread_starts(draws, ladder.fit or found.fit, n_chains // 2, rng)
    length = _first_length(ladder)
    account.release()
    verified = verify(pilot, ladder, kernel, starts, length)
    if verified is None and ridge is not None:  # trajectories are dear: single steps may still be paid for
        kernel, ridge = MALA(1.0), None
        ladder = ladder._replace(step_sizes=0.5 * ladder.step_sizes**2)
        verified = verify(pilot, ladder, kernel, starts, length)
    if verified is None:
        spent, round_cost = int(account.spent.count), n_chains * len(ladder.betas) * (length + len(ladder.betas) + 1)
        raise InvalidInputError(
            f"max_evaluations={max_evaluations} is too small: tuning may take {limit} of it, has made {spent} "
            f"evaluations and can't pay for a round of {n_chains} chains with {len(ladder.betas)} replicas. Allow "
            f"about {int((spent + round_cost) / TUNING_SHARE)}."
        )
    if isinstance(kernel, MALA):
        kernel, verified = _faster_kernel(pilot, verified, starts, found.fit)
    checks = take_checks(found, verified, draws, surprise, density, rng)
    return frozen(density, found, verified, kernel, pilot, checks, ridge)


def _with_ridge(found: Survey, ridge: LocalTrial, account: Account) -> Survey:
    """Return the survey with the ends of chains that got along where annealed ones didn't."""
    positions = jax.vmap(found.chart.to_chart)(jax.vmap(lambda q: ridge.chart.to_target(q)[0])(ridge.positions))
    points, cost = account.journal.call("evaluate", evaluate_all, found.density, positions.astype(found.density.dtype))
    account.charge(cost)
    ends = np.asarray(points.position, np.float64), np.asarray(points.target.log_density, np.float64)
    return found._replace(draws=found.draws.joined(*ends, np.arange(len(positions))))


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
    annealed = account.journal.call_in_parts(
        "anneal",
        anneal,
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


def _wide_ladder(found: Survey, n_replicas: int | None, prior: PriorReference | None) -> Ladder:
    """Return the ladder of the Gaussian reference or, if swaps from it are fewer, of the prior."""
    gaussian = GaussianReference(found.width)
    if prior is not None and found.from_prior is not None:
        own = _annealed_ladder(prior.seen_through(found.chart), found.from_prior, n_replicas)
        if found.annealed is None or found.from_prior.rejection.sum() <= found.annealed.rejection.sum():
            return own
    if found.annealed is None:
        n = n_replicas or 8
        step = found.density.dim ** (-1 / 3)
        return Ladder(gaussian, None, np.linspace(0, 1, n), np.full(n, step), np.full(n - 1, 0.5))
    return _annealed_ladder(gaussian, found.annealed, n_replicas)


def _annealed_ladder(reference: AbstractReference, annealed: Annealed, n_replicas: int | None) -> Ladder:
    """Return the ladder with the schedule that an annealing measured for free."""
    barrier = float(annealed.rejection.sum())
    n = n_replicas or cheapest_count(barrier)
    betas = equal_rejection_schedule(annealed.betas, annealed.rejection, n)
    steps = interpolated_steps(betas, annealed.betas, annealed.step_sizes)
    return Ladder(reference, None, betas, steps, np.full(n - 1, barrier / (n - 1)))


def _with_lengths(ladder: Ladder) -> Ladder:
    """Return the ladder with steps that are lengths and go as far as MALA's, whose step h is one of √(2h)."""
    return ladder._replace(step_sizes=np.sqrt(2 * ladder.step_sizes))


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
        trial = _with_lengths(ladder)
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
