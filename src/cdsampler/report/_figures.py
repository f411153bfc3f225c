import os
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec, SubplotSpec
from matplotlib.layout_engine import ConstrainedLayoutEngine

from cdsampler.errors import InvalidInputError
from cdsampler.metrics import MetricValue
from cdsampler.report._format import count
from cdsampler.report._metrics_panel import draw_metrics
from cdsampler.report._sample_panels import draw_exact, draw_histogram, draw_samples, make_view
from cdsampler.report._tempering_panels import draw_barrier, draw_schedule, draw_travels, draw_walk
from cdsampler.sampling import Result

_PANEL_WIDTH, _ROW_HEIGHT, _TITLE_HEIGHT = 3.7, 3.7, 0.6  # inches

Panel = Callable[[Figure, SubplotSpec], None]


class Shown(NamedTuple):
    """What panels show instead of the coordinates, or of minus the log density.

    Attributes
    ----------
    samples : ndarray, shape (n, k)
        Any quantities of the samples, or of parts of them: n need not be their number.
    exact : ndarray, shape (n_exact, k), or None
        The same of exact draws.
    names : tuple of str
        Of the k quantities, with their units.
    """

    samples: np.ndarray
    exact: np.ndarray | None
    names: tuple[str, ...]


def run_figure(
    result: Result,
    exact: np.ndarray | None,
    target_name: str,
    metrics: Sequence[MetricValue] | None = None,
    *,
    exact_log_density: np.ndarray | None = None,
    n_modes: int | None = None,
    shown: Shown | None = None,
    energies: Shown | None = None,
) -> Figure:
    """Draw a run on one page: samples beside exact draws, energies, and the tempering stage if there is one.

    Parameters
    ----------
    result
        Of `cdsampler.sampling.run`.
    exact : ndarray, shape (n_exact, dim), or None
        Independent exact draws of the target, best many more than the samples.
    target_name
        For the title.
    metrics
        As `cdsampler.metrics.evaluate` returns them; they get a panel of their own.
    exact_log_density : ndarray, shape (n_exact,), optional
        The target's log density at exact draws, with the same constant as the result's.
    n_modes
        Number of modes of a mixture, for "38 of 40".
    shown
        What to show of the samples instead of their coordinates; then `exact` isn't needed.
    energies
        One energy to show instead of minus the log density; then `exact_log_density` isn't needed.

    Returns
    -------
    Figure
        Free of pyplot's global state; see `save_figure`.

    Raises
    ------
    InvalidInputError
        Exact draws or their log densities of the wrong shape.
    """
    if shown is None:
        shown = Shown(result.positions, None if exact is None else _checked(exact, result), result.names)
    if energies is None:
        energies = _log_densities(result, exact_log_density)
    first = _sample_panels(shown)
    is_square = len(first) > 1
    first.append(_histogram(energies, "Energy", is_square=is_square))
    second = _tempering_panels(result)
    if metrics is not None:
        first.append(_single(partial(draw_metrics, metrics=metrics, n_modes=n_modes), is_square=is_square))
    rows = [row for row in (first, second) if row]
    n_columns = max(map(len, rows))
    size = (_PANEL_WIDTH * n_columns, _ROW_HEIGHT * len(rows) + _TITLE_HEIGHT)
    engine = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08, wspace=0.02, hspace=0.02)
    figure = Figure(figsize=size, layout=engine)
    _fill(figure, rows)
    figure.suptitle(_title(result, target_name), fontsize=12, parse_math=False)
    return figure


