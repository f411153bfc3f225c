"""Runs chunks of chains side by side on the processor's cores; the caller's thread reports progress."""

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from typing import Any, NamedTuple, TypeVar

import jax

Job = TypeVar("Job")
Outcome = TypeVar("Outcome")


class Stopped(Exception):
    """Raised inside a worker to end its chunk early."""


class Interrupted(KeyboardInterrupt):
    """Interrupted before any chain was complete, after so many evaluations."""

    def __init__(self, made: int):
        super().__init__()
        self.made = made


class Ledger:
    """Evaluations made so far, by all workers; also tells them to stop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self.made = 0

    def add(self, evaluations: int) -> None:
        """Count a finished block; raise `Stopped` if the run is being ended."""
        with self._lock:
            self.made += evaluations
        if self._stop.is_set():
            raise Stopped

    def stop(self) -> None:
        """Make every worker stop at the end of its block."""
        self._stop.set()


class PoolOutcome(NamedTuple):
    """Outcomes in the order of their jobs, and whether an interrupt left some out."""

    outcomes: list[Any]
    is_partial: bool


def n_workers() -> int:
    """Return how many chunks run side by side: one per core on CPUs, one on other devices."""
    if jax.default_backend() != "cpu":
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_jobs(
    work: Callable[[Job], Outcome], jobs: Sequence[Job], ledger: Ledger, report: Callable[[int], None], n_at_once: int
) -> PoolOutcome:
    """Work through the jobs; compiled code releases the interpreter, so threads are enough.

    Parameters
    ----------
    work
        Runs one job, calling `ledger.add` as it goes.
    jobs
        The first is run alone, so that the others find its compiled program.
    ledger
        Shared by all workers.
    n_at_once
        Most jobs in flight; never more than cores.
    report
        Called in this thread several times a second with the number of finished jobs; may raise.

    Raises
    ------
    KeyboardInterrupt
        Interrupted before any job was finished.
    """
    futures: list[Future[Outcome]] = []
    is_partial = False
    with ThreadPoolExecutor(min(n_workers(), n_at_once)) as pool:
        try:
            for part in (jobs[:1], jobs[1:]):
                futures += [pool.submit(work, job) for job in part]
                _wait_for_all(futures, report)
        except KeyboardInterrupt:
            is_partial = True
            _end(futures, ledger)
        except BaseException:
            _end(futures, ledger)
            raise
    outcomes = [outcome for outcome in map(_outcome, futures) if outcome is not None]
    if not outcomes:
        raise KeyboardInterrupt
    return PoolOutcome(outcomes, is_partial)


def _wait_for_all(futures: Sequence["Future[Any]"], report: Callable[[int], None]) -> None:
    pending = set(futures)
    while pending:
        done, pending = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
        for future in done:
            future.result()
        report(sum(future.done() for future in futures))


def _end(futures: Sequence["Future[Any]"], ledger: Ledger) -> None:
    ledger.stop()
    for future in futures:
        future.cancel()


def _outcome(future: "Future[Outcome]") -> Outcome | None:
    try:
        return future.result()
    except (Stopped, CancelledError):
        return None
