"""Means over repeats, and over resamples of them: what fronts and hypervolumes are taken of."""

import zlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cdsampler.benchmark.fronts._cells import Cell, FloatArray, mean_of_known
from cdsampler.errors import InvalidInputError

N_RESAMPLES = 50


class Means(NamedTuple):
    """Mean costs and errors of cells: of the repeats as they are, then of each bootstrap resample.

    Attributes
    ----------
    cells : tuple of Cell
        Rows.
    costs : ndarray, shape (n_cells, 1 + n_resamples)
        The first column is of the repeats as they are.
    errors : dict of ndarray, shape (n_cells, 1 + n_resamples)
        By metric; NaN where no repeat has it.
    """

    cells: tuple[Cell, ...]
    costs: FloatArray
    errors: dict[str, FloatArray]

    @property
    def tasks(self) -> np.ndarray:
        """Task of each cell."""
        return np.array([cell.task for cell in self.cells])

    @property
    def labels(self) -> np.ndarray:
        """Label of each cell."""
        return np.array([cell.label for cell in self.cells])

    def clipped(self) -> "Means":
        """Return the same with each mean error at least its floor, where there is one.

        Means are clipped, not repeats: a lucky repeat may make up for an unlucky one, so that a sampler as good as
        exact draws is at the floor, and not above it by the mean of its bad luck alone.
        """
        errors = {}
        for name, values in self.errors.items():
            floors = np.array([cell.floors.get(name, np.nan) for cell in self.cells])
            errors[name] = np.where(floors[:, None] > values, floors[:, None], values)
        return self._replace(errors=errors)


def means_of(cells: Sequence[Cell], n_resamples: int, seed: int) -> Means:
    """Return means over repeats, and over resamples of the repeats of each cell.

    All metrics of a cell see the same resamples, since the errors of one run are correlated; and a cell's resamples
    don't depend on what else is in the sweep.

    Raises
    ------
    InvalidInputError
        Fewer than one resample.
    """
    if n_resamples < 1:
        raise InvalidInputError(f"n_resamples must be at least 1, got {n_resamples}.")
    names = list(dict.fromkeys(name for cell in cells for name in cell.metrics))
    shape = (len(cells), 1 + n_resamples)
    costs, errors = np.full(shape, np.nan), {name: np.full(shape, np.nan) for name in names}
    for i, cell in enumerate(cells):
        n = len(cell.costs)
        name_of_cell = "|".join((cell.task, cell.label, cell.configuration, repr(cell.budget)))
        rng = np.random.default_rng([seed, zlib.crc32(name_of_cell.encode())])
        chosen = np.concatenate([np.arange(n)[None], rng.integers(n, size=(n_resamples, n))])
        costs[i] = cell.costs[chosen].mean(axis=1)
        for name, values in cell.errors.items():
            errors[name][i] = mean_of_known(values[chosen])
    return Means(tuple(cells), costs, errors)