def save_figure(figure: Figure, path: str | Path) -> Path:
    """Write a figure as PNG at 150 dots per inch; the file appears under its name only when it is complete.

    Parameters
    ----------
    figure
        Any figure.
    path
        File to write, whatever its ending; missing folders are made.

    Returns
    -------
    Path
        The file written.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    try:
        figure.savefig(temporary, format="png", dpi=150)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return target


def _checked(exact: np.ndarray, result: Result) -> np.ndarray:
    draws, dim = np.asarray(exact, dtype=np.float64), result.samples.shape[-1]
    if draws.ndim != 2 or draws.shape[1] != dim or not len(draws) or not np.all(np.isfinite(draws)):
        raise InvalidInputError(f"Exact draws must be finite, of shape (n, {dim}), got shape {draws.shape}.")
    return draws


def _title(result: Result, target_name: str) -> str:
    sampler, n = type(result.sampler).__name__, len(result.positions)
    partial = " (interrupted)" if result.is_partial else ""
    n_draws = result.samples.shape[1]
    n_particles = result.sampler.stages()[0].n_points
    chain = "sample" if n_draws == 1 else f"chain of {n_draws} draws"
    chain = f"group of {n_particles} particles" if n_particles > 1 else chain
    return (
        f"{target_name}: {count(n)} samples by {sampler}{partial}\n"
        f"{count(result.evaluations_per_sample)} evaluations per {chain}, "
        f"{count(result.evaluations_per_returned_sample)} per returned sample with tuning"
    )


def _sample_panels(shown: Shown) -> list[Panel]:
    samples = np.asarray(shown.samples, dtype=np.float64)
    if samples.shape[1] == 1:
        return [_histogram(shown, f"Samples (n = {count(len(samples))})")]
    view = make_view(samples, shown.exact, shown.names)
    draws = [draw_samples] if shown.exact is None else [draw_exact, draw_samples]
    return [_single(partial(draw, view=view), is_square=True) for draw in draws]


def _log_densities(result: Result, exact_log_density: np.ndarray | None) -> Shown:
    exact = None if exact_log_density is None else -np.asarray(exact_log_density, dtype=np.float64)
    if exact is not None and exact.ndim != 1:
        raise InvalidInputError(f"Exact log densities must have shape (n,), got {exact.shape}.")
    energies = -np.asarray(result.log_density, dtype=np.float64).reshape(-1, 1)
    return Shown(energies, None if exact is None else exact[:, None], ("−log density (nats)",))


def _histogram(shown: Shown, title: str, *, is_square: bool = False) -> Panel:
    samples = np.asarray(shown.samples, dtype=np.float64)[:, 0]
    exact = None if shown.exact is None else np.asarray(shown.exact, dtype=np.float64)[:, 0]
    draw = partial(draw_histogram, samples=samples, exact=exact, title=title, x=shown.names[0])
    return _single(draw, is_square=is_square)


def _tempering_panels(result: Result) -> list[Panel]:
    tempering = result.tempering
    if tempering is None:
        return []
    draws = (draw_schedule, draw_barrier, draw_travels)
    panels = [_stacked(partial(draw, tempering=tempering)) for draw in draws]
    if result.plan is not None:
        panels.append(_single(partial(draw_walk, walk=result.plan.walk)))
    return panels


def _single(draw: Callable[[Axes], None], *, is_square: bool = False) -> Panel:
    def panel(figure: Figure, place: SubplotSpec) -> None:
        axes = figure.add_subplot(place)
        draw(axes)
        axes.set_box_aspect(1 if is_square else None)

    return panel


def _stacked(draw: Callable[[Axes, Axes], None]) -> Panel:
    def panel(figure: Figure, place: SubplotSpec) -> None:
        grid = place.subgridspec(2, 1)
        draw(figure.add_subplot(grid[0]), figure.add_subplot(grid[1]))

    return panel


def _fill(figure: Figure, rows: list[list[Panel]]) -> None:
    """Place each row's panels side by side over the whole width."""
    n_columns = int(np.lcm.reduce([len(row) for row in rows]))
    grid = GridSpec(len(rows), n_columns, figure=figure)
    for i, row in enumerate(rows):
        width = n_columns // len(row)
        for j, panel in enumerate(row):
            panel(figure, grid[i, j * width : (j + 1) * width])
