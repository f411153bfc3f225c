"""Pairs of coordinates with their marginals."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cdsampler.errors import InvalidInputError
from cdsampler.report._style import EXACT, SAMPLES, finish
from cdsampler.sampling import Result

MOST_SHOWN, MOST_POINTS, N_BINS = 5, 4000, 60


def pair_figure(result: Result, exact: np.ndarray | None = None, *, names: Sequence[str] | None = None) -> Figure:
    """Draw every pair of some coordinates as a scatter plot, and each one's marginal density.

    Parameters
    ----------
    result
        Of `cdsampler.sample` or `cdsampler.sampling.run`.
    exact : ndarray, shape (n_exact, dim), optional
        Exact draws, whose marginals are drawn, too.
    names
        Coordinates to show; default the first five.

    Returns
    -------
    Figure
        Free of pyplot's global state.

    Raises
    ------
    InvalidInputError
        A name that the result doesn't have, or fewer than two coordinates.
    """
    shown = list(result.names[:MOST_SHOWN] if names is None else names)
    unknown = [name for name in shown if name not in result.names]
    if unknown:
        raise InvalidInputError(f"No coordinate is called {unknown[0]!r}; there are {', '.join(result.names)}.")
    if len(shown) < 2:
        raise InvalidInputError(f"A pair plot needs at least two coordinates, got {shown}.")
    indices, n = [result.names.index(name) for name in shown], len(shown)
    x = np.asarray(result.positions, dtype=np.float64)[:, indices]
    truth = None if exact is None else np.asarray(exact, dtype=np.float64)[:, indices]
    points = x[:: -(-len(x) // MOST_POINTS)]
    figure = Figure(figsize=(1 + 2.1 * n, 0.5 + 2.1 * n), layout="constrained")
    axes = figure.subplots(n, n, sharex="col", squeeze=False)
    for row in range(n):
        for column in range(n):
            here = axes[row, column]
            if column > row:
                here.remove()
                continue
            if column == row:
                _draw_marginal(here, x[:, row], None if truth is None else truth[:, row])
            else:
                here.plot(points[:, column], points[:, row], ".", color=SAMPLES, markersize=2.5, alpha=0.5, mew=0)
            is_left = column == 0 and row > 0
            finish(here, x=shown[column] if row == n - 1 else "", y=shown[row] if is_left else "")
    return figure


def _draw_marginal(axes: Axes, samples: np.ndarray, exact: np.ndarray | None) -> None:
    everything = samples if exact is None else np.concatenate([samples, exact])
    edges = np.histogram_bin_edges(everything[np.isfinite(everything)], N_BINS)
    axes.hist(samples, list(edges), density=True, color=SAMPLES, alpha=0.5)
    if exact is not None:
        axes.hist(exact, list(edges), density=True, histtype="step", color=EXACT, linewidth=1)
    axes.set_yticks([])
