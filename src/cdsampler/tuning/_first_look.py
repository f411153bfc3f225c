"""What can be seen from one mode: its curvature, its neighbourhood, and how far the mass reaches."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import PRNGKey
from cdsampler.charts import AffineChart, TransformedLogDensity
from cdsampler.density import AbstractLogDensity, check_bounded
from cdsampler.errors import DensityError
from cdsampler.paths import PriorReference
from cdsampler.tuning._account import Account
from cdsampler.tuning._annealing import local_chains
from cdsampler.tuning._basins import climb, evaluate_all, find_basins
from cdsampler.tuning._draws import Draws
from cdsampler.tuning._fit import MixtureFit, fit_mixture
from cdsampler.tuning._scan import Scan, cover_of, scan
from cdsampler.tuning._whitening import measure_curvature

N_LOCAL = 16


class FirstLook(NamedTuple):
    """The neighbourhood of a mode, and where chains from a few wide references ended.

    Attributes
    ----------
    chart : AffineChart
        Chart coordinates are standard deviations about the mode; everything below is in them.
    density : TransformedLogDensity
        The target in the chart.
    draws : Draws
        Where chains ended, from the mode (group 0) and from the widest reference.
    scanned : Scan
    basins : ndarray, shape (n_basins, dim)
        Modes that climbs from beyond the reach of annealing found, the best first; none where it reaches everything.
    """

    chart: AffineChart
    density: TransformedLogDensity
    draws: Draws
    scanned: Scan
    basins: np.ndarray

    def fit(self) -> MixtureFit:
        """Fit a mixture to the draws."""
        centre, width = cover_of(self.draws.positions)
        return fit_mixture(self.draws.positions, self.draws.chains, centre, max(width, 1.0), np.random.default_rng(0))


def first_look(
    density: AbstractLogDensity,
    mode: np.ndarray,
    rng_key: PRNGKey,
    account: Account,
    *,
    scale: float,
    effort: float = 1.0,
) -> FirstLook:
    """Whiten the curvature at a mode, look around it, and anneal a few chains from ever wider references.

    Parameters
    ----------
    density
        Target.
    mode : ndarray, shape (dim,)
        Where the first reference is centred; a point inside the support.
    rng_key
    account
        Charged for every evaluation.
    scale
        Standard deviation, in target units, to assume where the density doesn't tell.
    effort
        Factor on the numbers of chains.

    Raises
    ------
    DensityError
        The log density is plus infinity somewhere.
    """
    keys = jax.random.split(rng_key, 4)
    chart, escape = measure_curvature(density, mode, scale, account)
    if escape is not None:  # a search from a point of symmetry stays at the saddle
        mode = climb(density, mode + escape, account).position
        chart, _ = measure_curvature(density, mode, scale, account)
    seen = TransformedLogDensity(density, chart)
    origin = np.zeros(density.dim)
    draws = around(seen, origin, 0, keys[1], account, effort, Draws.none(density.dim))
    scanned = scan(seen, keys[2], account, effort)
    draws = draws.joined(
        scanned.positions, scanned.log_density, np.arange(len(scanned.positions)), -1, scanned.roughness
    )
    basins = find_basins(seen, scanned.reach, jax.random.fold_in(keys[2], 2**31), account, effort)
    return FirstLook(chart, seen, draws, scanned, basins)


def find_anchor(
    density: AbstractLogDensity,
    start: np.ndarray | None,
    scale: float,
    rng_key: PRNGKey,
    account: Account,
    prior: PriorReference | None = None,
) -> np.ndarray:
    """Climb to a mode.

    Parameters
    ----------
    density
        Target.
    start : ndarray, shape (dim,), optional
        By default the origin or, if the density isn't finite there or its gradient is zero, the best of the origin and
        127 draws of `N(0, scale² I)`. With a prior, the best of 128 draws of it.
    scale
        See `start`.
    rng_key
    account
        Charged for every evaluation.
    prior
        Where it might start.

    Raises
    ------
    DensityError
        The log density is not finite at any start, or plus infinity somewhere.
    """
    return climb(density, _starting_point(density, start, scale, rng_key, account, prior), account).position


def _starting_point(
    density: AbstractLogDensity,
    start: np.ndarray | None,
    scale: float,
    rng_key: PRNGKey,
    account: Account,
    prior: PriorReference | None,
) -> np.ndarray:
    if start is not None:
        return np.asarray(start, dtype=np.float64)
    origin = jnp.zeros((1, density.dim), density.dtype)
    normal = scale * jax.random.normal(rng_key, (127, density.dim), density.dtype)
    places, where = (origin, normal), f"at the origin nor at any of 127 draws of N(0, {scale:g}² I)"
    if prior is not None:
        draws = jax.vmap(prior.draw)(jax.random.split(rng_key, 128)).astype(density.dtype)
        places, where = (draws, normal), f"at any of 128 draws of the prior nor at 127 of N(0, {scale:g}² I)"
    best = (-np.inf, np.zeros(density.dim))
    for candidates in places:
        points, cost = account.journal.call("evaluate", evaluate_all, density, candidates)
        account.charge(cost)
        check_bounded(cost, points)
        values = np.asarray(points.target.log_density, np.float64)
        index = int(np.argmax(values))
        if values[index] > best[0]:
            best = (values[index], np.asarray(candidates[index], dtype=np.float64))
        # A search can't leave a point of zero gradient, which the origin may be by symmetry without being a mode.
        is_movable = density.has_gradient and np.any(np.asarray(points.target.gradient[index]) != 0)
        if np.isfinite(best[0]) and (is_movable or prior is not None):
            break
    if np.isfinite(best[0]):
        return best[1]
    raise DensityError(
        f"The log density (or its gradient) is not finite {where}: give a start inside the support, or another scale."
    )


def around(
    density: AbstractLogDensity,
    mode: np.ndarray,
    group: int,
    rng_key: PRNGKey,
    account: Account,
    effort: float,
    draws: Draws,
    n_parts: int = 1,
) -> Draws:
    """Add draws of chains that start at a mode and never leave its neighbourhood but by moving locally.

    Each part has 32 moves, or 8 where the account is short.
    """
    n = max(int(effort * N_LOCAL), 4)
    n_moves = n_parts * (32 if account.affords(40 * 32 * n * n_parts) else 8)
    if not account.affords(n_moves * n + 1):
        return draws.joined(mode[None], np.full(1, -np.inf), np.zeros(1, np.int64), group)
    positions, log_density, cost = account.journal.call_in_parts(
        "look around", local_chains, density, mode, rng_key, n_chains=n, n_moves=n_moves, n_kept=2 * n_parts
    )
    account.charge(cost)
    return draws.joined(positions, log_density, np.tile(np.arange(n), len(positions) // n), group)
