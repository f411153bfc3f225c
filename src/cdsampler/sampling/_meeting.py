"""Processes of one run tell each other how far they are, and gather what they made.

Signs of life go through the key-value store of `jax.distributed`, which has timeouts; results go through JAX's
collectives, which are faster but wait for ever, and therefore only once everybody is known to be ready.
"""

import contextlib
import itertools
import json
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import jax
import numpy as np
from jax.experimental import multihost_utils

from cdsampler.errors import ProcessError

# Seconds between signs of life, without one until a process counts as lost, and until it has to be there at all.
BEAT, SILENCE, JOIN = 1.0, 60.0, 600.0
PIECE = 2**24

OnWait: TypeAlias = Callable[[int, int], None]

# Every process counts its meetings, and so finds the others' papers.
_numbers = itertools.count()


class _Paper(NamedTuple):
    """What a process lets the others know."""

    about: dict[str, Any]
    beat: int = 0
    made: int = 0
    finished: int = 0
    size: int | None = None
    is_leaving: bool = False
    error: str = ""


class Alone:
    """The meeting of a process that works for itself."""

    def __enter__(self) -> "Alone":
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        pass

    def tell(self, made: int, finished: int) -> None:
        """Tell the others what was made and finished here."""

    def look(self, made: int, finished: int) -> tuple[int, int]:
        """Tell what was made and finished here; return the sums over all processes."""
        return made, finished

    def gather(self, mine: Any, on_wait: OnWait = lambda made, finished: None, is_leaving: bool = False) -> list[Any]:
        """Return what each process has brought, when all have.

        Parameters
        ----------
        mine
            What this process brings: anything that can be pickled.
        on_wait
            Called now and then with the sums of what was made and finished.
        is_leaving
            Ask the others to end their work.
        """
        return [mine]


