"""The analysis as plain tables, for other programs."""

import csv
import importlib
import importlib.util
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cdsampler.benchmark.fronts._cells import ACCOUNTINGS, cells_of, describe
from cdsampler.benchmark.fronts._fronts import N_RESAMPLES, fronts
from cdsampler.benchmark.fronts._hypervolume import hypervolume_ratios
from cdsampler.benchmark.fronts._reach import reaches
from cdsampler.errors import InvalidInputError

Row = dict[str, Any]


def tables(
    records: Sequence[Mapping[str, Any]], *, n_resamples: int = N_RESAMPLES, seed: int = 0
) -> dict[str, list[Row]]:
    """Return every table of a sweep, by name.

    Parameters
    ----------
    records
        Of `read_records`.
    n_resamples, seed
        Of the bootstrap; see `fronts`.

    Returns
    -------
    dict of list of dict
        ``runs`` (a row for each run), ``errors`` (for each run and metric), ``points`` (configurations by budgets,
        means over repeats), ``fronts`` (bands on a grid of costs), ``hypervolume_ratios`` and
        ``evaluations_to_floor``; all but the first two for both accountings.

    Raises
    ------
    InvalidInputError
        See `cells_of`.
    MissingExtraError
        moocore is absent.
    """
    found: dict[str, list[Row]] = {"runs": [_run(record) for record in records], "errors": _errors(records)}
    parts: dict[str, list[Row]] = {"points": [], "fronts": [], "hypervolume_ratios": [], "evaluations_to_floor": []}
    for accounting in ACCOUNTINGS:
        cells = cells_of(records, accounting)
        first = {"accounting": accounting}
        for cell in cells:
            for metric in cell.metrics:
                parts["points"].append(
                    first
                    | {"task": cell.task, "metric": metric, "label": cell.label, "configuration": cell.configuration}
                    | {"budget": cell.budget, "cost": cell.cost, "error": _known(cell.error(metric))}
                    | {"multiple_of_floor": _known(cell.ratio(metric))}
                    | {"n_succeeded": len(cell.costs), "n_runs": cell.n_runs, "n_raised": cell.n_raised[metric]}
                )
        for front in fronts(cells, n_resamples=n_resamples, seed=seed):
            of = first | {"task": front.task, "metric": front.metric, "label": front.label}
            for cost, median, low, high in zip(front.grid, front.median, front.low, front.high, strict=True):
                values = {"median": median, "low": low, "high": high}
                parts["fronts"].append(of | {"cost": float(cost)} | {k: _finite(float(v)) for k, v in values.items()})
        parts["hypervolume_ratios"] += [
            first | ratio._asdict() for ratio in hypervolume_ratios(cells, records, n_resamples=n_resamples, seed=seed)
        ]
        for reach in reaches(cells):
            row = first | {"task": reach.task, "metric": reach.metric, "label": reach.label, "cost": reach.cost}
            row |= {"best_multiple_of_floor": reach.best, "configuration": reach.cell.configuration}
            parts["evaluations_to_floor"].append(row | {"budget": reach.cell.budget})
    return found | parts


def write_table(rows: Sequence[Mapping[str, Any]], folder: str | Path, name: str) -> list[Path]:
    """Write a table as CSV, and as Parquet where pyarrow is installed.

    Parameters
    ----------
    rows
        With the same columns; what isn't there is empty.
    folder
        Made if it is missing.
    name
        Of the files, without ending.

    Returns
    -------
    list of Path
        The files written; none for a table without rows.

    Raises
    ------
    InvalidInputError
        The rows have different columns.
    """
    if not rows:
        return []
    columns = list(rows[0])
    for number, row in enumerate(rows):
        if list(row) != columns:
            raise InvalidInputError(f"Row {number} of table {name!r} has columns {list(row)}, the first has {columns}.")
    target = Path(folder) / f"{name}.csv"
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
    written = [target]
    if importlib.util.find_spec("pyarrow") is not None:
        arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
        written.append(target.with_suffix(".parquet"))
        parquet.write_table(arrow.Table.from_pylist([dict(row) for row in rows]), written[-1])
    return written


# Columns of runs: each has one type from top to bottom, as Parquet needs it.
_TEXTS = (
    *("key", "task", "label", "sampler", "preset", "status", "error"),
    *("version", "commit", "device", "jax_version", "started"),
)
_NUMBERS = (
    *("budget", "n_samples", "seed", "evaluations_per_sample", "evaluations_per_returned_sample"),
    *("evaluations_total", "evaluations_tuning", "evaluations_executed"),
    *("seconds", "seconds_tuning", "seconds_compilation", "log_z", "log_z_error", "host_cores"),
)


def _run(record: Mapping[str, Any]) -> Row:
    row: Row = {name: _text(record.get(name)) for name in _TEXTS} | {"configuration": describe(record)}
    row |= {name: _float(record.get(name)) for name in _NUMBERS}
    return row | {"warnings": " ".join(record.get("warnings") or [])}


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _errors(records: Iterable[Mapping[str, Any]]) -> list[Row]:
    rows = []
    for record in records:
        for metric, entry in (record["metrics"] or {}).items():
            of = {"key": record["key"], "task": record["task"], "label": record["label"]}
            of |= {
                "configuration": describe(record),
                "budget": _float(record.get("budget")),
                "seed": record.get("seed"),
            }
            values = {name: _float(entry.get(name)) for name in ("value", "floor", "floor_sd", "ratio")}
            rows.append(of | {"metric": metric} | values)
    return rows


def _float(value: Any) -> float | None:
    return None if value is None else float(value)


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
