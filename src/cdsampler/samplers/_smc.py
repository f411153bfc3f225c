from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array, IntScalar, Position, PRNGKey, Scalar
from cdsampler.density import AbstractLogDensity, Evaluations, Point
from cdsampler.errors import InvalidInputError
from cdsampler.kernels import AbstractKernel, draw_noise
from cdsampler.paths import AbstractReference, AnnealingPath, check_schedule
from cdsampler.samplers._base import AbstractStage, AbstractState, as_count
from cdsampler.samplers._resampling import RESAMPLING, select


class SMCStatistics(NamedTuple):
    """What one group of particles says.

    Attributes
    ----------
    log_z : Array, shape ()
        Log of the group's unbiased estimate of Z.
    smallest_ess : Array, shape ()
        Smallest effective share of the particles, before resampling.
    n_resampled : Array, shape ()
        Resamplings.
    n_ancestors : Array, shape ()
        Particles of the start that have descendants at the end.
    acceptance : Array, shape ()
        Of the kernel, averaged over moves.
    """

    log_z: Array
    smallest_ess: Array
    n_resampled: Array
    n_ancestors: Array
    acceptance: Array


class SMCState(AbstractState):
    """One group: its points with their normalised log weights, their first ancestors, and sums."""

    points: Point
    log_weights: Array
    ancestors: Array
    log_z: Array
    smallest_ess: Array
    n_resampled: Array
    acceptance: Array
    last_uniform: Array
    evaluations: Evaluations


class SMCInfo(NamedTuple):
    """What one step tells: acceptance, and how far apart neighbouring temperatures are (`log E[w²]/E[w]²`)."""

    acceptance: Array
    divergence: Array


