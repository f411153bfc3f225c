"""Shares runs out to workers, so that those with compiled programs in common stay together."""

from collections import deque
from collections.abc import Sequence

from cdsampler.benchmark.sweeps._plan import Job


class Dispatch:
    """Runs that are left, in batches of one task and sampler, which have most of their compiled programs in common.

    A worker goes on with its own batch; then it takes the next one, and when there is none left, half of the largest
    that another worker has.

    Parameters
    ----------
    jobs
        In the order of a plan.
    n_workers
    """

    def __init__(self, jobs: Sequence[Job], n_workers: int):
        largest = max(1, len(jobs) // (4 * n_workers))
        self._batches: deque[deque[Job]] = deque()
        for job in jobs:
            last = self._batches[-1] if self._batches else None
            if last is None or _kind(last[-1]) != _kind(job) or len(last) >= largest:
                last = deque()
                self._batches.append(last)
            last.append(job)
        self._own: dict[int, deque[Job]] = {}

    def next_for(self, worker: int) -> Job | None:
        """Return the next run for a worker; None if there is none left."""
        own = self._own.get(worker)
        if not own:
            own = self._batches.popleft() if self._batches else self._stolen()
            self._own[worker] = own
        return own.popleft() if own else None

    def _stolen(self) -> deque[Job]:
        most = max(self._own.values(), key=len, default=deque[Job]())
        return deque(reversed([most.pop() for _ in range((len(most) + 1) // 2)]))


def _kind(job: Job) -> tuple[str, str]:
    return job.spec.task, job.spec.sampler
