"""What a run has done so far, on the disk, so that it can go on after it was ended."""

import abc
import os
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from cdsampler.errors import CheckpointError, CheckpointWarning
from cdsampler.journal._encoding import digest
from cdsampler.journal._files import Damaged, Item, read_items, write_items

Value = TypeVar("Value")

FINISHED, RUNNING = "finished-*.bin", ("running-a.bin", "running-b.bin")
SERIAL = "serial"


class AbstractEntry(abc.ABC):
    """One task of a run: what it came to, or else how far it is."""

    @abc.abstractmethod
    def answer(self) -> Any:
        """Return what the task came to; None if that isn't known."""

    @abc.abstractmethod
    def load(self) -> Any:
        """Return the state that an earlier session left; None if there is none."""

    @abc.abstractmethod
    def offer(self, state: Any) -> None:
        """Say how far the task is; cheap, for it is written down only now and then."""

    @abc.abstractmethod
    def finish(self, value: Any) -> None:
        """Say what the task came to."""


class AbstractJournal(abc.ABC):
    """Where a run's tasks are written down."""

    def __init__(self) -> None:
        self._n_calls = 0

    @abc.abstractmethod
    def entry(self, key: str, *inputs: Any) -> AbstractEntry:
        """Return a task's entry.

        Parameters
        ----------
        key
            Tells the tasks of a run apart.
        inputs
            What the task depends on, except for the target: an answer to other inputs is refused.
        """

    @property
    @abc.abstractmethod
    def advice(self) -> str:
        """What to do to go on after an interrupt."""

    def within(self, name: str) -> "AbstractJournal":
        """Return the part of the journal that has the tasks of that name."""
        return _Part(self, name)

    def call(self, name: str, function: Callable[..., Value], *args: Any, **kwargs: Any) -> Value:
        """Return what a function returns; if an earlier session has called it at this place, without a call.

        Calls are numbered, so the code around them must be deterministic.
        """
        return self._called(name, function, args, kwargs, is_in_parts=False)

    def call_in_parts(self, name: str, function: Callable[..., Value], *args: Any, **kwargs: Any) -> Value:
        """As `call`, for a function that takes an entry as `keep`, to go on from where it was."""
        return self._called(name, function, args, kwargs, is_in_parts=True)

    def _called(self, name: str, function: Any, args: Any, kwargs: Any, *, is_in_parts: bool) -> Any:
        self._n_calls += 1
        entry = self.entry(f"{self._n_calls} {name}", args, kwargs)
        answer = entry.answer()
        if answer is None:
            answer = function(*args, **kwargs, **({"keep": entry} if is_in_parts else {}))
            entry.finish(answer)
        return answer


class _Part(AbstractJournal):
    """The tasks of one name."""

    def __init__(self, whole: AbstractJournal, name: str):
        super().__init__()
        self._whole, self._name = whole, name

    def entry(self, key: str, *inputs: Any) -> AbstractEntry:
        return self._whole.entry(f"{self._name}/{key}", *inputs)

    @property
    def advice(self) -> str:
        return self._whole.advice


class NoEntry(AbstractEntry):
    """Remembers nothing."""

    def answer(self) -> Any:
        """Return None."""

    def load(self) -> Any:
        """Return None."""

    def offer(self, state: Any) -> None:
        """Forget it."""

    def finish(self, value: Any) -> None:
        """Forget it."""


class NoJournal(AbstractJournal):
    """Where nothing is written down."""

    def entry(self, key: str, *inputs: Any) -> AbstractEntry:
        """Return an entry that remembers nothing."""
        return NoEntry()

    @property
    def advice(self) -> str:
        """How to be able to go on the next time."""
        return "Nothing was kept: give a folder as checkpoint to be able to go on after an interrupt."


