"""Figures of many panels: their grid, their labels and their legend."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from cdsampler.report._style import TICK_SIZE, finish

_N_COLUMNS = 4


def legend_above(figure: Figure, handles: Sequence[Line2D]) -> None:
    """Put a legend above all panels, in as many columns as its names and the figure's width allow."""
    # Letters of this size are about a sixteenth of an inch wide, and a line with its gaps takes ten of them.
    longest = max((len(str(handle.get_label())) for handle in handles), default=0)
    n_columns = max(1, int(16 * figure.get_figwidth() / (longest + 10)))
    figure.legend(handles=handles, loc="outside upper left", ncols=n_columns, fontsize=TICK_SIZE, frameon=False)


def panel_grid(n: int, *, square: bool = False, top: float = 0.0, is_shared: bool = False) -> tuple[Figure, list[Axes]]:
    """Return a figure with n panels, four in a row.

    Parameters
    ----------
    n
        At least 1.
    square
        Whether panels are as high as they are wide.
    top
        Inches above them for a legend.
    is_shared
        Whether all have the same axes.
    """
    n_columns = min(n, _N_COLUMNS)
    n_rows = -(-n // n_columns)
    height = 3.1 if square else 2.6
    # A page's width whatever the number of panels: letters stay of one size.
    width = 3.1 * max(n_columns, 2)
    figure = Figure(figsize=(width, height * n_rows + top), layout="constrained")
    panels = list(figure.subplots(n_rows, n_columns, squeeze=False, sharex=is_shared, sharey=is_shared).ravel())
    for extra in panels[n:]:
        extra.remove()
    for axes in panels[:n]:
        axes.set_box_aspect(1 if square else None)
    return figure, panels[:n]


def label_outer(panels: Sequence[Axes], *, x: str, y: str) -> None:
    """Label the axes of panels that share them: below the lowest of each column, and left of each row."""
    for index, axes in enumerate(panels):
        is_lowest, is_left = index + _N_COLUMNS >= len(panels), index % _N_COLUMNS == 0
        axes.set(xlabel="", ylabel="")  # what drew the panel may have labelled it by itself
        finish(axes, x=x if is_lowest else "", y=y if is_left else "")
        # matplotlib leaves the marks to the last row, which may not have a panel in this column.
        axes.tick_params(labelbottom=is_lowest, labelleft=is_left)
