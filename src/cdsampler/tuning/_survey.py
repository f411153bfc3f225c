"""Where is the mass? Mode, coordinates, width and draws, from annealed chains that know nothing beforehand."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array, PRNGKey
from cdsampler.charts import AffineChart, TransformedLogDensity
from cdsampler.density import AbstractLogDensity, Evaluations, Point, check_bounded
from cdsampler.errors import DensityError
from cdsampler.paths import AnnealingPath, FlatReference
from cdsampler.tuning._account import Account
from cdsampler.tuning._annealing import Annealed, local_chains
from cdsampler.tuning._draws import Draws
from cdsampler.tuning._fit import MixtureFit, fit_mixture
from cdsampler.tuning._mode import find_mode
from cdsampler.tuning._scan import Scan, annealed_from, cover_of, scan, unstuck
from cdsampler.tuning._whitening import measure_curvature

# The exploration takes this margin over the width that covers what the scan found, and every other time a wider one.
WIDTH_MARGIN, WIDER = 2.0, 3.0
N_LOCAL, N_EXPLORE, MAX_BATCHES = 16, 192, 3
# Draws this steep belong to a mode several times narrower than the first; draws within SAME of its widths are of it.
STEEP, SAME, MAX_CLIMBS = 25.0, 6.0, 60
# Exploration goes on while the estimated mass of unseen modes (Good and Turing) is above this.
UNSEEN = 0.005


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
    """

    chart: AffineChart
    density: TransformedLogDensity
    draws: Draws
    scanned: Scan

    def fit(self) -> MixtureFit:
        """Fit a mixture to the draws."""
        centre, width = cover_of(self.draws.positions)
        rng = np.random.default_rng(len(self.draws.positions))
        return fit_mixture(self.draws.positions, self.draws.chains, centre, max(width, 1.0), rng)


class Survey(NamedTuple):
    """What the survey found.

    Attributes
    ----------
    chart : AffineChart
        Chart coordinates are standard deviations about the mode; everything below is in them.
    density : TransformedLogDensity
        The target in the chart.
    centre : ndarray, shape (dim,)
    width : float
        Standard deviation of a reference about the centre that covers all that was found, with a margin.
    annealed : Annealed or None
        The last annealing from that reference; None if it never met the support.
    draws : Draws
        Where chains ended.
    fit : MixtureFit
    unseen : float
        Estimated mass of modes that no chain found.
    is_bounded : bool
        False if the draws kept spreading with the reference: the target may be improper.
    """

    chart: AffineChart
    density: TransformedLogDensity
    centre: np.ndarray
    width: float
    annealed: Annealed | None
    draws: Draws
    fit: MixtureFit
    unseen: float
    is_bounded: bool


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
        mode = _climb(density, mode + escape, account)
        chart, _ = measure_curvature(density, mode, scale, account)
    seen = TransformedLogDensity(density, chart)
    origin = np.zeros(density.dim)
    draws = _around(seen, origin, 0, keys[1], account, effort, Draws.none(density.dim))
    scanned = scan(seen, keys[2], account, effort)
    draws = draws.joined(
        scanned.positions, scanned.log_density, np.arange(len(scanned.positions)), -1, scanned.roughness
    )
    return FirstLook(chart, seen, draws, scanned)


def survey(
    look: FirstLook,
    rng_key: PRNGKey,
    account: Account,
    *,
    effort: float = 1.0,
) -> Survey:
    """Anneal chains from a reference that covers what the first look found, until nothing new turns up.

    Parameters
    ----------
    look
        The first look.
    rng_key
        The first look's.
    account
        Charged for every evaluation.
    effort
        Factor on the numbers of chains.

    Raises
    ------
    DensityError
        The log density is plus infinity somewhere.
    """
    chart, seen, draws, scanned = look
    keys = jax.random.split(rng_key, 4)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(keys[0])))
    centre, needed = cover_of(scanned.positions) if len(scanned.positions) else cover_of(draws.positions)
    width = min(WIDTH_MARGIN * max(needed, 1.0), scanned.reach)
    annealed = None
    n_chains, unseen = max(int(effort * N_EXPLORE), 16), 1.0
    for batch in range(2 * MAX_BATCHES):
        if not account.affords(30 * n_chains):
            break
        # Every other batch starts wider: a second opinion on where the mass ends.
        factor = WIDER if batch % 2 else 1.0
        from_width = min(factor * width, scanned.reach)
        every = annealed_from(seen, centre, from_width, jax.random.fold_in(keys[3], batch), n_chains, account)
        if every is None:
            break
        found = unstuck(every)
        draws = draws.joined(found.positions, found.log_density, np.arange(len(found.positions)), -1, found.roughness)
        if batch % 2 == 0:
            annealed = found
            continue
        width = min(max(width, WIDTH_MARGIN * cover_of(draws.positions)[1]), scanned.reach)
        fit = fit_mixture(draws.positions, draws.chains, centre, width, rng, groups=draws.groups)
        unseen = float(np.sum(fit.n_members == 1)) / len(np.unique(draws.chains))
        if unseen <= UNSEEN:
            break
        n_chains *= 2
    draws = _around_striking(seen, draws, keys[3], account, effort)
    fit = fit_mixture(draws.positions, draws.chains, centre, width, rng, groups=draws.groups)
    return Survey(chart, seen, centre, width, annealed, draws, fit, unseen, scanned.is_bounded)


