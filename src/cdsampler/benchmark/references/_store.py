import json
import os
import shutil
import tempfile
from importlib.resources import as_file, files
from pathlib import Path

from cdsampler.benchmark.references._recipe import AbstractRecipe, Block
from cdsampler.benchmark.references._reference import (
    CorruptFileError,
    Reference,
    read_arrays,
    read_reference,
    write_arrays,
)
from cdsampler.errors import InvalidInputError

VARIABLE = "CDSAMPLER_CACHE"


def cache_folder() -> Path:
    """Return the folder of cached files: `CDSAMPLER_CACHE`, `XDG_CACHE_HOME/cdsampler` or `~/.cache/cdsampler`."""
    if os.environ.get(VARIABLE):
        return Path(os.environ[VARIABLE]).expanduser()
    if os.environ.get("XDG_CACHE_HOME"):
        return Path(os.environ["XDG_CACHE_HOME"]) / "cdsampler"
    return Path.home() / ".cache" / "cdsampler"


def path_of(name: str) -> Path:
    """Return where the cached reference of a target is, or would be."""
    return cache_folder() / "references" / f"{name}.npz"


def require_writable() -> None:
    """Raise `InvalidInputError` unless files can be written to the cache, before any work is done."""
    folder = path_of("any").parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InvalidInputError(
            f"References are kept in {folder}, which can't be written to ({error.strerror}): set {VARIABLE} to "
            "another folder."
        ) from error


def has_packaged(name: str) -> bool:
    """Return whether a reference comes with the library."""
    return files("cdsampler.benchmark.references").joinpath(f"data/{name}.npz").is_file()


def read_packaged(name: str, dim: int) -> Reference:
    """Return the reference that comes with the library."""
    with as_file(files("cdsampler.benchmark.references").joinpath(f"data/{name}.npz")) as path:
        return read_reference(path, name, dim)


class PartialRun:
    """Finished blocks of a run that was interrupted, in a folder beside the reference that they will make.

    Parameters
    ----------
    recipe
    seed
    version
        Of this library, which may change what a recipe does: blocks of another version aren't used.
    """

    def __init__(self, recipe: AbstractRecipe, seed: int, version: str):
        path = path_of(recipe.name)
        self._folder = path.with_name(f"{path.stem}.partial")
        wanted = {"seed": seed, "version": version, "settings": recipe.settings(), "versions": recipe.versions()}
        about = self._folder / "about.json"
        try:
            is_same = json.loads(about.read_text()) == json.loads(json.dumps(wanted))
        except (OSError, ValueError):
            is_same = False
        if not is_same:
            self.remove()
            self._folder.mkdir(parents=True)
            about.write_text(json.dumps(wanted))

    def load(self, index: int) -> Block | None:
        """Return a finished block, or None if there is none or it's damaged."""
        try:
            return read_arrays(self._path(index))
        except CorruptFileError:
            return None

    def keep(self, index: int, block: Block) -> None:
        """Keep a finished block."""
        write_arrays(self._path(index), block)

    def remove(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _path(self, index: int) -> Path:
        return self._folder / f"{index:05d}.npz"
