"""Settings of a sweep's file, checked against those that a preset has."""

from dataclasses import fields
from typing import Any, get_args, get_type_hints

from cdsampler.benchmark._names import known
from cdsampler.benchmark._presets import Preset
from cdsampler.benchmark.sweeps._model import Setting
from cdsampler.errors import InvalidInputError

_NAMES = tuple(field.name for field in fields(Preset))


def checked_setting(name: str, value: Any, where: str) -> Setting:
    """Return a setting's value in the type that the preset gives it.

    Raises
    ------
    InvalidInputError
        No such setting, or a value of another type; the message says where.
    """
    try:
        known(name, _NAMES, "setting")
    except InvalidInputError as error:
        raise InvalidInputError(f"{where}: {error}") from error
    hint = get_type_hints(Preset)[name]
    kind = next((k for k in get_args(hint) if k is not type(None)), hint)
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise InvalidInputError(f"{where}: {name} is a {kind.__name__}, got {value!r}.")
    checked: Setting = value
    return checked


def checked_settings(settings: dict[str, Any], where: str) -> dict[str, Setting]:
    """Return several settings as `checked_setting` does."""
    return {name: checked_setting(name, value, where) for name, value in settings.items()}
