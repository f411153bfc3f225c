"""Where the samples lie, beside exact draws, and at which energies."""

from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, PowerNorm
from scipy.ndimage import gaussian_filter

from cdsampler.report._format import count
from cdsampler.report._style import EXACT, EXACT_FILL, SAMPLES, TICK_SIZE, finish

_MAX_POINTS = 5000  # more dots hide each other
_GRID = 200
_SMOOTHING = 2.0  # cells of the grid
_LIGHT_GREY = LinearSegmentedColormap.from_list("light-grey", ["#ffffff", "#8c8c8c"])


class View(NamedTuple):
    """Samples and exact draws in the two coordinates that are shown, with common limits.

    Attributes
    ----------
    samples : ndarray, shape (n, 2)
    exact : ndarray, shape (n_exact, 2), or None
    limits : ndarray, shape (2, 2)
        Least and greatest value, of each coordinate.
    labels
        Of the two coordinates.
    how
        What projection this is; empty if there are no more than two coordinates.
    """

    samples: np.ndarray
    exact: np.ndarray | None
    limits: np.ndarray
    labels: tuple[str, str]
    how: str


def make_view(samples: np.ndarray, exact: np.ndarray | None, names: tuple[str, ...]) -> View:
    """Choose the coordinates: the target's own if it has two, else the principal axes of the exact draws.

    Parameters
    ----------
    samples : ndarray, shape (n, dim), dim at least 2
    exact : ndarray, shape (n_exact, dim), or None
        Without them the axes are those of the samples.
    names
        Of the coordinates.
    """
    labels, how = (names[0], names[1]), ""
    if samples.shape[1] > 2:
        basis_of = samples if exact is None else exact
        centre, basis = basis_of.mean(axis=0), _principal_axes(basis_of)
        samples = (samples - centre) @ basis
        exact = None if exact is None else (exact - centre) @ basis
        labels = ("principal axis 1", "principal axis 2")
        how = f"on principal axes of {'samples' if exact is None else 'exact draws'}"
    return View(samples, exact, _limits(samples, exact), labels, how)


def draw_exact(axes: Axes, view: View) -> None:
    """Draw the smoothed density of all exact draws and, as dots, as many of them as there are samples."""
    assert view.exact is not None
    _draw_density(axes, view)
    n = min(len(view.samples), len(view.exact), _MAX_POINTS)
    _draw_dots(axes, view.exact[:n], EXACT)
    _finish_view(axes, view, "Exact draws", n, len(view.exact))


