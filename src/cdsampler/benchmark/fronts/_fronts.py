"""Fronts of error against cost: the best error that each price buys, and how sure that is."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cdsampler.benchmark.fronts._cells import Cell, FloatArray
from cdsampler.benchmark.fronts._means import N_RESAMPLES, Means, means_of
from cdsampler.errors import InvalidInputError

N_GRID = 120
_LOW, _HIGH = 0.05, 0.95


class Front(NamedTuple):
    """The best error of a sampler on a task, by what it costs.

    Attributes
    ----------
    task, metric, label
        What it is of.
    members : tuple of Cell
        The non-dominated cells, by rising cost: none is both dearer and worse than another.
    costs, errors : ndarray, shape (k,)
        Their means over repeats, an error below the floor being the floor unless that was not asked for: the front is
        the step function that falls to an error at its cost.
    grid : ndarray, shape (g,)
        Costs, the same for all samplers of a task, even in their logarithm.
    median, low, high : ndarray, shape (g,)
        Of the fronts of the resamples, with their 5 and 95 %; inf where a resample has nothing at that price.
    """

    task: str
    metric: str
    label: str
    members: tuple[Cell, ...]
    costs: FloatArray
    errors: FloatArray
    grid: FloatArray
    median: FloatArray
    low: FloatArray
    high: FloatArray


def nondominated(costs: FloatArray, errors: FloatArray) -> np.ndarray:
    """Return the indices of the points that no other beats in both, by rising cost.

    Parameters
    ----------
    costs, errors : ndarray, shape (n,)
        Less is better; points that aren't finite are left out. Of equal points the first stays.

    Returns
    -------
    ndarray of int, shape (k,)

    Raises
    ------
    InvalidInputError
        The shapes differ.
    """
    costs, errors = np.asarray(costs, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    if costs.shape != errors.shape or costs.ndim != 1:
        raise InvalidInputError(f"costs and errors must have one shape (n,), got {costs.shape} and {errors.shape}.")
    (finite,) = np.nonzero(np.isfinite(costs) & np.isfinite(errors))
    order = finite[np.lexsort((errors[finite], costs[finite]))]
    sorted_errors = errors[order]
    best_before = np.concatenate([[np.inf], np.minimum.accumulate(sorted_errors)[:-1]]) if len(order) else sorted_errors
    return order[sorted_errors < best_before]


def fronts(
    cells: Sequence[Cell], *, n_resamples: int = N_RESAMPLES, seed: int = 0, is_clipped: bool = True
) -> list[Front]:
    """Return the front of every task, metric and label, with a bootstrap band over repeats.

    A resample draws the repeats of each configuration and budget anew, averages their errors, and takes the front
    over the configurations. With one repeat the band has no width, and says nothing.

    Parameters
    ----------
    cells
        Of `cells_of`.
    n_resamples
        At least 1.
    seed
        Fixes the resamples.
    is_clipped
        Whether a mean error below its floor counts as the floor.

    Returns
    -------
    list of Front
        In the order of the cells.

    Raises
    ------
    InvalidInputError
        Fewer than one resample.
    """
    means = means_of(cells, n_resamples, seed)
    return fronts_of(means.clipped() if is_clipped else means)


def fronts_of(means: Means) -> list[Front]:
    """Return the fronts of means; see `fronts`."""
    costs, tasks, labels = means.costs, means.tasks, means.labels
    found = []
    for task in dict.fromkeys(tasks.tolist()):
        here = tasks == task
        least, most = costs[here].min(), costs[here].max()
        # Rounding of the logarithm must not put a price below the cheapest or beyond the dearest points.
        grid = np.clip(np.geomspace(least, most, N_GRID), least, most)
        for metric, values in means.errors.items():
            for label in dict.fromkeys(labels[here].tolist()):
                (rows,) = np.nonzero(here & (labels == label) & np.isfinite(values[:, 0]))
                if len(rows):
                    chosen = [means.cells[row] for row in rows.tolist()]
                    found.append(_front(chosen, metric, costs[rows], values[rows], grid))
    return found


def _front(cells: list[Cell], metric: str, costs: FloatArray, errors: FloatArray, grid: FloatArray) -> Front:
    members = nondominated(costs[:, 0], errors[:, 0])
    curves = np.sort([_steps(costs[:, b], errors[:, b], grid) for b in range(1, costs.shape[1])], axis=0)
    # Order statistics, since between a number and infinity there is nothing to interpolate.
    low, median, high = (curves[round(share * (len(curves) - 1))] for share in (_LOW, 0.5, _HIGH))
    first = cells[0]
    return Front(
        first.task,
        metric,
        first.label,
        tuple(cells[i] for i in members),
        costs[members, 0],
        errors[members, 0],
        grid,
        median,
        low,
        high,
    )


def _steps(costs: FloatArray, errors: FloatArray, grid: FloatArray) -> FloatArray:
    """Return the least error within each price, inf where nothing is as cheap."""
    members = nondominated(costs, errors)
    n_within = np.searchsorted(costs[members], grid, side="right")
    return np.concatenate([[np.inf], errors[members]])[n_within]
