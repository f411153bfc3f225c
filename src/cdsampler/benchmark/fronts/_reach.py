"""What it costs to be as good as exact draws, nearly."""

from collections.abc import Sequence
from typing import NamedTuple

from cdsampler.benchmark.fronts._cells import Cell
from cdsampler.errors import InvalidInputError

REACHED = 1.2  # times the floor


class Reach(NamedTuple):
    """The least cost at which a sampler's error is near its floor.

    Attributes
    ----------
    task, metric, label
        What it is of.
    cost
        Mean evaluations per sample of the cheapest cell whose mean multiple of the floor is within the threshold: a
        cost that was tested, nothing is interpolated. None if there is no such cell.
    best
        Least mean multiple of the floor of all cells; inf if each has a repeat whose error was not finite.
    cell
        The cheapest within the threshold, or else the one with the least multiple.
    is_lasting
        Whether the same configuration stays within the threshold at every larger budget; if not, luck may have helped.
        False if there is no cost.
    """

    task: str
    metric: str
    label: str
    cost: float | None
    best: float
    cell: Cell
    is_lasting: bool


def reaches(cells: Sequence[Cell], *, threshold: float = REACHED) -> list[Reach]:
    """Return for every task, metric and label what it costs to come within a multiple of the floor.

    Parameters
    ----------
    cells
        Of `cells_of`.
    threshold
        Positive multiple of the floor.

    Returns
    -------
    list of Reach
        In the order of the cells; without those that no cell has a multiple for.

    Raises
    ------
    InvalidInputError
        The threshold isn't positive.
    """
    if not threshold > 0:
        raise InvalidInputError(f"threshold must be positive, got {threshold}.")
    ratios: dict[tuple[str, str, str], list[tuple[float, Cell]]] = {}
    for cell in cells:
        for metric in cell.ratios:
            ratio = cell.ratio(metric)
            if ratio == ratio:
                ratios.setdefault((cell.task, metric, cell.label), []).append((ratio, cell))
    found = []
    for (task, metric, label), pairs in ratios.items():
        best, best_cell = min(pairs, key=lambda pair: pair[0])
        within = [cell for ratio, cell in pairs if ratio <= threshold]
        if within:
            cheapest = min(within, key=lambda cell: cell.cost)
            same = [pair for pair in pairs if pair[1].configuration == cheapest.configuration]
            is_lasting = all(ratio <= threshold for ratio, cell in same if cell.budget > cheapest.budget)
            found.append(Reach(task, metric, label, cheapest.cost, best, cheapest, is_lasting))
        else:
            found.append(Reach(task, metric, label, None, best, best_cell, is_lasting=False))
    return found
