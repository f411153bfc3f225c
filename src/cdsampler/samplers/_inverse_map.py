from typing import Any

import jax
import jax.numpy as jnp

from cdsampler._typing import Array, IntScalar, Position, PRNGKey, Scalar
from cdsampler.density import AbstractLogDensity, Component, Evaluations, Point
from cdsampler.errors import InvalidInputError
from cdsampler.interpolants import AbstractInterpolant
from cdsampler.paths import AnnealingPath, FlatReference
from cdsampler.samplers._base import AbstractStage, AbstractState, as_count


def carry_along_flow(
    point: Point, interpolant: AbstractInterpolant, anchor: Position, now: Scalar, then: Scalar
) -> Point:
    """Move a point of `π_{now|z}` to `then` by the deterministic flow alone; free.

    Parameters
    ----------
    point
        In path coordinates at `now`; its density and gradient are transformed, not evaluated anew.
    interpolant
        Any interpolant.
    anchor : Array, shape (dim,)
    now, then : Array, shape ()
        Times in (0, 1].
    """

    def back(x: Position) -> tuple[Position, Scalar]:
        y = interpolant.inverse(anchor, x, then)
        log_det = interpolant.log_det(anchor, y, now) - interpolant.log_det(anchor, y, then)
        return interpolant.forward(anchor, y, now), log_det

    x = interpolant.forward(anchor, interpolant.inverse(anchor, point.position, now), then)
    (_, log_det), pull_back = jax.vjp(back, x)
    (gradient,) = pull_back((point.target.gradient, jnp.ones_like(log_det)))
    return Point(x, point.reference, Component(point.target.log_density + log_det, gradient))


class CarriedState(AbstractState):
    """One chain's point."""

    current: Point
    evaluations: Evaluations


class InverseMap(AbstractStage):
    """Carries stage 1's points to t = 1 by `F⁻¹` alone: no noise, no refinement, no evaluation.

    Parameters
    ----------
    interpolant
        Any interpolant.
    time
        t0, in (0, 1).
    """

    interpolant: AbstractInterpolant
    time: Array
    n_steps: Array

    def __init__(self, interpolant: AbstractInterpolant, time: float):
        if not 0 < time < 1:
            raise InvalidInputError(f"t0 must lie in (0, 1), got {time}.")
        self.interpolant = interpolant
        self.time = jnp.asarray(time)
        self.n_steps = as_count(0)

    def path(self, density: AbstractLogDensity, anchor: Position) -> AnnealingPath:
        """Return the target's path."""
        return AnnealingPath(FlatReference(), density, anchor)

    def init(self, rng_key: PRNGKey, path: AnnealingPath, start: Point | None) -> CarriedState:
        """Return the mapped point; free."""
        if start is None:
            raise InvalidInputError("The inverse map continues another stage: it can't be the first.")
        t0 = self.time.astype(path.anchor.dtype)
        return CarriedState(
            current=carry_along_flow(start, self.interpolant, path.anchor, t0, jnp.ones_like(t0)),
            evaluations=Evaluations.zero(),
        )

    def step(self, rng_key: PRNGKey, state: CarriedState, index: IntScalar, row: Any, path: AnnealingPath) -> Any:
        """Return the state: there is nothing to do."""
        return state

    def point(self, state: CarriedState) -> Point:
        """Return the mapped point."""
        return state.current

    def statistics(self, state: CarriedState) -> None:
        """Return nothing."""

    def cost_init(self) -> int:
        """Nothing."""
        return 0

    def cost_step(self) -> int:
        """Nothing."""
        return 0
