"""A sweep's store: the directory that a sweep writes its runs to."""

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from cdsampler.benchmark.fronts._mixtures import mixtures
from cdsampler.errors import InvalidInputError

FORMAT = 1
STATUSES = ("ok", "failed", "infeasible")
_NEEDED = ("key", "task", "label", "status", "metrics")


class Store(NamedTuple):
    """What a sweep left behind.

    Attributes
    ----------
    name
        Of the sweep.
    version
        Of cdsampler that started it.
    config
        What the sweep was asked for.
    records
        One for each run, in the order of writing; of runs that were repeated, the last.
    notes
        What makes the records less comparable: a torn line, several devices, several versions.
    """

    name: str
    version: str
    config: dict[str, Any]
    records: list[dict[str, Any]]
    notes: tuple[str, ...]


def read_store(directory: str | Path) -> Store:
    """Read a sweep's store.

    Parameters
    ----------
    directory
        Holds `store.json` and `records.jsonl`.

    Returns
    -------
    Store

    Raises
    ------
    InvalidInputError
        No store, one of another format, or a damaged record before the last line.
    """
    folder = Path(directory)
    header = _read_header(folder)
    path = folder / "records.jsonl"
    if not path.is_file():
        raise InvalidInputError(
            f"{folder} has no records.jsonl: the sweep has not finished a run yet, or it was moved."
        )
    records, notes = _read_lines(path)
    if not records:
        raise InvalidInputError(f"{path} holds no records: let the sweep finish a run first.")
    name = str(header.get("name") or folder.resolve().name)
    config = header.get("config") or {}
    if not isinstance(config, dict):
        raise InvalidInputError(f"'config' of {folder / 'store.json'} must be an object, got {type(config).__name__}.")
    return Store(name, str(header.get("version") or ""), config, records, (*notes, *mixtures(records)))


def read_records(directory: str | Path) -> list[dict[str, Any]]:
    """Read the records of a sweep's store, and warn of what `read_store` notes.

    Parameters
    ----------
    directory
        Holds `store.json` and `records.jsonl`.

    Returns
    -------
    list of dict
        One for each run.

    Raises
    ------
    InvalidInputError
        See `read_store`.
    """
    store = read_store(directory)
    for note in store.notes:
        warnings.warn(note, UserWarning, stacklevel=2)
    return store.records


def _read_header(folder: Path) -> dict[str, Any]:
    path = folder / "store.json"
    if not path.is_file():
        raise InvalidInputError(f"{folder} is no store of a sweep: it has no store.json. Give the sweep's folder.")
    try:
        header = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InvalidInputError(f"{path} is not JSON ({error}): restore it, or run the sweep anew.") from error
    found = header.get("format") if isinstance(header, dict) else None
    if found != FORMAT:
        raise InvalidInputError(
            f"{path} says format {found!r}, and this version reads format {FORMAT}: use the version that wrote it."
        )
    return header


def _read_lines(path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    numbered = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    by_key: dict[str, dict[str, Any]] = {}
    notes = []
    for number, line in numbered:
        try:
            record = json.loads(line)
        except ValueError as error:
            # A sweep that is killed while writing leaves half a line, and only at the end.
            if number == len(lines):
                notes.append(f"The last line of {path.name} is torn and was ignored: that run was being written.")
                continue
            raise InvalidInputError(f"Line {number} of {path} is not JSON ({error}): remove it.") from error
        _check(record, f"Line {number} of {path}")
        by_key.pop(record["key"], None)
        by_key[record["key"]] = record
    return list(by_key.values()), notes


def _check(record: Any, where: str) -> None:
    if not isinstance(record, Mapping):
        raise InvalidInputError(f"{where} must be an object, got {type(record).__name__}: remove it.")
    missing = [name for name in _NEEDED if name not in record]
    if missing:
        raise InvalidInputError(f"{where} lacks {', '.join(missing)}: no sweep wrote it; remove it.")
    if record["status"] not in STATUSES:
        raise InvalidInputError(f"{where}: status must be one of {', '.join(STATUSES)}, got {record['status']!r}.")
