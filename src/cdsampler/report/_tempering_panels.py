"""The tempering stage: its schedule, its barrier, and how often chains travelled the ladder."""

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from cdsampler.paths import cumulative_barrier
from cdsampler.report._format import number, percent
from cdsampler.report._style import (
    BARRIER,
    EXACT,
    REJECTION,
    ROUND_TRIPS,
    SAMPLES,
    TICK_SIZE,
    TITLE_SIZE,
    finish,
)
from cdsampler.samplers import TemperingDiagnostics

_LOGARITHMIC_BELOW = 0.1


def draw_schedule(upper: Axes, lower: Axes, tempering: TemperingDiagnostics) -> None:
    """Draw β of each replica, and below it the swap rejection of each neighbouring pair."""
    betas, n = tempering.betas, len(tempering.betas)
    upper.plot(np.arange(n), betas, "o-", color=SAMPLES, markersize=3.5, linewidth=1)
    if is_logarithmic(betas):
        _scale_to_betas(upper, betas)
    mean = float(np.mean(tempering.rejection))
    finish(upper, title=f"{n} replicas, mean rejection {mean:.2f}", y="β")
    lower.bar(np.arange(n - 1) + 0.5, tempering.rejection, width=0.8, color=REJECTION, alpha=0.85)
    lower.axhline(mean, color=EXACT, linewidth=0.8, linestyle="--")
    lower.set_ylim(0, 1)
    finish(lower, x="replica", y="swap rejection")
    lower.xaxis.set_major_locator(MaxNLocator(integer=True))
    for axes in (upper, lower):
        axes.set_xlim(-0.5, n - 0.5)
    upper.tick_params(labelbottom=False)


def draw_barrier(upper: Axes, lower: Axes, tempering: TemperingDiagnostics) -> None:
    """Draw the local barrier, and below it the cumulative one with the replicas marked.

    On a logarithmic axis the local barrier is that per unit of log β, so that area is barrier on either axis.
    Then the spline runs through the cumulative barrier over log β; the first pair, from β = 0, isn't on it.
    """
    betas = tempering.betas
    cumulative = np.concatenate([[0.0], np.cumsum(tempering.rejection)])
    if is_logarithmic(betas):
        grid, local, total = _barrier_over_log(betas, tempering.rejection)
        unit, label = "per unit of ln β", "β λ(β)"
        for axes in (upper, lower):
            axes.set_xscale("log")
    else:
        grid, local = tempering.local_barrier()
        total = cumulative_barrier(betas, tempering.rejection)(grid)
        unit, label = "per unit of β", "λ(β)"
    is_shown = betas >= grid[0] * (1 - 1e-9)
    upper.plot(grid, local, color=BARRIER, linewidth=1.4)
    upper.fill_between(grid, local, color=BARRIER, alpha=0.2, linewidth=0)
    upper.set_ylim(bottom=0)
    finish(upper, title=f"Local barrier {unit}", y=label)
    upper.tick_params(labelbottom=False)
    lower.plot(grid, total, color=BARRIER, linewidth=1.4)
    lower.plot(betas[is_shown], cumulative[is_shown], "o", color=BARRIER, markersize=3.5)
    lower.set_ylim(bottom=0)
    _write_total(lower, tempering.barrier)
    finish(lower, x="β", y="barrier from 0 to β" if betas[0] == 0 else "barrier up to β")
    for axes in (upper, lower):
        axes.margins(x=0.02)


def draw_travels(upper: Axes, lower: Axes, tempering: TemperingDiagnostics) -> None:
    """Draw the histograms of restarts and of round trips over the chains."""
    _draw_counts(upper, np.asarray(tempering.restarts), "restarts", SAMPLES)
    upper.set_title("Travels of each chain", fontsize=TITLE_SIZE, loc="left")
    _draw_counts(lower, np.asarray(tempering.round_trips), "round trips", ROUND_TRIPS)


def draw_walk(axes: Axes, walk: np.ndarray) -> None:
    """Draw the index process: the rung that each replica of one chain is on, step by step."""
    n_steps, n = walk.shape
    rungs = np.argsort(walk, axis=1)
    colours = colormaps["viridis"](np.linspace(0, 0.95, n))
    for replica in range(n):
        axes.plot(np.arange(n_steps), rungs[:, replica], color=colours[replica], linewidth=1, alpha=0.9)
    axes.set_ylim(-0.3, n - 0.7)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    finish(axes, title="Index process of a pilot chain", x="step", y="rung (0: reference)")


def is_logarithmic(betas: np.ndarray) -> bool:
    """Return whether a schedule crowds so near to zero that it needs a logarithmic axis."""
    positive = betas[betas > 0]
    return len(positive) > 1 and bool(positive[0] < _LOGARITHMIC_BELOW)


def _write_total(axes: Axes, barrier: float) -> None:
    # A cumulative curve is never in this corner.
    text = f"Λ = {number(barrier)}"
    axes.text(0.97, 0.06, text, transform=axes.transAxes, ha="right", va="bottom", fontsize=TICK_SIZE)


def _scale_to_betas(axes: Axes, betas: np.ndarray) -> None:
    if betas[0] > 0:
        axes.set_yscale("log")
        return
    least = float(betas[1])
    axes.set_yscale("symlog", linthresh=least, linscale=0.5)
    axes.set_ylim(-0.2 * least, 2)
    decades = range(0, int(np.floor(np.log10(least))), -max(1, round(-np.log10(least) / 4)))
    axes.set_yticks([0.0] + [10.0**decade for decade in decades if 10.0**decade >= least])
    axes.minorticks_off()


def _barrier_over_log(betas: np.ndarray, rejection: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a grid of positive β, the barrier per unit of log β, and the cumulative barrier."""
    first = 1 if betas[0] == 0 else 0
    spline = cumulative_barrier(np.log(betas[first:]), rejection[first:])
    log_grid = np.linspace(np.log(betas[first]), np.log(betas[-1]), 400)
    return np.exp(log_grid), spline.derivative()(log_grid), rejection[:first].sum() + spline(log_grid)


def _draw_counts(axes: Axes, counts: np.ndarray, what: str, colour: str) -> None:
    low, high = int(counts.min()), int(counts.max())
    low = 0 if low <= high / 2 else low
    high = max(high, low + 4)
    # Bins of whole width, centred on whole numbers as long as there is a bar for each.
    step = -(-(high - low + 1) // 40)
    edges = np.arange(low, high + step + 1, step) - 0.5
    heights = np.histogram(counts, edges)[0]
    axes.bar(edges[:-1] + step / 2, heights, width=0.85 * step, color=colour, alpha=0.85)
    mean = float(counts.mean())
    axes.axvline(mean, color=EXACT, linewidth=1, linestyle="--")
    none = percent(float(np.mean(counts == 0)))
    finish(axes, x=f"{what}: mean {number(mean)}, none in {none}", y="chains")
    axes.set_xlim(edges[0] - 0.1 * step, edges[-1] + 0.1 * step)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=4))
