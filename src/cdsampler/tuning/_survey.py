"""Where is the mass? Draws of annealed chains, from references ever wider, that know nothing beforehand."""

from typing import NamedTuple

import jax
import numpy as np

from cdsampler._typing import PRNGKey
from cdsampler.charts import AffineChart, TransformedLogDensity
from cdsampler.density import AbstractLogDensity
from cdsampler.paths import PriorReference
from cdsampler.tuning._account import Account
from cdsampler.tuning._annealing import Annealed, anneal
from cdsampler.tuning._basins import climb
from cdsampler.tuning._draws import Draws
from cdsampler.tuning._first_look import FirstLook, around
from cdsampler.tuning._fit import MixtureFit, fit_mixture
from cdsampler.tuning._scan import annealed_from, cover_of, unstuck

# The exploration takes this margin over the width that covers what the scan found, and every other time a wider one.
WIDTH_MARGIN, WIDER = 2.0, 3.0
N_EXPLORE, MAX_BATCHES = 192, 3
# Draws this steep belong to a mode several times narrower than the first; draws within SAME of its widths are of it.
STEEP, SAME, MAX_CLIMBS = 25.0, 6.0, 60
# How many times as long as elsewhere chains look around in basins that annealing doesn't reach: what they find there is
# all that the reference will know of them.
IN_BASINS = 8
# Exploration goes on while the estimated mass of unseen modes (Good and Turing) is above this.
UNSEEN = 0.005


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
    n_basins : int
        How many groups of draws, the last ones, are of basins that annealing doesn't reach.
    from_prior : Annealed or None
        An annealing from the prior, if there is one.
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
    n_basins: int = 0
    from_prior: Annealed | None = None


def survey(
    look: FirstLook,
    rng_key: PRNGKey,
    account: Account,
    *,
    effort: float = 1.0,
    from_prior: Annealed | None = None,
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
    from_prior
        Chains annealed from the prior, whose ends join the draws.

    Raises
    ------
    DensityError
        The log density is plus infinity somewhere.
    """
    chart, seen, draws, scanned, _ = look
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
    if from_prior is not None:
        found = unstuck(from_prior)
        draws = draws.joined(found.positions, found.log_density, np.arange(len(found.positions)), -1, found.roughness)
    draws = _around_striking(seen, draws, keys[3], account, effort)
    for number, basin in enumerate(look.basins):
        key = jax.random.fold_in(keys[3], 999 + number)
        draws = around(seen, basin, int(draws.groups.max()) + 1, key, account, effort, draws, IN_BASINS)
    fit = fit_mixture(draws.positions, draws.chains, centre, width, rng, groups=draws.groups)
    return Survey(
        chart,
        seen,
        centre,
        width,
        annealed,
        draws,
        fit,
        unseen,
        scanned.is_bounded,
        n_basins=len(look.basins),
        from_prior=from_prior,
    )


def anneal_from_prior(
    look: FirstLook, prior: PriorReference, rng_key: PRNGKey, account: Account, effort: float = 1.0
) -> Annealed | None:
    """Anneal a batch from the prior; None if that is too dear or no draw meets the support.

    Parameters
    ----------
    look
        The first look.
    prior
        In the target's coordinates.
    rng_key
    account
        Charged for every evaluation.
    effort
        Factor on the number of chains.
    """
    n_chains = max(int(effort * N_EXPLORE), 16)
    if not account.affords(30 * n_chains):
        return None
    dim = look.density.dim
    found = account.journal.call_in_parts(
        "anneal",
        anneal,
        look.density,
        prior.seen_through(look.chart),
        np.zeros(dim),
        rng_key,
        n_chains=n_chains,
        step_size=dim ** (-1 / 3),
        max_evaluations=account.share(0.5),
    )
    account.charge(found.evaluations)
    return found if len(found.positions) else None


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
        mode = climb(density, position, account).position
        if any(np.linalg.norm(mode - m) < w for m, w in modes):
            continue
        modes.append((mode, width))
        draws = around(
            density, mode, len(modes) - 1, jax.random.fold_in(rng_key, 99 + len(modes)), account, effort, draws
        )
    return draws
