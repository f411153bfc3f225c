"""Colours, sizes and the few things that every panel does."""

from matplotlib.axes import Axes

# Okabe and Ito's palette, told apart with any colour vision; the exact law is always grey.
SAMPLES = "#0072B2"
EXACT = "#444444"
EXACT_FILL = "#d0d0d0"
REJECTION = "#D55E00"
BARRIER = "#009E73"
ROUND_TRIPS = "#56B4E9"

TITLE_SIZE, LABEL_SIZE, TICK_SIZE = 10, 9, 8


def finish(axes: Axes, *, title: str = "", x: str = "", y: str = "") -> None:
    """Give a panel its title and labels (verbatim: dollars aren't mathematics) and take away its clutter."""
    if title:
        axes.set_title(title, fontsize=TITLE_SIZE, loc="left", parse_math=False)
    if x:
        axes.set_xlabel(x, fontsize=LABEL_SIZE, parse_math=False)
    if y:
        axes.set_ylabel(y, fontsize=LABEL_SIZE, parse_math=False)
    axes.tick_params(labelsize=TICK_SIZE)
    axes.spines[["top", "right"]].set_visible(False)
