"""The directory that a sweep writes to: every finished run is on the disk before the next one is counted."""

import json
import os
import tempfile
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NamedTuple, Self

import numpy as np

from cdsampler import __version__
from cdsampler.benchmark.sweeps._model import Sweep
from cdsampler.benchmark.sweeps._records import FORMAT, Record
from cdsampler.errors import InvalidInputError

HEADER = "store.json"
RECORDS = "records.jsonl"
ASIDE = "records-set-aside.jsonl"
SAMPLES = "samples"
LOCK = "lock"

_MACHINE = {"device": "devices", "jax_version": "versions of JAX", "commit": "commits of cdsampler"}


class Kept(NamedTuple):
    """What a store remembers of a run.

    Attributes
    ----------
    status, task
    target_sha256
        Of the file that had its target; None for targets of no file.
    """

    status: str
    task: str | None
    target_sha256: str | None


class Store:
    """An open store, locked against other writers; a context manager.

    Parameters
    ----------
    directory
        New, empty, or of this sweep.
    sweep
    on_message
        Called with what was found amiss and mended, and when runs become less comparable.

    Raises
    ------
    InvalidInputError
        The directory can't be written to, holds something else, was written in another format or for another
        configuration, has a damaged record, or another sweep is writing to it.
    """

    def __init__(self, directory: Path, sweep: Sweep, on_message: Callable[[str], None] = lambda text: None):
        self.directory = Path(directory)
        self._on_message = on_message
        self._machines: dict[str, set[str]] = defaultdict(set)
        self._make_folder()
        self._lock = self._locked()
        try:
            self._check_header(sweep)
            self.runs = self._read()
            self._records = self._opened()
        except OSError as error:
            self._lock.close()
            raise InvalidInputError(f"The store {self.directory} can't be read or written: {error}.") from error
        except BaseException:
            self._lock.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._records)
        self._lock.close()

    def status(self, key: str) -> str | None:
        """Return the status of a run; None if it isn't there."""
        return self.runs[key].status if key in self.runs else None

    def append(self, record: Record) -> None:
        """Keep a finished run, for good once this returns."""
        line = (json.dumps(record, allow_nan=False) + "\n").encode()
        # One write, so that a kill leaves all of a line or its beginning; a full disk may take less.
        if os.write(self._records, line) != len(line):
            raise OSError(f"{self.directory / RECORDS} took only a part of a record: is the disk full?")
        os.fsync(self._records)
        self.runs[record["key"]] = _kept(record)
        self._note_machine(record, self._on_message)

    def set_aside(self, task: str, keys: Collection[str]) -> None:
        """Move runs of a task to a file that nothing reads, and remove the reference samples of their target."""
        lines = (self.directory / RECORDS).read_bytes().splitlines(keepends=True)
        moved = [line for line in lines if json.loads(line)["key"] in keys]
        with (self.directory / ASIDE).open("ab") as file:
            file.writelines(moved)
            file.flush()
            os.fsync(file.fileno())
        (self.directory / SAMPLES / f"reference-{task}.npz").unlink(missing_ok=True)
        kept = [line for line in lines if json.loads(line)["key"] not in keys]
        _write_whole(self.directory / RECORDS, b"".join(kept))
        os.close(self._records)
        self._records = self._opened()
        self.runs = {key: run for key, run in self.runs.items() if key not in keys}

    def has_samples(self, name: str) -> bool:
        """Return whether samples of that name are kept."""
        return (self.directory / SAMPLES / f"{name}.npz").is_file()

    def write_samples(self, name: str, arrays: Mapping[str, np.ndarray]) -> str:
        """Keep arrays; return the file's path within the store. The file appears only when it is complete."""
        folder = self.directory / SAMPLES
        folder.mkdir(exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, suffix=".tmp", delete=False) as file:
            try:
                np.savez_compressed(file, **dict(arrays))  # type: ignore[arg-type]
                file.flush()
                os.fsync(file.fileno())
            except BaseException:
                os.unlink(file.name)
                raise
        os.chmod(file.name, 0o644)
        os.replace(file.name, folder / f"{name}.npz")
        return f"{SAMPLES}/{name}.npz"

    def _make_folder(self) -> None:
        if self.directory.exists() and not self.directory.is_dir():
            raise InvalidInputError(f"The store must be a folder, and {self.directory} is a file.")
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.directory):
                pass
        except OSError as error:
            raise InvalidInputError(
                f"The folder {self.directory} can't be written to ({error.strerror}): choose another one."
            ) from error

    def _locked(self) -> IO[str]:
        import fcntl  # POSIX only

        path = self.directory / LOCK
        try:
            file = path.open("w")
        except OSError as error:
            raise InvalidInputError(f"{path} can't be written to ({error.strerror}): choose another folder.") from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.close()
            raise InvalidInputError(
                f"Another sweep is writing to {self.directory}: wait for it, or choose another folder."
            ) from error
        except OSError as error:  # of a file system without locks
            file.close()
            raise InvalidInputError(f"{path} can't be locked ({error.strerror}): choose another folder.") from error
        return file

    def _opened(self) -> int:
        return os.open(self.directory / RECORDS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def _note_machine(self, record: Record, on_message: Callable[[str], None]) -> None:
        for field, what in _MACHINE.items():
            value, seen = record.get(field), self._machines[field]
            if not value or value in seen:
                continue
            if seen:
                on_message(
                    f"Runs in {self.directory} are now of several {what} ({', '.join([*sorted(seen), value])}), which "
                    "makes them less comparable: choose another folder to keep them apart."
                )
            seen.add(value)

    def _check_header(self, sweep: Sweep) -> None:
        path = self.directory / HEADER
        # Through JSON, as the file has it.
        config: dict[str, Any] = json.loads(json.dumps(sweep.as_dict()))
        if not path.is_file():
            # A kill may leave a header that was being written.
            ours = {LOCK, _draft(path).name}
            others = [entry.name for entry in self.directory.iterdir() if entry.name not in ours]
            if others:
                raise InvalidInputError(
                    f"{self.directory} holds {sorted(others)[0]} and is no store of a sweep: choose an empty folder."
                )
            header = {"format": FORMAT, "version": __version__, "name": sweep.name, "config": config}
            _write_whole(path, (json.dumps(header, indent=2) + "\n").encode())
            return
        try:
            header = json.loads(path.read_text(encoding="utf-8"))
            found, written = header["format"], header["config"]
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInputError(f"{path} is damaged ({error}): choose another folder.") from error
        if found != FORMAT:
            raise InvalidInputError(
                f"{path} says format {found!r}, and this version writes format {FORMAT}: go on with version "
                f"{header.get('version')} of cdsampler, or choose another folder."
            )
        if written != config:
            raise InvalidInputError(
                f"{self.directory} was started with another configuration ({_difference(written, config)}): "
                "choose another folder, or restore the configuration."
            )
        if header.get("version") != __version__:
            self._on_message(
                f"{self.directory} was started by version {header.get('version')}, this is {__version__}: runs of both "
                "will be in it."
            )

    def _read(self) -> dict[str, Kept]:
        """Return what is known of every run that is kept, after cutting off a line that was never finished."""
        path = self.directory / RECORDS
        if not path.exists():
            return {}
        content = path.read_bytes()
        runs: dict[str, Kept] = {}
        end = 0
        lines = content.splitlines(keepends=True)
        for number, line in enumerate(lines, start=1):
            try:
                if not line.endswith(b"\n"):
                    raise ValueError("it has no end")
                record = json.loads(line)
                runs[record["key"]] = _kept(record)
            except (ValueError, KeyError, TypeError) as error:
                if number < len(lines):
                    raise InvalidInputError(f"Line {number} of {path} is damaged ({error}): remove it.") from error
                self._on_message(f"The last line of {path} is torn and was cut off: that run is done again.")
                with path.open("rb+") as file:
                    file.truncate(end)
                    os.fsync(file.fileno())
                break
            self._note_machine(record, lambda text: None)  # it was said when they were made
            end += len(line)
        return runs


def _kept(record: Record) -> Kept:
    return Kept(record["status"], record.get("task"), record.get("target_sha256"))


def _draft(path: Path) -> Path:
    return path.with_name(f"{path.name}.tmp")


def _write_whole(path: Path, content: bytes) -> None:
    draft = _draft(path)
    with draft.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)


def _difference(written: Any, asked: Any, path: str = "") -> str:
    """Return the first place where two configurations differ."""
    if isinstance(written, dict) and isinstance(asked, dict):
        for name in [*asked, *written]:
            where = f"{path}.{name}" if path else str(name)
            if name not in written:
                return f"it had no {where}"
            if name not in asked:
                return f"it had {where}, too"
            if written[name] != asked[name]:
                return _difference(written[name], asked[name], where)
    return f"its {path} was {written!r}, now {asked!r}"
