"""Runs a sweep, or what is left of it."""

import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from cdsampler.benchmark.references import list_references
from cdsampler.benchmark.sweeps._changed import settle_changed_targets
from cdsampler.benchmark.sweeps._executors import Executor, InProcess
from cdsampler.benchmark.sweeps._model import Sweep
from cdsampler.benchmark.sweeps._pace import Pace
from cdsampler.benchmark.sweeps._plan import Job, expand
from cdsampler.benchmark.sweeps._read import read_config
from cdsampler.benchmark.sweeps._records import Record
from cdsampler.benchmark.sweeps._run_one import Outcome
from cdsampler.benchmark.sweeps._store import Store
from cdsampler.benchmark.sweeps._targets import is_registered
from cdsampler.errors import InvalidInputError


class SweepProgress(NamedTuple):
    """How far a sweep is.

    Attributes
    ----------
    done
        Runs in the store, of all outcomes.
    failed, infeasible
        Among them.
    left
        Runs still to be made.
    seconds_left : float or None
        About how long they take, by the seconds per evaluation so far; None before the first.
    latest : dict or None
        Record of the run that has just ended.
    """

    done: int
    failed: int
    infeasible: int
    left: int
    seconds_left: float | None = None
    latest: Record | None = None


def run_sweep(
    config: Sweep | str | Path,
    directory: str | Path,
    *,
    executor: Executor | None = None,
    tasks: Sequence[str] | None = None,
    samplers: Sequence[str] | None = None,
    retry_failed: bool = False,
    redo_changed: bool = False,
    on_progress: Callable[[SweepProgress], None] = lambda progress: None,
    on_message: Callable[[str], None] = lambda text: None,
) -> SweepProgress:
    """Make the runs of a sweep that its store lacks.

    Parameters
    ----------
    config
        What `read_config` returned, or takes.
    directory
        The store: new, empty, or of this sweep.
    executor
        Default this process.
    tasks, samplers
        Names of those to run now; default all.
    retry_failed
        Whether runs that failed are made again.
    redo_changed
        Whether runs are made anew whose target's file was changed since.
    on_progress
        Called at the start and after every run.
    on_message
        Called with what was found amiss in the store and mended, and when its runs become less comparable: of several
        devices, commits or versions.

    Returns
    -------
    SweepProgress
        If runs are left, an interrupt (Ctrl-C) ended it after those under way; a second one ends it at once. The same
        call goes on from there.

    Raises
    ------
    InvalidInputError
        Something is wrong with the configuration or the store, a target's file was changed since runs in the store
        were made with it, a task has no reference samples yet, or a registered target is to run in other processes;
        before any run.
    """
    sweep = config if isinstance(config, Sweep) else read_config(config)
    executor = InProcess() if executor is None else executor
    jobs = expand(sweep, tasks=tasks, samplers=samplers)
    _check_targets(jobs, executor)
    with Store(Path(directory), sweep, on_message) as store:
        settle_changed_targets(jobs, store, retry_failed=retry_failed, redo_changed=redo_changed, on_message=on_message)
        return _run(jobs, store, executor, retry_failed, on_progress)


def _run(
    jobs: list[Job], store: Store, executor: Executor, retry_failed: bool, on_progress: Callable[[SweepProgress], None]
) -> SweepProgress:
    kept = ("ok", "infeasible") if retry_failed else ("ok", "infeasible", "failed")
    todo = [job for job in jobs if store.status(job.spec.key) not in kept]
    pace = Pace(todo)
    progress = _progress(jobs, store, todo)
    on_progress(progress)
    left = len(todo)
    # Closed at once if this process fails, so that no worker goes on.
    with _interrupts() as stop, closing(_outcomes(_with_references(todo, store), executor, stop)) as outcomes:
        for outcome in outcomes:
            record = _keep(outcome, store)
            pace.add(record)
            left -= 1
            progress = _progress(jobs, store, todo, left)._replace(seconds_left=pace.seconds_left(), latest=record)
            on_progress(progress)
    return progress


def _outcomes(jobs: list[Job], executor: Executor, stop: threading.Event) -> Generator[Outcome, None, None]:
    # What can't be run is recorded by workers, too: as of their device, which this process need not have.
    if jobs:
        yield from executor.execute(jobs, stop)


def _keep(outcome: Outcome, store: Store) -> Record:
    record = outcome.record
    # Before the record: a file that no record names does no harm.
    if outcome.reference:
        store.write_samples(f"reference-{record['task']}", outcome.reference)
    if outcome.samples:
        record = record | {"samples_file": store.write_samples(record["key"], outcome.samples)}
    store.append(record)
    return record


def _with_references(jobs: list[Job], store: Store) -> list[Job]:
    """Return the jobs, where the first possible one of each program of a task without reference samples keeps them."""
    # One of each program, since the first of all may fail.
    wanted, marked = set(), []
    for job in jobs:
        name = job.structure
        is_first = not job.problem and name not in wanted and not store.has_samples(f"reference-{job.spec.task}")
        if is_first:
            wanted.add(name)
        marked.append(replace(job, keeps_reference=is_first))
    return marked


def _progress(jobs: list[Job], store: Store, todo: list[Job], left: int | None = None) -> SweepProgress:
    statuses = [store.status(job.spec.key) for job in jobs]
    left = len(todo) if left is None else left
    return SweepProgress(len(jobs) - left, statuses.count("failed"), statuses.count("infeasible"), left)


def _check_targets(jobs: list[Job], executor: Executor) -> None:
    where = {listing.name: listing.where for listing in list_references()}
    for name, target in dict.fromkeys((job.spec.task, job.target) for job in jobs):
        if target is not None:
            continue
        if is_registered(name) and not executor.is_in_process:
            raise InvalidInputError(
                f"{name} was registered in this process, and other processes don't know it: name its function in the "
                f'configuration ([tasks.{name}] target = "file.py:function"), or run the sweep in this process.'
            )
        if where.get(name.removesuffix("-cartesian")) == "to be made":
            raise InvalidInputError(
                f"There is no reference for {name} yet: make it by 'cdsampler reference {name} --regenerate', or leave "
                "the task out."
            )


@contextmanager
def _interrupts() -> Iterator[threading.Event]:
    """Give an event that the first interrupt sets; the second one is an interrupt."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # only the main thread gets signals
        return
    before = signal.getsignal(signal.SIGINT)

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        stop.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
