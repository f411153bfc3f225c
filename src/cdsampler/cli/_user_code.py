"""Loads a function from a file of the user's."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

from cdsampler.errors import InvalidInputError


def load_object(spec: str) -> Any:
    """Return what `FILE.py:NAME` names, after running the file.

    Raises
    ------
    InvalidInputError
        Not of that form, no such file, or no such name in it. What the file itself raises passes through.
    """
    path_text, separator, name = spec.rpartition(":")
    if not separator or not path_text.endswith(".py") or not name.isidentifier():
        raise InvalidInputError(f"Name a function as FILE.py:NAME, for instance model.py:log_density; got {spec!r}.")
    path = Path(path_text)
    if not path.is_file():
        raise InvalidInputError(f"There is no file {path} (looked for {name} in it).")
    module_spec = importlib.util.spec_from_file_location(path.stem, path)
    assert module_spec is not None
    assert module_spec.loader is not None
    module = importlib.util.module_from_spec(module_spec)
    sys.path.insert(0, str(path.resolve().parent))  # so that the file finds its neighbours
    sys.modules[path.stem] = module
    module_spec.loader.exec_module(module)
    if not hasattr(module, name):
        raise InvalidInputError(f"{path} has no {name}.")
    return getattr(module, name)
