"""The fronts as a figure of its own, for files; the page draws them by script."""

import numpy as np
from matplotlib.lines import Line2D

from cdsampler.report._format import metric_label
from cdsampler.report._style import EXACT, finish
from cdsampler.report.html._look import Look, mark_decades
from cdsampler.report.html._panels import legend_above, panel_grid
from cdsampler.report.html._picture import Picture
from cdsampler.report.html._sweep import Sweep


def front_picture(sweep: Sweep, task: str, accounting: str) -> Picture | None:
    """Draw the fronts of a task, a panel for each metric, with their bands and floors."""
    metrics = sweep.front_metrics(task)
    if not metrics:
        return None
    figure, panels = panel_grid(len(metrics), top=0.5)
    for axes, metric in zip(panels, metrics, strict=True):
        analysis = sweep.analyses[accounting]
        for front in analysis.fronts:
            if (front.task, front.metric) == (task, metric):
                look = sweep.looks[front.label]
                is_there = np.isfinite(front.high)
                axes.fill_between(
                    front.grid[is_there], front.low[is_there], front.high[is_there], color=look.colour, alpha=0.15, lw=0
                )
                costs, errors = np.append(front.costs, front.grid[-1]), np.append(front.errors, front.errors[-1])
                axes.step(costs, errors, where="post", color=look.colour, linestyle=look.linestyle, linewidth=1.4)
                axes.plot(front.costs, front.errors, look.marker, color=look.colour, markersize=4)
        floor = floor_of(sweep, task, metric)
        if floor is not None:
            axes.axhline(floor, color=EXACT, linewidth=0.9, linestyle="--")
        axes.set_xscale("log")
        axes.set_yscale("log")
        mark_decades(axes.xaxis, *axes.get_xlim())
        mark_decades(axes.yaxis, *axes.get_ylim())
        finish(axes, title=metric_label(metric), x="evaluations per sample", y="error")
    labels = [shown.label for shown in sweep.shown[task]]
    lines = [_line(sweep.looks[label], label) for label in labels]
    lines.append(Line2D([], [], color=EXACT, linestyle="--", linewidth=0.9, label="floor: exact draws"))
    legend_above(figure, lines)
    text = f"Error against evaluations per sample of {', '.join(labels)} on {task}, by {len(metrics)} metrics."
    text += " Errors below the floor are drawn there."
    return Picture(f"fronts-{task}-{accounting}", figure, f"{task}, {accounting} accounting", text)


def floor_of(sweep: Sweep, task: str, metric: str) -> float | None:
    """Return the mean floor of a metric on a task, or None if no run has one."""
    entries = [(r["metrics"] or {}).get(metric) for r in sweep.store.records if r["task"] == task]
    floors = [entry["floor"] for entry in entries if entry and entry.get("floor")]
    return float(np.mean(floors)) if floors else None


def _line(look: Look, label: str) -> Line2D:
    return Line2D([], [], color=look.colour, label=label, linestyle=look.linestyle, marker=look.marker, markersize=4)
