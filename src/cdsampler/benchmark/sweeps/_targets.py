"""Targets of a sweep: of the catalog, registered in this process, or of a function in a file."""

import importlib
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from cdsampler.benchmark._names import known
from cdsampler.benchmark._presets import Preset, preset_of
from cdsampler.benchmark._targets import TARGETS, build_target
from cdsampler.benchmark.sweeps._model import Setting, Task
from cdsampler.errors import InvalidInputError
from cdsampler.targets import AbstractTarget

_registered: dict[str, tuple[Callable[[], AbstractTarget], Preset]] = {}


def register_target(name: str, build: Callable[[], AbstractTarget], preset: Preset) -> None:
    """Make a target known to the sweeps of this process.

    Other processes don't know it: for those name a function of a file in the sweep's TOML
    (`target = "file.py:function"`).

    Parameters
    ----------
    name
        That a sweep's tasks may then have.
    build
        Returns the target. One with an exact sampler (`AbstractExactTarget`) gets all metrics, others none.
    preset
        Its settings.

    Raises
    ------
    InvalidInputError
        The catalog has a target of that name.
    """
    if name in TARGETS:
        raise InvalidInputError(f"The catalog has a target {name!r} already: register yours by another name.")
    _registered[name] = build, preset


def is_registered(name: str) -> bool:
    """Return whether a name is known in this process alone."""
    return name in _registered


def preset_of_task(task: Task, kind: str) -> Preset:
    """Return the settings that a task starts from.

    Raises
    ------
    InvalidInputError
        Unknown name, settings that don't go together, or a target of one's own that lacks settings without a default.
    """
    if task.target is not None:
        return _preset_of_settings(task)
    if task.name in _registered:
        preset = _registered[task.name][1]
    else:
        known(task.name, [*TARGETS, *_registered], "task")
        preset = preset_of(task.name, kind)
    return changed(preset, task.settings, f"[tasks.{task.name}]")


def changed(preset: Preset, changes: dict[str, Setting], where: str) -> Preset:
    """Return the preset with some settings replaced; an error says where."""
    try:
        return replace(preset, **changes)  # type: ignore[arg-type]
    except InvalidInputError as error:
        raise InvalidInputError(f"{where}: {error}") from error


def _preset_of_settings(task: Task) -> Preset:
    missing = [name for name in ("n_replicas", "reference_scale") if name not in task.settings]
    if missing:
        raise InvalidInputError(
            f"[tasks.{task.name}] has a target of its own and no preset: give {' and '.join(missing)} in its settings."
        )
    try:
        return Preset(**task.settings)  # type: ignore[arg-type]
    except InvalidInputError as error:
        raise InvalidInputError(f"[tasks.{task.name}]: {error}") from error


def resolved(target: str, folder: Path) -> str:
    """Return a target's "file.py:function" with the file's whole path; a module's as it is.

    Raises
    ------
    InvalidInputError
        Not of either form, or no such file.
    """
    place, separator, name = target.rpartition(":")
    if not separator or not place or not name.isidentifier():
        raise InvalidInputError(f"A target is named as file.py:function or module:function, got {target!r}.")
    if not place.endswith(".py"):
        return target
    path = (folder / place).resolve()
    if not path.is_file():
        raise InvalidInputError(f"There is no file {path} (looked for {name} in it).")
    return f"{path}:{name}"


def target_of(name: str, target: str | None) -> AbstractTarget:
    """Return a task's target.

    Parameters
    ----------
    name
        Of the task.
    target
        What `resolved` returned, or None for known names.

    Raises
    ------
    InvalidInputError
        Unknown name, no such function, or one that returns something else.
    """
    if target is None:
        return _registered[name][0]() if name in _registered else build_target(name)
    made = _function(target)()
    if not isinstance(made, AbstractTarget):
        raise InvalidInputError(f"{target} must return an AbstractTarget, got {type(made).__name__}.")
    return made


def _function(target: str) -> Callable[[], Any]:
    place, _, name = target.rpartition(":")
    module = _module_of_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    function = getattr(module, name, None)
    if not callable(function):
        raise InvalidInputError(f"{place} has no function {name}.")
    return function


def _module_of_file(path: Path) -> Any:
    # The whole path is the name: two files called target.py in one sweep are two modules.
    known_as = f"cdsampler_target_{path}"
    if known_as in sys.modules:
        return sys.modules[known_as]
    spec = importlib.util.spec_from_file_location(known_as, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))  # so that the file finds its neighbours
    sys.modules[known_as] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[known_as]  # or the next call would find half a module
        raise
    return module
