"""Where a sweep's runs are made: in this process, or in several on this machine."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Protocol

from cdsampler.benchmark.sweeps._dispatch import Dispatch
from cdsampler.benchmark.sweeps._plan import Job
from cdsampler.benchmark.sweeps._records import blank_record, machine, n_cores
from cdsampler.benchmark.sweeps._run_one import Outcome, run_one
from cdsampler.errors import InvalidInputError


class Executor(Protocol):
    """Makes runs and hands back what they came to.

    Attributes
    ----------
    n_workers
        Runs made at once.
    is_in_process
        Whether runs see what this process has registered.
    """

    @property
    def n_workers(self) -> int: ...

    @property
    def is_in_process(self) -> bool: ...

    def execute(self, jobs: Sequence[Job], stop: threading.Event) -> Iterator[Outcome]:
        """Yield outcomes as they come; once `stop` is set, only those of runs that were under way."""


@dataclass(frozen=True)
class InProcess:
    """One run after the other, here; each uses all cores."""

    n_workers: int = 1
    is_in_process: bool = True

    def execute(self, jobs: Sequence[Job], stop: threading.Event) -> Iterator[Outcome]:
        """Yield outcomes as they come."""
        for job in jobs:
            if stop.is_set():
                return
            yield run_one(job)


class Processes:
    """Several processes on this machine, each with its own JAX and its share of the cores.

    A script that uses it needs `if __name__ == "__main__":`, as with every spawned process of Python.

    Parameters
    ----------
    workers
        Default one for each core.

    Raises
    ------
    InvalidInputError
        Less than one worker.
    """

    is_in_process = False

    def __init__(self, workers: int | None = None):
        if workers is not None and workers < 1:
            raise InvalidInputError(f"workers must be at least 1, got {workers}.")
        self.n_workers = n_cores() if workers is None else workers

    def execute(self, jobs: Sequence[Job], stop: threading.Event) -> Iterator[Outcome]:
        """Yield outcomes as they come; a worker that dies is replaced, and its run repeated once."""
        n_workers = min(self.n_workers, len(jobs))
        dispatch = Dispatch(jobs, n_workers)
        shares = _shares(n_workers)
        workers: dict[int, _Worker] = {}
        try:
            for number in range(n_workers):
                workers[number] = _Worker(shares[number])
                workers[number].give(dispatch.next_for(number))
            while any(worker.job is not None for worker in workers.values()):
                for number in _ready(workers):
                    worker = workers[number]
                    job, outcome = worker.take()
                    if worker.is_dead:
                        again = job if outcome is None else None
                        workers[number] = _Worker(shares[number], died_at=again)
                    if outcome is not None:
                        yield outcome
                    elif not stop.is_set():
                        workers[number].give(job)
                        continue
                    if not stop.is_set():
                        workers[number].give(dispatch.next_for(number))
        finally:
            for worker in workers.values():
                worker.end()


class _Worker:
    """A process, and what it is working on."""

    def __init__(self, cores: list[int], died_at: Job | None = None):
        # Forking a process that JAX has threads in deadlocks.
        context = multiprocessing.get_context("spawn")
        self._here, there = context.Pipe()
        self._process: BaseProcess = context.Process(target=_work, args=(there, cores), daemon=True)
        self._process.start()
        there.close()
        self._cores = cores
        self._died_at = died_at
        self.job: Job | None = None
        self.is_dead = False

    @property
    def connection(self) -> Connection:
        """Readable once there is an outcome, or the process is gone."""
        return self._here

    def give(self, job: Job | None) -> None:
        """Start a run; nothing happens without one."""
        self.job = job
        if job is not None:
            try:
                self._here.send(job)
            except OSError:  # it is gone: `take` finds out
                return

    def take(self) -> tuple[Job, Outcome | None]:
        """Return the run that has ended; without an outcome if the process died in it for the first time."""
        job, self.job = self.job, None
        assert job is not None
        try:
            return job, self._here.recv()
        except (EOFError, OSError):
            self.is_dead = True
            self._process.join()
            if self._died_at is not job:
                return job, None
            code = self._process.exitcode
            error = f"The worker process died twice in this run, with exit code {code}: is memory short?"
            made_on = machine() | {"host_cores": len(self._cores) or n_cores()}
            return job, Outcome(blank_record(job.spec, "failed", error, made_on=made_on))

    def end(self) -> None:
        """End the process: at once if it is in a run, which nobody waits for."""
        if self.job is not None:
            self._process.kill()
        self._here.close()
        self._process.join()


def _ready(workers: dict[int, _Worker]) -> list[int]:
    busy = {id(worker.connection): number for number, worker in workers.items() if worker.job is not None}
    ready = wait([workers[number].connection for number in busy.values()])
    return [busy[id(connection)] for connection in ready]


def _shares(n_workers: int) -> list[list[int]]:
    """Return the cores of each worker: those of this process in equal parts, or one for several workers."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if not cores:
        return [[]] * n_workers
    return [cores[i::n_workers] or [cores[i % len(cores)]] for i in range(n_workers)]


def _work(connection: Connection, cores: list[int]) -> None:
    # An interrupt of the terminal reaches every process of it; the sweep decides when to end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if cores:
        os.sched_setaffinity(0, cores)  # before JAX counts them for its threads
    while True:
        try:
            job = connection.recv()
        except EOFError:
            return
        outcome = run_one(job)
        try:
            connection.send(outcome)
        except BrokenPipeError:  # the sweep is gone
            return
