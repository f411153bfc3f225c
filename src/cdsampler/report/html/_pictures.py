"""The page's pictures of samples: beside exact draws, by energy, and by angles, a panel for each sampler."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes

from cdsampler.metrics import c7ax_indicator
from cdsampler.report._format import count, number, percent
from cdsampler.report._ramachandran import MOST_KJ, N_BINS, draw_surface, free_energies
from cdsampler.report._sample_panels import View, draw_exact, draw_samples, make_view
from cdsampler.report._style import EXACT_FILL, LABEL_SIZE, TICK_SIZE, finish
from cdsampler.report.html._look import Look
from cdsampler.report.html._panels import label_outer, panel_grid
from cdsampler.report.html._picture import Picture
from cdsampler.report.html._sweep import Shown, Sweep, load_draws

_N_BINS = 50
_HIGHEST = 2.0  # times the reference's highest bin: a sampler's spike beyond it would flatten all panels
_KELVIN = 300.0
_ANGLE_MARKS = (-90, 0, 90)  # those at the ends would touch the next panel's
_FEW_DRAWS, _COARSE_BINS = 2000, 36  # fewer draws than that leave most of the finer bins empty


class _Drawn(NamedTuple):
    shown: Shown
    look: Look
    draws: dict[str, np.ndarray]


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
    makers: dict[str, Callable[[str, list[_Drawn], np.ndarray | None], Picture | None]] = {
        "positions": _planes,
        "energies": _energies,
        "angles": _angles,
    }
    for kind, make in makers.items():
        having = [item for item in drawn if kind in item.draws and len(item.draws[kind])]
        picture = make(task, having, exact.get(kind)) if having else None
        pictures += [picture] if picture is not None else []
    return pictures, f"{task} ({', '.join(missing) if drawn else 'all samplers'})" if missing else ""


def _planes(task: str, drawn: list[_Drawn], exact: np.ndarray | None) -> Picture:
    names = ("x₁", "x₂")
    figure, panels = panel_grid(len(drawn) + (exact is not None), square=True, is_shared=True)
    everything = np.concatenate([item.draws["positions"] for item in drawn]) if exact is None else exact
    frame = make_view(everything, exact, names)
    own = panels if exact is None else panels[1:]
    if exact is not None:
        draw_exact(panels[0], frame)
    for axes, item in zip(own, drawn, strict=True):
        finite = item.draws["positions"][np.all(np.isfinite(item.draws["positions"]), axis=1)]
        draw_samples(axes, View(finite, exact, frame.limits, names, ""))
        axes.collections[-1].set_color(item.look.colour)
        beyond = np.any((finite < frame.limits[:, 0]) | (finite > frame.limits[:, 1]), axis=1).sum()
        _title(axes, item, f"{count(int(beyond))} outside" if beyond else "")
    label_outer(panels, x=names[0], y=names[1])
    text = f"Samples of {_names(drawn)} on {task}, in the plane, beside exact draws."
    return Picture(f"samples-{task}", figure, task, text, _configurations(drawn))


def _energies(task: str, drawn: list[_Drawn], exact: np.ndarray | None) -> Picture | None:
    truth = np.empty(0) if exact is None else exact[np.isfinite(exact)]
    pooled = truth if len(truth) else np.concatenate([item.draws["energies"] for item in drawn])
    pooled = pooled[np.isfinite(pooled)]
    if not len(pooled):
        return None
    low, high = np.quantile(pooled, [0.0005, 0.9995])
    margin = 0.15 * (high - low) if high > low else 0.5
    edges = np.linspace(low - margin, high + margin, _N_BINS + 1)
    figure, panels = panel_grid(len(drawn), is_shared=True)
    tallest = 0.0
    for axes, item in zip(panels, drawn, strict=True):
        energies = item.draws["energies"]
        if len(truth):
            axes.stairs(_heights(truth, edges), edges, fill=True, color=EXACT_FILL, label="reference")
        heights = _heights(energies, edges)
        axes.stairs(heights, edges, color=item.look.colour, linewidth=1.5, label="samples")
        tallest = max(tallest, float(heights.max()))
        beyond = float(np.mean(~((energies >= edges[0]) & (energies <= edges[-1]))))
        _title(axes, item, f"{percent(beyond)} beyond the axis" if beyond else "")
    if len(truth):
        highest = float(_heights(truth, edges).max())
        tallest = float(np.clip(tallest, highest, _HIGHEST * highest))
    panels[0].set(xlim=(edges[0], edges[-1]), ylim=(0, 1.05 * tallest or 1))
    label_outer(panels, x="energy", y="density")
    panels[0].legend(fontsize=TICK_SIZE, frameon=False, loc="upper right")
    text = f"Histograms of the energies of {_names(drawn)} on {task}, over that of the reference."
    return Picture(f"energies-{task}", figure, task, text, _configurations(drawn))


def _heights(energies: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return a density over all energies, so that those beyond the edges don't inflate the rest."""
    inside = energies[(energies >= edges[0]) & (energies <= edges[-1])]
    return np.histogram(inside, edges)[0] / (len(energies) * np.diff(edges))


