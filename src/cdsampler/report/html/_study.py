"""Studies: sweeps that vary one setting of a sampler."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from cdsampler.benchmark.fronts import Cell, describe
from cdsampler.report._format import metric_label, number
from cdsampler.report._style import EXACT, finish
from cdsampler.report.html._look import mark_decades
from cdsampler.report.html._panels import legend_above, panel_grid
from cdsampler.report.html._picture import Picture
from cdsampler.report.html._sweep import Sweep

_MOST_BUDGETS = 4
_MOST_VARIANTS = 4


class Line(NamedTuple):
    """Runs of a sampler that differ in the value of one setting.

    Attributes
    ----------
    name
        Of the label; or of the sampler, where each value has a label of its own. Of a second setting that varies, too,
        the value.
    setting
        That varies.
    values
        By (label, configuration).
    rank
        Among the sampler's lines.
    most_budgets
        How many of its budgets are shown, the largest first.
    """

    name: str
    setting: str
    values: dict[tuple[str, str], Any]
    rank: int = 0
    most_budgets: int = _MOST_BUDGETS


def study_lines(sweep: Sweep) -> list[Line]:
    """Return the samplers whose runs differ in one setting or in two, and nothing else but task, budget and seed."""
    by_label = {label: [r for r in sweep.store.records if r["label"] == label] for label in sweep.labels}
    lines, fixed = [], []
    for label, records in by_label.items():
        lines += _lines(label, records)
        if not _varied(records):
            fixed.append(label)
    by_sampler: dict[str, list[str]] = {}
    for label in fixed:
        by_sampler.setdefault(str(by_label[label][0].get("sampler")), []).append(label)
    for sampler, labels in by_sampler.items():
        lines += _lines(sampler, [record for label in labels for record in by_label[label]])
    return lines


def _lines(name: str, records: Sequence[Mapping[str, Any]]) -> list[Line]:
    varied = _varied(records)
    if len(varied) == 1:
        return [_line(name, next(iter(varied)), records)]
    if len(varied) != 2 or min(map(len, varied.values())) > _MOST_VARIANTS:
        return []
    # The setting with more values is the axis, and each value of the other a line.
    setting, other = sorted(varied, key=lambda key: -len(varied[key]))
    lines = []
    for rank, value in enumerate(varied[other]):
        chosen = [record for record in records if _hashable(_value(record, other)) == value]
        line = _line(f"{name}, {other}={value}", setting, chosen)
        lines.append(line._replace(rank=rank, most_budgets=1))
    return lines


def study_pictures(sweep: Sweep) -> list[Picture]:
    """Draw error over floor against each varied setting, a figure for each task and a panel for each metric."""
    lines = study_lines(sweep)
    pictures = []
    for setting in dict.fromkeys(line.setting for line in lines):
        chosen = [line for line in lines if line.setting == setting]
        for task in sweep.tasks:
            picture = _picture(sweep, task, setting, chosen)
            if picture is not None:
                pictures.append(picture)
    return pictures


def _picture(sweep: Sweep, task: str, setting: str, lines: Sequence[Line]) -> Picture | None:
    cells = [cell for cell in next(iter(sweep.analyses.values())).cells if cell.task == task]
    cells = [cell for cell in cells if any((cell.label, cell.configuration) in line.values for line in lines)]
    metrics = [name for name in sweep.error_metrics(task) if any(name in cell.ratios for cell in cells)]
    if not metrics:
        return None
    having = {(cell.label, cell.configuration) for cell in cells}
    values = [value for line in lines for key, value in line.values.items() if key in having]
    places = _places(values)
    if len(places) < 2:  # the setting was varied on other tasks alone
        return None
    figure, panels = panel_grid(len(metrics), top=0.5)
    for axes, metric in zip(panels, metrics, strict=True):
        for line in lines:
            _draw_line(axes, sweep, line, metric, cells, places)
        axes.axhline(1, color=EXACT, linewidth=0.9, linestyle="--")
        axes.set_yscale("log")
        mark_decades(axes.yaxis, *axes.get_ylim())
        _scale(axes, values, places)
        finish(axes, title=metric_label(metric), x=setting, y="error / floor")
    handles = {str(drawn.get_label()): drawn for axes in panels for drawn in axes.get_lines()}
    shown = [drawn for label, drawn in handles.items() if not label.startswith("_")]
    legend_above(figure, shown)
    names = ", ".join(line.name for line in lines)
    text = f"Error over floor against {setting} on {task}, of {names}, by {len(metrics)} metrics."
    return Picture(f"study-{setting}-{task}", figure, f"{setting} on {task}", text)


def _draw_line(
    axes: Axes, sweep: Sweep, line: Line, metric: str, cells: Sequence[Cell], places: Mapping[Any, float]
) -> None:
    own = [cell for cell in cells if (cell.label, cell.configuration) in line.values and metric in cell.ratios]
    budgets = sorted({cell.budget for cell in own})[-line.most_budgets :]
    for rank, budget in enumerate(reversed(budgets), start=line.rank):
        chosen = [cell for cell in own if cell.budget == budget]
        points = []
        for cell in chosen:
            ratios = cell.ratios[metric][~np.isnan(cell.ratios[metric])]
            if len(ratios) and np.all(np.isfinite(ratios)):
                place = places[_hashable(line.values[cell.label, cell.configuration])]
                points.append((place, ratios.mean(), ratios.min(), ratios.max()))
        if not points:
            continue
        x, mean, low, high = np.array(sorted(points)).T
        look = sweep.looks[chosen[0].label]
        strength = max(1 - 0.22 * rank, 0.25)
        axes.vlines(x, low, high, color=look.colour, alpha=0.5 * strength, linewidth=1)
        (drawn,) = axes.plot(x, mean, marker="osvDP*Xd"[rank], markersize=4, label=f"{line.name}, {number(budget)}")
        drawn.set(color=look.colour, alpha=strength, linestyle=look.linestyle)


def _scale(axes: Axes, values: Sequence[Any], places: Mapping[Any, float]) -> None:
    if _are_numbers(values):
        positive = [float(value) for value in values]
        if min(positive) > 0 and max(positive) > 20 * min(positive):
            axes.set_xscale("log")
            mark_decades(axes.xaxis, min(positive), max(positive))
        return
    axes.set_xticks(list(places.values()), [str(value) for value in places])


def _places(values: Sequence[Any]) -> dict[Any, float]:
    """Return where each value stands on the axis: numbers where they are, all else in order."""
    unique = list(dict.fromkeys(map(_hashable, values)))
    if _are_numbers(values):
        return {value: float(value) for value in unique}
    return {value: float(place) for place, value in enumerate(unique)}


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _hashable(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool) else "preset's" if value is None else str(value)


def _varied(records: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the values of each changed setting that has more than one."""
    names = dict.fromkeys(name for record in records for name in record.get("changes") or {})
    values = {name: list(dict.fromkeys(_hashable(_value(record, name)) for record in records)) for name in names}
    return {name: found for name, found in values.items() if len(found) > 1}


def _value(record: Mapping[str, Any], name: str) -> Any:
    """Return a setting of a run: as changed, or else as the preset has it."""
    changes, settings = record.get("changes") or {}, record.get("settings") or {}
    return changes.get(name, settings.get(name))


def _line(name: str, setting: str, records: Sequence[Mapping[str, Any]]) -> Line:
    return Line(name, setting, {(r["label"], describe(r)): _value(r, setting) for r in records})
