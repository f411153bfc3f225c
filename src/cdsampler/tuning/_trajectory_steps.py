"""Step sizes, mass matrices and costs of the chains built from BlackJAX's parts, from a group of short chains."""

from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array, PRNGKey
from cdsampler.density import AbstractLogDensity, Evaluations, check_bounded
from cdsampler.errors import InvalidInputError
from cdsampler.samplers import AbstractTrajectoryChain, MAMSChain, NUTSChain, chain_keys
from cdsampler.samplers._blackjax import NO_LIMIT, TrajectoryState

Chain = TypeVar("Chain", bound=AbstractTrajectoryChain)


class AdaptedTrajectories(NamedTuple):
    """An adapted sampler and what that cost.

    Attributes
    ----------
    sampler
        The sampler given, with other numbers.
    evaluations : Evaluations
        Charged to all chains together, shape ().
    executed : int
        Evaluations that the device made, at least those charged.
    acceptance : float
        Mean acceptance in the last part, with the step size frozen.
    """

    sampler: Any
    evaluations: Evaluations
    executed: int
    acceptance: float


def adapt_nuts(
    sampler: NUTSChain,
    density: AbstractLogDensity,
    anchor: Array | np.ndarray,
    rng_key: PRNGKey,
    *,
    n_chains: int = 16,
    n_steps: int = 200,
    target_acceptance: float = 0.8,
    is_adapting_mass: bool = False,
) -> AdaptedTrajectories:
    """Adapt a NUTS chain's step size, measure what its steps cost, and optionally adapt its mass matrix.

    Parameters
    ----------
    sampler
        Its step size is where adaptation starts; its number of steps and its limit are kept for the result alone.
    density
        Target.
    anchor : array, shape (dim,) or (n_chains, dim)
        Where the chains start.
    rng_key
    n_chains
        Chains that share a step size.
    n_steps
        Steps of each: the first half adapts, the second measures with everything frozen. With the mass matrix the
        first half is split in two: the second quarter gives the pooled variances, and the third adapts anew, so that
        only the last measures.
    target_acceptance
        Mean acceptance of a trajectory's states, in (0, 1).
    is_adapting_mass
        Whether to set the inverse mass matrix to the variances pooled over chains. They include those between modes
        that the chains are in.

    Returns
    -------
    AdaptedTrajectories

    Raises
    ------
    InvalidInputError
        A number is out of range.
    DensityError
        The log density was plus infinity somewhere.

    Notes
    -----
    Costs up to `n_chains · (1 + n_steps · (2**max_num_doublings - 1))` evaluations, of which `executed` says how many
    were made. The standard deviation of the cost is the larger of that between steps, and that between chains times the
    root of their number of steps: where modes differ in cost, the steps of one chain are alike.

    Stochastic approximation of the log step size, Robbins and Monro 1951; target acceptance, Hoffman and Gelman 2014.
    """
    group = _Group(sampler, density, anchor, rng_key, n_chains, n_steps, target_acceptance)
    measured = group.run(n_steps, is_adapting_mass)
    worst = float(sampler.cost_step())
    numbers = [float(np.clip(measured.mean_cost, 1, worst)), measured.sd_cost]
    adapted = eqx.tree_at(
        lambda s: (s.step_size, s.mean_cost, s.sd_cost),
        group.result(sampler),
        (group.sampler.step_size, *(jnp.asarray(a, sampler.mean_cost.dtype) for a in numbers)),
    )
    return AdaptedTrajectories(adapted, group.evaluations(), group.executed, measured.acceptance)


