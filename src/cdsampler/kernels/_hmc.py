from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from cdsampler._typing import Array, IntScalar
from cdsampler.density import Evaluations, Point
from cdsampler.errors import InvalidInputError
from cdsampler.kernels._base import AbstractKernel, KernelInfo, Noise, check_step_size
from cdsampler.kernels._metropolis import metropolis
from cdsampler.paths import AbstractPointDensity


class HMC(AbstractKernel):
    """Hamiltonian Monte Carlo with unit mass and leapfrog steps; `num_integration_steps` evaluations a step.

    Parameters
    ----------
    step_size
        Leapfrog step, in the coordinates' units.
    num_integration_steps
        Leapfrog steps, each one value-and-gradient evaluation.
    smallest_step
        Each trajectory's step size is `step_size` times a factor drawn log-uniformly from this to 1. Below 1,
        trajectories get through where the density's scale varies manyfold from place to place.

    Raises
    ------
    InvalidInputError
        A bad step size or number of steps, or `smallest_step` outside (0, 1].

    Notes
    -----
    Duane et al. 1987; optimal acceptance .651, Beskos et al. 2013; random step sizes, Neal 2011, section 4.2.
    """

    step_size: Array
    num_integration_steps: Array
    smallest_step: float = eqx.field(static=True)
    target_acceptance: ClassVar[float] = 0.651
    needs_gradient: ClassVar[bool] = True

    def __init__(self, step_size: float | Array, num_integration_steps: int | Array, smallest_step: float = 1.0):
        if not 0 < smallest_step <= 1:
            raise InvalidInputError(f"smallest_step must be in (0, 1], got {smallest_step}.")
        self.smallest_step = float(smallest_step)
        self.step_size = check_step_size(step_size)
        if not isinstance(num_integration_steps, jax.core.Tracer) and int(num_integration_steps) < 1:
            raise InvalidInputError(f"num_integration_steps must be at least 1, got {num_integration_steps}.")
        self.num_integration_steps = jnp.asarray(num_integration_steps, jnp.int32)

    def move(self, noise: Noise, point: Point, density: AbstractPointDensity) -> tuple[Point, KernelInfo]:
        """Take one step with the given randomness."""
        epsilon = self.step_size.astype(point.position.dtype)
        if self.is_jittered:
            assert noise.jitter is not None
            epsilon = epsilon * jnp.asarray(self.smallest_step, epsilon.dtype) ** noise.jitter
        momentum = noise.normal

        def leapfrog(_: IntScalar, carry: tuple[Point, Array, Evaluations]) -> tuple[Point, Array, Evaluations]:
            at, p, evaluations = carry
            p_half = p + 0.5 * epsilon * density.gradient(at)
            new, cost = density.evaluate(at.position + epsilon * p_half)
            return new, p_half + 0.5 * epsilon * density.gradient(new), evaluations + cost

        start = (point, momentum, Evaluations.zero())
        proposal, end_momentum, evaluations = jax.lax.fori_loop(0, self.num_integration_steps, leapfrog, start)
        kinetic = 0.5 * (jnp.sum(momentum**2) - jnp.sum(end_momentum**2))
        log_ratio = density.log_density(proposal) - density.log_density(point) + kinetic
        new, acceptance = metropolis(noise.uniform, point, proposal, log_ratio)
        return new, KernelInfo(acceptance, evaluations)

    def scaled(self, factor: Array) -> "HMC":
        """Return the kernel for coordinates that are `factor` times as large."""
        return eqx.tree_at(lambda k: k.step_size, self, self.step_size * factor)

    @property
    def is_jittered(self) -> bool:
        """Whether `smallest_step` is below 1."""
        return self.smallest_step < 1

    @property
    def evaluations_per_step(self) -> int:
        """The number of leapfrog steps."""
        return int(self.num_integration_steps)
