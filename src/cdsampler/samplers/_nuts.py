from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array, BoolScalar, PRNGKey
from cdsampler.density import AbstractLogDensity, Evaluations, Point
from cdsampler.errors import InvalidInputError
from cdsampler.kernels._base import check_step_size
from cdsampler.paths import AnnealingPath
from cdsampler.samplers._base import as_count
from cdsampler.samplers._blackjax import (
    NO_LIMIT,
    AbstractTrajectoryChain,
    CountedGradient,
    Transition,
    check_inverse_mass_matrix,
    counted_integrator,
    import_blackjax,
    mass_of,
    point_at,
)

DIVERGENCE_THRESHOLD = 1000.0


class NUTSChain(AbstractTrajectoryChain):
    """The No-U-Turn sampler on the target itself, from the anchor: a local baseline that tunes its own trajectories.

    The variant is that of BlackJAX, which is also Stan's and NumPyro's in essence: states are drawn from the
    trajectory by their weights, biased towards its later half, and a generalised criterion says when it turns back.

    Parameters
    ----------
    step_size
        Leapfrog step, in units of coordinates scaled by the mass matrix.
    n_steps
        Transitions.
    inverse_mass_matrix : array, shape (dim,), optional
        Diagonal, best the target's variances; by default ones.
    max_num_doublings
        A trajectory has at most `2**max_num_doublings - 1` leapfrog steps, each one value-and-gradient evaluation.
    mean_cost, sd_cost
        Mean and standard deviation of the evaluations of one step, from which `with_budget` chooses the number of
        steps; `adapt_nuts` measures them. By default the worst case, and 0.
    limit
        The most evaluations that a chain may be charged; by default as many as its steps need. A step whose worst
        case would exceed it isn't taken.

    Raises
    ------
    InvalidInputError
        A number is out of range.
    MissingExtraError
        BlackJAX isn't installed.

    Notes
    -----
    Costs 1 evaluation to start and from 1 to `2**max_num_doublings - 1` per step. Vectorised chains execute more than
    they are charged: in every doubling all of them integrate until the last has finished; see `executed`.

    Hoffman and Gelman 2014, "The No-U-Turn sampler"; Betancourt 2017, "A conceptual introduction to Hamiltonian Monte
    Carlo", appendix A; Phan et al. 2019 for the iteration in place of recursion.
    """

    step_size: Array
    inverse_mass_matrix: Array | None
    n_steps: Array
    limit: Array
    mean_cost: Array
    sd_cost: Array
    max_num_doublings: int = eqx.field(static=True)
    smallest_dim: ClassVar[int] = 1

    def __init__(
        self,
        step_size: float | Array,
        n_steps: int = 0,
        *,
        inverse_mass_matrix: Any = None,
        max_num_doublings: int = 10,
        mean_cost: float | Array | None = None,
        sd_cost: float | Array = 0.0,
        limit: int = NO_LIMIT,
    ):
        import_blackjax()
        is_count = isinstance(max_num_doublings, int | np.integer) and not isinstance(max_num_doublings, bool)
        if not is_count or not 1 <= max_num_doublings <= 20:
            raise InvalidInputError(f"max_num_doublings must be an integer from 1 to 20, got {max_num_doublings!r}.")
        self.max_num_doublings = int(max_num_doublings)
        worst = 2**self.max_num_doublings - 1
        mean_cost = worst if mean_cost is None else mean_cost
        if not (1 <= mean_cost <= worst and 0 <= sd_cost < np.inf):
            raise InvalidInputError(
                f"mean_cost must be from 1 to {worst} and sd_cost at least 0, got {mean_cost} and {sd_cost}: take "
                "them from adapt_nuts."
            )
        self.step_size = check_step_size(step_size)
        self.inverse_mass_matrix = check_inverse_mass_matrix(inverse_mass_matrix)
        self.n_steps = as_count(n_steps)
        self.limit = jnp.asarray(limit, jnp.int32)
        self.mean_cost = jnp.asarray(mean_cost, self.step_size.dtype)
        self.sd_cost = jnp.asarray(sd_cost, self.step_size.dtype)

    def transition(self, rng_key: PRNGKey, current: Point, path: AnnealingPath, is_going: BoolScalar) -> Transition:
        """Make one transition; if `is_going` is false, none, at no cost."""
        made = _Trajectories(path.density, self, current.position).draw(rng_key, current, is_going)
        drawn = made.proposal.state
        left, right = made.trajectory.leftmost_state, made.trajectory.rightmost_state
        # Each evaluated state lies on one side of the first, and either end has counted its own side.
        evaluations = left.logdensity_grad.evaluations + right.logdensity_grad.evaluations
        n_evaluated = made.trajectory.num_states
        return Transition(
            point=point_at(path, drawn.position, drawn.logdensity, drawn.logdensity_grad.gradient),
            evaluations=evaluations,
            acceptance=jnp.exp(made.proposal.sum_log_p_accept) / jnp.maximum(n_evaluated, 1),
            is_divergent=made.is_diverging,
            loops=_doublings(n_evaluated, made.n_doublings, self.max_num_doublings),
        )

    def worst_cost(self) -> Array:
        """Return the length of the longest trajectory."""
        return jnp.asarray(2**self.max_num_doublings - 1, jnp.int32)

    def expected_cost(self) -> tuple[float, float]:
        """Return what was measured, or the worst case."""
        return float(self.mean_cost), float(self.sd_cost)

    def n_loops(self) -> int:
        """One loop for each doubling."""
        return self.max_num_doublings


