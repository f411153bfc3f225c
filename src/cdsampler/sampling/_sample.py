import dataclasses
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler.charts import TransformedLogDensity
from cdsampler.density import AbstractLogDensity, Evaluations, LogDensity, coordinate_names
from cdsampler.errors import InvalidInputError, SamplingWarning
from cdsampler.samplers import CDS, Harvest
from cdsampler.sampling._result import Result
from cdsampler.sampling._run import Progress, check_counts, grouping, harvest_cost, run
from cdsampler.sampling._warnings import RunWarning, check_warnings, effectiveness_warnings
from cdsampler.tuning import Plan, RoundSummary, make_plan

USUAL_CHAINS, FEWEST_CHAINS, MOST_CHAINS = 64, 32, 128
# With no limit, production is repeated with draws farther apart if they are worth less than this share of their number.
ENOUGH, MOST_STRETCH, SECOND_RUN = 0.5, 8, 2**62
# Below this many evaluations nothing can be tuned.
LEAST_TUNING = 2000


def sample(
    log_density: Callable[..., Any] | AbstractLogDensity,
    dim: int | None = None,
    n_samples: int = 1000,
    *,
    seed: int = 0,
    start: Any = None,
    anchor: Any = None,
    scale: float = 1.0,
    independent: bool = False,
    budget: int | None = None,
    max_evaluations: int | None = None,
    plan: Plan | None = None,
    reference_scale: float | None = None,
    replicas: int | None = None,
    names: Sequence[str] | None = None,
    value_and_grad: Callable[..., Any] | None = None,
    chunk_size: int | None = None,
    on_round: Callable[[RoundSummary], None] = lambda summary: None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Result:
    """Draw samples from an unnormalised density: tune on a pilot, freeze, produce, and say what to distrust.

    Parameters
    ----------
    log_density
        A JAX function from a position of shape (dim,) to a scalar, or a density object.
    dim
        Number of coordinates; not needed with a density object.
    n_samples
        Draws wanted. If they can't be shared out evenly between chains there are a few more.
    seed
        Same seed, same samples bit for bit on one kind of device, whatever the chunk size.
    start : array_like, shape (dim,), optional
        Where the search for a mode starts: a point inside the support.
    anchor : array_like, shape (dim,), optional
        Where the reference is centred; default the mode that the search finds.
    scale
        Rough standard deviation of the parameters; only used where the density doesn't tell.
    independent
        One chain per sample (the paper's mode), instead of some tens of chains with many draws each.
    budget
        Evaluations per sample in independent mode, tuning apart; default what three restarts need.
    max_evaluations
        Hard limit on the total, tuning included. Without it, production is repeated with draws up to 8 times as far
        apart if they prove to be worth less than half of their number.
    plan
        Reuse the plan of an earlier result: no tuning.
    reference_scale
        Force the reference `N(anchor, reference_scale² I)`; by default it is learned.
    replicas
        Force the number of replicas.
    names
        Of the coordinates.
    value_and_grad
        See `LogDensity`.
    chunk_size
        Most chains in flight.
    on_round
        Called after each tuning round.
    on_progress
        Called several times a second in production.

    Returns
    -------
    Result
        With its `plan`, `ess`, `rhat` and `warnings`; each warning is also issued as a `SamplingWarning`.

    Raises
    ------
    InvalidInputError
        A bad argument, or a budget that is too small; before any expensive work where that can be known.
    DensityError
        The density isn't finite at any start, is plus infinity somewhere, or doesn't return a scalar.
    """
    density = _density(log_density, dim, names, value_and_grad)
    check_counts(n_samples, seed, chunk_size)
    _check(n_samples, scale, independent, budget, max_evaluations, reference_scale, replicas)
    start, anchor = _point(density, "start", start), _point(density, "anchor", anchor)
    if plan is not None and any(given is not None for given in (start, anchor, reference_scale, replicas)):
        raise InvalidInputError(
            "start, anchor, reference_scale and replicas belong to tuning: leave them out with a plan."
        )
    tuning = Evaluations.zero().total()
    if plan is None:
        plan = make_plan(
            density,
            seed=seed,
            start=start,
            anchor=anchor,
            scale=scale,
            reference_scale=reference_scale,
            n_replicas=replicas,
            max_evaluations=max_evaluations,
            on_round=on_round,
        )
        tuning = _charged(plan)
    elif plan.dim != density.dim:
        raise InvalidInputError(f"The plan is for {plan.dim} dimensions and the density has {density.dim}.")
    left = None if max_evaluations is None else max_evaluations - int(tuning.count)
    chain_count = n_samples if independent else n_chains_for(n_samples)
    n_draws = 1 if independent else -(-n_samples // chain_count)
    seen = TransformedLogDensity(density, plan.chart())

    def produce(frozen: Plan, run_seed: int) -> Result:
        sampler, harvest, shortage = _allocated(frozen, seen, chain_count, n_draws, budget, left)
        made = run(
            sampler,
            seen,
            chain_count,
            anchor=frozen.centre,
            seed=run_seed,
            tuning_evaluations=tuning,
            chunk_size=chunk_size,
            harvest=harvest,
            on_progress=on_progress,
        )
        return _in_target_coordinates(made, frozen, coordinate_names(density), shortage)

    result = produce(plan, seed)
    if left is None and not result.is_partial:
        result = _repeated_if_correlated(result, produce, seed)
    for warning in result.warnings:
        warnings.warn(str(warning), SamplingWarning, stacklevel=2)
    return result


def _repeated_if_correlated(first: Result, produce: Callable[[Plan, int], Result], seed: int) -> Result:
    """Return the draws, or, where they proved correlated, those of a second production with draws farther apart.

    The first production is charged as spare: carrying its draws on would let them decide how many follow.
    """
    plan, n = first.plan, len(first.positions)
    effective = _smallest_effective_size(first)
    if plan is None or effective is None or effective >= ENOUGH * n:
        return first
    stretch = min(int(np.ceil(n / max(effective, 1.0))), MOST_STRETCH)
    try:
        second = produce(dataclasses.replace(plan, thinning=stretch * plan.thinning), seed ^ SECOND_RUN)
    except KeyboardInterrupt:
        return first
    if second.is_partial:
        return first
    spent = second.spare_evaluations + first.spare_evaluations + int(first.evaluations.total().count)
    return dataclasses.replace(second, seed=seed, spare_evaluations=spent)


def _smallest_effective_size(result: Result) -> float | None:
    """Return the smallest effective size of a coordinate; None if chains are too short, or all constant, to tell."""
    sizes = result.ess[np.isfinite(result.ess)] if result.samples.shape[1] >= 4 else np.zeros(0)
    return float(sizes.min()) if len(sizes) else None


def n_chains_for(n_samples: int) -> int:
    """Return how many chains share the draws: a divisor near 64 if there is one, and never more than the draws."""
    if n_samples <= USUAL_CHAINS:
        return n_samples
    divisors = [n for n in range(FEWEST_CHAINS, MOST_CHAINS + 1) if n_samples % n == 0]
    return min(divisors, key=lambda n: abs(n - USUAL_CHAINS), default=USUAL_CHAINS)


def _density(
    log_density: Any, dim: int | None, names: Sequence[str] | None, value_and_grad: Callable[..., Any] | None
) -> AbstractLogDensity:
    if isinstance(log_density, AbstractLogDensity):
        if dim is not None and dim != log_density.dim:
            raise InvalidInputError(f"dim={dim}, but the density has {log_density.dim} coordinates: leave dim out.")
        if names is not None or value_and_grad is not None:
            raise InvalidInputError("names and value_and_grad belong to the density object: give them to LogDensity.")
        return log_density
    if dim is None:
        raise InvalidInputError("dim is missing: give the number of coordinates of the log density.")
    return LogDensity(log_density, dim, value_and_grad=value_and_grad, names=None if names is None else tuple(names))


def _check(
    n_samples: int,
    scale: float,
    independent: bool,
    budget: int | None,
    max_evaluations: int | None,
    reference_scale: float | None,
    replicas: int | None,
) -> None:
    for name, value in (("scale", scale), ("reference_scale", reference_scale)):
        if value is not None and not (np.isfinite(value) and value > 0):
            raise InvalidInputError(f"{name} must be positive and finite, got {value!r}.")
    if replicas is not None and replicas < 2:
        raise InvalidInputError(f"Tempering needs at least 2 replicas, got {replicas}: leave it out to have it chosen.")
    if budget is not None and not independent:
        raise InvalidInputError(
            "budget is per sample and needs independent=True; to limit the total give max_evaluations."
        )
    if budget is not None and budget < 1:
        raise InvalidInputError(f"budget must be at least 1, got {budget}.")
    least = LEAST_TUNING + 2 * n_samples
    if max_evaluations is not None and max_evaluations < least:
        raise InvalidInputError(
            f"max_evaluations={max_evaluations} is too small for {n_samples} samples: allow at least {least}."
        )


def _point(density: AbstractLogDensity, name: str, given: Any) -> np.ndarray | None:
    if given is None:
        return None
    point = np.asarray(given, dtype=np.float64)
    if point.shape != (density.dim,) or not np.all(np.isfinite(point)):
        raise InvalidInputError(f"{name} must be {density.dim} finite numbers, got {given!r}.")
    return point


def _charged(plan: Plan) -> Evaluations:
    counts = (plan.value_evaluations, plan.gradient_evaluations, 0, 0, 0)
    return Evaluations(*(np.asarray(count, dtype=np.int64) for count in counts))  # type: ignore[arg-type]


def _allocated(
    plan: Plan, seen: AbstractLogDensity, n_chains: int, n_draws: int, budget: int | None, left: int | None
) -> tuple[CDS, Harvest, list[RunWarning]]:
    """Return the sampler with its steps set, the spacing of draws, and a warning if the budget falls short."""
    sampler = plan.sampler()
    if n_draws == 1 and budget is not None:
        sampler = sampler.with_budget(budget)
        burn_in, thinning = int(sampler.stage1.n_steps), 0
    else:
        burn_in, thinning = plan.burn_in, plan.thinning if n_draws > 1 else 0

    def build(burn: int, thin: int) -> tuple[CDS, Harvest]:
        steps = burn + (n_draws - 1) * thin
        return eqx.tree_at(lambda s: s.stage1, sampler, sampler.stage1.with_steps(steps)), Harvest(n_draws, thin)

    wanted = build(burn_in, thinning)
    if left is None:
        return *wanted, []
    executed = math.prod(grouping(sampler, seen, n_chains, wanted[1]))
    if harvest_cost(*wanted) * executed <= left:
        return *wanted, []
    base = harvest_cost(*build(0, 0))
    affordable = (left // executed - base) // sampler.stage1.cost_step()
    if affordable < 1:
        raise InvalidInputError(
            f"max_evaluations is too small: {left} are left after tuning, and {n_chains} chains with {n_draws} draws "
            f"each need at least {(base + sampler.stage1.cost_step()) * executed}."
        )
    share = affordable / max(burn_in + (n_draws - 1) * thinning, 1)
    thin = int(share * thinning)
    shorter = build(max(affordable - (n_draws - 1) * thin, 0), thin)
    restarts = affordable * plan.restart_rate / n_draws
    warning = RunWarning(
        "budget-too-small",
        f"max_evaluations pays for {share:.0%} of the steps that good draws need ({restarts:.2g} restarts per draw).",
        "Raise it, or ask for fewer samples.",
    )
    return *shorter, [warning]


def _in_target_coordinates(result: Result, plan: Plan, names: Sequence[str], shortage: list[RunWarning]) -> Result:
    chart = plan.chart()
    flat = jnp.asarray(result.positions)
    positions, log_det = jax.vmap(chart.to_target)(flat)
    mapped = dataclasses.replace(
        result,
        samples=np.asarray(positions).reshape(result.samples.shape),
        log_density=result.log_density - np.asarray(log_det[0]),
        names=tuple(names),
        plan=plan,
    )
    more = check_warnings(plan.checks) + shortage
    effective = _smallest_effective_size(mapped)
    if effective is not None and np.isfinite(mapped.rhat).any():
        more += effectiveness_warnings(effective, mapped.log_density.shape, float(np.nanmax(mapped.rhat)))
    return dataclasses.replace(mapped, warnings=tuple([*mapped.warnings, *more]))
