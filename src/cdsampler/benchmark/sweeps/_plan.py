"""Expands a sweep to its runs, in an order in which runs that share a compiled program are neighbours."""

import hashlib
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

import jax

from cdsampler._user_code import file_hash, located
from cdsampler.benchmark._names import known
from cdsampler.benchmark._presets import PRESET_KINDS, Preset
from cdsampler.benchmark._protocol import with_budget_per_sample
from cdsampler.benchmark._samplers import build_sampler
from cdsampler.benchmark.sweeps._model import DTYPES, Entry, Setting, Sweep, Task
from cdsampler.benchmark.sweeps._targets import changed, preset_of_task
from cdsampler.errors import InvalidInputError
from cdsampler.samplers import AbstractSampler
from cdsampler.sampling import check_group


@dataclass(frozen=True)
class RunSpec:
    """One run, and all that its result depends on.

    Attributes
    ----------
    task, label, sampler
    settings
        All of the preset's, after every change.
    changes
        What the sampler's entry in the sweep set.
    budget
        Evaluations per sample in production.
    n_samples, seed
    preset
        Which one was changed.
    dtype
        JAX's default type.
    target
        As the sweep's file names it; None for known names.
    target_sha256
        Of that file's bytes; None if the target is in no file. What the file imports isn't looked at.
    """

    task: str
    label: str
    sampler: str
    settings: dict[str, Setting]
    changes: dict[str, Setting]
    budget: int
    n_samples: int
    seed: int
    preset: str
    dtype: str = "float32"
    target: str | None = None
    target_sha256: str | None = None

    @cached_property
    def key(self) -> str:
        """Hash of all of it, the same on every machine."""
        asked = asdict(self)
        if self.target_sha256 is None:
            del asked["target_sha256"]  # keys of other targets are older than this field
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def evaluations(self) -> int:
        """What production may cost."""
        return self.budget * self.n_samples


@dataclass(frozen=True)
class Job:
    """A run as an executor takes it.

    Attributes
    ----------
    spec
    structure
        Runs of equal structure share a compiled program.
    target
        Where the target's function is on this machine; None for known names.
    problem
        Why it can't be run at all; empty if it can.
    keeps_samples, keeps_reference
        Whether the outcome holds samples of the run, and of the target, to be kept.
    """

    spec: RunSpec
    structure: str
    target: str | None = None
    problem: str = ""
    keeps_samples: bool = False
    keeps_reference: bool = False


def expand(sweep: Sweep, *, tasks: Sequence[str] | None = None, samplers: Sequence[str] | None = None) -> list[Job]:
    """Return a sweep's runs: task by task and entry by entry, cheap budgets first within a program.

    Parameters
    ----------
    sweep
    tasks, samplers
        Names of those to keep; of samplers, an entry's name, its label or its sampler. Default all.

    Returns
    -------
    list of Job
        Nothing is evaluated. Runs whose budget is too small say so; each configuration has a budget that isn't.

    Raises
    ------
    InvalidInputError
        Unknown names, settings that don't go together, a target's file or function that isn't there, nothing left to
        run, or a configuration that is impossible with all budgets of a task: they are too small, or its particles are
        more than the samples.
    """
    known(sweep.preset, PRESET_KINDS, "preset")
    known(sweep.dtype, DTYPES, "dtype")
    for name in tasks or []:
        known(name, [task.name for task in sweep.tasks], "task of this sweep")
    names = {name for entry in sweep.entries for name in _names(entry)}
    for name in samplers or []:
        known(name, sorted(names), "sampler of this sweep")
    jobs: dict[str, Job] = {}
    for task, entry in itertools.product(sweep.tasks, sweep.entries):
        is_wanted = (tasks is None or task.name in tasks) and (samplers is None or _names(entry) & set(samplers))
        if is_wanted and (entry.tasks is None or task.name in entry.tasks):
            # Two entries may have a configuration in common: it is run once.
            for job in _jobs_of(sweep, task, entry):
                jobs.setdefault(job.spec.key, job)
    if not jobs:
        raise InvalidInputError(
            f"Nothing is left of the sweep {sweep.name}: none of its samplers that were asked for runs on these tasks."
        )
    return list(jobs.values())


def _names(entry: Entry) -> set[str]:
    return {entry.name, entry.label, entry.sampler}


def _jobs_of(sweep: Sweep, task: Task, entry: Entry) -> Iterator[Job]:
    where = f"[samplers.{entry.name}] on {task.name}"
    base = preset_of_task(task, sweep.preset)
    target = None if task.target is None else located(task.target, sweep.folder)
    sha256 = None if target is None else file_hash(target)
    groups: dict[str, list[tuple[int, int, Job]]] = {}
    for number, values in enumerate(itertools.product(*entry.grid.values())):
        changes = entry.settings | dict(zip(entry.grid, values, strict=True))
        preset = changed(base, changes, where)
        for budget, (structure, problem) in _checked_budgets(task, entry, preset, changes, where).items():
            for seed in sweep.seeds:
                spec = RunSpec(
                    task=task.name,
                    label=entry.label,
                    sampler=entry.sampler,
                    settings=asdict(preset),
                    changes=dict(changes),
                    budget=budget,
                    n_samples=task.samples,
                    seed=seed,
                    preset=sweep.preset,
                    dtype=sweep.dtype,
                    target=task.target,
                    target_sha256=sha256,
                )
                job = Job(spec, f"{task.name}/{structure}", target, problem, keeps_samples=seed == sweep.seeds[0])
                groups.setdefault(structure, []).append((budget, number, job))
    for group in groups.values():
        # Sorting keeps the order of the seeds.
        yield from (job for *_, job in sorted(group, key=lambda member: member[:2]))


def _checked_budgets(
    task: Task, entry: Entry, preset: Preset, changes: dict[str, Setting], where: str
) -> dict[int, tuple[str, str]]:
    """Return, by budget, what compiled code depends on, and why the run is impossible, if it is."""
    checked = {budget: _checked(entry.sampler, preset, budget, task.samples, where) for budget in sorted(task.budgets)}
    if all(problem for _, problem in checked.values()):
        settings = ", ".join(f"{name}={value}" for name, value in changes.items())
        raise InvalidInputError(
            f"{where}{' with ' if settings else ''}{settings} can't be run with {task.samples} samples and any of the "
            f"budgets {', '.join(map(str, checked))}: {checked[max(checked)][1]}"
        )
    return checked


def _checked(name: str, preset: Preset, budget: int, n_samples: int, where: str) -> tuple[str, str]:
    try:
        sampler = build_sampler(name, preset, budget)
    except InvalidInputError as error:
        raise InvalidInputError(f"{where}: {error}") from error
    try:
        check_group(sampler, n_samples)
        with_budget_per_sample(sampler, budget)
    except InvalidInputError as error:
        return _structure(name, sampler), str(error)
    return _structure(name, sampler), ""


def _structure(name: str, sampler: AbstractSampler) -> str:
    """Return a hash of what the sampler's compiled code depends on: static fields, and shapes of numbers."""
    leaves, tree = jax.tree.flatten(sampler)
    shapes = [(getattr(leaf, "shape", repr(leaf)), str(getattr(leaf, "dtype", ""))) for leaf in leaves]
    return hashlib.sha256(repr((name, str(tree), shapes)).encode()).hexdigest()[:12]