class SMC(AbstractStage):
    """Annealed sequential Monte Carlo on groups of particles; with groups of one, annealed importance sampling.

    A step weighs every particle for the next β, resamples whole points if the weights have become too unequal, and
    moves every particle at the new β. With a schedule from `tune_smc` this is the optimised annealed SMC (OASMC) of
    Syed et al. 2024. A group is what the driver calls a chain.

    Parameters
    ----------
    reference
        Distribution at β = 0, about the anchor.
    betas : array_like, shape (n,)
        Schedule, from 0 (a flat reference: above 0) to 1. `with_steps` and `with_budget` put another number of
        temperatures along it, so that it is a curve more than a list.
    kernel
        Local kernel. Its step size may be a scalar or have one value for each of `betas`.
    n_steps
        Temperatures after the first; default as many as `betas` has.
    n_particles
        Of a group, P. One: annealed importance sampling (Neal 2001), whose chains carry the weights.
    n_moves
        Kernel steps at each temperature.
    ess_threshold
        Resample where the effective share of the particles is below this; 1: always, 0: never.
    resampling
        "systematic" or "multinomial".
    start
        "reference": exact draws, one evaluation each. "anchor": all particles start there (one evaluation), as with a
        flat reference they must; the estimate of log Z is then meaningless.
    returns
        "particles": all of a group, which are no independent samples of each other; groups are weighed by their
        estimates of Z. "one": one particle of each group, independent of all others, with the bias of a small group.

    Raises
    ------
    InvalidInputError
        Bad schedule, number, name, or a flat reference with `start="reference"`.

    Notes
    -----
    Cost of a group: P to start (1 from the anchor) and `P · n_moves · c` a step, with c the kernel's cost.
    Del Moral, Doucet and Jasra 2006; Syed, Bouchard-Côté, Chern and Doucet 2024.
    """

    reference: AbstractReference
    kernel: AbstractKernel
    betas: np.ndarray
    step_sizes: np.ndarray
    n_steps: Array
    n_moves: Array
    ess_threshold: Array
    n_particles: int = eqx.field(static=True)
    resampling: str = eqx.field(static=True)
    start: str = eqx.field(static=True)
    returns: str = eqx.field(static=True)

    def __init__(
        self,
        reference: AbstractReference,
        betas: Any,
        kernel: AbstractKernel,
        n_steps: int | None = None,
        *,
        n_particles: int = 100,
        n_moves: int = 1,
        ess_threshold: float = 0.5,
        resampling: str = "systematic",
        start: str = "reference",
        returns: str = "particles",
    ):
        _check_names(reference, n_particles, resampling, start, returns)
        if n_particles < 1 or n_moves < 1:
            raise InvalidInputError(f"SMC needs at least 1 particle and 1 move, got {n_particles} and {n_moves}.")
        if not 0 <= ess_threshold <= 1:
            raise InvalidInputError(f"ess_threshold must lie in [0, 1], got {ess_threshold}.")
        self.betas = check_schedule(np.asarray(betas), proper_reference=reference.is_proper)
        if kernel.step_size.shape not in ((), self.betas.shape):
            raise InvalidInputError(
                f"The kernel has step sizes of shape {kernel.step_size.shape}; give one, or one for each of the "
                f"{len(self.betas)} temperatures."
            )
        self.step_sizes = np.broadcast_to(np.asarray(kernel.step_size, dtype=np.float64), self.betas.shape)
        # The rows bring the step size to compiled code.
        self.kernel = eqx.tree_at(lambda k: k.step_size, kernel, jnp.ones((), kernel.step_size.dtype))
        self.reference = reference
        self.n_steps = as_count(len(self.betas) - 1 if n_steps is None else n_steps)
        self.n_moves = as_count(n_moves)
        self.ess_threshold = jnp.asarray(ess_threshold)
        self.n_particles = n_particles
        self.resampling, self.start, self.returns = resampling, start, returns

    @property
    def n_points(self) -> int:
        """All particles, or one."""
        return self.n_particles if self.returns == "particles" else 1

    def schedule(self) -> tuple[np.ndarray, np.ndarray]:
        """Return β and step size of each temperature, shape (n_steps + 1,): the given ones at `n_steps` distances."""
        knots = np.linspace(0, 1, len(self.betas))
        at = np.linspace(0, 1, int(self.n_steps) + 1)
        return np.interp(at, knots, self.betas), np.exp(np.interp(at, knots, np.log(self.step_sizes)))

    def with_schedule(self, betas: np.ndarray, step_sizes: np.ndarray) -> "SMC":
        """Return this sampler with another curve of β and step sizes, and as many steps as before."""
        return eqx.tree_at(lambda s: (s.betas, s.step_sizes), self, (np.asarray(betas), np.asarray(step_sizes)))

    def path(self, density: AbstractLogDensity, anchor: Position) -> AnnealingPath:
        """Return the annealing path about the anchor."""
        return AnnealingPath(self.reference, density, anchor)

    def init(self, rng_key: PRNGKey, path: AnnealingPath, start: Point | None) -> SMCState:
        """Return a group at reference draws, or all at the anchor (or at the point handed over)."""
        evaluate = path.evaluate if self.kernel.needs_gradient else path.evaluate_value
        key_draw, key_last = jax.random.split(rng_key)
        n, dtype = self.n_particles, path.anchor.dtype
        if self.start == "reference":
            points, costs = jax.vmap(lambda key: evaluate(path.sample_reference(key)))(jax.random.split(key_draw, n))
            evaluations = costs.sum()
        else:
            point, evaluations = evaluate(path.anchor) if start is None else (start, Evaluations.zero())
            points = jax.tree.map(lambda a: jnp.broadcast_to(a, (n, *a.shape)), point)
        zero, count = jnp.zeros((), dtype), jnp.zeros((), jnp.int32)
        return SMCState(
            points=points,
            log_weights=jnp.full((n,), -np.log(n), dtype),
            ancestors=jnp.arange(n, dtype=jnp.int32),
            log_z=zero,
            smallest_ess=jnp.ones((), dtype),
            n_resampled=count,
            acceptance=zero,
            last_uniform=jax.random.uniform(key_last, (), dtype),
            evaluations=evaluations,
        )

    def rows(self, start: int, length: int) -> Any:
        """Return each step's β before and after and its step size, padded to `length`."""
        betas, step_sizes = self.schedule()
        columns = (betas[:-1], betas[1:], step_sizes[1:])
        padding = max(start + length - int(self.n_steps), 0)
        return tuple(np.pad(a[start : start + length], (0, padding)) for a in columns)

    def compiled_part(self) -> "SMC":
        """Return the stage without its schedule, which reaches compiled code by `rows` alone."""
        return eqx.tree_at(lambda s: (s.betas, s.step_sizes), self, (np.zeros(0), np.zeros(0)))

    def step(self, rng_key: PRNGKey, state: SMCState, index: IntScalar, row: Any, path: AnnealingPath) -> SMCState:
        """Weigh, resample if need be, and move."""
        return self.step_with_info(rng_key, state, row, path)[0]

    def step_with_info(
        self, rng_key: PRNGKey, state: SMCState, row: Any, path: AnnealingPath
    ) -> tuple[SMCState, SMCInfo]:
        """Weigh, resample if need be, and move; also return what tuning wants to know."""
        beta, next_beta, step_size = (jnp.asarray(a, path.anchor.dtype) for a in row)
        key_select, key_moves = jax.random.split(rng_key)
        increments = jnp.where(next_beta > beta, (next_beta - beta) * state.points.log_ratio, 0)
        log_weights, gained, divergence = _weighed(state.log_weights, increments)
        ess = jnp.exp(-jax.nn.logsumexp(2 * log_weights)) / self.n_particles
        is_resampled = ess < self.ess_threshold.astype(ess.dtype)
        chosen = RESAMPLING[self.resampling](key_select, log_weights)
        kept = jnp.where(is_resampled, chosen, jnp.arange(self.n_particles))
        points, ancestors = jax.tree.map(lambda a: a[kept], (state.points, state.ancestors))
        points, acceptance, cost = self._move(key_moves, points, path, next_beta, step_size)
        new = SMCState(
            points=points,
            log_weights=jnp.where(is_resampled, jnp.full_like(log_weights, -np.log(self.n_particles)), log_weights),
            ancestors=ancestors,
            log_z=state.log_z + gained,
            smallest_ess=jnp.minimum(state.smallest_ess, ess),
            n_resampled=state.n_resampled + is_resampled.astype(jnp.int32),
            acceptance=state.acceptance + acceptance,
            last_uniform=state.last_uniform,
            evaluations=state.evaluations + cost,
        )
        return new, SMCInfo(acceptance, divergence)

    def _move(
        self, rng_key: PRNGKey, points: Point, path: AnnealingPath, beta: Scalar, step_size: Scalar
    ) -> tuple[Point, Array, Evaluations]:
        kernel = eqx.tree_at(lambda k: k.step_size, self.kernel, step_size.astype(self.kernel.step_size.dtype))
        density, dtype = path.at(beta), path.anchor.dtype

        def body(i: IntScalar, carry: tuple[Point, Array, Evaluations]) -> tuple[Point, Array, Evaluations]:
            at, acceptance, cost = carry
            key = jax.random.fold_in(rng_key, i)
            batch, dim = at.position.shape
            noise = draw_noise(key, (batch,), dim, dtype, is_jittered=kernel.is_jittered)
            moved, info = jax.vmap(lambda z, p: kernel.move(z, p, density))(noise, at)
            return moved, acceptance + jnp.mean(info.acceptance_prob), cost + info.evaluations.sum()

        start = (points, jnp.zeros((), dtype), Evaluations.zero())
        moved, acceptance, cost = jax.lax.fori_loop(0, self.n_moves, body, start)
        return moved, acceptance / self.n_moves, cost

    def point(self, state: SMCState) -> Point:
        """Return equally weighted particles, resampled if the weights aren't equal; or one of them."""
        n = self.n_points
        uniforms = (state.last_uniform + jnp.arange(n, dtype=state.last_uniform.dtype)) / n
        chosen = select(uniforms, state.log_weights)
        if self.returns == "one":
            return jax.tree.map(lambda a: a[chosen[0]], state.points)
        is_equal = jnp.all(state.log_weights == state.log_weights[0])
        chosen = jnp.where(is_equal, jnp.arange(n), chosen)
        points: Point = jax.tree.map(lambda a: a[chosen], state.points)
        return points if n > 1 else jax.tree.map(lambda a: a[0], points)

    def statistics(self, state: SMCState) -> SMCStatistics:
        """Return the sums."""
        is_present = jnp.zeros((self.n_particles,), bool).at[state.ancestors].set(True)
        return SMCStatistics(
            log_z=state.log_z,
            smallest_ess=state.smallest_ess,
            n_resampled=state.n_resampled,
            n_ancestors=jnp.sum(is_present, dtype=jnp.int32),
            acceptance=state.acceptance / jnp.maximum(self.n_steps, 1),
        )

    def log_weights(self, statistics: SMCStatistics) -> np.ndarray | None:
        """Return the groups' estimates of log Z; None if one particle of each is returned."""
        return np.asarray(statistics.log_z, dtype=np.float64) if self.returns == "particles" else None

    def cost_init(self) -> int:
        """One evaluation per particle from the reference, one in all from the anchor."""
        return self.n_particles if self.start == "reference" else 1

    def cost_step(self) -> int:
        """Return the cost of every particle's moves."""
        return self.n_particles * int(self.n_moves) * self.kernel.evaluations_per_step


