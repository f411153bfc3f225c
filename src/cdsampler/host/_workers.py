"""Threads, or processes behind threads, that call a function for one task each; a task that takes too long is left.

A thread that runs somebody's code can't be ended from outside, so one that exceeds its time is abandoned and replaced;
a process is killed.
"""

import contextlib
import multiprocessing
import queue
import sys
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

# A call that shows no progress for so long while it is inside JAX waits for itself.
STUCK_SECONDS, STUCK_SHARE = 15.0, 0.02


class Done(NamedTuple):
    """What a task came to: what the function returned, or what it raised.

    `is_lost` tells that the worker is of no more use: its process died.
    """

    number: int
    returned: Any
    raised: BaseException | None
    is_lost: bool = False


class StuckInJax(RuntimeError):
    """A host function called JAX, and JAX waits for the computation that waits for the host function."""


class Workers:
    """A few workers that share out tasks.

    Parameters
    ----------
    function
        Called with one task. For processes it must be importable, since it is pickled.
    n
        Workers.
    is_process
        Processes instead of threads.
    timeout
        Seconds for one call; default none.
    """

    def __init__(self, function: Callable[[Any], Any], n: int, *, is_process: bool, timeout: float | None):
        self._function = function
        self._is_process = is_process
        self._timeout = timeout
        self._done: queue.SimpleQueue[tuple[_Worker, Done]] = queue.SimpleQueue()
        self._n = n
        self._workers: list[_Worker] = []
        # One batch at a time: several callbacks may arrive at once.
        self._lock = threading.Lock()

    def map(self, tasks: Sequence[Any]) -> list[Done]:
        """Return what each task came to, in their order."""
        with self._lock:
            while len(self._workers) < min(self._n, len(tasks)):
                self._workers.append(self._new())
            return _Batch(tasks, self._workers, self._done, self._timeout, self._new).run()

    def _new(self) -> "_Worker":
        return _Worker(self._function, self._done, is_process=self._is_process)


class _Batch:
    """The tasks of one callback, on their way through the workers."""

    def __init__(
        self,
        tasks: Sequence[Any],
        workers: list["_Worker"],
        done: "queue.SimpleQueue[tuple[_Worker, Done]]",
        timeout: float | None,
        new: Callable[[], "_Worker"],
    ):
        self._tasks, self._workers, self._queue, self._timeout, self._new = tasks, workers, done, timeout, new
        self._found: list[Done | None] = [None] * len(tasks)
        self._busy: dict[_Worker, tuple[int, float]] = {}
        self._next = 0
        self._heartbeat = (time.monotonic(), time.process_time())

    def run(self) -> list[Done]:
        for worker in self._workers:
            self._give(worker)
        while self._busy:
            try:
                worker, done = self._queue.get(timeout=self._patience())
            except queue.Empty:
                self._look_after()
                continue
            if worker not in self._busy:
                continue  # of a worker that was abandoned: too late
            self._heartbeat = (time.monotonic(), time.process_time())
            del self._busy[worker]
            self._found[done.number] = done
            self._give(self._replaced(worker) if done.is_lost else worker)
        return [done for done in self._found if done is not None]

    def _give(self, worker: "_Worker") -> None:
        if self._next < len(self._tasks):
            self._busy[worker] = (self._next, time.monotonic())
            worker.give(self._next, self._tasks[self._next])
            self._next += 1

    def _patience(self) -> float:
        if self._timeout is None:
            return STUCK_SECONDS
        oldest = min(began for _, began in self._busy.values())
        return min(max(oldest + self._timeout - time.monotonic(), 0.001), STUCK_SECONDS)

    def _look_after(self) -> None:
        now, spent = time.monotonic(), time.process_time()
        is_idle = spent - self._heartbeat[1] < STUCK_SHARE * (now - self._heartbeat[0])
        is_silent = now - self._heartbeat[0] >= STUCK_SECONDS and is_idle
        for worker, (index, began) in list(self._busy.items()):
            error: BaseException | None = None
            if self._timeout is not None and now - began >= self._timeout:
                error = TimeoutError(f"The function took longer than its timeout of {self._timeout:g} s.")
            elif is_silent and worker.is_inside_jax():
                error = StuckInJax(
                    "The host function calls JAX, which waits for the very computation that called the function. "
                    "Write the whole log density in JAX and pass it as it is, or give executor='processes'."
                )
            if error is not None:
                del self._busy[worker]
                worker.abandon()
                self._found[index] = Done(index, None, error)
                self._give(self._replaced(worker))

    def _replaced(self, worker: "_Worker") -> "_Worker":
        new = self._new()
        self._workers[self._workers.index(worker)] = new
        return new


