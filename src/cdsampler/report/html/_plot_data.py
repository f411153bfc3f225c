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
    drawn there. Bands are steps on a grid of costs, [least, greatest, number] and even in their logarithm: each step is
    [first place on the grid, value], None where there is nothing.
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
                        "grid": [_short(fronts[0].grid[0]), _short(fronts[0].grid[-1]), len(fronts[0].grid)],
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
    band = {"low": _steps(front.low), "high": _steps(front.high)}
    return {"sampler": sweep.labels.index(front.label), "points": points} | band


def _steps(values: np.ndarray) -> list[list[float | None]]:
    """Return where a step function changes, and to what: a page holds hundreds of them."""
    short = [_short(float(value)) for value in values]
    return [[i, value] for i, value in enumerate(short) if i == 0 or value != short[i - 1]]


def _short(value: float | None) -> float | None:
    """Return a number to five digits, None for what isn't there."""
    return None if value is None or not np.isfinite(value) else float(f"{value:.5g}")