class Meeting(Alone):
    """A meeting of all processes; each of them has to open it.

    Parameters
    ----------
    about
        What the processes must agree on, by name.

    Raises
    ------
    ProcessError
        From `look` and `gather`: another process has failed, is silent, or is about something else.
    KeyboardInterrupt
        From `look`: another process was interrupted.
    """

    def __init__(self, about: dict[str, Any]):
        self._client = _client()
        self._here, self._n = jax.process_index(), jax.process_count()
        self._number = next(_numbers)
        self._paper, self._lock = _Paper(about), threading.Lock()
        self._ended = threading.Event()
        self._life = threading.Thread(target=self._live, daemon=True)
        self._papers: dict[int, _Paper] = {}
        self._heard = dict.fromkeys(range(self._n), time.monotonic())
        self._looked = -np.inf

    def __enter__(self) -> "Meeting":
        if self._number >= 2:
            # Whoever opens this meeting has left the one before last, and so has everybody who was in the last.
            with _with_coordinator():
                self._client.key_value_delete(f"{_folder(self._number - 2)}{self._here}")
        self._write()
        self._life.start()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self._ended.set()
        self._life.join()
        if error is not None and not isinstance(error, ProcessError):
            with contextlib.suppress(ProcessError):
                self._write(error=f"{type(error).__name__}: {error}"[:2000])

    def tell(self, made: int, finished: int) -> None:
        """Tell the others, at the next sign of life, what was made and finished here."""
        with self._lock:
            self._paper = self._paper._replace(made=made, finished=finished)

    def look(self, made: int, finished: int) -> tuple[int, int]:
        """Tell what was made and finished here; return the sums over all processes."""
        self.tell(made, finished)
        self._read()
        if any(paper.is_leaving for paper in self._everybody()):
            raise KeyboardInterrupt
        return self._sums()

    def gather(self, mine: Any, on_wait: OnWait = lambda made, finished: None, is_leaving: bool = False) -> list[Any]:
        """Return what each process has brought, when all have.

        An interrupt while waiting asks the others to end their work; a second one ends the waiting.
        """
        payload = np.frombuffer(pickle.dumps(mine), np.uint8)
        self._write(size=len(payload), is_leaving=is_leaving)
        while any(paper.size is None for paper in self._everybody()):
            self._read()
            try:
                on_wait(*self._sums())
                time.sleep(0.1)
            except KeyboardInterrupt:
                if self._paper.is_leaving:
                    raise
                self._write(is_leaving=True)
        sizes = [paper.size or 0 for paper in self._everybody()]
        return [pickle.loads(part) for part in _exchange(payload, sizes)]

    def _everybody(self) -> list[_Paper]:
        papers = {**self._papers, self._here: self._paper}
        return [papers.get(process, _Paper({})) for process in range(self._n)]

    def _sums(self) -> tuple[int, int]:
        papers = self._everybody()
        return sum(paper.made for paper in papers), sum(paper.finished for paper in papers)

    def _live(self) -> None:
        while not self._ended.wait(BEAT):
            try:
                self._write(beat=self._paper.beat + 1)
            except ProcessError:
                # Whoever reads finds out, too.
                return

    def _write(self, **news: Any) -> None:
        with self._lock:
            self._paper = self._paper._replace(**news)
            text, key = json.dumps(self._paper._asdict()), f"{_folder(self._number)}{self._here}"
            with _with_coordinator():
                self._client.key_value_set(key, text, allow_overwrite=True)

    def _read(self) -> None:
        now = time.monotonic()
        if now - self._looked < min(BEAT, 0.5):
            return
        self._looked = now
        with _with_coordinator():
            found = self._client.key_value_dir_get(_folder(self._number))
        for key, text in found:
            process, paper = int(key.rsplit("/", 1)[-1]), _Paper(**json.loads(text))
            if process not in self._papers or paper.beat != self._papers[process].beat:
                self._heard[process] = now
            self._papers[process] = paper
        for process in range(self._n):
            if process != self._here:
                self._check(process, now)

    def _check(self, process: int, now: float) -> None:
        paper, silent = self._papers.get(process), now - self._heard[process]
        if paper is None:
            if silent > JOIN:
                raise ProcessError(
                    f"Process {process} of {self._n} hasn't begun within {JOIN:.0f} s: call sample and run alike on "
                    "every process, or give devices=jax.local_devices() for a run of this process alone."
                )
            return
        if paper.error.startswith("KeyboardInterrupt"):
            raise KeyboardInterrupt
        if paper.error:
            raise ProcessError(f"Process {process} of {self._n} failed with {paper.error}")
        if silent > SILENCE:
            raise ProcessError(
                f"Process {process} of {self._n} hasn't been heard of for {silent:.0f} s: see its log, and start all "
                "of them again."
            )
        for name, value in self._paper.about.items():
            if paper.about.get(name) != value:
                raise ProcessError(
                    f"Process {process} has {name}={paper.about.get(name)!r}, and process {self._here} has "
                    f"{name}={value!r}: call sample and run with the same arguments on every process."
                )


@contextlib.contextmanager
def _with_coordinator() -> Iterator[None]:
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        raise ProcessError("Process 0, which coordinates the others, is gone: start all of them again.") from error


def _exchange(payload: np.ndarray, sizes: list[int]) -> list[bytes]:
    """Return the bytes of each process; arrays in flight have one of a few lengths, so little is compiled."""
    longest = max(sizes)
    length = min(PIECE, 1 << (longest - 1).bit_length())
    pieces = []
    for start in range(0, longest, length):
        part = payload[start : start + length]
        pieces.append(np.asarray(multihost_utils.process_allgather(np.pad(part, (0, length - len(part))))))
    joined = np.concatenate(pieces, axis=1)
    return [row[:size].tobytes() for row, size in zip(joined, sizes, strict=True)]


def _client() -> Any:
    # JAX gives no other access to the store.
    from jax._src.distributed import global_state

    return global_state.client


def _folder(number: int) -> str:
    return f"cdsampler/{number}/"
