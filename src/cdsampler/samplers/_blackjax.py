"""What the chains built from BlackJAX's parts share: the import, counted integrators, and a cost that varies."""

import abc
import importlib
import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array, BoolScalar, IntScalar, Position, PRNGKey
from cdsampler.density import AbstractLogDensity, Component, Evaluations, Point
from cdsampler.errors import InvalidInputError, MissingExtraError
from cdsampler.paths import AnnealingPath, FlatReference
from cdsampler.samplers._base import AbstractStage, AbstractState

NO_LIMIT = 2**31 - 1
N_DEVIATIONS = 4.0

Chain = TypeVar("Chain", bound="AbstractTrajectoryChain")


def import_blackjax() -> Any:
    """Return the module `blackjax`.

    Raises
    ------
    MissingExtraError
        BlackJAX isn't installed; an `ImportError`, too.
    """
    try:
        return importlib.import_module("blackjax")  # by name: a default install has no BlackJAX
    except ImportError as error:
        raise MissingExtraError("NUTS, MAMS and SVGD need BlackJAX: pip install 'cdsampler[baselines]'.") from error


class CountedGradient(NamedTuple):
    """A gradient, and all evaluations on the way to where it was computed.

    It takes the place of the gradient in BlackJAX's states, so that counts come out of its loops with the points.
    """

    gradient: Array
    evaluations: Evaluations


def counted_integrator(
    density: AbstractLogDensity, momentum_update: Callable[..., Any], coefficients: list[float]
) -> Callable[..., Any]:
    """Return an integrator of BlackJAX's kind whose positions are evaluated, guarded and charged by the density.

    BlackJAX's own integrators differentiate a scalar function: they can neither use a density's own gradient nor
    tell what it cost or how often it wasn't finite.

    Parameters
    ----------
    density
        Evaluated once for every second coefficient.
    momentum_update
        BlackJAX's, Euclidean or isokinetic.
    coefficients
        BlackJAX's, palindromic, of momentum and position updates in turn.

    Returns
    -------
    callable
        Maps a state, whose gradient is a `CountedGradient`, and a step size to the next such state; with the change
        of kinetic energy where the momentum update tells one.
    """
    integrators = import_blackjax().mcmc.integrators

    def position_update(
        position: Array, velocity: Array, step_size: Array, coefficient: float, evaluations: Evaluations | None
    ) -> tuple[Array, Array, Array, Evaluations]:
        new = position + step_size * coefficient * velocity
        value, gradient, cost = density.value_and_gradient(new)
        return new, value, gradient, cost if evaluations is None else evaluations + cost

    integrate = integrators.generalized_two_stage_integrator(
        momentum_update, position_update, coefficients, format_output_fn=lambda *parts: parts
    )

    def one_step(state: Any, step_size: Array) -> Any:
        plain = state._replace(logdensity_grad=state.logdensity_grad.gradient)
        position, momentum, value, gradient, _, evaluations, kinetic = integrate(plain, step_size)
        counted = CountedGradient(gradient, state.logdensity_grad.evaluations + evaluations)
        new = integrators.IntegratorState(position, momentum, value, counted)
        return new if kinetic is None else (new, kinetic)

    return one_step


class TrajectoryStatistics(NamedTuple):
    """How one chain's trajectories went.

    Attributes
    ----------
    acceptance : Array, shape ()
        Mean acceptance probability of the steps taken.
    divergent : Array, shape ()
        Share of the steps taken whose trajectory diverged or left the support.
    stopped : Array, shape ()
        Steps not taken, because the most expensive of them would have exceeded the limit. Should be 0: a chain that
        stops depending on its cost is biased.
    cost : Array, shape ()
        Mean evaluations of the steps taken.
    """

    acceptance: Array
    divergent: Array
    stopped: Array
    cost: Array


class Transition(NamedTuple):
    """One transition: where it went, what it cost, and the evaluations in each loop that vectorised chains share."""

    point: Point
    evaluations: Evaluations
    acceptance: Array
    is_divergent: BoolScalar
    loops: Array


class TrajectoryState(AbstractState):
    """One chain's point and the sums over its steps; `loops` has the evaluations of the last step, loop by loop."""

    current: Point
    acceptance: Array
    divergent: Array
    taken: Array
    stopped: Array
    loops: Array
    evaluations: Evaluations


