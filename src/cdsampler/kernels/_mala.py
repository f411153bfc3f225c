from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp

from cdsampler._typing import Array
from cdsampler.density import Point
from cdsampler.kernels._base import AbstractKernel, KernelInfo, Noise, check_step_size
from cdsampler.kernels._metropolis import metropolis
from cdsampler.paths import AbstractPointDensity


class MALA(AbstractKernel):
    """Metropolis-adjusted Langevin: `x' = x + ε ∇log π + √(2ε) ξ`; one value-and-gradient evaluation a step.

    Parameters
    ----------
    step_size
        ε, in squared units of the coordinates.

    Notes
    -----
    Roberts and Tweedie 1996; optimal acceptance .574, Roberts and Rosenthal 1998.
    """

    step_size: Array
    target_acceptance: ClassVar[float] = 0.574
    needs_gradient: ClassVar[bool] = True

    def __init__(self, step_size: float | Array):
        self.step_size = check_step_size(step_size)

    def move(self, noise: Noise, point: Point, density: AbstractPointDensity) -> tuple[Point, KernelInfo]:
        """Take one step with the given randomness."""
        x = point.position
        epsilon = self.step_size.astype(x.dtype)
        gradient = density.gradient(point)
        proposal, evaluations = density.evaluate(x + epsilon * gradient + jnp.sqrt(2 * epsilon) * noise.normal)
        # Forward and backward proposals differ by (∇ + ∇')√(ε/2) in units of the noise: the quotient of their
        # densities needs no difference of positions, which single precision would lose.
        shift = jnp.sqrt(epsilon / 2) * (gradient + density.gradient(proposal))
        log_proposal_ratio = -jnp.sum(shift * (noise.normal + 0.5 * shift))
        log_ratio = density.log_density(proposal) - density.log_density(point) + log_proposal_ratio
        new, acceptance = metropolis(noise.uniform, point, proposal, log_ratio)
        return new, KernelInfo(acceptance, evaluations)

    def scaled(self, factor: Array) -> "MALA":
        """Return the kernel for coordinates that are `factor` times as large."""
        return eqx.tree_at(lambda k: k.step_size, self, self.step_size * factor**2)

    @property
    def evaluations_per_step(self) -> int:
        """One."""
        return 1
