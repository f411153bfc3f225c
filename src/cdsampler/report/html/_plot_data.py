"""The figures behind the interactive fronts, as the page's script reads them."""

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from cdsampler.benchmark.fronts import Cell, Front
from cdsampler.report._format import metric_label
from cdsampler.report.html._front_picture import floor_of
from cdsampler.report.html._sweep import Sweep


def plot_data(sweep: Sweep) -> str:
    """Return JSON that may stand in a script element.

    Samplers are in the order of `sweep.labels`. A point is [cost, error as drawn, error as it was, multiple of the
    floor, configuration, budget, repeats that succeeded, repeats, 1 if it is on the front]: what is below the floor is
    drawn there.
    """
    configurations: dict[str, int] = {}
    panels: dict[str, list[Any]] = {}
    for accounting, analysis in sweep.analyses.items():
        panels[accounting] = []
        for task in sweep.tasks:
            for metric in sweep.front_metrics(task):
                cells = [cell for cell in analysis.cells if cell.task == task and metric in cell.errors]
                fronts = [front for front in analysis.fronts if (front.task, front.metric) == (task, metric)]
                fronts.sort(key=lambda front: sweep.labels.index(front.label))
                panels[accounting].append(
                    {
                        "task": task,
                        "metric": metric_label(metric),
                        "floor": _short(floor_of(sweep, task, metric)),
                        "grid": _list(fronts[0].grid),
                        "series": [_series(sweep, front, cells, metric, configurations) for front in fronts],
                    }
                )
    samplers = [
        {"label": label, "colour": look.css, "marker": look.marker, "dashes": list(look.dashes)}
        for label, look in sweep.looks.items()
    ]
    data = {"samplers": samplers, "configurations": list(configurations), "panels": panels}
    # A sampler's or a setting's name must not end the script element.
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _series(
    sweep: Sweep, front: Front, cells: Iterable[Cell], metric: str, configurations: dict[str, int]
) -> dict[str, Any]:
    on_front = {id(cell) for cell in front.members}
    points = []
    for cell in cells:
        # An infinite error has no place on the axes.
        error = cell.error(metric)
        if cell.label != front.label or not np.isfinite(error):
            continue
        n_known = int(np.sum(~np.isnan(cell.errors[metric])))
        index = configurations.setdefault(cell.configuration, len(configurations))
        drawn = np.fmax(error, cell.floors[metric])
        figures = [_short(float(value)) for value in (cell.cost, drawn, error, cell.ratio(metric))]
        points.append([*figures, index, cell.budget, n_known, cell.n_runs, int(id(cell) in on_front)])
    band = {"low": _list(front.low), "high": _list(front.high)}
    return {"sampler": sweep.labels.index(front.label), "points": points} | band


def _list(values: np.ndarray) -> list[float | None]:
    return [_short(float(value)) for value in values]


def _short(value: float | None) -> float | None:
    """Return a number to five digits, None for what isn't there."""
    return None if value is None or not np.isfinite(value) else float(f"{value:.5g}")
