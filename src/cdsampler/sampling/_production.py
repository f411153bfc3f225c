"""Production with a frozen plan: chains and draws shared out, a limit kept, correlated draws drawn again."""

import dataclasses
import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from cdsampler.charts import TransformedLogDensity
from cdsampler.density import AbstractLogDensity, Evaluations, coordinate_names
from cdsampler.errors import InvalidInputError
from cdsampler.paths import PriorReference
from cdsampler.samplers import AbstractSampler, Harvest
from cdsampler.sampling._pool import Interrupted
from cdsampler.sampling._result import Result
from cdsampler.sampling._run import Progress, grouping, harvest_cost, run
from cdsampler.sampling._warnings import RunWarning, check_warnings, effectiveness_warnings
from cdsampler.tuning import Plan

USUAL_CHAINS, FEWEST_CHAINS, MOST_CHAINS = 64, 32, 128
# With no limit, production is repeated with draws farther apart if they are worth less than this share of their number.
ENOUGH, MOST_STRETCH, SECOND_RUN = 0.5, 8, 2**62
# Warnings of faults that longer chains don't mend.
BEYOND_REPAIR = {"reference-too-narrow", "reference-too-far", "improper"}


class Production:
    """What doesn't depend on the plan: the target, how many samples, and what they may cost.

    Parameters
    ----------
    density
        Target.
    prior
        Of its model, for plans that use it.
    n_samples
    tuning
        What the plan has cost.
    independent, budget, max_evaluations, chunk_size, on_progress, devices
        As for `sample`.
    """

    def __init__(
        self,
        density: AbstractLogDensity,
        prior: PriorReference | None,
        n_samples: int,
        tuning: Evaluations,
        *,
        independent: bool,
        budget: int | None,
        max_evaluations: int | None,
        chunk_size: int | None,
        on_progress: Callable[[Progress], None] | None,
        devices: Sequence[jax.Device] | None,
    ):
        self._density = density
        self._prior = prior
        self._tuning = tuning
        self._budget = budget
        self._left = None if max_evaluations is None else max_evaluations - int(tuning.count)
        self._n_chains = n_samples if independent else n_chains_for(n_samples)
        self._n_draws = 1 if independent else -(-n_samples // self._n_chains)
        self._chunk_size = chunk_size
        self._on_progress = on_progress
        self._devices = devices
        self._made = 0

    def run(self, plan: Plan, seed: int) -> Result:
        """Return the draws or, where they proved correlated and nothing forbids it, others that are farther apart."""
        first = self._once(plan, seed)
        effective, n = _smallest_effective_size(first), len(first.positions)
        is_beyond_repair = any(warning.code in BEYOND_REPAIR for warning in first.warnings)
        if (
            self._left is not None
            or first.is_partial
            or is_beyond_repair
            or effective is None
            or effective >= ENOUGH * n
        ):
            return first
        stretch = min(int(np.ceil(n / max(effective, 1.0))), MOST_STRETCH)
        # The first draws are charged as spare: if they went on they would decide how many follow.
        spent = first.spare_evaluations + int(first.evaluations.total().count)
        try:
            second = self._once(dataclasses.replace(plan, thinning=stretch * plan.thinning), seed ^ SECOND_RUN)
        except Interrupted as interrupt:
            return _interrupted(first, interrupt.made)
        except KeyboardInterrupt:
            return _interrupted(first, self._made)
        if second.is_partial:
            return _interrupted(first, second.spare_evaluations + int(second.evaluations.total().count))
        return dataclasses.replace(second, seed=seed, spare_evaluations=second.spare_evaluations + spent)

    def _once(self, plan: Plan, seed: int) -> Result:
        seen = TransformedLogDensity(self._density, plan.chart())
        tuned = plan.sampler(self._prior)
        sampler, harvest, shortage = _allocated(
            plan, tuned, seen, self._n_chains, self._n_draws, self._budget, self._left
        )
        self._made = 0
        made = run(
            sampler,
            seen,
            self._n_chains,
            anchor=plan.anchors,
            seed=seed,
            tuning_evaluations=self._tuning,
            chunk_size=self._chunk_size,
            harvest=harvest,
            on_progress=self._watch,
            devices=self._devices,
        )
        return _in_target_coordinates(made, plan, coordinate_names(self._density), shortage)

    def _watch(self, progress: Progress) -> None:
        self._made = progress.evaluations
        if self._on_progress is not None:
            self._on_progress(progress)


def _interrupted(first: Result, n_made: int) -> Result:
    """Return the first draws, charged with what an interrupted second production had made."""
    warning = RunWarning(
        "partial",
        f"Interrupted while drawing again farther apart, after about {n_made} evaluations.",
        "These are the first, correlated draws: run again for better ones.",
    )
    return dataclasses.replace(
        first,
        is_partial=True,
        spare_evaluations=first.spare_evaluations + n_made,
        warnings=(*first.warnings, warning),
    )


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


def _allocated(
    plan: Plan,
    sampler: AbstractSampler,
    seen: AbstractLogDensity,
    n_chains: int,
    n_draws: int,
    budget: int | None,
    left: int | None,
) -> tuple[AbstractSampler, Harvest, list[RunWarning]]:
    """Return the sampler with its steps set, the spacing of draws, and a warning if the budget falls short."""
    if n_draws == 1 and budget is not None:
        sampler = sampler.with_budget(budget)
        burn_in, thinning = int(sampler.stages()[0].n_steps), 0
    else:
        burn_in, thinning = plan.burn_in, plan.thinning if n_draws > 1 else 0

    def build(burn: int, thin: int) -> tuple[AbstractSampler, Harvest]:
        return sampler.with_first_steps(burn + (n_draws - 1) * thin), Harvest(n_draws, thin)

    wanted = build(burn_in, thinning)
    if left is None:
        return *wanted, []
    executed = math.prod(grouping(sampler, seen, n_chains, wanted[1]))
    if harvest_cost(*wanted) * executed <= left:
        return *wanted, []
    base = harvest_cost(*build(0, 0))
    per_step = sampler.stages()[0].cost_step()
    affordable = (left // executed - base) // per_step
    if affordable < 1:
        raise InvalidInputError(
            f"max_evaluations is too small: {left} are left after tuning, and {n_chains} chains with {n_draws} draws "
            f"each need at least {(base + per_step) * executed}."
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