def adapt_mams(
    sampler: MAMSChain,
    density: AbstractLogDensity,
    anchor: Array | np.ndarray,
    rng_key: PRNGKey,
    *,
    n_chains: int = 16,
    n_steps: int = 200,
    target_acceptance: float = 0.9,
    is_adapting_mass: bool = False,
) -> AdaptedTrajectories:
    """Adapt a MAMS chain's step size, at its number of integration steps, and optionally its mass matrix.

    The trajectories' length goes with the step size. What steps cost is known and needs no measurement.

    Parameters
    ----------
    sampler, density, anchor, rng_key, n_chains, n_steps, is_adapting_mass
        As for `adapt_nuts`.
    target_acceptance
        Mean acceptance of proposals, in (0, 1).

    Returns
    -------
    AdaptedTrajectories

    Raises
    ------
    InvalidInputError
        A number is out of range, or the density has one dimension only.
    DensityError
        The log density was plus infinity somewhere.

    Notes
    -----
    Costs about `n_chains · (1 + 2 · n_steps · num_integration_steps)` evaluations.

    Target acceptance, Robnik, Cohn-Gordon and Seljak 2025.
    """
    group = _Group(sampler, density, anchor, rng_key, n_chains, n_steps, target_acceptance)
    measured = group.run(n_steps, is_adapting_mass)
    return AdaptedTrajectories(group.result(sampler), group.evaluations(), group.executed, measured.acceptance)


class _Measured(NamedTuple):
    mean_cost: float
    sd_cost: float
    acceptance: float


class _Sums(NamedTuple):
    """What a phase adds up: pooled over chains, relative to the first chain's first position."""

    executed: Array
    squared_cost: Array
    position: Array
    squared_position: Array


