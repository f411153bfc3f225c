"""The page's pictures: fronts, samples beside exact draws, energies, and angles, a panel for each sampler."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from cdsampler.metrics import c7ax_indicator
from cdsampler.report._format import count, metric_label, number, percent
from cdsampler.report._ramachandran import _draw as draw_surface
from cdsampler.report._ramachandran import _free_energies as free_energies
from cdsampler.report._sample_panels import View, draw_exact, draw_samples, make_view
from cdsampler.report._style import EXACT, EXACT_FILL, LABEL_SIZE, TICK_SIZE, finish
from cdsampler.report.html._look import Look, mark_decades
from cdsampler.report.html._sweep import Shown, Sweep, load_draws

_N_COLUMNS = 4
_N_BINS = 50
_KELVIN, _MOST_KJ = 300.0, 30.0


class Picture(NamedTuple):
    """A figure with its place.

    Attributes
    ----------
    name
        Of its file, without ending.
    figure
        Free of pyplot.
    title
        Above it on the page.
    text
        What it shows, for those who cannot see it.
    """

    name: str
    figure: Figure
    title: str
    text: str


class _Drawn(NamedTuple):
    shown: Shown
    look: Look
    draws: dict[str, np.ndarray]


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
    return Picture(f"fronts-{task}-{accounting}", figure, f"{task}, {accounting} accounting", text)


def floor_of(sweep: Sweep, task: str, metric: str) -> float | None:
    """Return the mean floor of a metric on a task, or None if no run has one."""
    entries = [(r["metrics"] or {}).get(metric) for r in sweep.store.records if r["task"] == task]
    floors = [entry["floor"] for entry in entries if entry and entry.get("floor")]
    return float(np.mean(floors)) if floors else None


def sample_pictures(sweep: Sweep, task: str) -> tuple[list[Picture], str]:
    """Draw a task's samples: in the plane, by energy and by angles, as far as the store has them.

    Returns
    -------
    pictures : list of Picture
    missing : str
        Whose samples the store lacks; empty if it has all.
    """
    drawn, missing = [], []
    for shown in sweep.shown[task]:
        files = [record["samples_file"] for record in shown.records if record.get("samples_file")]
        draws = load_draws(sweep, files[0]) if files else None
        if draws is None:
            missing.append(shown.label)
        else:
            drawn.append(_Drawn(shown, sweep.looks[shown.label], draws))
    exact = load_draws(sweep, f"samples/reference-{task}.npz") or {}
    pictures = []
    makers: dict[str, Callable[[str, list[_Drawn], np.ndarray | None], Picture]] = {
        "positions": _planes,
        "energies": _energies,
        "angles": _angles,
    }
    for kind, make in makers.items():
        having = [item for item in drawn if kind in item.draws and len(item.draws[kind])]
        if having:
            pictures.append(make(task, having, exact.get(kind)))
    return pictures, f"{task} ({', '.join(missing) if drawn else 'all samplers'})" if missing else ""


def _planes(task: str, drawn: list[_Drawn], exact: np.ndarray | None) -> Picture:
    names = ("x₁", "x₂")
    figure, panels = panel_grid(len(drawn) + (exact is not None), square=True)
    everything = np.concatenate([item.draws["positions"] for item in drawn]) if exact is None else exact
    frame = make_view(everything, exact, names)
    if exact is not None:
        draw_exact(panels[0], frame)
        panels = panels[1:]
    for axes, item in zip(panels, drawn, strict=True):
        finite = item.draws["positions"][np.all(np.isfinite(item.draws["positions"]), axis=1)]
        draw_samples(axes, View(finite, exact, frame.limits, names, ""))
        axes.collections[-1].set_color(item.look.colour)
        beyond = np.any((finite < frame.limits[:, 0]) | (finite > frame.limits[:, 1]), axis=1).sum()
        _title(axes, item, f"{count(int(beyond))} outside" if beyond else "")
    text = f"Samples of {_names(drawn)} on {task}, in the plane, beside exact draws."
    return Picture(f"samples-{task}", figure, task, text)


def _energies(task: str, drawn: list[_Drawn], exact: np.ndarray | None) -> Picture:
    figure, panels = panel_grid(len(drawn))
    truth = None if exact is None else exact[np.isfinite(exact)]
    pooled = np.concatenate([item.draws["energies"] for item in drawn] if truth is None else [truth])
    low, high = np.quantile(pooled[np.isfinite(pooled)], [0.0005, 0.9995])
    margin = 0.15 * (high - low) if high > low else 0.5
    edges = np.linspace(low - margin, high + margin, _N_BINS + 1)
    for axes, item in zip(panels, drawn, strict=True):
        energies = item.draws["energies"]
        if truth is not None and len(truth):
            heights = np.histogram(truth, edges)[0] / (len(truth) * np.diff(edges))
            axes.stairs(heights, edges, fill=True, color=EXACT_FILL, label="reference")
        inside = (energies >= edges[0]) & (energies <= edges[-1])
        heights = np.histogram(energies[inside], edges)[0] / (len(energies) * np.diff(edges))
        axes.stairs(heights, edges, color=item.look.colour, linewidth=1.5, label="samples")
        finish(axes, x="energy", y="density")
        beyond = int(np.sum(~inside))
        _title(axes, item, f"{percent(beyond / len(energies))} beyond the axis" if beyond else "")
        axes.set_xlim(edges[0], edges[-1])
    panels[0].legend(fontsize=TICK_SIZE, frameon=False, loc="upper right")
    text = f"Histograms of the energies of {_names(drawn)} on {task}, over that of the reference."
    return Picture(f"energies-{task}", figure, task, text)


def _angles(task: str, drawn: list[_Drawn], exact: np.ndarray | None) -> Picture:
    figure, panels = panel_grid(len(drawn) + (exact is not None), square=True)
    surfaces = [free_energies(item.shown.label, item.draws["angles"], _KELVIN) for item in drawn]
    if exact is not None:
        surfaces.insert(0, free_energies("Reference", exact, _KELVIN))
    top = min(max(float(np.nanmax(surface)) for surface in surfaces), _MOST_KJ)
    images = [draw_surface(axes, surface, max(top, 1e-3)) for axes, surface in zip(panels, surfaces, strict=True)]
    for axes in panels:
        finish(axes, x="φ (degrees)", y="ψ (degrees)")
    if exact is not None:
        finish(panels[0], title=f"Reference (n = {count(len(exact))})\n{_c7ax(exact)}")
        panels = panels[1:]
    for axes, item in zip(panels, drawn, strict=True):
        _title(axes, item, _c7ax(item.draws["angles"]))
    bar = figure.colorbar(images[0], ax=figure.axes, shrink=0.7, aspect=30)
    bar.set_label("free energy (kJ/mol)", fontsize=LABEL_SIZE)
    text = f"Free energy of the angles φ and ψ of {_names(drawn)} on {task}, beside the reference."
    return Picture(f"ramachandran-{task}", figure, task, text)


def _c7ax(angles: np.ndarray) -> str:
    return f"C7ax: {percent(float(np.mean(c7ax_indicator(angles[:, 0]))))}"


def _title(axes: Axes, item: _Drawn, more: str) -> None:
    parts = [f"budget {number(item.shown.budget)}", *([more] if more else [])]
    finish(axes, title=f"{item.shown.label}\n{', '.join(parts)}")


def _names(drawn: Sequence[_Drawn]) -> str:
    return "; ".join(f"{item.shown.label} ({item.shown.configuration})" for item in drawn)


def _line(look: Look, label: str) -> Line2D:
    return Line2D([], [], color=look.colour, label=label, linestyle=look.linestyle, marker=look.marker, markersize=4)


def legend_above(figure: Figure, handles: Sequence[Line2D]) -> None:
    """Put a legend above all panels, in as many columns as its names and the figure's width allow."""
    # Letters of this size are about a sixteenth of an inch wide, and a line with its gaps takes ten of them.
    longest = max((len(str(handle.get_label())) for handle in handles), default=0)
    n_columns = max(1, int(16 * figure.get_figwidth() / (longest + 10)))
    figure.legend(handles=handles, loc="outside upper left", ncols=n_columns, fontsize=TICK_SIZE, frameon=False)


def panel_grid(n: int, *, square: bool = False, top: float = 0.0) -> tuple[Figure, list[Axes]]:
    """Return a figure with n panels, four in a row."""
    n_columns = min(n, _N_COLUMNS)
    n_rows = -(-n // n_columns)
    height = 3.1 if square else 2.6
    # A page's width whatever the number of panels: letters stay of one size.
    width = 3.1 * max(n_columns, 2)
    figure = Figure(figsize=(width, height * n_rows + top), layout="constrained")
    panels = list(figure.subplots(n_rows, n_columns, squeeze=False).ravel())
    for extra in panels[n:]:
        extra.remove()
    for axes in panels[:n]:
        axes.set_box_aspect(1 if square else None)
    return figure, panels[:n]
