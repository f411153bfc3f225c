"""Coordinates in which the density looks about isotropic near its mode: a preconditioner for every kernel at once."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import cholesky

from cdsampler._typing import Array
from cdsampler.charts import AffineChart
from cdsampler.density import AbstractLogDensity, Evaluations
from cdsampler.tuning._account import Account
from cdsampler.tuning._curvature_by_values import standard_curvature_by_values

# Standard deviations that the curvature may imply, relative to the user's scale.
NARROWEST, WIDEST = 1e-9, 1e9
# A standardised curvature below this isn't that of a mode.
SADDLE = -0.1


class Curvature(NamedTuple):
    """What the curvature at a stationary point says.

    Attributes
    ----------
    chart : AffineChart
        Whitens it.
    escape : ndarray, shape (dim,), or None
        A short step off the point along its most upward curvature if it is a saddle; None at a mode.
    """

    chart: AffineChart
    escape: np.ndarray | None


def measure_curvature(density: AbstractLogDensity, mode: np.ndarray, scale: float, account: Account) -> Curvature:
    """Return the chart that whitens the curvature at a mode (Laplace), or one of the given scale if it has none.

    Costs 3 evaluations per dimension, without gradients 26 and up to twice the square of the dimension; with a limit
    they may take a twentieth of it, else the chart has the given scale.

    Parameters
    ----------
    density
        Target.
    mode : ndarray, shape (dim,)
    scale
        Standard deviation to assume in directions in which the density is flat, in target units.
    account
        Charged for the evaluations.
    """
    dim = density.dim
    plain = AffineChart(mode, scale * np.eye(dim))
    limit = account.share(0.05)
    if not density.has_gradient:
        seen = standard_curvature_by_values(density, mode, scale, account, limit)
        if seen is None:
            return Curvature(plain, None)
        width, standard = _bounded(seen.width, scale), seen.standard
    elif limit is not None and 3 * dim > limit:
        return Curvature(plain, None)
    else:
        width, standard = _standard_curvature(density, mode, scale, account)
    if not np.all(np.isfinite(standard)):
        return Curvature(plain, None)
    values, vectors = np.linalg.eigh(standard)
    escape = 0.3 * width * vectors[:, 0] if values[0] < SADDLE else None
    spread = _bounded(1 / np.sqrt(np.maximum(values, 1e-300)), 1.0)
    spread = np.where(values > 1e-4, spread, np.minimum(spread, 100.0))
    covariance = (vectors * spread**2) @ vectors.T * np.outer(width, width)
    try:
        return Curvature(AffineChart(mode, cholesky(0.5 * (covariance + covariance.T), lower=True)), escape)
    except np.linalg.LinAlgError:
        return Curvature(AffineChart(mode, np.diag(width)), escape)


def _standard_curvature(
    density: AbstractLogDensity, mode: np.ndarray, scale: float, account: Account
) -> tuple[np.ndarray, np.ndarray]:
    """Return a width for each coordinate, and minus the Hessian in units of them, by differences of gradients."""
    tiny = np.finfo(density.dtype).eps ** (1 / 3)
    rough = _curvature(density, mode, tiny * np.maximum(np.abs(mode), scale), account, both_sides=False)
    # Differences over a fraction of a standard deviation see the mode rather than rounding, or what lies beyond it.
    width = _bounded(1 / np.sqrt(np.abs(np.diag(rough)) + 1e-300), scale)
    hessian = _curvature(density, mode, 0.3 * width, account, both_sides=True)
    # Whiten by the diagonal first: eigenvalues of scales far apart would drown in rounding.
    return width, hessian * np.outer(width, width)


def _bounded(width: np.ndarray, scale: float) -> np.ndarray:
    width = np.where(np.isfinite(width), width, scale)
    flat = width > WIDEST * scale
    return np.where(flat, scale, np.maximum(width, NARROWEST * scale))


def _curvature(
    density: AbstractLogDensity, mode: np.ndarray, steps: np.ndarray, account: Account, *, both_sides: bool
) -> np.ndarray:
    """Return minus the Hessian by differences of gradients over the given steps, symmetrised."""
    centre, offsets = jnp.asarray(mode, density.dtype), np.diag(steps).astype(density.dtype)
    up, cost = account.journal.call("curvature", _gradients, density, centre, jnp.asarray(offsets))
    account.charge(cost)
    if both_sides:
        down, cost = account.journal.call("curvature", _gradients, density, centre, jnp.asarray(-offsets))
        account.charge(cost)
        slope = (np.asarray(up, np.float64) - np.asarray(down, np.float64)) / (2 * steps[:, None])
    else:
        # The gradient at a mode is zero, or points out of the support, where it says nothing about the width.
        slope = np.asarray(up, np.float64) / steps[:, None]
    return -0.5 * (slope + slope.T)


@eqx.filter_jit
def _gradients(density: AbstractLogDensity, mode: Array, steps: Array) -> tuple[Array, Evaluations]:
    _, gradients, costs = jax.vmap(lambda step: density.value_and_gradient(mode + step))(steps)
    return gradients, costs.sum()
