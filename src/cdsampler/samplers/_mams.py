import math
from typing import Any, ClassVar

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

EVALUATIONS_PER_STEP = 2  # McLachlan's integrator updates the position twice


class MAMSChain(AbstractTrajectoryChain):
    """The Metropolis-adjusted microcanonical sampler on the target itself, from the anchor.

    The velocity has constant length and turns along the gradient; it is drawn anew at every transition, and the
    trajectory's end is accepted or rejected, so that the target is exact.

    Parameters
    ----------
    step_size
        Length of an integration step, in units of coordinates scaled by the mass matrix. A trajectory is about
        `step_size · num_integration_steps` long.
    num_integration_steps
        Integration steps per transition, at least 1: their mean, or, rounded up, their number. Each costs two
        value-and-gradient evaluations.
    n_steps
        Transitions.
    inverse_mass_matrix : array, shape (dim,), optional
        Diagonal, best the target's variances; by default ones.
    is_random_length
        Whether the number of integration steps is drawn anew, uniformly, for every transition. Without, trajectories
        can be in step with periodic motion and explore badly.
    limit
        The most evaluations that a chain may be charged; by default as many as its steps need. A step whose worst
        case would exceed it isn't taken.

    Raises
    ------
    InvalidInputError
        A number is out of range; or, when it is run, the density has one dimension only, where a velocity of constant
        length can't turn.
    MissingExtraError
        BlackJAX isn't installed.

    Notes
    -----
    Costs 1 evaluation to start and `2 · num_integration_steps` on average per step. Vectorised chains with random
    lengths execute more than they are charged: all of them integrate until the longest has finished; see `executed`.

    Robnik, Cohn-Gordon and Seljak 2025, "Metropolis adjusted microcanonical Hamiltonian Monte Carlo".
    """

    step_size: Array
    num_integration_steps: Array
    inverse_mass_matrix: Array | None
    n_steps: Array
    limit: Array
    is_random_length: bool = eqx.field(static=True)
    smallest_dim: ClassVar[int] = 2

    def __init__(
        self,
        step_size: float | Array,
        num_integration_steps: float | Array,
        n_steps: int = 0,
        *,
        inverse_mass_matrix: Any = None,
        is_random_length: bool = True,
        limit: int = NO_LIMIT,
    ):
        import_blackjax()
        is_known = not isinstance(num_integration_steps, jax.core.Tracer)
        if is_known and not 1 <= num_integration_steps <= 10**6:
            raise InvalidInputError(
                f"num_integration_steps must be at least 1 and at most 1000000, got {num_integration_steps}."
            )
        self.step_size = check_step_size(step_size)
        self.num_integration_steps = jnp.asarray(num_integration_steps, self.step_size.dtype)
        self.inverse_mass_matrix = check_inverse_mass_matrix(inverse_mass_matrix)
        self.n_steps = as_count(n_steps)
        self.limit = jnp.asarray(limit, jnp.int32)
        self.is_random_length = bool(is_random_length)

    def transition(self, rng_key: PRNGKey, current: Point, path: AnnealingPath, is_going: BoolScalar) -> Transition:
        """Make one transition; if `is_going` is false, none, at no cost."""
        key_length, key_step = jax.random.split(rng_key)
        lengths = import_blackjax().mcmc.adjusted_mclmc_dynamic.make_random_trajectory_length_fn(self.is_random_length)
        length = jnp.where(is_going, lengths(key_length, self.num_integration_steps), 0)
        info = self._propose(key_step, current, path.density, length)
        end = info.proposal
        gradient, evaluations = end.logdensity_grad
        proposal = point_at(path, end.position, end.logdensity, gradient)
        return Transition(
            point=jax.tree.map(lambda new, old: jnp.where(info.is_accepted, new, old), proposal, current),
            evaluations=evaluations,
            acceptance=info.acceptance_rate,
            is_divergent=info.is_divergent,
            loops=EVALUATIONS_PER_STEP * length[None],
        )

    def _propose(self, rng_key: PRNGKey, current: Point, density: AbstractLogDensity, length: Array) -> Any:
        """Return BlackJAX's account of a trajectory of the given length and of whether its end is accepted."""
        mcmc = import_blackjax().mcmc

        def integrator(logdensity_fn: None, inverse_mass_matrix: Array) -> Any:
            momentum_update = mcmc.integrators.esh_dynamics_momentum_update_one_step(inverse_mass_matrix)
            return counted_integrator(density, momentum_update, mcmc.integrators.mclachlan_coefficients)

        # The length is drawn outside, so that a chain at its limit can have none.
        kernel = mcmc.adjusted_mclmc_dynamic.build_kernel(
            integration_steps_fn=lambda length: length, integrator=integrator, next_random_arg_fn=lambda length: length
        )
        position, target = current.position, current.target
        # From −inf the sum of energies would be NaN and nothing accepted; from the lowest number everything is.
        lowest = jnp.asarray(jnp.finfo(position.dtype).min, position.dtype)
        state = mcmc.dynamic_hmc.DynamicHMCState(
            position,
            jnp.maximum(target.log_density, lowest),
            CountedGradient(target.gradient, Evaluations.zero()),
            length,
        )
        mass = mass_of(self.inverse_mass_matrix, position)
        step_size = self.step_size.astype(position.dtype)
        return kernel(rng_key, state, None, step_size, inverse_mass_matrix=mass)[1]

    def worst_cost(self) -> Array:
        """Return the evaluations of the longest trajectory."""
        longest = self.num_integration_steps
        if self.is_random_length:
            longest = import_blackjax().mcmc.adjusted_mclmc.rescale(longest)
        return (EVALUATIONS_PER_STEP * jnp.ceil(longest)).astype(jnp.int32)

    def expected_cost(self) -> tuple[float, float]:
        """Return mean and standard deviation of the evaluations of a step, which the target has no influence on."""
        mean = float(self.num_integration_steps)
        if not self.is_random_length:
            return float(EVALUATIONS_PER_STEP * math.ceil(mean)), 0.0
        # BlackJAX draws ⌈U s⌉: each of 1 … ⌊s⌋ with probability 1/s, and else the next.
        span = float(import_blackjax().mcmc.adjusted_mclmc.rescale(self.num_integration_steps))
        lengths = np.arange(1, math.ceil(span) + 1)
        shares = np.minimum(1.0, span - (lengths - 1)) / span
        mean = float(shares @ lengths)
        variance = max(float(shares @ lengths**2) - mean**2, 0.0)
        return EVALUATIONS_PER_STEP * mean, EVALUATIONS_PER_STEP * math.sqrt(variance)

    def n_loops(self) -> int:
        """One loop for a trajectory."""
        return 1
