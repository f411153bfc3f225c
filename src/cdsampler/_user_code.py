"""Functions in files and modules of the user's: found, loaded, and told apart by the contents of their file."""

import difflib
import hashlib
import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from cdsampler.errors import InvalidInputError

# A package for Python: modules of users' files are named as parts of it, by their whole path. So two files of one name
# are two modules, and a process that unpickles what one of them defines finds the file by importing this.
__path__: Sequence[str] = []
_PREFIX = f"{__name__}."
_HASH = "__sha256__"


def located(spec: str, folder: Path = Path()) -> str:
    """Return `FILE.py:NAME` with the file's whole path, `MODULE:NAME` as it is; nothing is run.

    Parameters
    ----------
    spec
    folder
        Where relative paths start.

    Raises
    ------
    InvalidInputError
        Not of either form, no such file or module, a file that isn't Python, or one that says nothing of the name.
    """
    place, separator, name = spec.rpartition(":")
    if not separator or not place or not name.isidentifier():
        raise InvalidInputError(
            f"Name a function as FILE.py:NAME or MODULE:NAME, for instance model.py:log_density; got {spec!r}."
        )
    if not place.endswith(".py"):
        _check_module(place, name)
        return spec
    path = folder / place
    if not path.is_file():
        raise InvalidInputError(f"There is no file {path} (looked for {name} in it).")
    code = _compiled(path.resolve(), _content(path))
    # What a star or a module's own __getattr__ gives can't be seen without running the file.
    if name not in code.co_names and ("*",) not in code.co_consts and "__getattr__" not in code.co_names:
        raise _has_no(str(path), name, code.co_names)
    return f"{path.resolve()}:{name}"


def file_hash(spec: str) -> str | None:
    """Return the SHA-256 of the bytes of the file that `located` found; None for a module."""
    path = _path_in(spec)
    return None if path is None else hashlib.sha256(_content(path)).hexdigest()


def load_object(spec: str, sha256: str | None = None) -> Any:
    """Return what `FILE.py:NAME` or `MODULE:NAME` names, after running the file or importing the module.

    A file's neighbours can be imported by it. It is run once, and again when its contents have changed.

    Parameters
    ----------
    spec
        What `located` takes or returned; relative to the working directory.
    sha256
        What `file_hash` said, if it must still be so; a file that was run with these contents isn't looked at again.

    Raises
    ------
    InvalidInputError
        See `located`; no such name, or other contents. What the file itself raises passes through.
    """
    path = _path_in(spec)
    place, _, name = spec.rpartition(":")
    if path is None or sha256 is None:
        spec = located(spec)
        path = _path_in(spec)
    module = importlib.import_module(place) if path is None else _module_of_file(path, sha256)
    try:
        return getattr(module, name)
    except AttributeError as error:
        raise _has_no(place, name, vars(module)) from error


def _path_in(spec: str) -> Path | None:
    place, _, _ = spec.rpartition(":")
    return Path(place) if place.endswith(".py") else None


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidInputError(f"{path} can't be read ({error.strerror}): restore it.") from error


def _compiled(path: Path, content: bytes) -> CodeType:
    try:
        return compile(content, str(path), "exec", dont_inherit=True)
    except SyntaxError as error:
        raise InvalidInputError(f"{path} is not Python: {error.msg}, in line {error.lineno}.") from error
    except ValueError as error:  # null bytes
        raise InvalidInputError(f"{path} is not Python: {error}.") from error


def _check_module(module: str, name: str) -> None:
    try:
        is_there = module in sys.modules or importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        is_there = False
    if not is_there:
        raise InvalidInputError(
            f"There is no module {module!r} (looked for {name} in it): install it, or name a file as FILE.py:NAME."
        )


def _has_no(place: str, name: str, names: Any) -> InvalidInputError:
    near = difflib.get_close_matches(name, names, n=1)
    return InvalidInputError(f"{place} has no {name}: {f'did you mean {near[0]}?' if near else 'define it there.'}")


def _module_of_file(path: Path, sha256: str | None) -> ModuleType:
    path = path.resolve()
    name = _PREFIX + _encoded(path)
    known = sys.modules.get(name)
    if known is not None and sha256 == getattr(known, _HASH):
        return known
    content = _content(path)
    found = hashlib.sha256(content).hexdigest()
    if sha256 is not None and found != sha256:
        raise InvalidInputError(
            f"{path} was changed since it was looked at (its SHA-256 began with {sha256[:8]}, now with {found[:8]}): "
            "restore it, or begin anew."
        )
    if known is not None and found == getattr(known, _HASH):
        return known
    module = importlib.util.module_from_spec(_spec_of(name, path, content))
    sys.modules[name] = module
    try:
        module.__spec__.loader.exec_module(module)  # type: ignore[union-attr]
    except BaseException:
        del sys.modules[name]  # or the next call would find half a module
        raise
    return module


def _spec_of(name: str, path: Path, content: bytes) -> ModuleSpec:
    spec = importlib.util.spec_from_file_location(name, path, loader=_FileLoader(path, content))
    assert spec is not None
    return spec


class _FileLoader(Loader):
    """Runs a file's bytes as they were read.

    Python's own loader may take bytecode of earlier contents: it tells them apart by seconds and size alone.
    """

    def __init__(self, path: Path, content: bytes):
        self._path = path
        self._content = content

    def exec_module(self, module: ModuleType) -> None:
        folder = str(self._path.parent)
        if folder not in sys.path:
            sys.path.insert(0, folder)  # so that the file finds its neighbours
        setattr(module, _HASH, hashlib.sha256(self._content).hexdigest())
        exec(_compiled(self._path, self._content), module.__dict__)


class _FileFinder(MetaPathFinder):
    """Finds a user's file by its module's name, as unpickling in another process needs it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(_PREFIX):
            return None
        file = _decoded(fullname.removeprefix(_PREFIX))
        return _spec_of(fullname, file, _content(file)) if file.is_file() else None


def _encoded(path: Path) -> str:
    """Return the path as one identifier."""
    return re.sub(rb"[^A-Za-z0-9]", lambda found: b"_%02x" % found[0][0], os.fsencode(path)).decode()


def _decoded(name: str) -> Path:
    return Path(os.fsdecode(re.sub(rb"_([0-9a-f]{2})", lambda found: bytes([int(found[1], 16)]), name.encode())))


sys.meta_path.append(_FileFinder())