class _Drawn(NamedTuple):
    """A finished trajectory and the state drawn from it, both as BlackJAX has them."""

    proposal: Any
    trajectory: Any
    n_doublings: Array
    is_diverging: BoolScalar


class _Trajectories:
    """Trajectories from BlackJAX's parts, doubled in a loop of our own.

    BlackJAX's own loop is right for one chain. In a batch, the chains that have finished make a doubling each time
    that another one does, of a length that no one sees. Here they make none, so that what a batch executes is known.
    """

    def __init__(self, density: AbstractLogDensity, chain: NUTSChain, position: Array):
        mcmc = import_blackjax().mcmc
        self.mcmc = mcmc
        self.max_num_doublings = chain.max_num_doublings
        self.step_size = chain.step_size.astype(position.dtype)
        self.metric = mcmc.metrics.default_metric(mass_of(chain.inverse_mass_matrix, position))
        self.turning = mcmc.termination.iterative_uturn_numpyro(self.metric.check_turning)
        momentum_update = mcmc.integrators.euclidean_momentum_update_fn(self.metric.kinetic_energy)
        self.integrator = counted_integrator(density, momentum_update, mcmc.integrators.velocity_verlet_coefficients)

    def draw(self, rng_key: PRNGKey, current: Point, is_going: BoolScalar) -> _Drawn:
        """Double a trajectory from the current point until it turns back, and draw one of its states."""
        key_momentum, key_trajectory = jax.random.split(rng_key)
        momentum = self.metric.sample_momentum(key_momentum, current.position)
        state, energy = self._start(current, momentum)

        def is_unfinished(carry: tuple[Any, Any]) -> Array:
            expansion, (is_diverging, is_turning) = carry
            return is_going & (expansion.step < self.max_num_doublings) & ~is_diverging & ~is_turning

        def double(carry: tuple[Any, Any]) -> tuple[Any, Any]:
            expand = self._expansion(expansion=carry[0], is_going=is_unfinished(carry))
            return expand(key_trajectory, carry[0], energy, self.step_size)

        no = jnp.zeros((), bool)
        expansion, (is_diverging, _) = jax.lax.while_loop(is_unfinished, double, (state, (no, no)))
        return _Drawn(expansion.proposal, expansion.trajectory, expansion.step, is_diverging)

    def _start(self, current: Point, momentum: Array) -> tuple[Any, Array]:
        """Return a trajectory of the current point alone, and its energy."""
        mcmc, target = self.mcmc, current.target
        none = CountedGradient(target.gradient, Evaluations.zero())
        state = mcmc.integrators.IntegratorState(current.position, momentum, target.log_density, none)
        energy = self.metric.kinetic_energy(momentum) - target.log_density
        zero, count = jnp.zeros_like(energy), jnp.asarray(0)  # BlackJAX counts in the default integer type
        return mcmc.trajectory.DynamicExpansionState(
            count,
            mcmc.proposal.Proposal(state, energy, zero, zero - jnp.inf),
            mcmc.trajectory.Trajectory(state, state, momentum, count),
            self.turning[0](state, self.max_num_doublings),
        ), energy

    def _expansion(self, expansion: Any, is_going: BoolScalar) -> Any:
        """Return BlackJAX's expansion for one doubling, in which a chain that has finished integrates nothing."""
        trajectory = self.mcmc.trajectory
        _, update, is_met = self.turning
        integrate = trajectory.dynamic_progressive_integration(
            self.integrator, self.metric.kinetic_energy, update, is_met, DIVERGENCE_THRESHOLD
        )

        def integrate_if_going(
            key: PRNGKey, start: Any, direction: Array, turning: Any, n_most: Array, step_size: Array, energy: Array
        ) -> Any:
            n_most = jnp.where(is_going, n_most, 0)
            return integrate(key, start, direction, turning, n_most, step_size, energy)

        return trajectory.dynamic_multiplicative_expansion(
            integrate_if_going, self.metric.check_turning, expansion.step + 1
        )


def _doublings(n_evaluated: Array, n_doublings: Array, most: int) -> Array:
    """Return the leapfrog steps of each doubling, shape (most,): all but the last are complete."""
    number = jnp.arange(most, dtype=jnp.int32)
    full = jnp.left_shift(jnp.ones_like(number), number)
    before_last = jnp.left_shift(jnp.int32(1), jnp.maximum(n_doublings - 1, 0)) - 1
    last = jnp.where(number == n_doublings - 1, n_evaluated - before_last, 0)
    return jnp.where(number < n_doublings - 1, full, last).astype(jnp.int32)
