"""A sweep's store, analysed: all that the page, its figures and its tables show."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cdsampler.benchmark.fronts import ACCOUNTINGS, Analysis, Store, analyse_records, describe, read_store
from cdsampler.errors import InvalidInputError
from cdsampler.metrics import METRICS
from cdsampler.report.html._look import Look, looks

# The metric that stands for a task in the summary: the first of these that it has.
_HEADLINES = ("wasserstein_2", "pair_distance_total_variation", "ramachandran_kl", "energy_wasserstein_1")
_HOPELESS = 1e9  # times the floor, in a mean of logarithms


class Shown(NamedTuple):
    """The configuration that stands for a sampler on a task: at its largest budget, the one nearest to the floors.

    Attributes
    ----------
    label, configuration
        Of the sampler.
    budget
        Its largest with a successful run.
    records
        Its repeats that succeeded.
    """

    label: str
    configuration: str
    budget: float
    records: list[Mapping[str, Any]]


class Sweep(NamedTuple):
    """A store with everything derived from it.

    Attributes
    ----------
    directory
        Of the store.
    store
        As it was read.
    labels
        Best first, by the mean hypervolume ratio of the first accounting; then those without one.
    tasks
        In the order of the records.
    looks
        Of the labels.
    analyses
        By accounting.
    shown
        By task: what stands for each sampler.
    n_resamples
        Of the bootstrap.
    """

    directory: Path
    store: Store
    labels: list[str]
    tasks: list[str]
    looks: dict[str, Look]
    analyses: dict[str, Analysis]
    shown: dict[str, list[Shown]]
    n_resamples: int

    def error_metrics(self, task: str) -> list[str]:
        """Return the metrics of a task that are errors, in the order of `METRICS`."""
        cells = next(iter(self.analyses.values())).cells
        return in_order(name for cell in cells if cell.task == task for name in cell.metrics)

    def front_metrics(self, task: str) -> list[str]:
        """Return those by which at least one sampler has a front on the task: a finite error."""
        having = {front.metric for front in next(iter(self.analyses.values())).fronts if front.task == task}
        return [name for name in self.error_metrics(task) if name in having]

    def was_tried(self, task: str, label: str) -> bool:
        """Return whether a sampler has a run on a task, whatever came of it."""
        return any(record["task"] == task and record["label"] == label for record in self.store.records)

    @property
    def gaps(self) -> str:
        """What samplers lack runs on which tasks, in words; empty if every sampler has runs on every task."""
        n_tried = {task: sum(self.was_tried(task, label) for label in self.labels) for task in self.tasks}
        n = len(self.labels)
        parts = [f"{task} has runs of {tried} of {n} samplers" for task, tried in n_tried.items() if tried < n]
        if not parts:
            return ""
        return f"{'; '.join(parts)}: means over tasks are of different tasks, and only roughly comparable."

    def headline(self, task: str) -> str | None:
        """Return the metric that stands for a task; None if no run of it gave an error."""
        names = self.error_metrics(task)
        return next((name for name in _HEADLINES if name in names), names[0] if names else None)


def analyse(directory: str | Path, *, n_resamples: int) -> Sweep:
    """Read a store and analyse it in both accountings."""
    store = read_store(directory)
    records = store.records
    tasks = list(dict.fromkeys(record["task"] for record in records))
    analyses = {name: analyse_records(records, name, n_resamples=n_resamples) for name in ACCOUNTINGS}
    labels = best_first(next(iter(analyses.values())), dict.fromkeys(record["label"] for record in records))
    shown = {task: _shown([record for record in records if record["task"] == task], labels) for task in tasks}
    return Sweep(Path(directory), store, labels, tasks, looks(labels), analyses, shown, n_resamples)


def best_first(analysis: Analysis, labels: Iterable[str]) -> list[str]:
    """Return labels by falling mean hypervolume ratio, those without one last."""
    overall = {ratio.label: ratio.value for ratio in analysis.ratios if (ratio.task, ratio.metric) == ("all", "all")}
    return sorted(labels, key=lambda label: -overall.get(label, -1.0))


def in_order(names: Iterable[str]) -> list[str]:
    """Return metrics without repeats, in the order of `METRICS`, unknown ones last."""
    unique = list(dict.fromkeys(names))
    return [name for name in METRICS if name in unique] + [name for name in unique if name not in METRICS]


def load_draws(sweep: Sweep, file: str) -> dict[str, np.ndarray] | None:
    """Return the arrays of one of the store's files of samples, or None if it isn't there.

    Raises
    ------
    InvalidInputError
        The file is damaged.
    """
    path = sweep.directory / file
    if not path.is_file():
        return None
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name: np.asarray(arrays[name], dtype=np.float64) for name in arrays.files}
    except (ValueError, OSError, EOFError) as error:
        raise InvalidInputError(f"{path} cannot be read ({error}): remove it, or run the sweep anew.") from error


def _shown(records: Sequence[Mapping[str, Any]], labels: Iterable[str]) -> list[Shown]:
    found = []
    for label in labels:
        own = [record for record in records if record["label"] == label and record["status"] == "ok"]
        if not own:
            continue
        budget = max(float(record.get("budget") or 0) for record in own)
        groups: dict[str, list[Mapping[str, Any]]] = {}
        for record in own:
            if float(record.get("budget") or 0) == budget:
                groups.setdefault(describe(record), []).append(record)
        configuration = min(groups, key=lambda name: _distance(groups[name]))
        found.append(Shown(label, configuration, budget, groups[configuration]))
    return found


def _distance(records: Sequence[Mapping[str, Any]]) -> float:
    """Return the mean logarithm of the multiples of the floors, what is below the floor counting as there."""
    entries = [entry for record in records for entry in (record["metrics"] or {}).values()]
    # What has no value was not finite.
    ratios = [_HOPELESS if entry.get("value") is None else entry.get("ratio") for entry in entries]
    logs = [np.log(max(ratio, 1.0)) for ratio in ratios if ratio is not None]
    return float(np.mean(logs)) if logs else np.inf
