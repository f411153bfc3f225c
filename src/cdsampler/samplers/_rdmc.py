from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array, IntScalar, Position, PRNGKey, Scalar
from cdsampler.density import AbstractLogDensity, Evaluations, Point
from cdsampler.errors import InvalidInputError
from cdsampler.kernels import MALA, draw_noise
from cdsampler.paths import AnnealingPath, DenoisingPosterior, FlatReference
from cdsampler.samplers._base import AbstractStage, AbstractState, as_count
from cdsampler.samplers._resampling import systematic


class RDMCStatistics(NamedTuple):
    """Mean acceptance of the inner chains, and the smallest effective share of the candidates that they start from."""

    acceptance: Array
    smallest_ess: Array


class RDMCState(AbstractState):
    """One chain's noisy position and the draws of the target given it, which the score was estimated from."""

    noisy: Array
    draws: Point
    acceptance: Array
    smallest_ess: Array
    evaluations: Evaluations


class RDMC(AbstractStage):
    """Reverse diffusion Monte Carlo (Huang et al. 2024): runs an Ornstein–Uhlenbeck process backwards.

    The score of the process at time t is an expectation over the target given the noisy position,
    `π(y) N(noisy; y, w² I)`. It is estimated in each step from inner chains: candidates drawn around the noisy
    position, resampled by their target density, and moved by MALA. Estimates are wrong where that posterior has several
    modes and few candidates reach them: the reverse process is then biased, and no diagnostic but the effective share
    of the candidates says so.

    Parameters
    ----------
    scale
        s: the process ends, forwards, at `N(anchor, s² I)`, which should cover the target.
    step_size
        MALA's on the target itself; with noise of width w the inner chains use `1 / (1/step_size + dim^⅓/w²)`.
    n_steps
        Reverse steps.
    n_inner
        Inner chains.
    n_moves
        MALA steps of each.
    widths
        Smallest and greatest w; the steps are equal in log w. The smallest should be below the target's smallest
        scale, the greatest several times s.

    Raises
    ------
    InvalidInputError
        A bad count, scale or width.

    Notes
    -----
    Cost: 1 to start, `n_inner (1 + n_moves)` a step. The sample is a draw of the last posterior, whose noise has the
    smallest width.
    """

    scale: Array
    step_size: Array
    n_steps: Array
    n_moves: Array
    widths: np.ndarray
    n_inner: int = eqx.field(static=True)

    def __init__(
        self,
        scale: float,
        step_size: float,
        n_steps: int = 0,
        *,
        n_inner: int = 10,
        n_moves: int = 4,
        widths: tuple[float, float],
    ):
        if not (np.isfinite(scale) and scale > 0):
            raise InvalidInputError(f"The scale must be positive and finite, got {scale}.")
        if n_inner < 1 or n_moves < 1:
            raise InvalidInputError(f"RDMC needs at least 1 inner chain and 1 move, got {n_inner} and {n_moves}.")
        if not 0 < widths[0] < widths[1] < np.inf:
            raise InvalidInputError(f"widths must be two finite numbers that grow from above 0, got {widths}.")
        self.scale = jnp.asarray(scale, jnp.zeros(()).dtype)
        self.step_size = MALA(step_size).step_size
        self.n_steps, self.n_moves = as_count(n_steps), as_count(n_moves)
        self.widths = np.asarray(widths, dtype=np.float64)
        self.n_inner = n_inner

    def path(self, density: AbstractLogDensity, anchor: Position) -> AnnealingPath:
        """Return a path whose reference has no say."""
        return AnnealingPath(FlatReference(), density, anchor)

    def init(self, rng_key: PRNGKey, path: AnnealingPath, start: Point | None) -> RDMCState:
        """Return a draw of the process's end; the anchor is evaluated to stand in for draws."""
        if start is not None:
            raise InvalidInputError("Reverse diffusion starts from noise: it can't continue another stage.")
        point, cost = path.evaluate(path.anchor)
        anchor, dtype = path.anchor, path.anchor.dtype
        return RDMCState(
            noisy=anchor + self.scale.astype(dtype) * jax.random.normal(rng_key, anchor.shape, dtype),
            draws=jax.tree.map(lambda a: jnp.broadcast_to(a, (self.n_inner, *a.shape)), point),
            acceptance=jnp.zeros((), dtype),
            smallest_ess=jnp.ones((), dtype),
            evaluations=cost,
        )

    def rows(self, start: int, length: int) -> Any:
        """Return each step's α before and after, padded to `length`."""
        widths = np.geomspace(self.widths[1], self.widths[0], int(self.n_steps) + 1)
        # w = s √(1-α²)/α
        alphas = 1 / np.sqrt(1 + (widths / float(self.scale)) ** 2)
        padding = max(start + length - int(self.n_steps), 0)
        return tuple(
            np.pad(a[start : start + length], (0, padding), constant_values=0.5) for a in (alphas[:-1], alphas[1:])
        )

    def compiled_part(self) -> "RDMC":
        """Return the stage without its widths, which reach compiled code by `rows` alone."""
        return eqx.tree_at(lambda s: s.widths, self, np.zeros(0))

    def step(self, rng_key: PRNGKey, state: RDMCState, index: IntScalar, row: Any, path: AnnealingPath) -> RDMCState:
        """Estimate the score, and go back by one step with it."""
        alpha, next_alpha = (jnp.asarray(a, path.anchor.dtype) for a in row)
        key_inner, key_noise = jax.random.split(rng_key)
        s2 = self.scale.astype(alpha.dtype) ** 2
        variance, next_variance = s2 * (1 - alpha**2), s2 * (1 - next_alpha**2)
        centred = state.noisy - path.anchor
        noisy, width = path.anchor + centred / alpha, jnp.sqrt(variance) / alpha
        draws, mean, acceptance, ess, cost = self._posterior(key_inner, path, noisy, width)
        # The step from X_t to X_t' with the posterior's mean for X_0: exact in the linear part and the noise.
        ratio = alpha / next_alpha
        between = s2 * (1 - ratio**2)
        drift = ratio * next_variance / variance * centred + next_alpha * between / variance * (mean - path.anchor)
        noise = jax.random.normal(key_noise, centred.shape, centred.dtype)
        return RDMCState(
            noisy=path.anchor + drift + jnp.sqrt(between * next_variance / variance) * noise,
            draws=draws,
            acceptance=state.acceptance + acceptance,
            smallest_ess=jnp.minimum(state.smallest_ess, ess),
            evaluations=state.evaluations + cost,
        )

    def _posterior(
        self, rng_key: PRNGKey, path: AnnealingPath, noisy: Position, width: Scalar
    ) -> tuple[Point, Position, Array, Array, Evaluations]:
        """Return draws of the target given a noisy position, their mean over all moves, rates, and the cost."""
        key_draw, key_select, key_moves = jax.random.split(rng_key, 3)
        n, dim, dtype = self.n_inner, noisy.shape[0], noisy.dtype
        candidates = noisy[None] + width * jax.random.normal(key_draw, (n, dim), dtype)
        points, costs = jax.vmap(path.evaluate)(candidates)
        log_weights = points.target.log_density
        normalised = log_weights - jax.nn.logsumexp(log_weights)
        ess = jnp.exp(-jax.nn.logsumexp(2 * normalised)) / n
        points = jax.tree.map(lambda a: a[systematic(key_select, log_weights)], points)
        posterior = DenoisingPosterior(path, noisy, width)
        kernel = MALA(1 / (1 / self.step_size.astype(dtype) + dim ** (1 / 3) / width**2))

        def move(
            i: IntScalar, carry: tuple[Point, Array, Array, Evaluations]
        ) -> tuple[Point, Array, Array, Evaluations]:
            at, total, acceptance, made = carry
            noise = draw_noise(jax.random.fold_in(key_moves, i), (n,), dim, dtype)
            new, info = jax.vmap(lambda z, p: kernel.move(z, p, posterior))(noise, at)
            total = total + jnp.mean(new.position, axis=0)
            return new, total, acceptance + jnp.mean(info.acceptance_prob), made + info.evaluations.sum()

        zero = jnp.zeros((), dtype)
        start = (points, jnp.mean(points.position, axis=0), zero, costs.sum())
        points, total, acceptance, cost = jax.lax.fori_loop(0, self.n_moves, move, start)
        # NaN if no candidate lies inside the support.
        ess = jnp.where(jnp.isnan(ess), 0, ess)
        return points, total / (self.n_moves + 1), acceptance / self.n_moves, ess, cost

    def point(self, state: RDMCState) -> Point:
        """Return one of the last posterior's draws."""
        return jax.tree.map(lambda a: a[0], state.draws)

    def statistics(self, state: RDMCState) -> RDMCStatistics:
        """Return acceptance and the smallest effective share."""
        return RDMCStatistics(state.acceptance / jnp.maximum(self.n_steps, 1), state.smallest_ess)

    def cost_init(self) -> int:
        """One evaluation of the anchor."""
        return 1

    def cost_step(self) -> int:
        """Return the cost of the candidates and of every inner chain's moves."""
        return self.n_inner * (1 + int(self.n_moves))
