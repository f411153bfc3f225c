"""Free energies of two backbone angles, of samples beside a reference."""

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from cdsampler.errors import InvalidInputError
from cdsampler.metrics import BOLTZMANN, c7ax_indicator
from cdsampler.report._format import count, percent
from cdsampler.report._style import EXACT, LABEL_SIZE, TICK_SIZE, finish

N_BINS = 60
MOST_KJ = 30.0  # what is rarer than e⁻¹² of the deepest bin, no sample of ours shows


def ramachandran_figure(
    samples: np.ndarray, reference: np.ndarray | None = None, *, temperature_kelvin: float = 300.0
) -> Figure:
    """Draw the free energy of φ and ψ of samples, beside that of a reference.

    Parameters
    ----------
    samples, reference : ndarray, shape (n, 2) and (m, 2)
        φ and ψ in radians, modulo 2π.
    temperature_kelvin

    Returns
    -------
    Figure
        `F = -kT log p` in kJ/mol above the deepest bin of each panel, on one colour scale. Bins without a draw are
        white; the basin C7ax, φ > 0, is marked with its weight.

    Raises
    ------
    InvalidInputError
        No draws, or another shape.
    """
    panels = [("Samples", samples)] + ([] if reference is None else [("Reference", reference)])
    surfaces = [free_energies(what, angles, temperature_kelvin) for what, angles in panels]
    top = min(max(float(np.nanmax(surface)) for surface in surfaces), MOST_KJ)
    figure = Figure(figsize=(4.2 * len(panels) + 0.8, 4.3), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for here, (what, angles), surface in zip(axes, panels, surfaces, strict=True):
        image = draw_surface(here, surface, max(top, 1e-3))
        weight = float(np.mean(c7ax_indicator(np.asarray(angles)[:, 0])))
        finish(here, title=f"{what} (n = {count(len(angles))}); C7ax: {percent(weight)}", x="φ (degrees)")
        here.set_ylabel("ψ (degrees)" if here is axes[0] else "", fontsize=LABEL_SIZE)
    bar = figure.colorbar(image, ax=list(axes), shrink=0.85)
    bar.set_label("free energy (kJ/mol)", fontsize=LABEL_SIZE)
    bar.ax.tick_params(labelsize=TICK_SIZE)
    return figure


def free_energies(what: str, angles: np.ndarray, temperature_kelvin: float, *, n_bins: int = N_BINS) -> np.ndarray:
    """Return the free energies of bins of φ and ψ, above the deepest.

    Parameters
    ----------
    what
        Whose angles they are, for the message of an error.
    angles : ndarray, shape (n, 2)
        φ and ψ in radians, modulo 2π.
    temperature_kelvin
    n_bins
        Of each angle.

    Returns
    -------
    ndarray, shape (n_bins, n_bins)
        In kJ/mol, φ first; NaN without a draw.

    Raises
    ------
    InvalidInputError
        No draws, another shape, or angles that aren't finite.
    """
    array = np.asarray(angles, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != 2 or not len(array) or not np.all(np.isfinite(array)):
        raise InvalidInputError(f"{what}: angles must be finite, of shape (n, 2) with n > 0, got shape {array.shape}.")
    degrees = np.mod(np.degrees(array) + 180.0, 360.0) - 180.0
    edges = np.linspace(-180.0, 180.0, n_bins + 1)
    counts = np.histogram2d(degrees[:, 0], degrees[:, 1], bins=[edges, edges])[0]
    shares = np.where(counts > 0, counts / counts.max(), np.nan)
    return -BOLTZMANN * temperature_kelvin * np.log(shares)


def draw_surface(axes: Axes, surface: np.ndarray, top: float) -> AxesImage:
    """Draw free energies of `free_energies` in colours from 0 to `top`, in kJ/mol, and mark where C7ax begins."""
    image = axes.imshow(surface.T, origin="lower", extent=(-180, 180, -180, 180), vmin=0, vmax=top)
    image.set_cmap(colormaps["viridis"])
    axes.axvline(0, color=EXACT, linewidth=0.8, linestyle="--")
    axes.text(8, -172, "C7ax: φ > 0", fontsize=TICK_SIZE, color=EXACT)
    axes.set_xticks(range(-180, 181, 90))
    axes.set_yticks(range(-180, 181, 90))
    return image
