"""Configurations of particles in three dimensions."""

from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from mpl_toolkits.mplot3d import Axes3D  # type: ignore[import-untyped]

from cdsampler.errors import InvalidInputError
from cdsampler.metrics.kabsch import best_rotations
from cdsampler.report._style import EXACT, SAMPLES, TITLE_SIZE

SPHERE_RADIUS = 0.45  # of clusters, whose particles are about 1 apart
# The usual colours of elements, darkened where they would vanish on white.
_ELEMENTS = {"H": "#b8b8b8", "C": "#404040", "N": "#0072B2", "O": "#D55E00"}


def structure_figure(
    structures: np.ndarray,
    *,
    bonds: Sequence[tuple[int, int]] | None = None,
    names: Sequence[str] | None = None,
    titles: Sequence[str] | None = None,
) -> Figure:
    """Draw configurations: molecules as superposed sticks in one panel, clusters as spheres, in a panel each.

    Parameters
    ----------
    structures : ndarray, shape (k, n_particles, 3)
        The first one of a molecule is drawn boldly, and the others, turned onto it, thinly.
    bonds
        Pairs of bonded atoms; without them the particles are spheres of diameter 0.9, nearer ones darker.
    names
        Of the atoms; their first letters, the elements, give the colours.
    titles
        Of the panels.

    Returns
    -------
    Figure
        All in one scale, seen along the direction in which a configuration, or the first of a molecule, is thinnest.

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
    figure = Figure(figsize=(5.0, 4.0) if bonds is not None else (2.6 * n_panels, 3.0), layout="constrained")
    for i in range(n_panels):
        if bonds is not None:
            axes = figure.add_subplot(projection="3d")
            _draw_sticks(axes, centred, bonds, names)
        else:
            axes = figure.add_subplot(1, n_panels, i + 1)
            _draw_spheres(axes, centred[i], float(np.abs(centred).max()) + SPHERE_RADIUS)
        axes.set_axis_off()
        if titles is not None:
            axes.set_title(titles[i], fontsize=TITLE_SIZE, parse_math=False)
    return figure


def _turned(centred: np.ndarray, *, together: bool) -> np.ndarray:
    """Return configurations with their thinnest direction last; all turned onto the first, or each by itself."""
    if together:
        onto_first = np.matmul(centred, best_rotations(centred, np.broadcast_to(centred[:1], centred.shape)))
        return onto_first @ _principal_axes(centred[0])
    return np.stack([x @ _principal_axes(x) for x in centred])


def _principal_axes(x: np.ndarray) -> np.ndarray:
    """Return the principal axes as columns, the longest first, as a rotation: a mirror image is another molecule."""
    axes = np.linalg.svd(x)[2].T
    return axes * np.array([1, 1, np.sign(np.linalg.det(axes))])


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
    half = float(np.abs(structures).max())
    for limit in (axes.set_xlim, axes.set_ylim, axes.set_zlim):
        limit(-half, half)
    axes.set_box_aspect((1, 1, 1), zoom=1.5)
    axes.view_init(elev=90, azim=-90)


def _draw_spheres(axes: Axes, particles: np.ndarray, half: float) -> None:
    nearness = (particles[:, 2] + half) / (2 * half)
    for i in np.argsort(nearness):  # nearer ones hide those behind
        colour = colormaps["Blues"](0.15 + 0.75 * nearness[i])
        axes.add_patch(Circle((particles[i, 0], particles[i, 1]), SPHERE_RADIUS, facecolor=colour, edgecolor=EXACT))
    axes.set_xlim(-half, half)
    axes.set_ylim(-half, half)
    axes.set_aspect("equal")
