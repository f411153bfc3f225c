from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array, IntScalar, Position, PRNGKey, Scalar
from cdsampler.density import AbstractLogDensity, Evaluations, Point
from cdsampler.errors import InvalidInputError
from cdsampler.interpolants import AbstractAffineInterpolant, AbstractInterpolant, conditional_density
from cdsampler.kernels import MALA, AbstractKernel, Noise
from cdsampler.paths import AnnealingPath, FlatReference
from cdsampler.samplers._base import AbstractStage, AbstractState, Stage, as_count
from cdsampler.samplers._integrators import checked_times, step_coefficients
from cdsampler.samplers._inverse_map import carry_along_flow


class Corrector(eqx.Module):
    """`n_steps` steps of any kernel after each integration step, leaving `π_{t|z}` invariant.

    Parameters
    ----------
    kernel
        Its scalar step size is in target coordinates; in path coordinates it shrinks along with the path.
    n_steps
        M, at least 1.
    """

    kernel: AbstractKernel
    n_steps: Array

    def __init__(self, kernel: AbstractKernel, n_steps: int = 1):
        if n_steps < 1:
            raise InvalidInputError(f"A corrector takes at least 1 step, got {n_steps}; use corrector=None for none.")
        if not kernel.needs_gradient:
            raise InvalidInputError("The transport needs gradients: use a gradient-based corrector.")
        self.kernel = kernel
        self.n_steps = as_count(n_steps)

    @property
    def cost(self) -> int:
        """Evaluations for each integration step."""
        return int(self.n_steps) * self.kernel.evaluations_per_step


class TransportStatistics(NamedTuple):
    """Mean acceptance of the corrector and share of integration steps that were refused, for one chain."""

    acceptance: Array
    refused: Array


class TransportState(AbstractState):
    """One chain's point, the noise of its last step, and its sums."""

    current: Point
    noise: Array
    acceptance: Array
    refused: Array
    evaluations: Evaluations


class AbstractTransport(AbstractStage):
    """Stage 2: integrates the conditional SDE from t0 to 1 (paper, eq. 11 and Algorithm 1).

    An integration step to a point outside the support, or with NaN, is refused: the point stays, and the refusal is
    counted.
    """

    times: eqx.AbstractVar[np.ndarray]
    variances: eqx.AbstractVar[np.ndarray]
    corrector: eqx.AbstractVar[Corrector | None]

    def init(self, rng_key: PRNGKey, path: AnnealingPath, start: Point | None) -> TransportState:
        """Return the state of the point handed over by stage 1; free."""
        if start is None:
            raise InvalidInputError("Transport continues another stage: it can't be the first.")
        zero = jnp.zeros((), start.position.dtype)
        noise = jax.random.normal(rng_key, start.position.shape, start.position.dtype)
        return TransportState(current=start, noise=noise, acceptance=zero, refused=zero, evaluations=Evaluations.zero())

    def point(self, state: TransportState) -> Point:
        """Return the current point; after the last step t = 1 and path coordinates are target coordinates."""
        return state.current

    def statistics(self, state: TransportState) -> TransportStatistics:
        """Return the corrector's acceptance and the share of refused steps."""
        n = jnp.maximum(self.n_steps, 1)
        m = 1 if self.corrector is None else self.corrector.n_steps
        return TransportStatistics(state.acceptance / (n * m), state.refused / n)

    def cost_init(self) -> int:
        """Nothing: the point comes with its gradient."""
        return 0

    def cost_step(self) -> int:
        """One evaluation, and the corrector's."""
        return 1 + (0 if self.corrector is None else self.corrector.cost)

    def compiled_part(self) -> "AbstractTransport":
        """Return the stage without its schedule, which reaches compiled code by `rows` alone."""
        return eqx.tree_at(lambda s: (s.times, s.variances), self, (np.zeros(0), np.zeros(0)))

    def with_steps(self: Stage, n_steps: int) -> Stage:
        """Raise: the number of steps belongs to the time schedule."""
        raise InvalidInputError("The steps of a transport are those of its time schedule: make a new schedule.")


class AffineTransport(AbstractTransport):
    """The conditional SDE of an affine interpolant, in target coordinates: annealed Langevin on the target.

    Parameters
    ----------
    interpolant
        Affine interpolant.
    times : ndarray, shape (n_steps + 1,)
        From t0 to 1.
    variances : ndarray, shape (n_steps,)
        σ² of each step.
    integrator
        See `step_coefficients`.
    corrector
        Kernel steps after each integration step.
    """

    interpolant: AbstractAffineInterpolant
    times: np.ndarray
    variances: np.ndarray
    corrector: Corrector | None
    n_steps: Array
    integrator: str = eqx.field(static=True)

    def __init__(
        self,
        interpolant: AbstractAffineInterpolant,
        times: np.ndarray,
        variances: np.ndarray,
        integrator: str = "exponential",
        corrector: Corrector | None = None,
    ):
        self.interpolant = interpolant
        self.times, self.variances = checked_times(times, variances)
        self.corrector = corrector
        self.n_steps = as_count(len(self.variances))
        self.integrator = integrator
        step_coefficients(interpolant, self.times, self.variances, integrator)

    def path(self, density: AbstractLogDensity, anchor: Position) -> AnnealingPath:
        """Return a path whose reference has no say at β = 1."""
        return AnnealingPath(FlatReference(), density, anchor)

    def rows(self, start: int, length: int) -> Any:
        """Return the steps' coefficients, padded to `length`."""
        coefficients = step_coefficients(self.interpolant, self.times, self.variances, self.integrator)
        return jax.tree.map(lambda a: _padded(a, start, length), coefficients)

    def step(
        self, rng_key: PRNGKey, state: TransportState, index: IntScalar, row: Any, path: AnnealingPath
    ) -> TransportState:
        """Take one integration step and M corrector steps."""
        key_noise, key_correct = jax.random.split(rng_key)
        y = state.current.position
        noise = jax.random.normal(key_noise, y.shape, y.dtype)
        kick = 0.5 * (noise + state.noise) if self.integrator == "leimkuhler-matthews" else noise
        keep, pull, drift, size = (a.astype(y.dtype) for a in row)
        if self.integrator == "metropolis":
            # A step of the exponential integrator is one of Langevin dynamics, so its Metropolis ratio is MALA's.
            draws = Noise(noise, jax.random.uniform(jax.random.fold_in(key_noise, 1), (), y.dtype))
            point, info = MALA(drift).move(draws, state.current, path.at(jnp.ones((), y.dtype)))
            state = _stepped(state, point, noise, 1 - info.acceptance_prob, info.evaluations)
            return _correct(key_correct, state, self.corrector, path, jnp.ones((), y.dtype))
        target_step = keep * y + pull * path.anchor + drift * state.current.target.gradient + size * kick
        proposal, cost = path.evaluate(target_step)
        point, refused = _unless_outside(proposal, state.current)
        state = _stepped(state, point, noise, refused, cost)
        return _correct(key_correct, state, self.corrector, path, jnp.ones((), y.dtype))


