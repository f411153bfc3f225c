"""An exception of a host function reaches the caller as it was raised, with the parameters that caused it.

JAX turns what a callback raises into an error of its own, of which only the text is left. The text carries a number
under which the original is kept until the call that the user made ends.
"""

import functools
import itertools
import re
import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_lock = threading.Lock()
_numbers = itertools.count()
_kept: dict[int, BaseException] = {}
_PATTERN = re.compile(r"cdsampler host error (\d+);")


class HostError(Exception):
    """What a callback raises in place of the original."""

    def __init__(self, original: BaseException):
        with _lock:
            number = next(_numbers)
            _kept[number] = original
        super().__init__(f"cdsampler host error {number}; {type(original).__name__}: {original}")


def original_errors(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a public entry: what a host function raised within is raised again as it was."""

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            original = _original_of(error)
            if original is None:
                raise
            raise original from None

    return wrapped


def _original_of(error: Any) -> BaseException | None:
    """Return what a host function raised, if that is what the error is about."""
    found = _PATTERN.search(str(error))
    if found is None:
        return None
    with _lock:
        return _kept.pop(int(found.group(1)), None)
