"""Targets of a sweep: of the catalog, registered in this process, or of a function in a file."""

import re
from collections.abc import Callable
from dataclasses import replace

from cdsampler._user_code import load_object
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
        That a sweep's tasks may then have. Records know the target by it alone: give a changed target another name.
    build
        Returns the target. One with an exact sampler (`AbstractExactTarget`) gets all metrics, others none.
    preset
        Its settings.

    Raises
    ------
    InvalidInputError
        The catalog has a target of that name, or it can't be part of a file's name.
    """
    _check_name(name)
    if name in TARGETS:
        raise InvalidInputError(f"The catalog has a target {name!r} already: register yours by another name.")
    _registered[name] = build, preset


def is_registered(name: str) -> bool:
    """Return whether a name is known in this process alone."""
    return name in _registered


def is_of_catalog(name: str, target: str | None) -> bool:
    """Return whether a task is one of the catalog, and not one of the user's with such a name."""
    return target is None and name in TARGETS


def what_builds(name: str) -> Callable[[], AbstractTarget] | None:
    """Return the function that was registered by a name; None if none was."""
    return _registered[name][0] if name in _registered else None


def preset_of_task(task: Task, kind: str) -> Preset:
    """Return the settings that a task starts from.

    Raises
    ------
    InvalidInputError
        Unknown name, settings that don't go together, or a target of one's own that lacks settings without a default.
    """
    if task.target is not None:
        _check_name(task.name)
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


def target_of(name: str, target: str | None, sha256: str | None = None) -> AbstractTarget:
    """Return a task's target.

    Parameters
    ----------
    name
        Of the task.
    target
        What `located` returned, or None for known names.
    sha256
        Of the target's file, when the runs were planned.

    Raises
    ------
    InvalidInputError
        Unknown name, no such function, one that returns something else, or a file that was changed since.
    """
    if target is None:
        return _registered[name][0]() if name in _registered else build_target(name)
    build = load_object(target, sha256)
    if not callable(build):
        raise InvalidInputError(f"{target} must be a function, got {type(build).__name__}.")
    made = build()
    if not isinstance(made, AbstractTarget):
        raise InvalidInputError(f"{target} must return an AbstractTarget, got {type(made).__name__}.")
    return made


def _check_name(name: str) -> None:
    # Files of reference samples are called after it.
    if not re.fullmatch(r"[\w.+-][\w .+-]*", name):
        raise InvalidInputError(f"A task is called by letters, digits and ' _.+-', got {name!r}: choose another name.")