class _Group:
    """Chains that share a step size, and go from one phase to the next."""

    def __init__(
        self,
        sampler: Any,
        density: AbstractLogDensity,
        anchor: Any,
        rng_key: PRNGKey,
        n_chains: int,
        n_steps: int,
        target_acceptance: float,
    ):
        anchors = np.asarray(anchor)
        if anchors.ndim == 1:
            anchors = np.tile(anchors, (n_chains, 1))
        if anchors.ndim != 2 or anchors.shape[1] != density.dim or len(anchors) < 2:
            raise InvalidInputError(
                f"Adaptation needs an anchor of shape ({density.dim},) and at least 2 chains, or one anchor for each "
                f"of at least 2 chains; got shape {np.shape(anchor)} and {n_chains} chains."
            )
        if n_steps < 8:
            raise InvalidInputError(f"Adaptation needs n_steps of at least 8, got {n_steps}.")
        if not 0 < target_acceptance < 1:
            raise InvalidInputError(f"target_acceptance must be between 0 and 1, got {target_acceptance}.")
        self.sampler = eqx.tree_at(lambda s: s.limit, sampler, jnp.asarray(NO_LIMIT, jnp.int32))
        self.density, self.anchors = density, jnp.asarray(anchors, density.dtype)
        self.keys = chain_keys(rng_key, np.arange(len(anchors)))
        self.target = jnp.asarray(target_acceptance, density.dtype)
        self.n_done = 0
        self.states = _start(self.sampler, density, self.keys, self.anchors)
        self.executed = int(self.evaluations().count)

    def run(self, n_steps: int, is_adapting_mass: bool) -> _Measured:
        """Adapt in the first half, or with the mass matrix in the first three quarters, and measure in the rest."""
        if is_adapting_mass:
            self.adapt_with_mass(n_steps // 4)
        else:
            self.adapt(n_steps // 2)
        return self.measure(n_steps - self.n_done)

    def adapt(self, n_steps: int) -> None:
        """Adapt the step size, with a gain that starts anew."""
        self._run(n_steps, is_adapting=True)

    def adapt_with_mass(self, n_steps: int) -> None:
        """Adapt the step size, then the mass matrix, then the step size anew; each in so many steps."""
        self.adapt(n_steps)
        sums = self._run(n_steps, is_adapting=True)
        number = n_steps * len(self.anchors)
        mean = sums.position / number
        variance = np.asarray(sums.squared_position / number - mean**2, np.float64)
        old = self.sampler.inverse_mass_matrix
        mass = np.ones(self.density.dim) if old is None else np.asarray(old, np.float64)
        # A coordinate that hasn't moved tells nothing of its scale.
        new = np.where(np.isfinite(variance) & (variance > 0), variance, mass)
        # The stiffest direction limits the step: keep its length there.
        factor = np.sqrt(np.min(new) / np.min(mass))
        dtype = self.sampler.step_size.dtype
        step_size = self.sampler.step_size / jnp.asarray(factor, dtype)
        self.sampler = eqx.tree_at(
            lambda s: (s.step_size, s.inverse_mass_matrix),
            self.sampler,
            (step_size, jnp.asarray(new, dtype)),
            is_leaf=lambda leaf: leaf is None,
        )
        self.adapt(n_steps)

    def measure(self, n_steps: int) -> _Measured:
        """Go on with everything frozen."""
        before, accepted = np.asarray(self.states.evaluations.count), np.asarray(self.states.acceptance)
        sums = self._run(n_steps, is_adapting=False)
        costs = np.asarray(self.states.evaluations.count) - before
        mean = float(np.mean(costs)) / n_steps
        between_steps = float(sums.squared_cost) / (n_steps * len(costs)) - mean**2
        between_chains = float(np.var(costs, ddof=1)) / n_steps
        acceptance = float(np.mean(np.asarray(self.states.acceptance) - accepted)) / n_steps
        return _Measured(mean, float(np.sqrt(max(between_steps, between_chains, 0.0))), acceptance)

    def evaluations(self) -> Evaluations:
        """Return what all chains were charged."""
        return self.states.evaluations.total()

    def result(self, sampler: Chain) -> Chain:
        """Return the sampler given with the adapted step size and mass matrix."""
        return eqx.tree_at(
            lambda s: (s.step_size, s.inverse_mass_matrix),
            sampler,
            (self.sampler.step_size, self.sampler.inverse_mass_matrix),
            is_leaf=lambda leaf: leaf is None,
        )

    def _run(self, n_steps: int, *, is_adapting: bool) -> _Sums:
        self.states, step_size, sums = _advance(
            self.sampler,
            self.density,
            self.keys,
            self.anchors,
            self.states,
            self.target,
            jnp.asarray(is_adapting),
            jnp.int32(self.n_done),
            jnp.int32(n_steps),
        )
        check_bounded(self.states.evaluations, self.states.current)
        self.sampler = eqx.tree_at(lambda s: s.step_size, self.sampler, step_size)
        self.n_done += n_steps
        self.executed += int(sums.executed)
        return sums


@eqx.filter_jit
def _start(sampler: Any, density: AbstractLogDensity, keys: Array, anchors: Array) -> TrajectoryState:
    def start(key: PRNGKey, anchor: Array) -> TrajectoryState:
        return sampler.init(jax.random.fold_in(key, 0), sampler.path(density, anchor), None)

    return jax.vmap(start)(keys, anchors)


@eqx.filter_jit
def _advance(
    sampler: Any,
    density: AbstractLogDensity,
    keys: Array,
    anchors: Array,
    states: TrajectoryState,
    target: Array,
    is_adapting: Array,
    n_before: Array,
    n_steps: Array,
) -> tuple[TrajectoryState, Array, _Sums]:
    origin = anchors[0]

    def body(i: Array, carry: tuple[TrajectoryState, Array, _Sums]) -> tuple[TrajectoryState, Array, _Sums]:
        old, step_size, sums = carry
        stage = eqx.tree_at(lambda s: s.step_size, sampler, step_size)
        index = n_before + i

        def step(key: PRNGKey, state: TrajectoryState, anchor: Array) -> TrajectoryState:
            return stage.step(jax.random.fold_in(key, index + 1), state, index, None, stage.path(density, anchor))

        new = jax.vmap(step)(keys, old, anchors)
        error = jnp.mean(new.acceptance - old.acceptance) - target
        gain = jnp.where(is_adapting, 2 * (1.0 + i) ** -0.6, 0).astype(step_size.dtype)
        step_size = step_size * jnp.exp(gain * error.astype(step_size.dtype))
        cost = (new.evaluations.count - old.evaluations.count).astype(sums.squared_cost.dtype)
        shift = new.current.position - origin[None]
        return (
            new,
            step_size,
            _Sums(
                sums.executed + stage.executed(new),
                sums.squared_cost + jnp.sum(cost**2),
                sums.position + jnp.sum(shift, axis=0),
                sums.squared_position + jnp.sum(shift**2, axis=0),
            ),
        )

    zero = jnp.zeros_like(sampler.step_size)
    sums = _Sums(jnp.zeros((), jnp.int32), zero, jnp.zeros_like(origin), jnp.zeros_like(origin))
    return jax.lax.fori_loop(0, n_steps, body, (states, sampler.step_size, sums))