def _angles(task: str, drawn: list[_Drawn], exact: np.ndarray | None) -> Picture | None:
    finite = [item.draws["angles"][np.all(np.isfinite(item.draws["angles"]), axis=1)] for item in drawn]
    pairs = [(item, angles) for item, angles in zip(drawn, finite, strict=True) if len(angles)]
    if not pairs:
        return None
    drawn = [item for item, _ in pairs]
    named = [(item.shown.label, angles) for item, angles in pairs]
    if exact is not None:
        # More draws would reach up to rarer bins, which no sampler of these could show.
        named.insert(0, ("Reference", exact[: max(len(angles) for _, angles in pairs)]))
    n_bins = N_BINS if min(len(angles) for _, angles in named) >= _FEW_DRAWS else _COARSE_BINS
    figure, panels = panel_grid(len(named), square=True, is_shared=True)
    surfaces = [free_energies(label, angles, _KELVIN, n_bins=n_bins) for label, angles in named]
    top = max(min(max(float(np.nanmax(surface)) for surface in surfaces), MOST_KJ), 1e-3)
    images = [draw_surface(axes, surface, top) for axes, surface in zip(panels, surfaces, strict=True)]
    for axes, (item, angles) in zip(panels[-len(drawn) :], pairs, strict=True):
        _title(axes, item, _c7ax(angles))
    if exact is not None:
        finish(panels[0], title=f"Reference (n = {count(len(named[0][1]))})\n{_c7ax(exact)} of {count(len(exact))}")
    label_outer(panels, x="φ (degrees)", y="ψ (degrees)")
    panels[0].set(xticks=_ANGLE_MARKS, yticks=_ANGLE_MARKS)
    bar = figure.colorbar(images[0], ax=figure.axes, location="top", shrink=0.3, aspect=30, anchor=(0.0, 0.5))
    bar.set_label("free energy (kJ/mol)", fontsize=LABEL_SIZE)
    bar.ax.tick_params(labelsize=TICK_SIZE)
    text = f"Free energy of the angles φ and ψ of {_names(drawn)} on {task}, beside the reference."
    return Picture(f"ramachandran-{task}", figure, task, text, _configurations(drawn))


def _c7ax(angles: np.ndarray) -> str:
    return f"C7ax: {percent(float(np.mean(c7ax_indicator(angles[:, 0]))))}"


def _title(axes: Axes, item: _Drawn, more: str) -> None:
    parts = [f"budget {number(item.shown.budget)}", *([more] if more else [])]
    finish(axes, title=f"{item.shown.label}\n{', '.join(parts)}")


def _names(drawn: Sequence[_Drawn]) -> str:
    return ", ".join(item.shown.label for item in drawn)


def _configurations(drawn: Sequence[_Drawn]) -> str:
    """Return the configurations that are shown: the commonest, and whose are others."""
    commonest = Counter(item.shown.configuration for item in drawn).most_common(1)[0][0]
    others = [item.shown for item in drawn if item.shown.configuration != commonest]
    exceptions = "; ".join(f"{shown.label}: {shown.configuration}" for shown in others)
    return f"All with {commonest}" + (f", but {exceptions}." if others else ".")
