"""The reference width that minimises the symmetrised Kullback–Leibler divergence: the paper's rule for t0."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array, PRNGKey
from cdsampler.density import AbstractLogDensity, Evaluations, Point, check_position
from cdsampler.errors import InvalidInputError
from cdsampler.kernels import MALA
from cdsampler.paths import GaussianReference
from cdsampler.tuning._account import Account
from cdsampler.tuning._tempering import Ladder, PilotGroup, rescheduled

# A Newton step is clipped to this change of log t, and gains decay as (1 + round)^-1/2 after the first rounds.
LONGEST_STEP, FULL_STEPS = 0.5, 10


class WidthSearch(NamedTuple):
    """Where the search went.

    Attributes
    ----------
    width : float
        Mean over the second half of the rounds, in the log: the estimate of 1/t0.
    widths, slopes, barriers : ndarray, shape (n_rounds,)
        Width of each round, the estimated d SKL / d log t there, and Λ.
    evaluations : Evaluations
    """

    width: float
    widths: np.ndarray
    slopes: np.ndarray
    barriers: np.ndarray
    evaluations: Evaluations


def minimise_skl(
    density: AbstractLogDensity,
    anchor: np.ndarray,
    rng_key: PRNGKey,
    *,
    width: float,
    n_replicas: int = 16,
    n_chains: int = 64,
    n_rounds: int = 40,
    round_length: int = 16,
) -> WidthSearch:
    """Descend SKL(reference, target) in log t, t = 1/width, on the values that rounds of tempering have cached anyway.

    A small SKL means a small barrier, not right weights: the optimum can be too narrow to let far modes restart. The
    default of `make_plan` is therefore another one; this rule is kept for comparison.

    Parameters
    ----------
    density
        Target.
    anchor : array_like, shape (dim,)
        Centre z of the reference `N(z, width² I)`.
    rng_key
    width
        Where the search starts; start wide.
    n_replicas, n_chains, n_rounds, round_length
        Each round costs at most `n_chains · (1 + n_replicas · (n_replicas + round_length))` evaluations.

    Raises
    ------
    InvalidInputError
        The width isn't positive, a count is too small, or the anchor isn't a point of the target's space.

    Notes
    -----
    The derivative is that of the paper with the score's factor corrected (1/t for 1/t²):
    `E_π[s log(π/ref)] - E_ref[s]` with `t s = -(D + (y - z)·∇ℓ(y))`. `E_π[s] = 0` by Stein's identity, so the first
    term is a covariance and log Z drops out. The step is Newton's for a Gaussian target, whose curvature is 4 D.
    """
    if not (np.isfinite(width) and width > 0):
        raise InvalidInputError(f"width must be positive and finite, got {width}.")
    if min(n_replicas, n_chains) < 2 or n_rounds < 2 or round_length < 2:
        raise InvalidInputError("minimise_skl needs at least 2 replicas, 2 chains, 2 rounds and rounds of 2 steps.")
    dim, centre = density.dim, check_position(density, "anchor", anchor)
    pilot = PilotGroup(density, centre, rng_key, Account(), n_chains=n_chains)
    betas, steps = np.linspace(0, 1, n_replicas) ** 3, np.full(n_replicas, dim ** (-1 / 3))
    ladder = Ladder(GaussianReference(width), None, betas, steps, np.zeros(n_replicas - 1))
    log_width, starts = float(np.log(width)), np.zeros((0, dim))
    widths, slopes = [], []
    for number in range(n_rounds):
        scale = np.exp(log_width)
        ladder = ladder._replace(reference=GaussianReference(scale))
        measured = pilot.run("width", ladder, MALA(1.0), round_length, starts)
        assert measured is not None, "this account has no limit"
        slope = float(_skl_slope(measured.points, jnp.asarray(centre, density.dtype), jnp.asarray(scale)))
        widths.append(float(scale))
        slopes.append(slope)
        gain = max(1 + number - FULL_STEPS, 1) ** -0.5
        log_width += gain * float(np.clip(slope / (4 * dim), -LONGEST_STEP, LONGEST_STEP))
        ladder = rescheduled(ladder, measured, n_replicas)
        starts = np.asarray(measured.points.position[: n_chains // 2, -1])
    late = np.log(widths[n_rounds // 2 :])
    barriers = np.array([summary.barrier for summary in pilot.rounds])
    return WidthSearch(float(np.exp(late.mean())), np.array(widths), np.array(slopes), barriers, pilot.account.spent)


@eqx.filter_jit
def _skl_slope(points: Point, anchor: Array, width: Array) -> Array:
    """Estimate d SKL / d log t from replicas at both ends of the ladder, points of shape (n_chains, n_replicas, …)."""
    dim = anchor.shape[0]
    offset = points.position - anchor[None, None]
    score = -(dim + jnp.sum(offset * points.target.gradient, axis=-1))
    log_ratio = points.target.log_density + 0.5 * jnp.sum(offset**2, axis=-1) / width**2
    cold_score, cold_ratio = score[:, -1], log_ratio[:, -1]
    covariance = jnp.mean((cold_score - jnp.mean(cold_score)) * (cold_ratio - jnp.mean(cold_ratio)))
    return covariance - jnp.mean(score[:, 0])
