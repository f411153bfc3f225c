"""How far does the mass reach? Chains annealed from ever wider Gaussians about one point."""

from typing import NamedTuple

import jax
import numpy as np

from cdsampler._typing import PRNGKey
from cdsampler.density import AbstractLogDensity
from cdsampler.paths import GaussianReference
from cdsampler.tuning._account import Account
from cdsampler.tuning._annealing import Annealed, anneal

# Widths, in standard deviations at the mode, that the scan starts with and never stops before.
FIRST_WIDTH, LEAST_LAST_WIDTH, GREATEST_WIDTH = 3.0, 90.0, 1e6
# The scan ends at this multiple of the width that covers what it found.
SCAN_MARGIN, N_SCAN = 3.0, 32
# Annealed chains whose weight is this many nats below the best are stuck where the target has no mass.
STUCK = 30.0
# A wider reference has lost the mass if both its chains' weights and the densities where they ended are this many nats
# below a narrower one's. Neither alone would do: weights scatter by hundreds of nats in hard but feasible annealings,
# and a wide mode of a high-dimensional target has a low density.
LOST = 50.0


class Scan(NamedTuple):
    """Where chains from the widest reference of a scan ended, and whether they had stopped spreading by then.

    `step_size` is MALA's at β = 1, adapted; infinite if no chain met the support. `ends` is where the better half of
    the chains ended, those included that are left out elsewhere because they got stuck on the way. `log_weight` is the
    best chain's annealed importance weight, an estimate of log Z; minus infinity if no chain met the support.
    `n_temperatures` is the most that an annealing took. `reach` is the widest reference from which chains find mass;
    infinite if none proved too wide.
    """

    positions: np.ndarray
    log_density: np.ndarray
    roughness: np.ndarray
    is_bounded: bool
    step_size: float
    ends: np.ndarray
    log_weight: float
    n_temperatures: int
    reach: float


def scan(density: AbstractLogDensity, rng_key: PRNGKey, account: Account, effort: float) -> Scan:
    """Anneal from ever wider references about the origin, in units of the coordinates; keep what the last one found."""
    origin, width = np.zeros(density.dim), FIRST_WIDTH
    n_chains = max(int(effort * N_SCAN), 8)
    nowhere, nothing = np.zeros((0, density.dim)), np.zeros(0)
    kept = Scan(nowhere, nothing, nothing, True, np.inf, nowhere, -np.inf, 0, np.inf)
    number, needed = 0, 0.0
    while width <= GREATEST_WIDTH and account.affords(60 * n_chains):
        every = annealed_from(density, origin, width, jax.random.fold_in(rng_key, number), n_chains, account)
        if every is not None:
            best = float(every.log_weights.max())
            if has_lost_the_mass(every, kept):
                # Chains from so far out don't reach it any more: they say nothing of where it ends.
                return kept._replace(is_bounded=True, reach=width / 10**0.5)
            found = unstuck(every)
            needed = max(cover_of(found.positions)[1], 1e-30)
            is_bounded = width >= SCAN_MARGIN * needed
            step = float(found.step_sizes[-1])
            better = every.log_density >= np.median(every.log_density)
            kept = Scan(
                found.positions,
                found.log_density,
                found.roughness,
                is_bounded,
                step,
                every.positions[better],
                max(best, kept.log_weight),
                max(len(every.betas), kept.n_temperatures),
                np.inf,
            )
        if width >= max(LEAST_LAST_WIDTH, SCAN_MARGIN * needed):
            break
        width *= 10**0.5
        number += 1
    return kept


def has_lost_the_mass(wider: Annealed, kept: Scan) -> bool:
    """Whether chains from a wider reference ended where the target has next to nothing of what is known already."""
    if not len(kept.log_density):
        return False
    lighter = wider.log_weights.max() < kept.log_weight - LOST
    return bool(lighter and wider.log_density.max() < kept.log_density.min() - LOST)


def annealed_from(
    density: AbstractLogDensity, centre: np.ndarray, width: float, rng_key: PRNGKey, n_chains: int, account: Account
) -> Annealed | None:
    """Anneal from `N(centre, width² I)`; None if no draw met the support."""
    dim = density.dim
    step = width**2 / dim ** (1 / 3)
    found = account.journal.call_in_parts(
        "anneal",
        anneal,
        density,
        GaussianReference(width),
        centre,
        rng_key,
        n_chains=n_chains,
        step_size=step,
        max_evaluations=account.share(0.5),
    )
    account.charge(found.evaluations)
    return found if len(found.positions) else None


def unstuck(found: Annealed) -> Annealed:
    """Leave out chains that got stuck where the target has no mass."""
    kept = found.log_weights > found.log_weights.max() - STUCK
    return found._replace(
        positions=found.positions[kept],
        log_density=found.log_density[kept],
        log_weights=found.log_weights[kept],
        roughness=found.roughness[kept],
    )


def cover_of(positions: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the centre, and the width at which log ref varies by 1 over the draws and no axis sticks out."""
    centre = positions.mean(axis=0)
    squares = np.sum((positions - centre) ** 2, axis=1)
    return centre, float(np.sqrt(max(0.5 * squares.std(), squares.mean() / positions.shape[1])))
