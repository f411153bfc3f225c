"""Makes a result of what the chains left: weights, diagnostics and warnings."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from cdsampler.density import Evaluations
from cdsampler.samplers import (
    NRPT,
    SMC,
    AbstractSampler,
    ChunkOutcome,
    SMCStatistics,
    TemperingStatistics,
    TransportStatistics,
    annealing_diagnostics,
    systematic_on_host,
    tempering_diagnostics,
)
from cdsampler.sampling._result import Result, Timing, Weighted
from cdsampler.sampling._warnings import (
    RunWarning,
    annealing_warnings,
    evaluation_warnings,
    sample_warnings,
    tempering_warnings,
)


def over_arrays(f: Callable[..., np.ndarray], *outcomes: ChunkOutcome) -> ChunkOutcome:
    """Apply a function to the arrays of outcomes, whose first axis is the chains; what was executed adds up."""
    executed = sum(outcome.executed for outcome in outcomes)
    arrays = (outcome._replace(executed=None) for outcome in outcomes)  # type: ignore[arg-type]
    mapped: ChunkOutcome = jax.tree.map(f, *arrays)
    return mapped._replace(executed=executed)


class Accounts(NamedTuple):
    """What a run cost beside its chains' own evaluations; see `Result`."""

    tuning: Evaluations
    spare: int
    executed: int


def _equally_weighted(
    outcome: ChunkOutcome, log_weights: np.ndarray | None, n_samples: int, seed: int
) -> tuple[ChunkOutcome, Weighted | None]:
    """Return groups' particles as one row of `n_samples` equally weighted draws, and as they were before."""
    n_points = outcome.position.shape[1]
    position, log_density = outcome.position.reshape(-1, outcome.position.shape[2]), outcome.log_density.reshape(-1)
    weights = np.zeros(len(position)) if log_weights is None else np.repeat(log_weights, n_points)
    rng = np.random.default_rng([seed, n_samples])
    chosen = systematic_on_host(rng, weights, min(n_samples, len(position)))
    row = outcome._replace(position=position[chosen][None], log_density=log_density[chosen][None])
    return row, None if log_weights is None else Weighted(position, log_density, weights)


def assemble(
    sampler: AbstractSampler,
    outcomes: list[ChunkOutcome],
    accounts: Accounts,
    n_samples: int,
    seed: int,
    names: tuple[str, ...],
    timing: Timing,
    is_partial: bool,
    advice: str,
) -> Result:
    """Return the result of a run from its chunks' outcomes; of groups of particles, `n_samples` draws.

    `advice` says what to do if the run was interrupted.
    """
    joined = over_arrays(lambda *arrays: np.concatenate(arrays), *outcomes)
    weighted, first = None, sampler.stages()[0]
    log_weights = first.log_weights(joined.statistics[0])
    if first.n_points > 1 or log_weights is not None:
        joined, weighted = _equally_weighted(joined, log_weights, n_samples, seed)
    warnings = evaluation_warnings(joined.evaluations.total()) + sample_warnings(joined.log_density)
    tempering = annealing = transport = None
    for stage, statistics in zip(sampler.stages(), joined.statistics, strict=True):
        if isinstance(statistics, TemperingStatistics):
            inner = getattr(stage, "stage", stage)
            assert isinstance(inner, NRPT)
            tempering = tempering_diagnostics(
                np.asarray(inner.betas), statistics, has_evidence=inner.reference.is_proper
            )
            warnings += tempering_warnings(tempering, joined.log_density.shape[1])
        elif isinstance(statistics, SMCStatistics):
            smc = getattr(stage, "stage", stage)
            assert isinstance(smc, SMC)
            annealing = annealing_diagnostics(statistics, smc.n_particles)
            warnings += annealing_warnings(annealing)
        elif isinstance(statistics, TransportStatistics):
            transport = jax.tree.map(lambda a: np.mean(a, dtype=np.float64), statistics)
    if is_partial:
        n = joined.log_density.size
        warnings.append(RunWarning("partial", f"Interrupted after {n} samples.", advice))
    return Result(
        samples=joined.position,
        log_density=joined.log_density,
        evaluations=joined.evaluations,
        tuning_evaluations=accounts.tuning,
        spare_evaluations=accounts.spare,
        executed_evaluations=accounts.executed,
        sampler=sampler,
        seed=seed,
        names=names,
        timing=timing,
        tempering=tempering,
        annealing=annealing,
        transport=transport,
        weighted=weighted,
        is_partial=is_partial,
        warnings=tuple(warnings),
    )
