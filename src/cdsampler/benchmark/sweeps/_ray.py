"""Runs on a Ray cluster, or on this machine through Ray."""

import importlib
import re
import socket
import threading
import time
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from cdsampler.benchmark.sweeps._dispatch import Dispatch
from cdsampler.benchmark.sweeps._plan import Job
from cdsampler.benchmark.sweeps._records import Record, blank_record, machine
from cdsampler.benchmark.sweeps._run_one import Outcome, run_one
from cdsampler.errors import CdsamplerError, InvalidInputError, MissingExtraError

PATIENCE_SECONDS = 600.0
MAX_FAILED_STARTS = 3


class _RemoteWorker:
    def machine(self) -> Record:
        return machine()

    def run(self, job: Job) -> Outcome:
        return run_one(job)


class Ray:
    """Actors on a Ray cluster, each with its own JAX; outcomes come back to this process.

    Every node needs this library, and the files that targets are named by at the same place.

    Parameters
    ----------
    address
        Of the cluster, "auto" for the one that this machine belongs to; None for one that is started here. If Ray is
        connected already, that is used.
    workers
        Actors; default as many as the cluster has room for now. Those that it has no room for wait, and join later.
    cpus_per_worker, gpus_per_worker
        What each actor takes of the cluster.

    Raises
    ------
    MissingExtraError
        Ray is not installed.
    InvalidInputError
        Counts out of range, or there is no cluster at the address.
    """

    is_in_process = False

    def __init__(
        self,
        address: str | None = None,
        workers: int | None = None,
        *,
        cpus_per_worker: int = 1,
        gpus_per_worker: float = 0,
    ):
        for name, value in (("workers", workers), ("cpus_per_worker", cpus_per_worker)):
            if value is not None and value < 1:
                raise InvalidInputError(f"{name} must be at least 1, got {value}.")
        if gpus_per_worker < 0:
            raise InvalidInputError(f"gpus_per_worker must not be negative, got {gpus_per_worker}.")
        self._ray = _load_ray()
        self._is_ours = not self._ray.is_initialized()
        if self._is_ours:
            self._connect(address)
        self._resources = {"num_cpus": cpus_per_worker, "num_gpus": gpus_per_worker}
        self.n_workers = self._room() if workers is None else workers

    def execute(self, jobs: Sequence[Job], stop: threading.Event) -> Iterator[Outcome]:
        """Yield outcomes as they come; a worker that is lost is replaced, and its run repeated once.

        Raises
        ------
        CdsamplerError
            Workers fail to start, or there has been room for none of them for ten minutes.
        """
        crew = _Crew(self._ray, self._resources, jobs, min(self.n_workers, len(jobs)))
        try:
            yield from crew.outcomes(stop)
        finally:
            crew.end()

    def close(self) -> None:
        """Disconnect, and end a cluster that was started here."""
        if self._is_ours and self._ray.is_initialized():
            self._ray.shutdown()

    def _connect(self, address: str | None) -> None:
        _check_reachable(address)
        try:
            with warnings.catch_warnings():
                # JAX warns of forks; those of Ray become other programs at once.
                warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
                self._ray.init(address=address, log_to_driver=False, include_dashboard=None if address else False)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise InvalidInputError(
                f"There is no Ray cluster at {address!r} ({error}): start one, or leave it out."
            ) from error

    def _room(self) -> int:
        have = self._ray.cluster_resources()
        room = [
            int(have.get(kind, 0) // self._resources[option])
            for kind, option in (("CPU", "num_cpus"), ("GPU", "num_gpus"))
            if self._resources[option] > 0
        ]
        if min(room) < 1:
            self.close()
            raise InvalidInputError(f"The Ray cluster has no room for one worker of {self._resources}: it has {have}.")
        return min(room)


def _check_reachable(address: str | None) -> None:
    """Refuse an address where nobody listens; Ray itself tries it for minutes."""
    found = re.fullmatch(r"(?:ray://)?\[?([^\[\]/]+)\]?:(\d+)", address or "")
    if not found:
        return
    try:
        socket.create_connection((found[1], int(found[2])), timeout=10).close()
    except (OSError, OverflowError) as error:
        raise InvalidInputError(f"Nothing answers at {address!r} ({error}): start a Ray cluster there.") from error


class _Crew:
    """Actors, and what each of them is doing.

    An actor gets a run once it is up: where a node was lost there may be no room for its successor, and the others do
    without it.
    """

    def __init__(self, ray: Any, resources: dict[str, float], jobs: Sequence[Job], n_workers: int):
        self._ray = ray
        self._actor_type = ray.remote(**resources)(_RemoteWorker)
        self._dispatch = Dispatch(jobs, n_workers)
        self._left = len(jobs)
        self._again: deque[Job] = deque()
        self._lost: set[str] = set()
        self._actors: dict[int, Any] = {}
        self._machines: dict[int, Record] = {}
        self._idle: set[int] = set()
        self._starting: dict[Any, int] = {}
        self._running: dict[Any, tuple[int, Job]] = {}
        self._failed_starts = 0
        self._heard = time.monotonic()
        for number in range(n_workers):
            self._start(number)

    def outcomes(self, stop: threading.Event) -> Iterator[Outcome]:
        while self._running or (self._left and not stop.is_set()):
            # Only for a while: nothing may ever come, and `stop` may be set meanwhile.
            ready, _ = self._ray.wait([*self._running, *self._starting], num_returns=1, timeout=1.0)
            if self._running or ready:
                self._heard = time.monotonic()
            elif time.monotonic() - self._heard > PATIENCE_SECONDS:
                raise CdsamplerError(
                    f"No worker has come up on the Ray cluster for {PATIENCE_SECONDS:.0f} s: see to it that it has "
                    "room for one, and run the same sweep again."
                )
            for reference in ready:
                if reference in self._starting:
                    self._greet(reference)
                else:
                    outcome = self._take(reference)
                    if outcome is not None:
                        self._left -= 1
                        yield outcome
            if not stop.is_set():
                self._give()

    def end(self) -> None:
        for actor in self._actors.values():
            self._ray.kill(actor)

    def _start(self, number: int) -> None:
        if number in self._actors:
            self._ray.kill(self._actors[number])  # its place may be needed
        self._actors[number] = self._actor_type.remote()
        self._starting[self._actors[number].machine.remote()] = number

    def _greet(self, reference: Any) -> None:
        number = self._starting.pop(reference)
        try:
            self._machines[number] = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            self._failed_starts += 1
            if self._failed_starts == MAX_FAILED_STARTS:
                raise CdsamplerError(
                    f"Workers fail to start on the Ray cluster ({_said(error)}): is this version of cdsampler on every "
                    "node of it?"
                ) from error
            self._start(number)
        else:
            self._failed_starts = 0
            self._idle.add(number)

    def _give(self) -> None:
        for number in sorted(self._idle):
            job = self._again.popleft() if self._again else self._dispatch.next_for(number)
            if job is None:
                return
            self._idle.remove(number)
            self._running[self._actors[number].run.remote(job)] = number, job

    def _take(self, reference: Any) -> Outcome | None:
        """Return what a run came to; None if its worker was lost in it for the first time."""
        number, job = self._running.pop(reference)
        try:
            outcome: Outcome = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            self._start(number)
            if job.spec.key not in self._lost:
                self._lost.add(job.spec.key)
                self._again.append(job)
                return None
            text = f"Its worker was lost twice in this run: {_said(error)}"
            return Outcome(blank_record(job.spec, "failed", text, made_on=self._machines[number]))
        self._idle.add(number)
        return outcome


def _said(error: Exception) -> str:
    # Ray's own texts go on for many lines; of an exception in a worker they hold all of its trace.
    cause = getattr(error, "cause", None) or error
    return f"{type(cause).__name__}: {(str(cause).strip().splitlines() or [''])[0]}"


def _load_ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError as error:
        raise MissingExtraError("Ray is not installed: pip install 'cdsampler[ray]'.") from error
