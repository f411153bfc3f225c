import abc
from typing import Any, TypeVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array, IntScalar, Position, PRNGKey
from cdsampler.density import AbstractLogDensity, Evaluations, Point
from cdsampler.errors import InvalidInputError
from cdsampler.paths import AnnealingPath

# Not typing.Self, which the run-time checks of shapes don't take.
Stage = TypeVar("Stage", bound="AbstractStage")


class AbstractState(eqx.Module):
    """What a stage's next step needs, for one chain."""

    evaluations: eqx.AbstractVar[Evaluations]


class AbstractSampler(eqx.Module):
    """A frozen description of how one chain makes one sample: stages that are run one after the other.

    Numbers are arrays inside it, so samplers that differ only in numbers share one compiled program.
    """

    @abc.abstractmethod
    def stages(self) -> "tuple[AbstractStage, ...]":
        """Return the stages, each with its number of steps."""

    @abc.abstractmethod
    def with_budget(self, budget: int) -> "AbstractSampler":
        """Return the longest sampler of this kind that costs at most `budget` evaluations per chain.

        Raises
        ------
        InvalidInputError
            The budget doesn't pay for one step; the message names the least budget.
        """

    @abc.abstractmethod
    def with_first_steps(self, n_steps: int) -> "AbstractSampler":
        """Return this sampler with another number of steps in its first stage."""

    def cost(self) -> int:
        """Return the density evaluations that one chain costs; of steps with varying costs, the most."""
        first = self.stages()[0]
        return first.cost_init() + first.cost_step() * int(first.n_steps) + self.cost_of_transport()

    def cost_of_transport(self) -> int:
        """Return the evaluations of the stages after the first, for all points that a chain gives at once."""
        first, *later = self.stages()
        return first.n_points * sum(stage.cost_init() + stage.cost_step() * int(stage.n_steps) for stage in later)


class AbstractStage(AbstractSampler):
    """One phase of a sampler. Methods see one chain; the driver maps them over chains."""

    n_steps: eqx.AbstractVar[Array]

    @abc.abstractmethod
    def path(self, density: AbstractLogDensity, anchor: Position) -> AnnealingPath:
        """Return what the stage evaluates, about the chain's anchor."""

    @abc.abstractmethod
    def init(self, rng_key: PRNGKey, path: AnnealingPath, start: Point | None) -> Any:
        """Return the first state, from the stage before's point, or from the anchor if there is none."""

    @abc.abstractmethod
    def step(self, rng_key: PRNGKey, state: Any, index: IntScalar, row: Any, path: AnnealingPath) -> Any:
        """Take one step; `index` counts from 0 and `row` is this step's row of `rows`."""

    @abc.abstractmethod
    def point(self, state: Any) -> Point:
        """Return the chain's current point; of a group, `n_points` of them along a leading axis."""

    @abc.abstractmethod
    def statistics(self, state: Any) -> Any:
        """Return what is kept of the final state for diagnostics, for one chain."""

    @abc.abstractmethod
    def cost_init(self) -> int:
        """Return the evaluations of `init`."""

    @abc.abstractmethod
    def cost_step(self) -> int:
        """Return the evaluations of `step`."""

    @property
    def n_points(self) -> int:
        """Points that a chain gives at once: those of a group of interacting particles, and else 1."""
        return 1

    def log_weights(self, statistics: Any) -> np.ndarray | None:
        """Return the log weight of every chain, shape (n_chains,), from stacked statistics; None if all are equal."""
        return None

    def executed(self, states: Any) -> Array | None:
        """Return the evaluations that a batch of chains executed in its last step; None if all of them counted.

        Vectorised chains with steps of varying cost wait for the dearest, and evaluate as long as it does.
        """
        return None

    def rows(self, start: int, length: int) -> Any:
        """Return per-step numbers for `length` steps from `start` as host arrays, padded; None if there are none."""
        return None

    def compiled_part(self) -> "AbstractStage":
        """Return what compiled code needs of the stage: all of it, unless the stage keeps a schedule on the host."""
        return self

    def stages(self) -> "tuple[AbstractStage, ...]":
        """Return the stage itself: every stage is a sampler."""
        return (self,)

    def with_budget(self: Stage, budget: int) -> Stage:
        """Return this stage with as many steps as the budget pays for."""
        least = self.cost_init() + self.cost_step()
        if budget < least:
            raise InvalidInputError(
                f"A budget of {budget} evaluations per sample is too small: {type(self).__name__} needs at least "
                f"{least} ({self.cost_init()} to start and {self.cost_step()} for one step)."
            )
        return self.with_steps((budget - self.cost_init()) // self.cost_step())

    def with_first_steps(self: Stage, n_steps: int) -> Stage:
        """Return this stage with another number of steps."""
        return self.with_steps(n_steps)

    def with_steps(self: Stage, n_steps: int) -> Stage:
        """Return this stage with another number of steps."""
        if n_steps < 0:
            raise InvalidInputError(f"The number of steps must not be negative, got {n_steps}.")
        return eqx.tree_at(lambda s: s.n_steps, self, as_count(n_steps))


def as_count(n_steps: int | Array) -> Array:
    """Return a number of steps as an array, so that it is data for compiled code."""
    return jnp.asarray(n_steps, jnp.int32)