def _weighed(log_weights: Array, increments: Array) -> tuple[Array, Array, Array]:
    """Return new normalised log weights, the log of the mean increment, and the log of its relative second moment.

    A group without any particle inside the support keeps its weights, with a log Z of minus infinity.
    """
    joint = log_weights + increments
    gained = jax.nn.logsumexp(joint)
    is_lost = gained == -jnp.inf
    second = jax.nn.logsumexp(joint + increments)
    divergence = jnp.where(is_lost, jnp.inf, jnp.maximum(second - 2 * jnp.where(is_lost, 0, gained), 0))
    return jnp.where(is_lost, log_weights, joint - jnp.where(is_lost, 0, gained)), gained, divergence


def _check_names(reference: AbstractReference, n_particles: int, resampling: str, start: str, returns: str) -> None:
    for name, value, options in (
        ("resampling", resampling, tuple(RESAMPLING)),
        ("start", start, ("reference", "anchor")),
        ("returns", returns, ("particles", "one")),
    ):
        if value not in options:
            raise InvalidInputError(f"{name} must be one of {', '.join(map(repr, options))}, got {value!r}.")
    if returns == "one" and n_particles == 1:
        raise InvalidInputError(
            "returns='one' leaves out the groups' weights, and with n_particles=1 these are all there is: use more "
            "particles, or returns='particles'."
        )
    if start == "reference" and not reference.is_proper:
        raise InvalidInputError(
            "A flat reference can't be drawn from, and annealing starts with exact draws: use a GaussianReference, or "
            "start='anchor' without an estimate of log Z."
        )
