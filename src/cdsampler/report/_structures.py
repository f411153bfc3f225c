"""Configurations of particles in three dimensions."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d import Axes3D  # type: ignore[import-untyped]

from cdsampler.errors import InvalidInputError
from cdsampler.metrics.kabsch import best_rotations
from cdsampler.report._style import EXACT, SAMPLES, TITLE_SIZE

# The usual colours of elements, darkened where they would vanish on white.
_ELEMENTS = {"H": "#b8b8b8", "C": "#404040", "N": "#0072B2", "O": "#D55E00"}


def structure_figure(
    structures: np.ndarray,
    *,
    bonds: Sequence[tuple[int, int]] | None = None,
    names: Sequence[str] | None = None,
    titles: Sequence[str] | None = None,
) -> Figure:
    """Draw configurations: molecules as superposed sticks in one panel, clusters as spheres in a panel each.

    Parameters
    ----------
    structures : ndarray, shape (k, n_particles, 3)
        The first one of a molecule is drawn boldly, and the others, turned onto it, thinly.
    bonds
        Pairs of bonded atoms; without them the particles are spheres, nearer ones larger and darker.
    names
        Of the atoms; their first letters, the elements, give the colours.
    titles
        Of the panels.

    Returns
    -------
    Figure
        In equal scales, seen along the direction in which the first configuration is thinnest.

    Raises
    ------
    InvalidInputError
        Another shape, or numbers that aren't finite.
    """
    array = np.asarray(structures, dtype=np.float64)
    if array.ndim != 3 or array.shape[2] != 3 or not array.size or not np.all(np.isfinite(array)):
        raise InvalidInputError(f"Structures must be finite, of shape (k, n_particles, 3), got shape {array.shape}.")
    centred = _turned(array - array.mean(axis=1, keepdims=True), together=bonds is not None)
    n_panels = 1 if bonds is not None else len(centred)
    figure = Figure(figsize=(max(5.0, 3.2 * n_panels), 4.0 if bonds is not None else 3.6), layout="constrained")
    for i in range(n_panels):
        axes = figure.add_subplot(1, n_panels, i + 1, projection="3d")
        assert isinstance(axes, Axes3D)
        if bonds is not None:
            _draw_sticks(axes, centred, bonds, names)
        else:
            _draw_spheres(axes, centred[i])
        _bare(axes, centred if bonds is not None else centred[i : i + 1])
        if titles is not None:
            axes.set_title(titles[i], fontsize=TITLE_SIZE, parse_math=False)
    return figure


def _turned(centred: np.ndarray, *, together: bool) -> np.ndarray:
    """Return configurations with their thinnest direction last; all turned onto the first, or each by itself."""
    if together:
        onto_first = np.matmul(centred, best_rotations(centred, np.broadcast_to(centred[:1], centred.shape)))
        return onto_first @ np.linalg.svd(centred[0])[2].T
    return np.stack([x @ np.linalg.svd(x)[2].T for x in centred])


def _draw_sticks(
    axes: Axes3D, structures: np.ndarray, bonds: Sequence[tuple[int, int]], names: Sequence[str] | None
) -> None:
    for structure in structures[1:]:
        for i, j in bonds:
            axes.plot(*structure[[i, j]].T, color=SAMPLES, linewidth=0.8, alpha=0.35)
    first = structures[0]
    colours = [EXACT] * len(first) if names is None else [_ELEMENTS.get(name[0], EXACT) for name in names]
    for i, j in bonds:
        middle = (first[i] + first[j]) / 2
        for atom in (i, j):
            axes.plot(*np.stack([first[atom], middle]).T, color=colours[atom], linewidth=3.5)
    axes.scatter(*first.T, c=colours, s=60, depthshade=False)


def _draw_spheres(axes: Axes3D, particles: np.ndarray) -> None:
    # The camera looks down the third axis.
    order = np.argsort(particles[:, 2])
    x, y, height = particles[order].T
    nearness = (height - height.min()) / max(float(np.ptp(height)), 1e-9)
    radius = max(float(np.abs(particles).max()), 1e-9)
    sizes = 1600 / radius**2 * (0.6 + 0.4 * nearness)
    axes.scatter(x, y, height, s=sizes, c=nearness, cmap="Blues", vmin=-0.6, vmax=1.3, edgecolors=EXACT, linewidths=0.5)


def _bare(axes: Axes3D, structures: np.ndarray) -> None:
    half = float(np.abs(structures).max())
    for limit in (axes.set_xlim, axes.set_ylim, axes.set_zlim):
        limit(-half, half)
    axes.set_box_aspect((1, 1, 1), zoom=1.7 if len(structures) > 1 else 1.4)
    axes.view_init(elev=90, azim=-90)
    axes.set_axis_off()
