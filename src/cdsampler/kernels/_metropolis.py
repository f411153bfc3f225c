import jax
import jax.numpy as jnp

from cdsampler._typing import Scalar
from cdsampler.density import Point


def metropolis(uniform: Scalar, current: Point, proposal: Point, log_ratio: Scalar) -> tuple[Point, Scalar]:
    """Accept or reject a proposal: the one Metropolis step of the library.

    Parameters
    ----------
    uniform : Array, shape ()
        Uniform in [0, 1).
    current, proposal
        Cached points.
    log_ratio : Array, shape ()
        Log of the Metropolis–Hastings ratio. NaN (both points outside the support) rejects.

    Returns
    -------
    point : Point
    acceptance_prob : Array, shape ()
    """
    acceptance = jnp.where(jnp.isnan(log_ratio), 0, jnp.exp(jnp.minimum(log_ratio, 0)))
    is_accepted = uniform < acceptance
    point = jax.tree.map(lambda new, old: jnp.where(is_accepted, new, old), proposal, current)
    return point, acceptance
