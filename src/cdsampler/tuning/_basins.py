"""Modes above given points, and those that annealing can't reach."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array, PRNGKey
from cdsampler.density import AbstractLogDensity, Evaluations, Point
from cdsampler.paths import AnnealingPath, FlatReference
from cdsampler.tuning._account import Account
from cdsampler.tuning._mode import Mode, find_mode

# Climbs of a batch, the most batches, and the share of climbs that lead where no other did below which no more are
# made: it estimates the chance that the next one finds something new (Good and Turing).
N_CLIMBS, MAX_BATCHES, UNSEEN = 48, 8, 0.02
# How many times farther out than annealing reaches they start, the nats by which a mode may lie below the best, the
# distance from which it is another one, and how many are kept at most.
BEYOND, MODEST, ANOTHER, MAX_BASINS = (2.0, 10**0.5), 10.0, 1.0, 12


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
        Charged; climbs are made in batches, while one costs a tenth of what is still allowed at most.
    effort
        Factor on the number of climbs.
    """
    n = max(int(effort * N_CLIMBS), 8)
    ends, heights = np.zeros((0, density.dim)), np.zeros(0)
    for batch in range(MAX_BATCHES if np.isfinite(reach) else 0):
        if not account.affords(10 * n * (ceiling(density) / 4)):
            break
        widths = reach * np.resize(BEYOND, n)[:, None]
        normal = np.asarray(jax.random.normal(jax.random.fold_in(rng_key, batch), (n, density.dim)), np.float64)
        new, new_heights = _climbs(density, widths * normal, account)
        ends, heights = np.concatenate([ends, new]), np.concatenate([heights, new_heights])
        modes, counts = _distinct(ends, heights)
        if np.sum(counts == 1) <= UNSEEN * len(ends):
            break
    if len(ends) == 0:
        return ends
    return modes[np.linalg.norm(modes, axis=1) >= ANOTHER][:MAX_BASINS]


def _climbs(density: AbstractLogDensity, starts: np.ndarray, account: Account) -> tuple[np.ndarray, np.ndarray]:
    """Return the modes above those starts that lie inside the support, and their log densities."""
    points, cost = account.journal.call("evaluate", evaluate_all, density, jnp.asarray(starts, density.dtype))
    account.charge(cost)
    inside = np.isfinite(points.target.log_density) & np.all(np.isfinite(points.target.gradient), axis=1)
    modes = [climb(density, start, account) for start in starts[inside]]
    return np.reshape([m.position for m in modes], (-1, density.dim)), np.array([m.log_density for m in modes])


def _distinct(ends: np.ndarray, heights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the modes among the ends that are high enough, the best first, and how many climbs led to each."""
    modes: list[np.ndarray] = []
    counts: list[int] = []
    for index in np.argsort(-heights):
        if heights[index] < heights.max() - MODEST:
            break
        same = [i for i, mode in enumerate(modes) if np.linalg.norm(ends[index] - mode) < ANOTHER]
        if same:
            counts[same[0]] += 1
        else:
            modes.append(ends[index])
            counts.append(1)
    return np.reshape(modes, (-1, ends.shape[1])), np.array(counts)


def ceiling(density: AbstractLogDensity) -> int:
    """Return the most evaluations of one climb."""
    return 200 + 5 * density.dim


@eqx.filter_jit
def evaluate_all(density: AbstractLogDensity, positions: Array) -> tuple[Point, Evaluations]:
    """Return values, and gradients if there are any, at positions, shape (n, dim), and the cost: n evaluations."""
    path = AnnealingPath(FlatReference(), density, positions[0])
    points, costs = jax.vmap(path.evaluate_available)(positions)
    return points, costs.sum()


def climb(density: AbstractLogDensity, start: np.ndarray, account: Account) -> Mode:
    """Return the mode above a point, as far as a twentieth of the account takes the search."""
    limit = account.share(0.05)
    most = ceiling(density)
    most = most if limit is None else max(1, min(limit, most))
    mode = account.journal.call_in_parts("climb", find_mode, density, start, max_evaluations=most)
    account.charge(mode.evaluations)
    return mode
