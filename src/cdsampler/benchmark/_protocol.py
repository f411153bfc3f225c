"""One protocol for every sampler: mode, tuning, budget, production, and one account of it all."""

import time
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from cdsampler.benchmark._presets import Preset, preset_of
from cdsampler.benchmark._samplers import KEEPS_ITS_SCHEDULE, build_sampler
from cdsampler.benchmark._starts import starting_point
from cdsampler.density import AbstractLogDensity, Evaluations
from cdsampler.samplers import AbstractSampler
from cdsampler.sampling import Progress, Result, check_group, run
from cdsampler.targets import AbstractTarget
from cdsampler.tuning import Tuned, adapt, find_mode


class Protocol(NamedTuple):
    """A sampler that is ready for production on a task, and what it cost to get there.

    Attributes
    ----------
    sampler
        Tuned, with the budget's number of steps.
    density
        Target.
    anchor : ndarray, shape (dim,)
        The mode.
    anchor_scale : float
        Local chains start at `N(anchor, anchor_scale² I)`.
    evaluations
        Of mode search and tuning.
    seconds : float
        Of mode search and tuning, compilation included.
    """

    sampler: AbstractSampler
    density: AbstractLogDensity
    anchor: np.ndarray
    anchor_scale: float
    evaluations: Evaluations
    seconds: float


def prepare(
    name: str, target: AbstractTarget, n_samples: int, budget: int, *, preset: Preset | None = None, seed: int = 0
) -> Protocol:
    """Find a mode, tune a sampler, and give it as many steps as the budget pays for.

    Parameters
    ----------
    name
        Of the catalog's samplers.
    target
        Of the catalog.
    n_samples
        That production will be asked for.
    budget
        Evaluations per sample in production. A group of P particles that returns all of them gets P times that.
    preset
        Settings; default the recommended ones of the target.
    seed
        The pilot's stream is not the production's.

    Returns
    -------
    Protocol

    Raises
    ------
    InvalidInputError
        Unknown names, settings that don't go together, groups of more particles than samples, or a budget that doesn't
        pay for one step: before anything is evaluated.
    """
    preset = preset_of(target.name) if preset is None else preset
    # The density is made at the first use, after everything that can be refused.
    return prepare_on(
        name, target.density, n_samples, budget, preset=preset, start=lambda: starting_point(target), seed=seed
    )


def prepare_on(
    name: str,
    density: Callable[[], AbstractLogDensity],
    n_samples: int,
    budget: int,
    *,
    preset: Preset,
    start: Callable[[], np.ndarray | None] = lambda: None,
    seed: int = 0,
) -> Protocol:
    """Do as `prepare` with any density, which like the start of the search for a mode is made when it is needed."""
    untuned = build_sampler(name, preset, budget)
    check_group(untuned, n_samples)
    with_budget_per_sample(untuned, budget)
    began = time.perf_counter()
    made = density()
    mode = find_mode(made, start())
    # A reference is centred at the mode by all chains; only chains without one have starts of their own.
    is_spread = preset.initialisation == "reference" and name in STARTS_ANYWHERE
    scale = preset.reference_scale if is_spread else 0.0
    tuned = tune_sampler(
        untuned,
        made,
        mode.position,
        seed,
        anchor_scale=scale,
        adapts_schedule=preset.is_schedule_adapted and name not in KEEPS_ITS_SCHEDULE,
    )
    return Protocol(
        with_budget_per_sample(tuned.sampler, budget),
        made,
        mode.position,
        scale,
        tuned.evaluations + mode.evaluations.total(),
        time.perf_counter() - began,
    )


def produce(
    protocol: Protocol,
    n_samples: int,
    *,
    seed: int = 0,
    chunk_size: int | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Result:
    """Draw samples with a prepared sampler; see `cdsampler.run`."""
    return run(
        protocol.sampler,
        protocol.density,
        n_samples,
        anchor=protocol.anchor,
        anchor_scale=protocol.anchor_scale,
        seed=seed,
        tuning_evaluations=protocol.evaluations,
        chunk_size=chunk_size,
        on_progress=on_progress,
    )


STARTS_ANYWHERE = ("mala", "hmc", "nuts", "mams", "digs")
"""Samplers without a reference: chains start at the mode, or at draws about it."""


def with_budget_per_sample(sampler: AbstractSampler, budget: int) -> AbstractSampler:
    """Return the longest sampler of this kind that costs at most `budget` evaluations for each sample it gives."""
    return sampler.with_budget(budget * sampler.stages()[0].n_points)


def tune_sampler(
    sampler: AbstractSampler,
    density: AbstractLogDensity,
    anchor: np.ndarray,
    seed: int,
    *,
    anchor_scale: float = 0.0,
    adapts_schedule: bool = True,
    n_rounds: int = 5,
) -> Tuned:
    """Tune what a sampler has to tune; see `cdsampler.tuning.adapt`.

    Parameters
    ----------
    sampler
        From `build_sampler`.
    density
        Target.
    anchor : ndarray, shape (dim,)
    seed
        The pilot's stream is not the production's.
    anchor_scale, adapts_schedule, n_rounds
        As for `adapt`.
    """
    # Production splits the key of its seed; folding in keeps the pilot apart from both halves.
    key = jax.random.fold_in(jax.random.key(seed), 2**32 - 1)
    return adapt(
        sampler,
        density,
        anchor,
        key,
        anchor_scale=anchor_scale,
        adapts_schedule=adapts_schedule,
        n_rounds=n_rounds,
    )
