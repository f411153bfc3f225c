from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import PRNGKey
from cdsampler.density import AbstractLogDensity, Evaluations
from cdsampler.kernels import MALA
from cdsampler.samplers import (
    CDS,
    NRPT,
    RDMC,
    SMC,
    AbstractSampler,
    DiGS,
    InPathCoordinates,
    LocalChain,
    MAMSChain,
    NUTSChain,
)
from cdsampler.tuning._pilot import tune
from cdsampler.tuning._smc_rounds import tune_smc
from cdsampler.tuning._steps import adapt_steps
from cdsampler.tuning._trajectory_steps import adapt_mams, adapt_nuts

N_PILOT = 64
N_TRAJECTORIES = 16


class Tuned(NamedTuple):
    """A sampler ready for production, and what tuning it cost."""

    sampler: Any
    evaluations: Evaluations


def adapt(
    sampler: AbstractSampler,
    density: AbstractLogDensity,
    anchor: np.ndarray,
    rng_key: PRNGKey,
    *,
    anchor_scale: float = 0.0,
    adapts_schedule: bool = True,
    n_rounds: int = 5,
) -> Tuned:
    """Tune what any sampler has to tune, on pilot chains that are none of the production's.

    Step sizes aim at each kernel's optimal acceptance. Schedules of tempering move to equal rejections, those of
    annealed particles to equal divergences. The SDE's Langevin steps are kept below MALA's step at β = 1. A sampler
    without numbers to tune comes back as it is.

    Parameters
    ----------
    sampler
        Its numbers are where tuning starts.
    density
        Target.
    anchor : array_like, shape (dim,)
    rng_key
        Typed PRNG key.
    anchor_scale
        Pilot chains of local samplers start at `N(anchor, anchor_scale² I)`.
    adapts_schedule
        Whether schedules of β may move.
    n_rounds
        Of tempering's pilot.

    Returns
    -------
    Tuned
    """
    if isinstance(sampler, CDS):
        return _adapt_first(sampler, density, anchor, rng_key, adapts_schedule, n_rounds)
    if isinstance(sampler, NRPT):
        return _tempered(sampler, density, anchor, rng_key, adapts_schedule, n_rounds)
    if isinstance(sampler, SMC):
        return Tuned(*tune_smc(sampler, sampler, density, anchor, rng_key, adapts_schedule=adapts_schedule))
    key_start, key_pilot = jax.random.split(rng_key)
    noise = np.asarray(jax.random.normal(key_start, (N_PILOT, density.dim)), dtype=np.float64)
    starts = np.asarray(anchor, dtype=np.float64) + anchor_scale * noise
    if isinstance(sampler, LocalChain | DiGS):
        return Tuned(*adapt_steps(sampler, sampler, density, starts, key_pilot))
    if isinstance(sampler, NUTSChain):
        return _trajectories(adapt_nuts, sampler, density, starts, key_pilot)
    if isinstance(sampler, MAMSChain):
        return _trajectories(adapt_mams, sampler, density, starts, key_pilot)
    if isinstance(sampler, RDMC):
        chain = LocalChain(MALA(float(sampler.step_size)))
        local, cost = adapt_steps(chain, chain, density, starts, key_pilot)
        return Tuned(eqx.tree_at(lambda s: s.step_size, sampler, local.kernel.step_size), cost)
    return Tuned(sampler, Evaluations.zero().total())


def _trajectories(
    method: Callable[..., Any], sampler: Any, density: AbstractLogDensity, starts: np.ndarray, rng_key: PRNGKey
) -> Tuned:
    starts = starts[:N_TRAJECTORIES]
    adapted = method(sampler, density, starts, rng_key, n_chains=len(starts))
    return Tuned(adapted.sampler, adapted.evaluations)


def _tempered(
    sampler: Any,
    density: AbstractLogDensity,
    anchor: np.ndarray,
    rng_key: PRNGKey,
    adapts_schedule: bool,
    n_rounds: int,
) -> Tuned:
    pilot = tune(sampler, density, anchor, rng_key, n_rounds=n_rounds, adapts_schedule=adapts_schedule)
    return Tuned(pilot.sampler, pilot.evaluations)


def _adapt_first(
    sampler: CDS,
    density: AbstractLogDensity,
    anchor: np.ndarray,
    rng_key: PRNGKey,
    adapts_schedule: bool,
    n_rounds: int,
) -> Tuned:
    """Tune stage 1 where it runs, and limit the SDE's steps."""
    first = sampler.stages()[0]
    inner = first.stage if isinstance(first, InPathCoordinates) else first
    tuned: Any = sampler
    cost = Evaluations.zero().total()
    step: float | None = None
    if isinstance(inner, NRPT):
        tuned, cost = _tempered(sampler, density, anchor, rng_key, adapts_schedule, n_rounds)
        step = _mala_step(tuned.stage1.kernel, tuned.stage1.kernel.step_size[-1])
    elif isinstance(inner, SMC):
        smc, cost = tune_smc(inner, first, density, anchor, rng_key, adapts_schedule=adapts_schedule)
        tuned = eqx.tree_at(lambda s: s.stage1, sampler, sampler.stage1.with_schedule(smc.betas, smc.step_sizes))  # type: ignore[attr-defined]
        step = _mala_step(smc.kernel, smc.step_sizes[-1])
    elif isinstance(inner, LocalChain):
        starts = np.broadcast_to(np.asarray(anchor, dtype=np.float64), (N_PILOT, density.dim))
        local, cost = adapt_steps(inner, first, density, starts, rng_key)
        tuned = eqx.tree_at(lambda s: s.stage1.kernel.step_size, sampler, local.kernel.step_size)
    if sampler.transport == "sde" and first is inner and step is None:
        # Stage 1 has no Langevin step of its own at β = 1: tune one.
        chain = LocalChain(MALA(float(density.dim ** (-1 / 3))))
        starts = np.broadcast_to(np.asarray(anchor, dtype=np.float64), (N_PILOT, density.dim))
        local, more = adapt_steps(chain, chain, density, starts, jax.random.fold_in(rng_key, 2**31))
        step, cost = float(local.kernel.step_size), cost + more
    if sampler.transport == "sde" and first is inner and step is not None:
        tuned = _with_max_step(tuned, step)
    return Tuned(tuned, cost)


def _mala_step(kernel: Any, step_size: Any) -> float | None:
    return float(step_size) if isinstance(kernel, MALA) else None


def _with_max_step(sampler: CDS, step: float) -> CDS:
    is_none = lambda x: x is None  # noqa: E731
    return eqx.tree_at(lambda s: s.max_langevin_step, sampler, jnp.asarray(step), is_leaf=is_none)
