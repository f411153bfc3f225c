"""Runs whose target's file was changed after they were made: refused, or set aside to be made anew."""

from collections.abc import Callable, Sequence

from cdsampler.benchmark.sweeps._plan import Job
from cdsampler.benchmark.sweeps._store import ASIDE, Store
from cdsampler.errors import InvalidInputError


def settle_changed_targets(
    jobs: Sequence[Job], store: Store, *, retry_failed: bool, redo_changed: bool, on_message: Callable[[str], None]
) -> None:
    """See to it that a store has runs of one version of each target's file alone.

    Parameters
    ----------
    jobs
        That are asked for now.
    store
    retry_failed
        Whether runs that measured nothing may be set aside, if there are no others.
    redo_changed
        Whether all may.
    on_message
        Called with what was set aside.

    Raises
    ------
    InvalidInputError
        There are runs of another version, and they may not be set aside.
    """
    files = {job.spec.task: (job.target, job.spec.target_sha256) for job in jobs if job.spec.target_sha256 is not None}
    for task, (target, sha256) in files.items():
        stale = {key: run for key, run in store.runs.items() if run.task == task and run.target_sha256 != sha256}
        if not stale:
            continue
        file = str(target).rpartition(":")[0]
        n_measured = sum(run.status == "ok" for run in stale.values())
        if not (redo_changed or (retry_failed and n_measured == 0)):
            raise InvalidInputError(
                f"{file} was changed: {len(stale)} runs of {task} in {store.directory} were made with another version "
                "of it. Restore it, make them anew by --redo-changed (redo_changed=True), or choose another folder."
            )
        store.set_aside(task, stale)
        on_message(
            f"{file} was changed: {len(stale)} runs of {task} that were made with another version of it are now in "
            f"{store.directory / ASIDE}, and are made anew."
        )