class _Worker:
    """A daemon thread, so that an abandoned one doesn't hold up the interpreter's exit."""

    def __init__(self, function: Callable[[Any], Any], done: Any, *, is_process: bool):
        self._tasks: queue.SimpleQueue[tuple[int, Any] | None] = queue.SimpleQueue()
        self._process = _Process(function) if is_process else None
        call = function if self._process is None else self._process
        self._thread = threading.Thread(
            target=_serve, args=(weakref.ref(self), call, self._tasks, done), daemon=True, name="cdsampler-host"
        )
        self._thread.start()
        # The thread keeps no reference to the worker: it ends when the worker is no longer used.
        weakref.finalize(self, self._tasks.put, None)

    def give(self, index: int, task: Any) -> None:
        self._tasks.put((index, task))

    def abandon(self) -> None:
        self._tasks.put(None)
        if self._process is not None:
            self._process.kill()

    def is_inside_jax(self) -> bool:
        """Whether some frame of the thread is JAX's: only looked at when nothing has happened for long."""
        frame = sys._current_frames().get(self._thread.ident or -1)
        while frame is not None:
            if frame.f_globals.get("__name__", "").split(".")[0] in ("jax", "jaxlib"):
                return True
            frame = frame.f_back
        return False


def _serve(worker: Any, call: Callable[[Any], Any], tasks: Any, done: Any) -> None:
    while (given := tasks.get()) is not None:
        index, task = given
        try:
            outcome = Done(index, call(task), None)
        except ProcessDied as error:
            outcome = Done(index, None, error, is_lost=True)
        except BaseException as error:
            # SystemExit and KeyboardInterrupt, too: in this thread they would only end the worker in silence.
            outcome = Done(index, None, error)
        alive = worker()
        if alive is None:
            return
        done.put((alive, outcome))
        del alive, given, task, outcome


class ProcessDied(RuntimeError):
    """The process that computed the function is gone."""


class _Process:
    """A process that computes the function; it has started before it gets a task, which starting takes no time of."""

    def __init__(self, function: Callable[[Any], Any]):
        # Forking a process that JAX has threads in deadlocks.
        context = multiprocessing.get_context("spawn")
        self._here, there = context.Pipe()
        self._process = context.Process(target=_work, args=(there, function), daemon=True)
        self._process.start()
        there.close()
        self._ask(None)

    def __call__(self, task: Any) -> Any:
        returned, raised = self._ask(task)
        if raised is not None:
            raise raised
        return returned

    def _ask(self, task: Any) -> Any:
        """Send a task, or None for a sign of life, and return the answer."""
        try:
            self._here.send(task)
            return self._here.recv()
        except (EOFError, OSError) as error:
            self._process.join(timeout=5)
            raise ProcessDied(
                f"The process that computes the function died with exit code {self._process.exitcode}."
            ) from error

    def kill(self) -> None:
        self._process.kill()


def _work(connection: Connection, function: Callable[[Any], Any]) -> None:
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
        while True:
            task = connection.recv()
            if task is None:
                connection.send(None)
                continue
            try:
                reply: tuple[Any, Exception | None] = (function(task), None)
            except Exception as error:
                reply = (None, error)
            try:
                connection.send(reply)
            except Exception as error:  # what can't be pickled
                connection.send((None, RuntimeError(f"{error} (while sending back {reply[1] or reply[0]!r:.500})")))
