"""Hypervolume ratios: one number for how near a sampler's front comes to the best of all samplers.

An error below its floor is luck, and counts as the floor. Cost and error are taken as logarithms and scaled so that the
least and the greatest of all samplers are 0 and 1; the least is then the floor as soon as one sampler reaches it, and a
lucky sampler takes nothing from the others. Where all samplers are near the floor, scaling would blow up what is left
of chance: the range of errors is at least log 1.2, what counts as near. The hypervolume is the area that a front
dominates up to (1.1, 1.1); the ratio is to that of the front of all samplers together. It is averaged over tasks, then
over metrics. A sampler that was tried on a task and never gave a sample has ratio 0 there; one that was not tried on a
task is judged on its others alone. With `is_clipped=False` errors and their range are as they are, as in the paper.

Source: Zitzler and Thiele 1998, 'Multiobjective optimization using evolutionary algorithms'; computed by moocore.
"""

import importlib
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cdsampler.benchmark.fronts._cells import Cell, FloatArray
from cdsampler.benchmark.fronts._means import N_RESAMPLES, Means, means_of
from cdsampler.benchmark.fronts._reach import REACHED
from cdsampler.errors import InvalidInputError, MissingExtraError

REFERENCE_POINT = (1.1, 1.1)
_LEAST_RANGE = math.log(REACHED)  # of the logarithms of clipped errors
ALL = "all"


class HypervolumeRatio(NamedTuple):
    """Share of the best front's hypervolume that a sampler's own has.

    Attributes
    ----------
    label
        Of the sampler.
    task, metric
        What it is of; "all" for a mean over tasks, and over metrics.
    value
        Between 0 and 1; 1 for a sampler whose front is that of all samplers.
    low, high
        5 and 95 % of the resamples' ratios. Resamples are noisier than the repeats, and the best of all samplers gains
        by noise: both may be below the value.
    n_tasks
        Number of tasks that it is the mean of.
    """

    label: str
    task: str
    metric: str
    value: float
    low: float
    high: float
    n_tasks: int


def hypervolume(points: FloatArray, reference: Sequence[float] = REFERENCE_POINT) -> float:
    """Return the area that points dominate, up to a reference point.

    Parameters
    ----------
    points : ndarray, shape (n, 2)
        Less is better; those beyond the reference point add nothing.
    reference
        Two numbers.

    Raises
    ------
    InvalidInputError
        Points of another shape, or not finite: moocore would leave NaN out in silence.
    MissingExtraError
        moocore is absent.
    """
    array = np.asarray(points, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != 2:
        raise InvalidInputError(f"Points must have shape (n, 2), got {array.shape}.")
    if not np.all(np.isfinite(array)):
        n = int(np.sum(~np.all(np.isfinite(array), axis=1)))
        raise InvalidInputError(f"Points must be finite, and {n} of {len(array)} are not: leave them out.")
    return float(_moocore().hypervolume(array, ref=list(reference))) if len(array) else 0.0


def hypervolume_ratios(
    cells: Sequence[Cell],
    records: Iterable[Mapping[str, Any]] = (),
    *,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
    is_clipped: bool = True,
) -> list[HypervolumeRatio]:
    """Return the hypervolume ratio of every label: by task and metric, by metric, and over all.

    The module's docstring says how each is taken. The whole is repeated for every resample of the repeats.

    Parameters
    ----------
    cells
        Of `cells_of`.
    records
        All records, so that samplers that failed on a task count there; without them only cells count.
    n_resamples
        At least 1.
    seed
        Fixes the resamples.
    is_clipped
        Whether a mean error below its floor counts as the floor. The paper's ratios are those with False.

    Returns
    -------
    list of HypervolumeRatio

    Raises
    ------
    InvalidInputError
        Fewer than one resample.
    MissingExtraError
        moocore is absent.
    """
    return ratios_of(means_of(cells, n_resamples, seed), records, is_clipped=is_clipped)


def ratios_of(
    means: Means, records: Iterable[Mapping[str, Any]] = (), *, is_clipped: bool = True
) -> list[HypervolumeRatio]:
    """Return the hypervolume ratios of means that are not clipped yet; see `hypervolume_ratios`."""
    tried: dict[str, dict[str, None]] = defaultdict(dict)
    for task, label in [*((r["task"], r["label"]) for r in records), *((c.task, c.label) for c in means.cells)]:
        tried[task][label] = None
    means, least_range = (means.clipped(), _LEAST_RANGE) if is_clipped else (means, 0.0)
    tasks, labels = means.tasks, means.labels
    found: dict[tuple[str, str], dict[str, FloatArray]] = defaultdict(dict)  # (label, metric), then task
    for task in dict.fromkeys(tasks.tolist()):
        here = tasks == task
        for metric, values in means.errors.items():
            if np.any(np.isfinite(values[here, 0])):
                ratios = _ratios(means.costs[here], values[here], labels[here], list(tried[task]), least_range)
                for label, ratio in ratios.items():
                    found[label, metric][task] = ratio
    return _summaries(found)


def _ratios(
    costs: FloatArray, errors: FloatArray, labels: np.ndarray, tried: list[str], least_range: float
) -> dict[str, FloatArray]:
    """Return each label's ratio on one task by one metric, as they are and for every resample."""
    ratios = {label: np.zeros(costs.shape[1]) for label in tried}
    for b in range(costs.shape[1]):
        is_finite = np.isfinite(costs[:, b]) & np.isfinite(errors[:, b])
        points = np.log(np.stack([costs[is_finite, b], errors[is_finite, b]], axis=1))
        if not len(points):
            continue
        least, span = points.min(axis=0), np.maximum(np.ptp(points, axis=0), [0.0, least_range])
        scaled = (points - least) / np.where(span > 0, span, 1.0)
        best = hypervolume(scaled)
        for label in dict.fromkeys(labels[is_finite].tolist()):
            ratios[label][b] = hypervolume(scaled[labels[is_finite] == label]) / best
    return ratios


def _summaries(found: Mapping[tuple[str, str], Mapping[str, FloatArray]]) -> list[HypervolumeRatio]:
    summaries = []
    by_label: dict[str, list[tuple[FloatArray, set[str]]]] = defaultdict(list)
    for (label, metric), by_task in found.items():
        summaries += [_summary(label, task, metric, ratio, 1) for task, ratio in by_task.items()]
        mean = np.mean(list(by_task.values()), axis=0)
        summaries.append(_summary(label, ALL, metric, mean, len(by_task)))
        by_label[label].append((mean, set(by_task)))
    for label, means in by_label.items():
        tasks = set().union(*(names for _, names in means))
        summaries.append(_summary(label, ALL, ALL, np.mean([mean for mean, _ in means], axis=0), len(tasks)))
    return summaries


def _summary(label: str, task: str, metric: str, ratio: FloatArray, n_tasks: int) -> HypervolumeRatio:
    low, high = np.quantile(ratio[1:], [0.05, 0.95])
    return HypervolumeRatio(label, task, metric, float(ratio[0]), float(low), float(high), n_tasks)


def _moocore() -> Any:
    try:
        return importlib.import_module("moocore")
    except ImportError as error:
        raise MissingExtraError("Hypervolumes need moocore: pip install 'cdsampler[benchmark]'.") from error
