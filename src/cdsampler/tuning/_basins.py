"""Modes above given points, and those that annealing can't reach."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array, PRNGKey
from cdsampler.density import AbstractLogDensity, Evaluations, Point
from cdsampler.paths import AnnealingPath, FlatReference
from cdsampler.tuning._account import Account
from cdsampler.tuning._mode import find_mode

# Climbs, how many times farther out than annealing reaches they start, the nats by which a mode may lie below the best,
# the distance from which it is another one, and how many are kept at most.
N_CLIMBS, BEYOND, MODEST, ANOTHER, MAX_BASINS = 48, (2.0, 10**0.5), 12.0, 1.0, 16


def find_basins(
    density: AbstractLogDensity, reach: float, rng_key: PRNGKey, account: Account, effort: float
) -> np.ndarray:
    """Return modes that climbs from beyond the reach of annealing find, the best first, shape (n, dim).

    Annealed chains, which have to stay in equilibrium, are lost among steep walls; a climb isn't.

    Parameters
    ----------
    density
        Target in coordinates in which a known mode is the origin, with a curvature of about one.
    reach
        Width of the widest reference about the origin from which annealing finds the mass; nothing is done if infinite.
    rng_key
    account
        Charged; a tenth of what it still allows is enough for the climbs, or there are none.
    effort
        Factor on the number of climbs.
    """
    nothing = np.zeros((0, density.dim))
    n = max(int(effort * N_CLIMBS), 8)
    if not np.isfinite(reach) or not account.affords(10 * n * (ceiling(density) / 4)):
        return nothing
    widths = reach * np.resize(BEYOND, n)[:, None]
    away = jnp.asarray(widths * np.asarray(jax.random.normal(rng_key, (n, density.dim))), density.dtype)
    starts, cost = evaluate_all(density, away)
    account.charge(cost)
    is_inside = np.isfinite(starts.target.log_density) & np.all(np.isfinite(starts.target.gradient), axis=1)
    if not is_inside.any():
        return nothing
    ends = np.stack([climb(density, start, account) for start in np.asarray(away, np.float64)[is_inside]])
    found, cost = evaluate_all(density, jnp.asarray(ends, density.dtype))
    account.charge(cost)
    heights = np.asarray(found.target.log_density, np.float64)
    modes = [np.zeros(density.dim)]
    for index in np.argsort(-heights):
        is_new = all(np.linalg.norm(ends[index] - mode) >= ANOTHER for mode in modes)
        if is_new and heights[index] > heights.max() - MODEST and len(modes) <= MAX_BASINS:
            modes.append(ends[index])
    return np.reshape(modes[1:], (-1, density.dim))


def ceiling(density: AbstractLogDensity) -> int:
    """Return the most evaluations of one climb."""
    return 200 + 5 * density.dim


@eqx.filter_jit
def evaluate_all(density: AbstractLogDensity, positions: Array) -> tuple[Point, Evaluations]:
    """Return values and gradients at positions, shape (n, dim), and the cost: n evaluations."""
    path = AnnealingPath(FlatReference(), density, positions[0])
    points, costs = jax.vmap(path.evaluate)(positions)
    return points, costs.sum()


def climb(density: AbstractLogDensity, start: np.ndarray, account: Account) -> np.ndarray:
    """Return the mode above a point, as far as a twentieth of the account takes the search."""
    limit = account.share(0.05)
    most = ceiling(density)
    mode = find_mode(density, start, max_evaluations=most if limit is None else max(1, min(limit, most)))
    account.charge(mode.evaluations)
    return mode.position