class AbstractTrajectoryChain(AbstractStage):
    """A local chain whose steps vary in cost, with a fixed number of steps and a limit that it never exceeds.

    Why not simply run until the budget is used: a chain that stops when its cost says so is more likely to stop in
    the middle of long trajectories, so its last state is biased towards where these are. After a number of steps that
    was fixed beforehand it isn't. The limit is there for the rare chain that costs far more than was expected.

    Attributes
    ----------
    step_size : Array, shape ()
    inverse_mass_matrix : Array, shape (dim,), or None
        Diagonal; None means ones.
    n_steps : Array, shape ()
    limit : Array, shape ()
        The most evaluations a chain may be charged.
    smallest_dim
        The method needs that many dimensions.
    """

    step_size: eqx.AbstractVar[Array]
    inverse_mass_matrix: eqx.AbstractVar[Array | None]
    limit: eqx.AbstractVar[Array]
    smallest_dim: eqx.AbstractClassVar[int]

    @abc.abstractmethod
    def transition(self, rng_key: PRNGKey, current: Point, path: AnnealingPath, is_going: BoolScalar) -> Transition:
        """Make one transition; if `is_going` is false, none, at no cost."""

    @abc.abstractmethod
    def worst_cost(self) -> Array:
        """Return the most evaluations of one step."""

    @abc.abstractmethod
    def expected_cost(self) -> tuple[float, float]:
        """Return mean and standard deviation of the evaluations of one step."""

    @abc.abstractmethod
    def n_loops(self) -> int:
        """Return how many loops in a row vectorised chains wait for each other in."""

    def path(self, density: AbstractLogDensity, anchor: Position) -> AnnealingPath:
        """Return a path whose reference has no say at β = 1."""
        if density.dim < self.smallest_dim:
            raise InvalidInputError(
                f"{type(self).__name__} needs at least {self.smallest_dim} dimensions, and the density has "
                f"{density.dim}: use another sampler, or add a coordinate with a density of its own."
            )
        mass = self.inverse_mass_matrix
        if mass is not None and mass.shape != (density.dim,):
            raise InvalidInputError(
                f"inverse_mass_matrix has shape {mass.shape} for a density in {density.dim} dimensions: give one "
                "number per coordinate."
            )
        return AnnealingPath(FlatReference(), density, anchor)

    def init(self, rng_key: PRNGKey, path: AnnealingPath, start: Point | None) -> TrajectoryState:
        """Return the anchor's state, or that of the point handed over, which must carry its gradient."""
        cost = Evaluations.zero()
        if start is None:
            start, cost = path.evaluate(path.anchor)
        none, zero = jnp.zeros((), jnp.int32), jnp.zeros((), path.anchor.dtype)
        return TrajectoryState(
            current=start,
            acceptance=zero,
            divergent=none,
            taken=none,
            stopped=none,
            loops=jnp.zeros(self.n_loops(), jnp.int32),
            evaluations=cost,
        )

    def step(
        self, rng_key: PRNGKey, state: TrajectoryState, index: IntScalar, row: Any, path: AnnealingPath
    ) -> TrajectoryState:
        """Take one step, or stay where the most expensive one would exceed the limit."""
        is_going = state.evaluations.count <= self.limit - self.worst_cost()
        made = self.transition(rng_key, state.current, path, is_going)
        went = is_going.astype(jnp.int32)
        return TrajectoryState(
            current=made.point,
            acceptance=state.acceptance + jnp.where(is_going, made.acceptance, 0),
            divergent=state.divergent + went * made.is_divergent,
            taken=state.taken + went,
            stopped=state.stopped + (1 - went),
            loops=made.loops,
            evaluations=state.evaluations + made.evaluations,
        )

    def point(self, state: TrajectoryState) -> Point:
        """Return the current point."""
        return state.current

    def statistics(self, state: TrajectoryState) -> TrajectoryStatistics:
        """Return how the trajectories went."""
        taken = jnp.maximum(state.taken, 1).astype(state.acceptance.dtype)
        # All evaluations but init's; a point that was handed over has cost none here, which one part in n blurs.
        cost = jnp.maximum(state.evaluations.count - self.cost_init(), 0)
        return TrajectoryStatistics(state.acceptance / taken, state.divergent / taken, state.stopped, cost / taken)

    def executed(self, states: TrajectoryState) -> Array:
        """Return the evaluations that a batch of chains executed in its last step.

        In each loop all chains go on, discarding what they get, until the longest has finished.
        """
        n_chains = states.loops.shape[0]
        return n_chains * jnp.sum(jnp.max(states.loops, axis=0), dtype=jnp.int32)

    def cost_init(self) -> int:
        """One evaluation of the anchor."""
        return 1

    def cost_step(self) -> int:
        """Return the most evaluations of one step."""
        return int(self.worst_cost())

    def cost(self) -> int:
        """Return the evaluations that one chain costs at most."""
        return min(int(self.limit), self.cost_init() + int(self.n_steps) * self.cost_step())

    def with_budget(self: Chain, budget: int) -> Chain:
        """Return this chain with as many steps as it can be expected to afford, and the budget as its limit.

        The last step must be affordable at its worst cost after the others cost four standard deviations more than
        their mean.

        Raises
        ------
        InvalidInputError
            The budget doesn't pay for one step at its worst; the message names the least budget.
        """
        worst = self.cost_step()
        room = budget - self.cost_init() - worst
        if room < 0:
            raise InvalidInputError(
                f"A budget of {budget} evaluations per sample is too small: {type(self).__name__} needs at least "
                f"{budget - room} ({self.cost_init()} to start and up to {worst} for one step)."
            )
        mean, deviation = self.expected_cost()
        excess = N_DEVIATIONS * deviation
        root = (math.sqrt(excess**2 + 4 * mean * room) - excess) / (2 * mean)
        more = int(root**2) + 1
        while more * mean + excess * math.sqrt(more) > room:  # the root is rounded
            more -= 1
        stage = self.with_steps(1 + more)
        return eqx.tree_at(lambda s: s.limit, stage, jnp.asarray(min(budget, NO_LIMIT), jnp.int32))


def check_inverse_mass_matrix(given: Any) -> Array | None:
    """Return a diagonal inverse mass matrix as an array; its numbers must be positive and finite."""
    if given is None:
        return None
    is_known = not isinstance(given, jax.core.Tracer)
    if is_known and not (np.ndim(given) == 1 and np.all(np.isfinite(given) & (np.asarray(given) > 0))):
        raise InvalidInputError(f"inverse_mass_matrix must be positive and finite, one per coordinate, got {given!r}.")
    return jnp.asarray(given, dtype=jnp.zeros(()).dtype)


def mass_of(inverse_mass_matrix: Array | None, position: Position) -> Array:
    """Return the diagonal inverse mass matrix in a position's type."""
    return jnp.ones_like(position) if inverse_mass_matrix is None else inverse_mass_matrix.astype(position.dtype)


def point_at(path: AnnealingPath, position: Position, log_density: Array, gradient: Array) -> Point:
    """Return a point with what was evaluated there; free."""
    reference = Component(*path.reference.log_density_and_gradient(position, path.anchor))
    return Point(position, reference, Component(log_density, gradient))
