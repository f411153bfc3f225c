from typing import ClassVar

import equinox as eqx
import jax

from cdsampler._typing import Array, PRNGKey
from cdsampler.density import Point
from cdsampler.kernels._base import AbstractKernel, KernelInfo, check_step_size
from cdsampler.kernels._metropolis import metropolis
from cdsampler.paths import TemperedDensity


class RandomWalk(AbstractKernel):
    """Random-walk Metropolis with proposal `N(x, step_size² I)`; one value evaluation a step.

    Parameters
    ----------
    step_size
        Standard deviation of the proposal, in the coordinates' units.
    """

    step_size: Array
    target_acceptance: ClassVar[float] = 0.234
    needs_gradient: ClassVar[bool] = False

    def __init__(self, step_size: float | Array):
        self.step_size = check_step_size(step_size)

    def step(self, rng_key: PRNGKey, point: Point, density: TemperedDensity) -> tuple[Point, KernelInfo]:
        """Take one step."""
        key_noise, key_accept = jax.random.split(rng_key)
        x = point.position
        noise = jax.random.normal(key_noise, x.shape, x.dtype)
        proposal, evaluations = density.evaluate_value(x + self.step_size.astype(x.dtype) * noise)
        log_ratio = density.log_density(proposal) - density.log_density(point)
        new, acceptance = metropolis(key_accept, point, proposal, log_ratio)
        return new, KernelInfo(acceptance, evaluations)

    def scaled(self, factor: Array) -> "RandomWalk":
        """Return the kernel for coordinates that are `factor` times as large."""
        return eqx.tree_at(lambda k: k.step_size, self, self.step_size * factor)

    @property
    def evaluations_per_step(self) -> int:
        """One."""
        return 1
