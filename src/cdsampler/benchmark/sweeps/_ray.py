"""Runs on a Ray cluster, or on this machine through Ray."""

import importlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from cdsampler.benchmark.sweeps._dispatch import Dispatch
from cdsampler.benchmark.sweeps._plan import Job
from cdsampler.benchmark.sweeps._records import blank_record
from cdsampler.benchmark.sweeps._run_one import Outcome, run_one
from cdsampler.errors import InvalidInputError, MissingExtraError


class _RemoteWorker:
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
        Actors; default as many as the cluster has room for.
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
        """Yield outcomes as they come; a worker that is lost is replaced, and its run repeated once."""
        ray = self._ray
        n_workers = min(self.n_workers, len(jobs))
        dispatch = Dispatch(jobs, n_workers)
        actor_type = ray.remote(**self._resources)(_RemoteWorker)
        actors = {number: actor_type.remote() for number in range(n_workers)}
        running: dict[Any, tuple[int, Job]] = {}
        lost: set[str] = set()

        def give(number: int, job: Job | None) -> None:
            if job is not None:
                running[actors[number].run.remote(job)] = number, job

        try:
            for number in actors:
                give(number, dispatch.next_for(number))
            while running:
                (reference, *_), _ = ray.wait(list(running), num_returns=1)
                number, job = running.pop(reference)
                try:
                    outcome = ray.get(reference)
                except ray.exceptions.RayError as error:
                    actors[number] = actor_type.remote()
                    if job.spec.key not in lost and not stop.is_set():
                        lost.add(job.spec.key)
                        give(number, job)
                        continue
                    outcome = Outcome(blank_record(job.spec, "failed", f"Its worker was lost twice: {error}"))
                yield outcome
                if not stop.is_set():
                    give(number, dispatch.next_for(number))
        finally:
            for actor in actors.values():
                ray.kill(actor)

    def close(self) -> None:
        """Disconnect, and end a cluster that was started here."""
        if self._is_ours and self._ray.is_initialized():
            self._ray.shutdown()

    def _connect(self, address: str | None) -> None:
        try:
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
            raise InvalidInputError(f"The Ray cluster has no room for one worker of {self._resources}: it has {have}.")
        return min(room)


def _load_ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError as error:
        raise MissingExtraError("Ray is not installed: pip install 'cdsampler[ray]'.") from error
