from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array, IntScalar, Position, PRNGKey
from cdsampler.density import AbstractLogDensity, Evaluations, Point
from cdsampler.errors import InvalidInputError
from cdsampler.kernels import AbstractKernel, metropolis
from cdsampler.paths import AnnealingPath, DenoisingPosterior, FlatReference
from cdsampler.samplers._base import AbstractStage, AbstractState, as_count


class DiGSStatistics(NamedTuple):
    """Mean acceptances of one chain, of the jumps that sweeps begin with and of the denoising moves."""

    jumps: Array
    moves: Array


class DiGSState(AbstractState):
    """One chain's point and the sums of its acceptance probabilities."""

    current: Point
    jumps: Array
    moves: Array
    evaluations: Evaluations


class DiGS(AbstractStage):
    """Diffusive Gibbs sampling (Chen et al. 2024): add noise, then sample the target given the noisy copy.

    One step is one Gibbs sweep at one noise level. It draws a noisy copy `α y + s √(1-α²) ξ`, proposes a jump by
    taking the noise off again with fresh noise (which is accepted with probability `min(1, π(y')/π(y))`), and makes
    `n_denoising` moves of the kernel on `π(y) N(noisy; y, w² I)`, `w = s √(1-α²)/α`. All of it leaves π invariant.

    Parameters
    ----------
    kernel
        Denoising kernel, e.g. `MALA`. Its step size may be a scalar or have one value per level.
    alphas : array_like, shape (n_levels,)
        In (0, 1); the smallest is the noisiest. They are worked through in this order, so that the last is the mildest.
    n_steps
        Sweeps.
    n_sweeps
        Sweeps at a level before the next.
    n_denoising
        Kernel steps in a sweep.
    scale
        s, the unit of the noise in target coordinates.

    Raises
    ------
    InvalidInputError
        An α outside (0, 1), a bad count or scale, or a wrong number of step sizes.

    Notes
    -----
    Cost: 1 to start, `1 + n_denoising · c` a sweep, with c the kernel's cost.
    """

    kernel: AbstractKernel
    alphas: Array
    n_steps: Array
    n_sweeps: Array
    n_denoising: Array
    scale: Array

    def __init__(
        self,
        kernel: AbstractKernel,
        alphas: Any,
        n_steps: int = 0,
        *,
        n_sweeps: int = 1,
        n_denoising: int = 1,
        scale: float = 1.0,
    ):
        values = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
        if values.ndim != 1 or not np.all((values > 0) & (values < 1)):
            raise InvalidInputError(f"Every alpha must lie strictly between 0 and 1, got {alphas}.")
        if n_sweeps < 1 or n_denoising < 1:
            raise InvalidInputError(
                f"DiGS needs at least 1 sweep and 1 denoising step, got {n_sweeps} and {n_denoising}."
            )
        if not (np.isfinite(scale) and scale > 0):
            raise InvalidInputError(f"The scale of the noise must be positive and finite, got {scale}.")
        if kernel.step_size.shape not in ((), values.shape):
            raise InvalidInputError(
                f"The kernel has step sizes of shape {kernel.step_size.shape}; give one, or one for each of the "
                f"{len(values)} levels."
            )
        step_sizes = jnp.broadcast_to(kernel.step_size, values.shape)
        self.kernel = eqx.tree_at(lambda k: k.step_size, kernel, step_sizes)
        self.alphas = jnp.asarray(values, jnp.zeros(()).dtype)
        self.n_steps, self.n_sweeps = as_count(n_steps), as_count(n_sweeps)
        self.n_denoising = as_count(n_denoising)
        self.scale = jnp.asarray(scale, jnp.zeros(()).dtype)

    @property
    def widths(self) -> Array:
        """Standard deviation of the noise at each level, in target coordinates, shape (n_levels,)."""
        return self.scale * jnp.sqrt(1 - self.alphas**2) / self.alphas

    def path(self, density: AbstractLogDensity, anchor: Position) -> AnnealingPath:
        """Return a path whose reference has no say."""
        return AnnealingPath(FlatReference(), density, anchor)

    def init(self, rng_key: PRNGKey, path: AnnealingPath, start: Point | None) -> DiGSState:
        """Return the anchor's state, or that of the point handed over."""
        cost = Evaluations.zero()
        if start is None:
            start, cost = self._evaluate(path, path.anchor)
        zero = jnp.zeros((), path.anchor.dtype)
        return DiGSState(current=start, jumps=zero, moves=zero, evaluations=cost)

    def _evaluate(self, path: AnnealingPath, position: Position) -> tuple[Point, Evaluations]:
        return path.evaluate(position) if self.kernel.needs_gradient else path.evaluate_value(position)

    def level(self, index: IntScalar) -> Array:
        """Return the level of a step, counted so that the last step of all is the last sweep at the last level."""
        n_levels = self.alphas.shape[0]
        return n_levels - 1 - ((self.n_steps - 1 - index) // self.n_sweeps) % n_levels

    def step(self, rng_key: PRNGKey, state: DiGSState, index: IntScalar, row: Any, path: AnnealingPath) -> DiGSState:
        """Make one sweep."""
        return self.step_with_acceptance(rng_key, state, index, path)[0]

    def step_with_acceptance(
        self, rng_key: PRNGKey, state: DiGSState, index: IntScalar, path: AnnealingPath
    ) -> tuple[DiGSState, Array]:
        """Make one sweep; also return the moves' acceptance, shape (n_levels,), NaN at the levels not visited."""
        key_noise, key_jump, key_accept, key_moves = jax.random.split(rng_key, 4)
        y, level = state.current.position, self.level(index)
        width = self.widths[level].astype(y.dtype)
        noisy = y + width * jax.random.normal(key_noise, y.shape, y.dtype)
        proposal, cost = self._evaluate(path, noisy + width * jax.random.normal(key_jump, y.shape, y.dtype))
        # The proposal's density is the likelihood of the noisy copy, normalised: only the target's densities are left.
        log_ratio = proposal.target.log_density - state.current.target.log_density
        uniform = jax.random.uniform(key_accept, (), y.dtype)
        point, jump = metropolis(uniform, state.current, proposal, log_ratio)
        posterior = DenoisingPosterior(path, noisy, width)
        kernel = eqx.tree_at(lambda k: k.step_size, self.kernel, self.kernel.step_size[level])

        def move(i: IntScalar, carry: tuple[Point, Array, Evaluations]) -> tuple[Point, Array, Evaluations]:
            at, total, made = carry
            new, info = kernel.step(jax.random.fold_in(key_moves, i), at, posterior)
            return new, total + info.acceptance_prob, made + info.evaluations

        start = (point, jnp.zeros((), y.dtype), cost)
        point, total, cost = jax.lax.fori_loop(0, self.n_denoising, move, start)
        acceptance = total / self.n_denoising
        new = DiGSState(
            current=point,
            jumps=state.jumps + jump,
            moves=state.moves + acceptance,
            evaluations=state.evaluations + cost,
        )
        return new, jnp.full(self.alphas.shape, jnp.nan, y.dtype).at[level].set(acceptance)

    def point(self, state: DiGSState) -> Point:
        """Return the current point."""
        return state.current

    def statistics(self, state: DiGSState) -> DiGSStatistics:
        """Return the mean acceptances."""
        n = jnp.maximum(self.n_steps, 1)
        return DiGSStatistics(state.jumps / n, state.moves / n)

    def cost_init(self) -> int:
        """One evaluation of the anchor."""
        return 1

    def cost_step(self) -> int:
        """One for the jump, and the denoising moves'."""
        return 1 + int(self.n_denoising) * self.kernel.evaluations_per_step
