"""The reference width that minimises the symmetrised Kullback–Leibler divergence: the paper's rule for t0."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array, PRNGKey
from cdsampler.density import AbstractLogDensity, Evaluations, Point
from cdsampler.errors import InvalidInputError
from cdsampler.kernels import MALA
from cdsampler.paths import GaussianReference, equal_rejection_schedule
from cdsampler.samplers import NRPT, chain_keys
from cdsampler.tuning._rounds import interpolated_steps, run_round, start_chains, with_numbers

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
        Each round costs `n_chains · (2 + n_replicas · (n_replicas + round_length))` evaluations or a little less.

    Raises
    ------
    InvalidInputError
        The width isn't positive, or a count is too small.

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
    dim = density.dim
    anchors = jnp.broadcast_to(jnp.asarray(anchor, density.dtype), (n_chains, dim))
    betas, steps = np.linspace(0, 1, n_replicas) ** 3, np.full(n_replicas, dim ** (-1 / 3))
    log_width, cold, made = float(np.log(width)), None, Evaluations.zero()
    widths, slopes, barriers = [], [], []
    for number in range(n_rounds):
        scale = jnp.asarray(np.exp(log_width))
        nrpt = with_numbers(NRPT(GaussianReference(scale), betas, MALA(1.0)), betas, steps)
        total = int(nrpt.ramp_length) + round_length
        nrpt = eqx.tree_at(lambda s: s.n_steps, nrpt, jnp.asarray(total, jnp.int32))
        keys = chain_keys(jax.random.fold_in(rng_key, number), np.arange(n_chains))
        state = start_chains(nrpt, nrpt, density, keys, anchors, cold)
        state, measured = run_round(nrpt, nrpt, density, keys, anchors, state, 0, total)
        made = made + state.evaluations.total()
        slope = float(_skl_slope(state.points, anchors, scale))
        widths.append(float(np.exp(log_width)))
        slopes.append(slope)
        barriers.append(float(measured.rejection.sum()))
        gain = max(1 + number - FULL_STEPS, 1) ** -0.5
        log_width += gain * float(np.clip(slope / (4 * dim), -LONGEST_STEP, LONGEST_STEP))
        moved = equal_rejection_schedule(betas, measured.rejection)
        steps, betas = interpolated_steps(moved, betas, measured.step_sizes), moved
        cold = state.points.position[: n_chains // 2, -1]
    late = np.log(widths[n_rounds // 2 :])
    return WidthSearch(float(np.exp(late.mean())), np.array(widths), np.array(slopes), np.array(barriers), made)


@eqx.filter_jit
def _skl_slope(points: Point, anchors: Array, width: Array) -> Array:
    """Estimate d SKL / d log t from replicas at both ends of the ladder, points of shape (n_chains, n_replicas, …)."""
    dim = anchors.shape[-1]
    offset = points.position - anchors[:, None]
    score = -(dim + jnp.sum(offset * points.target.gradient, axis=-1))
    log_ratio = points.target.log_density + 0.5 * jnp.sum(offset**2, axis=-1) / width**2
    cold_score, cold_ratio = score[:, -1], log_ratio[:, -1]
    covariance = jnp.mean((cold_score - jnp.mean(cold_score)) * (cold_ratio - jnp.mean(cold_ratio)))
    return covariance - jnp.mean(score[:, 0])
