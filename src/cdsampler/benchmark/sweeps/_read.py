import importlib
from importlib.resources import files
from pathlib import Path

from cdsampler.benchmark._names import known
from cdsampler.benchmark.sweeps._model import Sweep
from cdsampler.errors import InvalidInputError, MissingExtraError


def list_presets() -> tuple[str, ...]:
    """Return the names of the sweeps that come with the library."""
    folder = files("cdsampler.benchmark.sweeps").joinpath("presets")
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")))


def read_config(source: str | Path) -> Sweep:
    """Read what a sweep is to do, and check all of it.

    Parameters
    ----------
    source
        Name of a sweep that comes with the library (`list_presets`), or a TOML file.

    Returns
    -------
    Sweep

    Raises
    ------
    InvalidInputError
        Unknown name, no such file, or something wrong in it; the message names it, its value and what to do.
    MissingExtraError
        Pydantic is not installed.
    """
    if str(source).endswith(".toml"):
        path = Path(source)
        if not path.is_file():
            raise InvalidInputError(f"There is no file {path}.")
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInputError(f"{path} can't be read: {error}.") from error
        return parse_config(text, where=str(path), folder=path.resolve().parent)
    name = known(str(source), list_presets(), "sweep (for a file, give its name with .toml)")
    text = files("cdsampler.benchmark.sweeps").joinpath(f"presets/{name}.toml").read_text(encoding="utf-8")
    return parse_config(text, where=f"sweep {name}")


def parse_config(text: str, *, where: str = "the configuration", folder: Path | None = None) -> Sweep:
    """Do as `read_config` with the text of a TOML file.

    Parameters
    ----------
    text
    where
        What errors call it.
    folder
        Where files that it names are; default the working directory.
    """
    try:
        config = importlib.import_module("cdsampler.benchmark.sweeps._config")
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("pydantic", "pydantic_core"):
            raise
        raise MissingExtraError(
            "Configurations of sweeps are checked by pydantic: install it with pip install 'cdsampler[benchmark]'."
        ) from error
    return config.parse(text, where, Path.cwd() if folder is None else folder)
