"""The TOML file of a sweep. The only module that needs pydantic: `read_config` imports it when it is needed."""

import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cdsampler._user_code import located
from cdsampler.benchmark._names import known
from cdsampler.benchmark._presets import PRESET_KINDS
from cdsampler.benchmark._samplers import SAMPLERS
from cdsampler.benchmark.sweeps._model import DTYPES, Entry, Sweep, Task
from cdsampler.benchmark.sweeps._settings import checked_setting, checked_settings
from cdsampler.benchmark.sweeps._targets import preset_of_task
from cdsampler.errors import InvalidInputError

MAX_SEED = 2**31  # of NumPy's and the metrics' generators


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class _Task(_Strict):
    samples: int = Field(ge=2)
    budgets: list[int] = Field(min_length=1)
    settings: dict[str, Any] = {}
    target: str | None = None


class _Sampler(_Strict):
    sampler: str | None = None
    label: str | None = Field(None, min_length=1)
    grid: dict[str, list[Any]] = {}
    settings: dict[str, Any] = {}
    tasks: list[str] | None = Field(None, min_length=1)


class _File(_Strict):
    name: str = Field(min_length=1, pattern=r"^[A-Za-z0-9._-]+$")
    preset: str = "recommended"
    repeats: int = Field(1, ge=1)
    seeds: list[int] | None = Field(None, min_length=1)
    dtype: str = "float32"
    tasks: dict[str, _Task] = Field(min_length=1)
    samplers: dict[str, _Sampler] = Field(min_length=1)


def parse(text: str, where: str, folder: Path) -> Sweep:
    """Return the sweep that a TOML text asks for, with every name and setting checked.

    Parameters
    ----------
    text
    where
        Named in errors.
    folder
        Where files that it names are.

    Raises
    ------
    InvalidInputError
        Not TOML, unknown keys, names or settings, or values out of range.
    """
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInputError(f"{where} is not TOML: {error}.") from error
    try:
        file = _File.model_validate(raw)
    except ValidationError as error:
        raise InvalidInputError(f"{where}: {'; '.join(_explained(one) for one in error.errors())}.") from error
    try:
        return _sweep(file, folder)
    except InvalidInputError as error:
        raise InvalidInputError(f"{where}: {error}") from error


def _sweep(file: _File, folder: Path) -> Sweep:
    known(file.preset, PRESET_KINDS, "preset")
    known(file.dtype, DTYPES, "dtype")
    tasks = tuple(_task(name, task, file.preset, folder) for name, task in file.tasks.items())
    entries = tuple(_entry(name, entry, list(file.tasks)) for name, entry in file.samplers.items())
    return Sweep(file.name, file.preset, _seeds(file), tasks, entries, file.dtype, folder)


def _seeds(file: _File) -> tuple[int, ...]:
    if file.seeds is None:
        return tuple(range(file.repeats))
    if "repeats" in file.model_fields_set:
        raise InvalidInputError(f"repeats is {file.repeats} and seeds is {file.seeds}: give one of them.")
    wrong = [seed for seed in file.seeds if not 0 <= seed < MAX_SEED]
    if wrong:
        raise InvalidInputError(f"seeds must lie in [0, 2^31), got {wrong[0]}.")
    return _different(file.seeds, "seeds")


def _task(name: str, given: _Task, preset: str, folder: Path) -> Task:
    where = f"[tasks.{name}]"
    wrong = [budget for budget in given.budgets if budget < 1]
    if wrong:
        raise InvalidInputError(f"{where}: budgets must be at least 1, got {wrong[0]}.")
    budgets = _different(given.budgets, f"{where}: budgets")
    task = Task(name, given.samples, budgets, checked_settings(given.settings, f"{where} settings"), given.target)
    preset_of_task(task, preset)
    if given.target is not None:
        try:
            located(given.target, folder)
        except InvalidInputError as error:
            raise InvalidInputError(f"{where} target: {error}") from error
    return task


def _entry(name: str, given: _Sampler, tasks: list[str]) -> Entry:
    where = f"[samplers.{name}]"
    sampler = name if given.sampler is None else given.sampler
    try:
        known(sampler, SAMPLERS, "sampler")
        for task in given.tasks or []:
            known(task, tasks, "task of this sweep")
    except InvalidInputError as error:
        raise InvalidInputError(f"{where}: {error}") from error
    grid = {}
    for setting, values in given.grid.items():
        if not values:
            raise InvalidInputError(f"{where} grid: {setting} has no values: give some, or leave it out.")
        checked = [checked_setting(setting, value, f"{where} grid") for value in values]
        grid[setting] = _different(checked, f"{where} grid: {setting}")
    settings = checked_settings(given.settings, f"{where} settings")
    both = sorted(set(grid) & set(settings))
    if both:
        raise InvalidInputError(f"{where}: {both[0]} is in both grid and settings: leave one out.")
    kept = None if given.tasks is None else tuple(given.tasks)
    # Without a label an entry is called as in the file, so that two of one sampler can be told apart.
    return Entry(name, sampler, given.label or name, grid, settings, kept)


def _different(values: list[Any], what: str) -> tuple[Any, ...]:
    twice = [value for i, value in enumerate(values) if value in values[:i]]
    if twice:
        raise InvalidInputError(f"{what} has {twice[0]!r} twice: leave one out.")
    return tuple(values)


def _explained(error: Any) -> str:
    """Return one of pydantic's errors as this library says it: what, where, and what to do."""
    *path, last = error["loc"]
    where = f"[{'.'.join(map(str, path))}]" if path else "the file"
    if error["type"] == "extra_forbidden":
        model: type[BaseModel] = _File if not path else _Task if path[0] == "tasks" else _Sampler
        try:
            known(str(last), model.model_fields, f"key of {where}")
        except InvalidInputError as unknown:
            return str(unknown).removesuffix(".")
    if error["type"] == "missing":
        return f"{where} needs {last}: give it"
    return f"{last} of {where}: {error['msg'][0].lower()}{error['msg'][1:]}, got {error['input']!r}"
