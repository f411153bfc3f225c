import time
from collections import defaultdict
from collections.abc import Sequence

from cdsampler.benchmark.sweeps._plan import Job
from cdsampler.benchmark.sweeps._records import Record


class Pace:
    """Guesses the time left: by seconds per evaluation, per tuning and per compilation, task by task.

    Parameters
    ----------
    todo
        Runs to be made; those that are impossible take no time.
    """

    def __init__(self, todo: Sequence[Job]):
        self._runs: dict[str, int] = defaultdict(int)
        self._evaluations: dict[str, int] = defaultdict(int)
        self._programs: set[tuple[str, str]] = set()  # not compiled yet, about one for each label of a task
        for job in todo:
            if not job.problem:
                self._runs[job.spec.task] += 1
                self._evaluations[job.spec.task] += job.spec.evaluations
                self._programs.add((job.spec.task, job.spec.label))
        self._n_compiled = 0
        self._made: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        self._began = time.perf_counter()

    def add(self, record: Record) -> None:
        """Count a run."""
        if record["status"] == "infeasible":
            return
        task = record["task"]
        self._runs[task] -= 1
        self._evaluations[task] -= record["budget"] * record["n_samples"]
        if (task, record["label"]) in self._programs:
            self._programs.remove((task, record["label"]))
            self._n_compiled += 1
        if record["status"] != "ok":
            return
        # "" is the sum over tasks, for those that have no run yet.
        for made in (self._made[task], self._made[""]):
            made["runs"] += 1
            made["evaluations"] += record["budget"] * record["n_samples"]
            for name in ("seconds", "seconds_tuning", "seconds_compilation"):
                made[name] += record[name]

    def seconds_left(self) -> float | None:
        """Return the guess; None without a run that succeeded."""
        overall = self._made.get("")
        if overall is None:
            return None
        needed = len(self._programs) * overall["seconds_compilation"] / self._n_compiled
        for task, runs in self._runs.items():
            made = self._made.get(task, overall)
            needed += self._evaluations[task] * made["seconds"] / made["evaluations"]
            needed += runs * made["seconds_tuning"] / made["runs"]
        # Metrics, files and waiting take time that no record has; several workers take less.
        busy = sum(overall[name] for name in ("seconds", "seconds_tuning", "seconds_compilation"))
        return needed * (time.perf_counter() - self._began) / busy if busy > 0 else None
