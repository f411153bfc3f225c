from typing import Any

import numpy as np

from cdsampler.density._evaluations import Evaluations
from cdsampler.density._log_density import AbstractLogDensity
from cdsampler.density._point import Point
from cdsampler.errors import DensityError, InvalidInputError


def check_bounded(evaluations: Evaluations, *points: Point) -> None:
    """Raise if any evaluation gave plus infinity.

    Parameters
    ----------
    evaluations
        Counts of any shape.
    points
        Where to look for the position to show; arrays of points.

    Raises
    ------
    DensityError
        With the position, if one of the points still has it.
    """
    if not np.any(np.asarray(evaluations.pos_inf) > 0):
        return
    shown = " at a point that a kernel passed through"
    for point in points:
        where = np.argwhere(np.asarray(point.target.log_density) == np.inf)
        if len(where):
            position = np.asarray(point.position)[tuple(where[0])]
            shown = f" at {np.array2string(position, threshold=20)}"
            break
    raise DensityError(
        f"The log density is +inf{shown}: the target is unbounded there, and no sampler can be right. Bound it, or "
        "return -inf where it is not defined."
    )


def coordinate_names(density: AbstractLogDensity) -> tuple[str, ...]:
    """Return the density's names of its coordinates, or x0, x1 … if it has none."""
    return tuple(getattr(density, "names", [f"x{i}" for i in range(density.dim)]))


def check_position(density: AbstractLogDensity, name: str, given: Any) -> np.ndarray:
    """Return a point of the target's space as float64, shape (dim,); or raise `InvalidInputError`, naming it."""
    try:
        position = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        position = np.full(0, np.nan)
    if position.shape != (density.dim,) or not np.all(np.isfinite(position)):
        raise InvalidInputError(f"The {name} must be {density.dim} finite numbers, got {given!r}.")
    return position
