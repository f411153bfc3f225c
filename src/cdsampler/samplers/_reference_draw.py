from typing import Any

from cdsampler._typing import Array, IntScalar, Position, PRNGKey
from cdsampler.density import AbstractLogDensity, Evaluations, Point
from cdsampler.errors import InvalidInputError
from cdsampler.paths import AbstractReference, AnnealingPath
from cdsampler.samplers._base import AbstractStage, AbstractState, Stage, as_count


class DrawnState(AbstractState):
    """One chain's point."""

    current: Point
    evaluations: Evaluations


class ReferenceDraw(AbstractStage):
    """One draw of the reference and nothing more: as stage 1 of CDS, the SDE alone (the paper's ρ = 0).

    Parameters
    ----------
    reference
        A proper one.

    Raises
    ------
    InvalidInputError
        A flat reference, or any steps.

    Notes
    -----
    Cost: 1.
    """

    reference: AbstractReference
    n_steps: Array

    def __init__(self, reference: AbstractReference):
        if not reference.is_proper:
            raise InvalidInputError("A flat reference can't be drawn from: use a GaussianReference.")
        self.reference = reference
        self.n_steps = as_count(0)

    def path(self, density: AbstractLogDensity, anchor: Position) -> AnnealingPath:
        """Return the annealing path about the anchor."""
        return AnnealingPath(self.reference, density, anchor)

    def init(self, rng_key: PRNGKey, path: AnnealingPath, start: Point | None) -> DrawnState:
        """Return a draw, evaluated."""
        point, cost = path.evaluate(path.sample_reference(rng_key))
        return DrawnState(current=point, evaluations=cost)

    def step(self, rng_key: PRNGKey, state: DrawnState, index: IntScalar, row: Any, path: AnnealingPath) -> DrawnState:
        """Return the state: there is nothing to do."""
        return state

    def point(self, state: DrawnState) -> Point:
        """Return the draw."""
        return state.current

    def statistics(self, state: DrawnState) -> None:
        """Return nothing."""

    def with_budget(self: Stage, budget: int) -> Stage:
        """Return the stage itself if the budget pays for the draw."""
        if budget < 1:
            raise InvalidInputError(f"A budget of {budget} evaluations doesn't pay for a draw of the reference.")
        return self

    def with_steps(self: Stage, n_steps: int) -> Stage:
        """Return the stage itself; it has no steps."""
        if n_steps != 0:
            raise InvalidInputError(f"A draw of the reference has no steps, got {n_steps}.")
        return self

    def cost_init(self) -> int:
        """One evaluation."""
        return 1

    def cost_step(self) -> int:
        """Nothing."""
        return 0