class Journal(AbstractJournal):
    """A folder with the finished tasks of a run, and the states of those under way.

    Finished tasks go to files that are never written again, and states to two files in turn. A file that is damaged
    costs what was in it, which is done again; of the states, the file before takes its place.

    Parameters
    ----------
    folder
        Exists, and nobody else writes to it.
    interval
        Seconds between writes, at least.
    """

    def __init__(self, folder: Path, interval: float):
        super().__init__()
        self._folder, self._interval = folder, interval
        # Workers share the journal; a write may be under way when an interrupt makes the main thread write again.
        self._lock = threading.RLock()
        self._known: dict[str, Item] = {}
        self._left: dict[str, Item] = {}
        self._finished: dict[str, Item] = {}
        self._running: dict[str, Item] = {}
        self._is_changed = False
        self._written = time.monotonic()
        self._n_files, self._serial = 0, 0
        self._read()

    @property
    def advice(self) -> str:
        """How to go on."""
        return f"What was done is kept in {self._folder}: call again with resume=True to go on."

    def entry(self, key: str, *inputs: Any) -> AbstractEntry:
        """Return a task's entry, with what an earlier session left of it."""
        return _Entry(self, key, digest(*inputs))

    def found(self, key: str, digest: str, *, is_finished: bool) -> Any:
        """Return what an earlier session left of a task; None if nothing.

        Raises
        ------
        CheckpointError
            It was made from other inputs.
        """
        with self._lock:
            item = (self._known if is_finished else self._left).pop(key, None)
            if item is None:
                return None
            if not is_finished:
                self._running[key] = item
        if item.digest != digest:
            raise CheckpointError(
                f"The run doesn't follow its checkpoint {self._folder}: at task {key!r} its numbers differ. Something "
                "that isn't checked has changed (the processor, or what the density calls); begin anew in another "
                "folder."
            )
        return item.value

    def note(self, key: str, digest: str, value: Any, *, is_finished: bool) -> None:
        """Take down a task's state, or what it came to; write if that is due."""
        with self._lock:
            if is_finished:
                self._finished[key] = Item(key, digest, value)
                self._running.pop(key, None)
            else:
                self._running[key] = Item(key, digest, value)
            self._is_changed = True
            if time.monotonic() - self._written >= self._interval:
                self.write()

    def write(self) -> None:
        """Write down all that isn't yet; if that fails, warn and keep it for the next time."""
        with self._lock:
            if not self._is_changed:
                return
            try:
                if self._finished:
                    self._n_files += 1
                    write_items(self._folder / FINISHED.replace("*", f"{self._n_files:06d}"), self._finished.values())
                    self._finished = {}
                self._serial += 1
                states = [Item(SERIAL, "", self._serial), *self._running.values(), *self._left.values()]
                write_items(self._folder / RUNNING[self._serial % 2], states)
                self._is_changed = False
            except OSError as error:
                warnings.warn(
                    f"The checkpoint {self._folder} can't be written ({error}): make room. The run goes on, and tries "
                    "again later.",
                    CheckpointWarning,
                    stacklevel=2,
                )
            finally:
                self._written = time.monotonic()

    def _read(self) -> None:
        for draft in self._folder.glob("*.tmp"):
            draft.unlink()
        for path in sorted(self._folder.glob(FINISHED)):
            self._n_files = max(self._n_files, int(path.stem.rpartition("-")[2]))
            self._known |= self._items_of(path, "what was in it is done again")
        generations = [
            self._items_of(self._folder / name, "the file before takes its place")
            for name in RUNNING
            if (self._folder / name).exists()
        ]
        whole = [items for items in generations if SERIAL in items]
        if not whole:
            return
        newest = max(whole, key=lambda items: items[SERIAL].value)
        self._serial = newest.pop(SERIAL).value
        self._left = {key: item for key, item in newest.items() if key not in self._known}

    def _items_of(self, path: Path, remedy: str) -> dict[str, Item]:
        try:
            return {item.key: item for item in read_items(path)}
        except Damaged as error:
            os.replace(path, path.with_name(f"{path.name}.damaged"))
            warnings.warn(
                f"{path} is damaged ({error}) and was renamed to {path.name}.damaged: {remedy}.",
                CheckpointWarning,
                stacklevel=2,
            )
            return {}


class _Entry(AbstractEntry):
    """A task of a journal."""

    def __init__(self, journal: Journal, key: str, digest: str):
        self._journal, self._key, self._digest = journal, key, digest

    def answer(self) -> Any:
        return self._journal.found(self._key, self._digest, is_finished=True)

    def load(self) -> Any:
        return self._journal.found(self._key, self._digest, is_finished=False)

    def offer(self, state: Any) -> None:
        self._journal.note(self._key, self._digest, state, is_finished=False)

    def finish(self, value: Any) -> None:
        self._journal.note(self._key, self._digest, value, is_finished=True)
