from typing import Any, NamedTuple

import jax.numpy as jnp

from cdsampler._typing import Array, IntScalar, Position, PRNGKey
from cdsampler.density import AbstractLogDensity, Evaluations, Point
from cdsampler.kernels import AbstractKernel
from cdsampler.paths import AnnealingPath, FlatReference
from cdsampler.samplers._base import AbstractStage, AbstractState, as_count


class LocalStatistics(NamedTuple):
    """Mean acceptance of one chain's kernel over its steps."""

    acceptance: Array


class LocalState(AbstractState):
    """One chain's point and the sum of its acceptance probabilities."""

    current: Point
    acceptance: Array
    evaluations: Evaluations


class LocalChain(AbstractStage):
    """One kernel on the target itself, from the anchor: the baseline that finds only its own mode.

    Parameters
    ----------
    kernel
        Any kernel with a scalar step size.
    n_steps
        Steps.
    """

    kernel: AbstractKernel
    n_steps: Array

    def __init__(self, kernel: AbstractKernel, n_steps: int = 0):
        self.kernel = kernel
        self.n_steps = as_count(n_steps)

    def path(self, density: AbstractLogDensity, anchor: Position) -> AnnealingPath:
        """Return a path whose reference has no say at β = 1."""
        return AnnealingPath(FlatReference(), density, anchor)

    def init(self, rng_key: PRNGKey, path: AnnealingPath, start: Point | None) -> LocalState:
        """Return the anchor's state, or that of the point handed over."""
        cost = Evaluations.zero()
        if start is None:
            evaluate = path.evaluate if self.kernel.needs_gradient else path.evaluate_value
            start, cost = evaluate(path.anchor)
        return LocalState(current=start, acceptance=jnp.zeros((), path.anchor.dtype), evaluations=cost)

    def step(self, rng_key: PRNGKey, state: LocalState, index: IntScalar, row: Any, path: AnnealingPath) -> LocalState:
        """Take one kernel step at β = 1."""
        return self.step_with_acceptance(rng_key, state, index, path)[0]

    def step_with_acceptance(
        self, rng_key: PRNGKey, state: LocalState, index: IntScalar, path: AnnealingPath
    ) -> tuple[LocalState, Array]:
        """Take one kernel step at β = 1; also return its acceptance probability."""
        density = path.at(jnp.ones((), path.anchor.dtype))
        point, info = self.kernel.step(rng_key, state.current, density)
        new = LocalState(
            current=point,
            acceptance=state.acceptance + info.acceptance_prob,
            evaluations=state.evaluations + info.evaluations,
        )
        return new, info.acceptance_prob

    def point(self, state: LocalState) -> Point:
        """Return the current point."""
        return state.current

    def statistics(self, state: LocalState) -> LocalStatistics:
        """Return the mean acceptance."""
        return LocalStatistics(state.acceptance / jnp.maximum(self.n_steps, 1))

    def cost_init(self) -> int:
        """One evaluation of the anchor."""
        return 1

    def cost_step(self) -> int:
        """Return the kernel's cost."""
        return self.kernel.evaluations_per_step
