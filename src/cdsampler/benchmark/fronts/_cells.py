"""A sweep's runs as points of cost and error: one cell for each configuration and budget, with its repeats.

An error must be positive to have a place on a logarithmic axis. The unbiased squared MMD can be negative for good
samples; an error below a tenth of the standard deviation of its floor counts as that: no finite sample tells it from
nought. Metrics that are no error (weights, likelihoods, counts of modes) have no ratio to a floor, and are left out.
JSON has no infinity: a metric without a value was not finite (a distance of energies, where a sample has an infinite
one), and counts as an infinite error, so that a sampler doesn't gain by its worst repeats.

No sampler is better than exact draws: an error below its floor is luck. Cells keep it as it is, for tables; fronts and
hypervolumes count it as the floor (see `Means`).
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cdsampler.errors import InvalidInputError

FloatArray = NDArray[np.float64]

ACCOUNTINGS = {
    "independent": "evaluations_per_sample",
    "returned": "evaluations_per_returned_sample",
}
"""Record field of the cost by accounting: of a chain that gives one independent sample (the paper's), or of
everything, tuning included, over the samples returned."""

_SMALLEST = 0.1  # standard deviations of the floor
_OUTRIGHT_SMALLEST = 1e-12  # where the floor has no spread


class Cell(NamedTuple):
    """One configuration of a sampler at one budget on one task, with its repeats.

    Attributes
    ----------
    task, label
        Of the runs; a label is a sampler, or a variant of one.
    configuration
        What tells it from the label's others, for people.
    budget
        Evaluations per sample that were allowed.
    n_runs
        Repeats asked for, failed ones included.
    costs : ndarray, shape (r,)
        Evaluations per sample of the repeats that succeeded.
    errors, ratios : dict of ndarray, shape (r,)
        By metric: the error, positive, and its multiple of the floor; inf where it was not finite, NaN where a repeat
        lacks it.
    floors : dict of float
        By metric: the mean floor of the repeats; NaN without one.
    n_raised : dict of int
        By metric: how many errors were raised to the smallest that counts.
    """

    task: str
    label: str
    configuration: str
    budget: float
    n_runs: int
    costs: FloatArray
    errors: dict[str, FloatArray]
    ratios: dict[str, FloatArray]
    floors: dict[str, float]
    n_raised: dict[str, int]

    @property
    def metrics(self) -> tuple[str, ...]:
        """Metrics that at least one repeat has, finite or not."""
        return tuple(self.errors)

    @property
    def cost(self) -> float:
        """Mean cost of the repeats."""
        return float(self.costs.mean())

    def error(self, metric: str) -> float:
        """Return the mean error of the repeats: inf if one was not finite, NaN if none has it."""
        return float(mean_of_known(self.errors[metric]))

    def ratio(self, metric: str) -> float:
        """Return the mean multiple of the floor, in the same way."""
        return float(mean_of_known(self.ratios[metric]))


def describe(record: Mapping[str, Any]) -> str:
    """Return what tells a record's configuration from others of its label: changed settings, preset, sampler."""
    parts = [f"{name}={_text(value)}" for name, value in sorted((record.get("changes") or {}).items())]
    preset, sampler = record.get("preset"), record.get("sampler")
    if preset:
        parts.append(f"preset {preset}")
    if sampler and sampler != record["label"]:
        parts.append(f"sampler {sampler}")
    return ", ".join(parts) or "default settings"


def cells_of(records: Iterable[Mapping[str, Any]], accounting: str = "independent") -> list[Cell]:
    """Return the cells of a sweep: configurations by budgets, of every task and label.

    Parameters
    ----------
    records
        Of `read_records`.
    accounting
        Key of `ACCOUNTINGS`: what a sample costs.

    Returns
    -------
    list of Cell
        Those with at least one successful repeat, in the order of the records.

    Raises
    ------
    InvalidInputError
        Another accounting, or a successful record without a positive cost.
    """
    if accounting not in ACCOUNTINGS:
        raise InvalidInputError(f"accounting must be one of {', '.join(ACCOUNTINGS)}, got {accounting!r}.")
    groups: dict[tuple[str, str, str, float], list[Mapping[str, Any]]] = defaultdict(list)
    is_error: dict[str, set[str]] = defaultdict(set)
    for record in records:
        is_error[record["task"]] |= {n for n, e in (record["metrics"] or {}).items() if e.get("ratio") is not None}
        key = (record["task"], record["label"], describe(record), float(record.get("budget") or 0))
        groups[key].append(record)
    cells = []
    for (task, label, configuration, budget), group in groups.items():
        succeeded = [record for record in group if record["status"] == "ok"]
        if not succeeded:
            continue
        costs = np.array([_cost(record, ACCOUNTINGS[accounting]) for record in succeeded])
        cells.append(Cell(task, label, configuration, budget, len(group), costs, *_errors(succeeded, is_error[task])))
    return cells


def mean_of_known(values: FloatArray) -> FloatArray:
    """Return means along the last axis of what isn't NaN, infinite if any of it is; NaN where nothing is there."""
    is_known = ~np.isnan(values)
    n = is_known.sum(axis=-1)
    total = np.where(is_known, values, 0.0).sum(axis=-1)
    return np.where(n > 0, total / np.maximum(n, 1), np.nan)


def _cost(record: Mapping[str, Any], field: str) -> float:
    cost = _number(record.get(field))
    if not cost > 0:
        raise InvalidInputError(
            f"Record {record['key']!r} succeeded, and its {field} is {record.get(field)!r}: it must be positive."
        )
    return cost


class _Errors(NamedTuple):
    """What `Cell` has by metric."""

    errors: dict[str, FloatArray]
    ratios: dict[str, FloatArray]
    floors: dict[str, float]
    n_raised: dict[str, int]


def _errors(records: Sequence[Mapping[str, Any]], is_error: set[str]) -> _Errors:
    names = list(dict.fromkeys(name for record in records for name in record["metrics"] or {}))
    found = _Errors({}, {}, {}, {})
    for name in names:
        if name in is_error:
            entries = [(record["metrics"] or {}).get(name) for record in records]
            triples = np.array([_error(entry) for entry in entries])
            found.errors[name], found.ratios[name] = triples[:, 0], triples[:, 1]
            found.n_raised[name] = int(triples[:, 2].sum())
            floors = np.array([_number((entry or {}).get("floor")) for entry in entries])
            found.floors[name] = float(mean_of_known(np.where(floors > 0, floors, np.nan)))
    return found


def _error(entry: Mapping[str, Any] | None) -> tuple[float, float, float]:
    """Return an error, its multiple of the floor, and whether it was raised to the smallest that counts."""
    if entry is None:
        return math.nan, math.nan, 0.0
    value, floor = _number(entry.get("value")), _number(entry.get("floor"))
    spread = _number(entry.get("floor_sd"))
    if not math.isfinite(value):
        return math.inf, math.inf, 0.0
    least = _SMALLEST * spread if spread > 0 else _OUTRIGHT_SMALLEST
    error = max(value, least)
    return error, error / floor if floor > 0 else math.nan, float(error > value)


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
