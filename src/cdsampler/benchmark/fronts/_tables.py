"""The analysis as plain tables, for other programs."""

import csv
import importlib
import importlib.util
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cdsampler.benchmark.fronts._analysis import Analysis, analyse_records
from cdsampler.benchmark.fronts._cells import ACCOUNTINGS, describe
from cdsampler.benchmark.fronts._means import N_RESAMPLES
from cdsampler.errors import InvalidInputError

Row = dict[str, Any]


def tables(
    records: Sequence[Mapping[str, Any]],
    analyses: Mapping[str, Analysis] | None = None,
    *,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> dict[str, list[Row]]:
    """Return every table of a sweep, by name.

    Parameters
    ----------
    records
        Of `read_records`.
    analyses
        By accounting, of `analyse_records`, where that is done already.
    n_resamples, seed
        Of the bootstrap, where it isn't.

    Returns
    -------
    dict of list of dict
        ``runs`` (a row for each run), ``errors`` (for each run and metric), ``points`` (configurations by budgets,
        means over repeats, as they are), ``fronts`` (bands on a grid of costs, an error below its floor counting as the
        floor), ``hypervolume_ratios`` (``value`` of the same fronts, ``unclipped`` of errors as they are, as the paper
        has it) and ``evaluations_to_floor`` (also of samplers that gave no sample); all but the first two for every
        accounting.

    Raises
    ------
    InvalidInputError
        See `cells_of`.
    MissingExtraError
        moocore is absent.
    """
    if analyses is None:
        analyses = {name: analyse_records(records, name, n_resamples=n_resamples, seed=seed) for name in ACCOUNTINGS}
    found: dict[str, list[Row]] = {"runs": [_run(record) for record in records], "errors": _errors(records)}
    makers = {"points": _points, "fronts": _fronts, "hypervolume_ratios": _ratios}
    for name, make in makers.items():
        found[name] = [
            {"accounting": accounting} | row for accounting, analysis in analyses.items() for row in make(analysis)
        ]
    found["evaluations_to_floor"] = [
        {"accounting": accounting} | row
        for accounting, analysis in analyses.items()
        for row in _reaches(analysis, records)
    ]
    return found


def _points(analysis: Analysis) -> list[Row]:
    rows: list[Row] = []
    for cell in analysis.cells:
        for metric in cell.metrics:
            row: Row = {"task": cell.task, "metric": metric, "label": cell.label, "configuration": cell.configuration}
            row |= {"budget": cell.budget, "cost": cell.cost, "error": _known(cell.error(metric))}
            row |= {"floor": _known(cell.floors[metric]), "multiple_of_floor": _known(cell.ratio(metric))}
            counts = {"n_succeeded": len(cell.costs), "n_runs": cell.n_runs, "n_raised": cell.n_raised[metric]}
            rows.append(row | counts)
    return rows


def _fronts(analysis: Analysis) -> list[Row]:
    rows: list[Row] = []
    for front in analysis.fronts:
        of: Row = {"task": front.task, "metric": front.metric, "label": front.label}
        for cost, *values in zip(front.grid, front.median, front.low, front.high, strict=True):
            band = {name: _finite(float(v)) for name, v in zip(("median", "low", "high"), values, strict=True)}
            rows.append(of | {"cost": float(cost)} | band)
    return rows


def _ratios(analysis: Analysis) -> list[Row]:
    rows = []
    for ratio, plain in zip(analysis.ratios, analysis.unclipped, strict=True):
        unclipped = {"unclipped": plain.value, "unclipped_low": plain.low, "unclipped_high": plain.high}
        rows.append(ratio._asdict() | unclipped)
    return rows


def _reaches(analysis: Analysis, records: Iterable[Mapping[str, Any]]) -> list[Row]:
    rows: list[Row] = []
    for reach in analysis.reaches:
        status = "reached" if reach.cost is not None else "not reached" if np.isfinite(reach.best) else "not finite"
        row = {"task": reach.task, "metric": reach.metric, "label": reach.label, "status": status, "cost": reach.cost}
        row |= {"is_lasting": reach.is_lasting, "best_multiple_of_floor": reach.best}
        rows.append(row | {"configuration": reach.cell.configuration, "budget": reach.cell.budget})
    # A sampler that was tried and gave nothing is a finding, too.
    there = {(cell.task, cell.label) for cell in analysis.cells}
    empty = {"cost": None, "is_lasting": False, "best_multiple_of_floor": None, "configuration": None, "budget": None}
    for task, label in dict.fromkeys((record["task"], record["label"]) for record in records):
        if (task, label) not in there:
            for metric in dict.fromkeys(reach.metric for reach in analysis.reaches if reach.task == task):
                rows.append({"task": task, "metric": metric, "label": label, "status": "no samples"} | empty)
    return rows


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
