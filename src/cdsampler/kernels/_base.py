import abc
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array, PRNGKey
from cdsampler.density import Evaluations, Point
from cdsampler.errors import InvalidInputError
from cdsampler.paths import AbstractPointDensity


class KernelInfo(NamedTuple):
    """What one kernel step tells.

    Attributes
    ----------
    acceptance_prob : Array, shape ()
    evaluations : Evaluations
    """

    acceptance_prob: Array
    evaluations: Evaluations


class Noise(NamedTuple):
    """The randomness of one kernel step.

    Attributes
    ----------
    normal : Array, shape (..., dim)
        Standard normal: the proposal's noise, or the momentum.
    uniform : Array, shape (...)
        Uniform in [0, 1): decides on acceptance.
    jitter : Array, shape (...), or None
        Uniform in [0, 1): chooses the step size of kernels that vary theirs.
    """

    normal: Array
    uniform: Array
    jitter: Array | None = None


def draw_noise(
    rng_key: PRNGKey, batch: tuple[int, ...], dim: int, dtype: np.dtype, *, is_jittered: bool = False
) -> Noise:
    """Draw the randomness of a batch of kernel steps at once: far cheaper than from a key for each."""
    # Not by fold_in(rng_key, 1): that is the second key of the split, and jitter would decide on acceptance.
    key_normal, key_uniform, key_jitter = jax.random.split(rng_key, 3)
    normal, uniform = jax.random.normal(key_normal, (*batch, dim), dtype), jax.random.uniform(key_uniform, batch, dtype)
    if not is_jittered:
        return Noise(normal, uniform)
    return Noise(normal, uniform, jax.random.uniform(key_jitter, batch, dtype))


class AbstractKernel(eqx.Module):
    """A Markov kernel that leaves a density on cached points invariant.

    Attributes
    ----------
    step_size : Array, shape ()
        In the coordinates' units (or their square for MALA); see each kernel.
    target_acceptance
        The kernel's asymptotically optimal acceptance rate, which adaptation aims at.
    needs_gradient
        Whether points must carry gradients. If not, every evaluation is charged as value-only.
    """

    step_size: eqx.AbstractVar[Array]
    target_acceptance: eqx.AbstractClassVar[float]
    needs_gradient: eqx.AbstractClassVar[bool]

    def step(self, rng_key: PRNGKey, point: Point, density: AbstractPointDensity) -> tuple[Point, KernelInfo]:
        """Take one step from a cached point."""
        position = point.position
        noise = draw_noise(rng_key, (), position.shape[0], position.dtype, is_jittered=self.is_jittered)
        return self.move(noise, point, density)

    @abc.abstractmethod
    def move(self, noise: Noise, point: Point, density: AbstractPointDensity) -> tuple[Point, KernelInfo]:
        """Take one step with the given randomness."""

    @abc.abstractmethod
    def scaled(self, factor: Array) -> "AbstractKernel":
        """Return the kernel for coordinates that are `factor` times as large."""

    @property
    def is_jittered(self) -> bool:
        """Whether the step size varies at random, for which the noise then has a number."""
        return False

    @property
    @abc.abstractmethod
    def evaluations_per_step(self) -> int:
        """Density evaluations that one step costs."""


def check_step_size(step_size: float | Array) -> Array:
    """Return the step size as an array; concrete values must be positive and finite."""
    is_known = not isinstance(step_size, jax.core.Tracer)
    if is_known and not np.all(np.isfinite(step_size) & (np.asarray(step_size) > 0)):
        raise InvalidInputError(f"step_size must be positive and finite, got {step_size}.")
    return jnp.asarray(step_size, dtype=jnp.zeros(()).dtype)
