"""Errors as multiples of the floor that exact sampling has."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

from cdsampler.metrics import MetricValue
from cdsampler.report._format import count, metric_label
from cdsampler.report._style import EXACT, EXACT_FILL, SAMPLES, TICK_SIZE, finish

_LEAST = 0.2
_TICKS = (0.2, 0.5, 1, 2, 5, 10, 20)


def draw_metrics(axes: Axes, metrics: Sequence[MetricValue], n_modes: int | None) -> None:
    """Draw each metric that has a floor on a logarithmic axis where 1 is exact sampling.

    Grey bars are two standard deviations of exact samples to either side. Multiples below the axis, as of an
    unbiased estimate that came out negative, sit at its left end.
    """
    rows = [value for value in metrics if value.ratio is not None and np.isfinite(value.ratio)]
    ratios = np.array([value.ratio for value in rows], dtype=np.float64)
    right = max(2.5, 1.3 * float(ratios.max(initial=1.0)))
    for row, value in enumerate(rows):
        assert value.floor is not None
        half = 2 * value.floor.std / value.floor.mean if np.isfinite(value.floor.std) else 0.0
        low = max(1 - half, _LEAST)
        axes.barh(row, 1 + half - low, left=low, height=0.5, color=EXACT_FILL)
        right = max(right, 1.1 * (1 + half))
        beside = axes.get_yaxis_transform()
        axes.text(1.02, row, f"{value.ratio:.2f} ×", transform=beside, va="center", fontsize=TICK_SIZE)
    axes.axvline(1, color=EXACT, linewidth=1)
    for row, ratio in enumerate(ratios):
        place, marker = (ratio, "o") if ratio > _LEAST else (1.08 * _LEAST, "<")
        axes.plot(place, row, marker, color=SAMPLES, markersize=6)
    axes.set_xscale("log")
    axes.set_xlim(_LEAST, right)
    axes.xaxis.set_major_locator(NullLocator())
    # Over more than two decades there is room for powers of ten only.
    ticks = _TICKS if right <= 30 else 10.0 ** np.arange(np.floor(np.log10(right)) + 1)
    axes.set_xticks([tick for tick in ticks if tick <= right])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda tick, _: f"{tick:g}"))
    axes.set_yticks(range(len(rows)), [metric_label(value.name) for value in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    title = "Errors" + _modes(metrics, n_modes)
    finish(axes, title=title, x="multiple of the floor (grey: exact samples, ± 2 sd)")


def _modes(metrics: Sequence[MetricValue], n_modes: int | None) -> str:
    for value in metrics:
        if value.name == "modes_found":
            return f"; modes found: {count(value.value)}" + (f" of {n_modes}" if n_modes is not None else "")
    return ""