def find_anchor(
    density: AbstractLogDensity, start: np.ndarray | None, scale: float, rng_key: PRNGKey, account: Account
) -> np.ndarray:
    """Climb to a mode.

    Parameters
    ----------
    density
        Target.
    start : ndarray, shape (dim,), optional
        By default the origin or, if the density isn't finite there or its gradient is zero, the best of the origin and
        127 draws of `N(0, scale² I)`.
    scale
        See `start`.
    rng_key
    account
        Charged for every evaluation.

    Raises
    ------
    DensityError
        The log density is not finite at any start, or plus infinity somewhere.
    """
    return _climb(density, _starting_point(density, start, scale, rng_key, account), account)


def _starting_point(
    density: AbstractLogDensity, start: np.ndarray | None, scale: float, rng_key: PRNGKey, account: Account
) -> np.ndarray:
    if start is not None:
        return np.asarray(start, dtype=np.float64)
    origin = jnp.zeros((1, density.dim), density.dtype)
    normal = scale * jax.random.normal(rng_key, (127, density.dim), density.dtype)
    best = (-np.inf, np.zeros(density.dim))
    for candidates in (origin, normal):
        points, cost = _evaluate_all(density, candidates)
        account.charge(cost)
        check_bounded(cost, points)
        values = np.asarray(points.target.log_density, np.float64)
        index = int(np.argmax(values))
        if values[index] > best[0]:
            best = (values[index], np.asarray(candidates[index], dtype=np.float64))
        # A search can't leave a point of zero gradient, which the origin may be by symmetry without being a mode.
        if np.isfinite(best[0]) and np.any(np.asarray(points.target.gradient[0]) != 0):
            break
    if np.isfinite(best[0]):
        return best[1]
    raise DensityError(
        f"The log density (or its gradient) is not finite at the origin nor at any of 127 draws of N(0, {scale:g}² I): "
        "give a start inside the support, or another scale."
    )


@eqx.filter_jit
def _evaluate_all(density: AbstractLogDensity, positions: Array) -> tuple[Point, Evaluations]:
    path = AnnealingPath(FlatReference(), density, positions[0])
    points, costs = jax.vmap(path.evaluate)(positions)
    return points, costs.sum()


def _climb(density: AbstractLogDensity, start: np.ndarray, account: Account) -> np.ndarray:
    limit = account.share(0.05)
    ceiling = 200 + 5 * density.dim
    mode = find_mode(density, start, max_evaluations=ceiling if limit is None else max(1, min(limit, ceiling)))
    account.charge(mode.evaluations)
    return mode.position


def _around(
    density: AbstractLogDensity,
    mode: np.ndarray,
    group: int,
    rng_key: PRNGKey,
    account: Account,
    effort: float,
    draws: Draws,
) -> Draws:
    """Add draws of chains that start at a mode and never leave its neighbourhood but by moving locally."""
    n = max(int(effort * N_LOCAL), 4)
    n_moves = 32 if account.affords(40 * 32 * n) else 8
    if not account.affords(n_moves * n + 1):
        return draws.joined(mode[None], np.full(1, -np.inf), np.zeros(1, np.int64), group)
    positions, log_density, cost = local_chains(density, mode, rng_key, n_chains=n, n_moves=n_moves)
    account.charge(cost)
    return draws.joined(positions, log_density, np.tile(np.arange(n), len(positions) // n), group)


def _around_striking(
    density: AbstractLogDensity, draws: Draws, rng_key: PRNGKey, account: Account, effort: float
) -> Draws:
    """Climb and look around from draws that are far higher, or far steeper, than the first mode's surroundings.

    A narrow mode is reached by few chains, too few to tell from others by position alone.
    """
    # Within a Gaussian mode log densities differ by about dim/2.
    high = draws.log_density > draws.log_density[draws.groups == 0].max() + 0.5 * density.dim + 3
    steep = draws.roughness > STEEP
    candidates = np.flatnonzero(high | steep)
    candidates = candidates[np.argsort(-draws.log_density[candidates])]
    modes = [(np.zeros(density.dim), 1.0)]
    for index in candidates[:MAX_CLIMBS]:
        position, width = draws.positions[index], 1 / np.sqrt(max(draws.roughness[index], 1e-12))
        if any(np.linalg.norm(position - m) < SAME * np.sqrt(density.dim) * w for m, w in modes[1:]):
            continue
        if not account.affords(2000):
            break
        mode = _climb(density, position, account)
        if any(np.linalg.norm(mode - m) < w for m, w in modes):
            continue
        modes.append((mode, width))
        draws = _around(
            density, mode, len(modes) - 1, jax.random.fold_in(rng_key, 99 + len(modes)), account, effort, draws
        )
    return draws
