"""What a sweep is asked for, after checking: plain data, so that the default install can build it without pydantic."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Setting = float | int | str | bool | None

DTYPES = ("float32", "float64")


@dataclass(frozen=True)
class Task:
    """A task of a sweep.

    Attributes
    ----------
    name
        Of the catalog, of `register_target`, or any name if `target` is given.
    samples
        Of each run.
    budgets
        Evaluations per sample in production.
    settings
        What differs from the preset, for every sampler.
    target
        "module:function" or "file.py:function" of a function that returns an `AbstractTarget`; None for known names.
        A run is known by the contents of the file, too, but not by those of a module or of what a file imports.
    """

    name: str
    samples: int
    budgets: tuple[int, ...]
    settings: dict[str, Setting] = field(default_factory=dict)
    target: str | None = None


@dataclass(frozen=True)
class Entry:
    """A sampler of a sweep, with its grid.

    Attributes
    ----------
    name
        Of the entry.
    sampler
        Of the catalog.
    label
        What its runs are called; several entries may share one.
    grid
        Values of settings of `cdsampler.benchmark.Preset`; every combination is run.
    settings
        What differs from the preset in all of them.
    tasks
        Those that it runs on; None for all.
    """

    name: str
    sampler: str
    label: str
    grid: dict[str, tuple[Setting, ...]] = field(default_factory=dict)
    settings: dict[str, Setting] = field(default_factory=dict)
    tasks: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Sweep:
    """Tasks × samplers × grids × budgets × repeats.

    Attributes
    ----------
    name
    preset
        "recommended" or "paper".
    seeds
        One run of everything for each.
    tasks, entries
    dtype
        "float32" or "float64", JAX's default type in all runs.
    folder
        Where files that `target` names are looked for; it is no part of what is asked for.
    """

    name: str
    preset: str
    seeds: tuple[int, ...]
    tasks: tuple[Task, ...]
    entries: tuple[Entry, ...]
    dtype: str = "float32"
    folder: Path = Path()

    def as_dict(self) -> dict[str, Any]:
        """Return what is asked for as JSON keeps it; two sweeps ask for the same if these are equal."""
        return {
            "name": self.name,
            "preset": self.preset,
            "seeds": list(self.seeds),
            "dtype": self.dtype,
            "tasks": {
                task.name: {
                    "samples": task.samples,
                    "budgets": list(task.budgets),
                    "settings": dict(task.settings),
                    "target": task.target,
                }
                for task in self.tasks
            },
            "samplers": {
                entry.name: {
                    "sampler": entry.sampler,
                    "label": entry.label,
                    "grid": {name: list(values) for name, values in entry.grid.items()},
                    "settings": dict(entry.settings),
                    "tasks": None if entry.tasks is None else list(entry.tasks),
                }
                for entry in self.entries
            },
        }