def draw_samples(axes: Axes, view: View) -> None:
    """Draw the samples as dots, over the density of the exact draws if there are any."""
    if view.exact is not None:
        _draw_density(axes, view)
    shown = view.samples[:: -(-len(view.samples) // _MAX_POINTS)]
    _draw_dots(axes, shown, SAMPLES)
    is_outside = np.any((view.samples < view.limits[:, 0]) | (view.samples > view.limits[:, 1]), axis=1)
    outside = f", {count(int(is_outside.sum()))} outside" if is_outside.any() else ""
    _finish_view(axes, view, "Samples", len(shown), len(view.samples), outside)


def draw_histogram(axes: Axes, samples: np.ndarray, exact: np.ndarray | None, *, title: str, x: str) -> None:
    """Draw the histogram of one quantity, as a density, over that of exact draws.

    Parameters
    ----------
    axes
        Empty.
    samples : ndarray, shape (n,)
        Values that aren't finite are left out, and counted in the label.
    exact : ndarray, shape (n_exact,), or None
    title, x
        Of the panel and of the quantity.
    """
    finite = samples[np.isfinite(samples)]
    truth = None if exact is None else exact[np.isfinite(exact)]
    n_left_out = len(samples) - len(finite)
    finish(axes, title=title, x=x + (f"; {count(n_left_out)} not finite" if n_left_out else ""), y="density")
    if not len(finite):
        return
    edges = _edges(finite, truth)
    if truth is not None and len(truth):
        heights = np.histogram(truth, edges, density=True)[0]
        axes.stairs(heights, edges, fill=True, color=EXACT_FILL, label="exact")
        axes.stairs(heights, edges, color=EXACT, linewidth=0.8)
    # Of all samples, so that those beyond the edges don't inflate the rest.
    heights = np.histogram(finite, edges)[0] / (len(finite) * np.diff(edges))
    axes.stairs(heights, edges, color=SAMPLES, linewidth=1.6, label="samples")
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(bottom=0)
    if truth is not None:
        axes.legend(fontsize=TICK_SIZE, frameon=False, loc="upper right")


def _edges(samples: np.ndarray, exact: np.ndarray | None) -> np.ndarray:
    """Return bins about as wide as the noise of the samples allows, over all but the extremes of either."""
    low, high = np.quantile(samples, [0.002, 0.998])
    if exact is not None and len(exact):
        exact_low, exact_high = np.quantile(exact, [0.001, 0.999])
        low, high = min(low, exact_low), max(high, exact_high)
    if not high > low:
        low, high = low - 0.5, high + 0.5
    q1, q3 = np.quantile(samples, [0.25, 0.75])
    width = 2 * (q3 - q1) / len(samples) ** (1 / 3)
    n_bins = int(np.clip((high - low) / width, 8, 60)) if width > 0 else 20
    return np.linspace(low, high, n_bins + 1)


def _principal_axes(positions: np.ndarray) -> np.ndarray:
    """Return the two directions of greatest variance, shape (dim, 2), with their largest entries positive."""
    centred = positions - positions.mean(axis=0)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    basis = vectors[:, :-3:-1]
    largest = basis[np.argmax(np.abs(basis), axis=0), [0, 1]]
    return basis * np.where(largest < 0, -1.0, 1.0)


def _limits(samples: np.ndarray, exact: np.ndarray | None) -> np.ndarray:
    """Return limits that hold all exact draws and all but the wildest of the samples."""
    ends = np.quantile(samples, [0.005, 0.995], axis=0)
    low, high = (samples.min(axis=0), samples.max(axis=0)) if exact is None else ends
    if exact is not None:
        low, high = np.minimum(low, exact.min(axis=0)), np.maximum(high, exact.max(axis=0))
    span = high - low
    if span.max() < 4 * span.min():  # comparable scales: a square, so that circles stay circles
        span = np.full(2, span.max())
    half = np.where(span > 0, 0.54 * span, 0.5)
    middle = 0.5 * (low + high)
    return np.stack([middle - half, middle + half], axis=1)


def _draw_density(axes: Axes, view: View) -> None:
    assert view.exact is not None
    (left, right), (bottom, top) = view.limits.tolist()
    ranges = ((left, right), (bottom, top))
    counts = np.histogram2d(view.exact[:, 0], view.exact[:, 1], bins=_GRID, range=ranges)[0]
    image = axes.imshow(gaussian_filter(counts, _SMOOTHING).T, origin="lower", aspect="auto", zorder=0)
    image.set(cmap=_LIGHT_GREY, norm=PowerNorm(0.5), extent=(left, right, bottom, top))


def _draw_dots(axes: Axes, points: np.ndarray, colour: str) -> None:
    size = float(np.clip(3000 / max(len(points), 1), 2, 12))
    axes.scatter(points[:, 0], points[:, 1], s=size, color=colour, alpha=0.75, linewidths=0, rasterized=True)


def _finish_view(axes: Axes, view: View, what: str, n_shown: int, n: int, more: str = "") -> None:
    amount = f"n = {count(n)}" if n_shown == n else f"{count(n_shown)} of {count(n)}"
    title = f"{what} ({amount}{more})" + (f"\n{view.how}" if view.how else "")
    finish(axes, title=title, x=view.labels[0], y=view.labels[1])
    axes.set_xlim(*view.limits[0])
    axes.set_ylim(*view.limits[1])
