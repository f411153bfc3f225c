"""The curvature at a mode of a density that has no gradient."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array
from cdsampler.density import AbstractLogDensity, Evaluations
from cdsampler.tuning._account import Account

# Steps that are tried along each coordinate, in units of the user's scale, and the drop of the log density (a standard
# deviation has 1/2) below which they are small enough.
STEPS, SMALL = 10.0 ** np.arange(-9, 4), 1.0
# Beyond this the coordinates are taken to be uncorrelated: pairs would cost too much.
MOST_PAIRED = 30


class StandardCurvature(NamedTuple):
    """A width for each coordinate, shape (dim,), and minus the Hessian in units of them, shape (dim, dim)."""

    width: np.ndarray
    standard: np.ndarray


def standard_curvature_by_values(
    density: AbstractLogDensity, mode: np.ndarray, scale: float, account: Account, limit: int | None
) -> StandardCurvature | None:
    """Return widths and standardised curvature by differences of values; None if that costs more than the limit.

    Costs 26 evaluations per dimension, and two for each pair of dimensions in up to 30.

    Parameters
    ----------
    density
        Target.
    mode : ndarray, shape (dim,)
    scale
        Standard deviation to assume in directions in which the density is flat.
    account
        Charged.
    limit
        Most evaluations.
    """
    dim = density.dim
    left = float("inf") if limit is None else limit
    if 2 * len(STEPS) * dim + 1 > left:
        return None
    top = float(_values(density, mode[None], account)[0])
    offsets = scale * STEPS[:, None, None] * np.eye(dim)
    both = [_values(density, (mode + sign * offsets).reshape(-1, dim), account) for sign in (1, -1)]
    drops = top - 0.5 * (both[0] + both[1]).reshape(len(STEPS), dim)
    width = np.array([_width(scale * STEPS, drop, top, density.dtype) for drop in drops.T])
    standard = np.eye(dim)
    rows, columns = np.triu_indices(dim, 1)
    if dim > MOST_PAIRED or 4 * len(rows) > left - 2 * len(STEPS) * dim - 1:
        return StandardCurvature(np.where(np.isfinite(width), width, scale), standard)
    known = np.where(np.isfinite(width), width, 0.0)
    mixed = np.zeros(len(rows))
    for first, second, sign in ((1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)):
        points = np.tile(mode, (len(rows), 1))
        points[np.arange(len(rows)), rows] += first * 0.5 * known[rows]
        points[np.arange(len(rows)), columns] += second * 0.5 * known[columns]
        mixed += sign * _values(density, points, account)
    # A difference over half a width on both sides, in units of widths.
    pairs = np.where(np.isfinite(mixed), -mixed, 0.0)
    standard[rows, columns] = standard[columns, rows] = pairs
    return StandardCurvature(np.where(np.isfinite(width), width, scale), standard)


def _width(steps: np.ndarray, drop: np.ndarray, top: float, dtype: np.dtype) -> float:
    """Return the standard deviation that the drops along a coordinate imply; NaN where it is flat."""
    # Differences of a few roundings say nothing.
    is_seen = (drop > 30 * np.finfo(dtype).eps * max(abs(top), 1.0)) & np.isfinite(drop)
    if not is_seen.any():
        return float("nan")
    small = np.flatnonzero(is_seen & (drop <= SMALL))
    chosen = small[-1] if len(small) else np.flatnonzero(is_seen)[0]
    return float(steps[chosen] / np.sqrt(2 * drop[chosen]))


def _values(density: AbstractLogDensity, positions: np.ndarray, account: Account) -> np.ndarray:
    if len(positions) == 0:
        return np.zeros(0)
    values, cost = _evaluate(density, jnp.asarray(positions, density.dtype))
    account.charge(cost)
    return np.asarray(values, dtype=np.float64)


@eqx.filter_jit
def _evaluate(density: AbstractLogDensity, positions: Array) -> tuple[Array, Evaluations]:
    values, costs = jax.vmap(density.value)(positions)
    return values, costs.sum()