class PathTransport(AbstractTransport):
    """The conditional SDE of any interpolant, in path coordinates, by Euler–Maruyama.

    Parameters
    ----------
    interpolant
        Any interpolant.
    times : ndarray, shape (n_steps + 1,)
        From t0 to 1.
    variances : ndarray, shape (n_steps,)
        σ² of each step.
    corrector
        Kernel steps after each integration step.
    """

    interpolant: AbstractInterpolant
    times: np.ndarray
    variances: np.ndarray
    corrector: Corrector | None
    n_steps: Array

    def __init__(
        self,
        interpolant: AbstractInterpolant,
        times: np.ndarray,
        variances: np.ndarray,
        corrector: Corrector | None = None,
    ):
        self.interpolant = interpolant
        self.times, self.variances = checked_times(times, variances)
        self.corrector = corrector
        self.n_steps = as_count(len(self.variances))

    def path(self, density: AbstractLogDensity, anchor: Position) -> AnnealingPath:
        """Return the target's path; `step` looks at it through the interpolant at each time."""
        return AnnealingPath(FlatReference(), density, anchor)

    def rows(self, start: int, length: int) -> Any:
        """Return each step's times and variance, padded to `length`."""
        return tuple(_padded(a, start, length) for a in (self.times[:-1], self.times[1:], self.variances))

    def step(
        self, rng_key: PRNGKey, state: TransportState, index: IntScalar, row: Any, path: AnnealingPath
    ) -> TransportState:
        """Take one Euler–Maruyama step and M corrector steps at the new time."""
        key_noise, key_correct = jax.random.split(rng_key)
        x = state.current.position
        now, then, variance = (a.astype(x.dtype) for a in row)
        dt = then - now
        noise = jax.random.normal(key_noise, x.shape, x.dtype)
        velocity = self.interpolant.velocity(path.anchor, x, now)
        drift = velocity + 0.5 * variance * state.current.target.gradient
        conditional = conditional_density(path.density, self.interpolant, path.anchor, then)
        conditional_path = AnnealingPath(path.reference, conditional, path.anchor)
        proposal, cost = conditional_path.evaluate(x + dt * drift + jnp.sqrt(variance * dt) * noise)
        point, refused = _unless_outside(
            proposal, carry_along_flow(state.current, self.interpolant, path.anchor, now, then)
        )
        state = _stepped(state, point, noise, refused, cost)
        # The path's mean contraction at the anchor; for an affine interpolant b(t) itself.
        scale = jnp.exp(self.interpolant.log_det(path.anchor, path.anchor, then) / x.shape[0])
        return _correct(key_correct, state, self.corrector, conditional_path, scale)


def _stepped(state: TransportState, point: Point, noise: Array, refused: Array, cost: Evaluations) -> TransportState:
    return TransportState(
        current=point,
        noise=noise,
        acceptance=state.acceptance,
        refused=state.refused + refused,
        evaluations=state.evaluations + cost,
    )


def _unless_outside(proposal: Point, current: Point) -> tuple[Point, Array]:
    is_outside = proposal.target.log_density == -jnp.inf
    point = jax.tree.map(lambda new, old: jnp.where(is_outside, old, new), proposal, current)
    return point, is_outside.astype(proposal.position.dtype)


def _correct(
    rng_key: PRNGKey, state: TransportState, corrector: Corrector | None, path: AnnealingPath, scale: Scalar
) -> TransportState:
    if corrector is None:
        return state
    density = path.at(jnp.ones((), path.anchor.dtype))

    def body(i: IntScalar, carry: TransportState) -> TransportState:
        key = jax.random.fold_in(rng_key, i)
        point, info = corrector.kernel.scaled(scale).step(key, carry.current, density)
        return TransportState(
            current=point,
            noise=carry.noise,
            acceptance=carry.acceptance + info.acceptance_prob,
            refused=carry.refused,
            evaluations=carry.evaluations + info.evaluations,
        )

    return jax.lax.fori_loop(0, corrector.n_steps, body, state)


def _padded(values: np.ndarray, start: int, length: int) -> np.ndarray:
    part = np.asarray(values[start : start + length])
    return np.concatenate([part, np.zeros(length - len(part), part.dtype)])
