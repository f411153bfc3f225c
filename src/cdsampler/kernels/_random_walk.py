from typing import ClassVar

import equinox as eqx

from cdsampler._typing import Array
from cdsampler.density import Point
from cdsampler.kernels._base import AbstractKernel, KernelInfo, Noise, check_step_size
from cdsampler.kernels._metropolis import metropolis
from cdsampler.paths import AbstractPointDensity


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

    def move(self, noise: Noise, point: Point, density: AbstractPointDensity) -> tuple[Point, KernelInfo]:
        """Take one step with the given randomness."""
        x = point.position
        proposal, evaluations = density.evaluate_value(x + self.step_size.astype(x.dtype) * noise.normal)
        log_ratio = density.log_density(proposal) - density.log_density(point)
        new, acceptance = metropolis(noise.uniform, point, proposal, log_ratio)
        return new, KernelInfo(acceptance, evaluations)

    def scaled(self, factor: Array) -> "RandomWalk":
        """Return the kernel for coordinates that are `factor` times as large."""
        return eqx.tree_at(lambda k: k.step_size, self, self.step_size * factor)

    @property
    def evaluations_per_step(self) -> int:
        """One."""
        return 1
