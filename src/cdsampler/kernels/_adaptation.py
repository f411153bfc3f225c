import jax.numpy as jnp

from cdsampler._typing import Array, IntScalar
from cdsampler.kernels._base import AbstractKernel


def adapt_step_size(
    kernel: AbstractKernel, acceptance: Array, iteration: IntScalar, *, delay: int | IntScalar = 0
) -> Array:
    """Return the step size after one stochastic-approximation update towards the optimal acceptance.

    Parameters
    ----------
    kernel
        Its `step_size` may have any shape, e.g. one per replica.
    acceptance : Array, same shape as the step size
        Acceptance probability of this iteration, pooled over chains.
    iteration
        Counts from 0; the gain decays as `(1 + iteration)^-0.6` (Robbins and Monro 1951).
    delay
        Iterations before the gain starts to decay.

    Returns
    -------
    Array
    """
    gain = jnp.maximum(1.0 + iteration - delay, 1.0) ** -0.6
    error = acceptance.astype(kernel.step_size.dtype) - kernel.target_acceptance
    return kernel.step_size * jnp.exp(2 * gain.astype(kernel.step_size.dtype) * error)
