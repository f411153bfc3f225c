"""Independent annealed chains from a wide reference: how a pilot finds modes before anything is known of them."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array, PRNGKey, Scalar
from cdsampler.density import AbstractLogDensity, Evaluations, Point, check_bounded
from cdsampler.kernels import MALA, AbstractKernel, RandomWalk, draw_noise
from cdsampler.paths import AbstractReference, AnnealingPath, FlatReference

# Change of Δβ·(log ratio) from one temperature to the next, in robust standard deviations.
STRIDE = 1.0
MAX_TEMPERATURES = 400


class Annealed(NamedTuple):
    """Where the chains of one annealing ended.

    Attributes
    ----------
    positions : ndarray, shape (n_chains, dim)
    log_density : ndarray, shape (n_chains,)
        Unnormalised; all finite.
    log_weights : ndarray, shape (n_chains,)
        Of annealed importance sampling, as estimates of log Z: a chain that got stuck far out has hardly any.
    roughness : ndarray, shape (n_chains,)
        Squared gradient over dim, where the chains ended: about 1 in a mode of unit width, 1/w² in one of width w. 1
        where the density has no gradient.
    betas : ndarray, shape (n_temperatures,)
        From 0 to 1.
    rejection : ndarray, shape (n_temperatures - 1,)
        Of swaps between neighbouring temperatures: their sum estimates the barrier.
    step_sizes : ndarray, shape (n_temperatures,)
        MALA's, adapted on the way down. Of a random walk, half the square of the proposal's standard deviation.
    evaluations : Evaluations
    """

    positions: np.ndarray
    log_density: np.ndarray
    log_weights: np.ndarray
    roughness: np.ndarray
    betas: np.ndarray
    rejection: np.ndarray
    step_sizes: np.ndarray
    evaluations: Evaluations


def anneal(
    density: AbstractLogDensity,
    reference: AbstractReference,
    anchor: np.ndarray,
    rng_key: PRNGKey,
    *,
    n_chains: int,
    step_size: float,
    n_moves: int = 2,
    n_final_moves: int = 4,
    max_evaluations: int | None = None,
) -> Annealed:
    """Draw from the reference and anneal every draw down to the target by MALA, without resampling.

    A density without a gradient gets a random walk.

    Chains never interact but through the common temperatures and step size, so how many ended in each mode counts
    independent finds.

    Parameters
    ----------
    density
        Target.
    reference
        A proper one.
    anchor : array_like, shape (dim,)
    rng_key
    n_chains
    step_size
        MALA's at β = 0; it is adapted from there.
    n_moves
        MALA steps at each temperature.
    n_final_moves
        Further steps at β = 1.
    max_evaluations
        Hard limit; if it is reached the chains jump to β = 1 from where they are.

    Returns
    -------
    Annealed
        Without chains if no reference draw lies inside the support.
    """
    key_start, key_inside, key_moves = jax.random.split(rng_key, 3)
    path = AnnealingPath(reference, density, jnp.asarray(anchor, density.dtype))
    points, cost = _draw(path, jax.random.split(key_start, n_chains))
    check_bounded(cost, points)
    made = cost
    inside = _inside(points, key_inside)
    if inside is None:
        nothing = np.zeros(0)
        return Annealed(np.zeros((0, density.dim)), nothing, nothing, nothing, nothing, nothing, nothing, made.total())
    points = inside
    beta, betas, steps, rejection = 0.0, [0.0], [step_size], []
    log_weights = np.zeros(n_chains)
    while beta < 1:
        left = np.inf if max_evaluations is None else max_evaluations - int(made.total().count)
        must_jump = left < (2 * n_moves + n_final_moves) * n_chains or len(betas) >= MAX_TEMPERATURES
        ratio = np.asarray(points.log_ratio, dtype=np.float64)
        beta = 1.0 if must_jump else min(1.0, beta + STRIDE / max(_spread(ratio), 1e-30))
        log_weights += (beta - betas[-1]) * ratio
        moves = n_moves if beta < 1 else n_moves + n_final_moves
        if moves * n_chains > left:
            moves = max(int(left) // n_chains, 0)
        key = jax.random.fold_in(key_moves, len(betas))
        points, step, cost = _move(
            path, points, key, jnp.asarray(beta), jnp.asarray(float(steps[-1])), jnp.int32(moves)
        )
        check_bounded(cost, points)
        made = made + cost
        rejection.append(_swap_rejection(beta - betas[-1], ratio, np.asarray(points.log_ratio, dtype=np.float64)))
        betas.append(beta)
        steps.append(float(step))
    return Annealed(
        np.asarray(points.position, dtype=np.float64),
        np.asarray(points.target.log_density, dtype=np.float64),
        log_weights,
        _roughness(points, density.has_gradient),
        np.asarray(betas),
        np.asarray(rejection),
        np.asarray(steps),
        made.total(),
    )


def local_chains(
    density: AbstractLogDensity, start: np.ndarray, rng_key: PRNGKey, *, n_chains: int, n_moves: int, n_kept: int = 2
) -> tuple[np.ndarray, np.ndarray, Evaluations]:
    """Run MALA from one point; return positions, log densities and the cost, `n_moves * n_chains + 1` evaluations.

    Parameters
    ----------
    density
        Target.
    start : ndarray, shape (dim,)
    rng_key
    n_chains
    n_moves
        Steps.
    n_kept
        How many states of each chain are returned, at equal distances and one time after the other.
    """
    path = AnnealingPath(FlatReference(), density, jnp.asarray(start, density.dtype))
    point, made = _evaluate(path)
    check_bounded(made, point)
    points = jax.tree.map(lambda a: jnp.broadcast_to(a, (n_chains, *a.shape)), point)
    step, kept = jnp.asarray(density.dim ** (-1 / 3)), []
    for part in range(n_kept):
        key = jax.random.fold_in(rng_key, part)
        points, step, cost = _move(path, points, key, jnp.ones(()), step, jnp.int32(n_moves // n_kept))
        check_bounded(cost, points)
        made = made + cost
        kept.append(points)
    positions = np.concatenate([np.asarray(p.position) for p in kept])
    return positions, np.concatenate([np.asarray(p.target.log_density) for p in kept]), made.total()


def _roughness(points: Point, has_gradient: bool) -> np.ndarray:
    gradient = np.asarray(points.target.gradient, dtype=np.float64)
    return np.mean(gradient**2, axis=1) if has_gradient else np.ones(len(gradient))


def _spread(log_ratio: np.ndarray) -> float:
    """Return half the distance between the 16 and 84 % quantiles: a few bad draws mustn't stop the descent."""
    low, high = np.quantile(log_ratio, [0.16, 0.84])
    return float(0.5 * (high - low))


def _swap_rejection(gap: float, hot: np.ndarray, cold: np.ndarray) -> float:
    """Return the mean rejection of a swap between a hot and a cold population, over all their pairs."""
    log_alpha = gap * (hot[:, None] - cold[None, :])
    return float(np.mean(-np.expm1(np.minimum(log_alpha, 0.0))))


@eqx.filter_jit
def _evaluate(path: AnnealingPath) -> tuple[Point, Evaluations]:
    return path.evaluate_available(path.anchor)


@eqx.filter_jit
def _draw(path: AnnealingPath, keys: Array) -> tuple[Point, Evaluations]:
    points, costs = jax.vmap(lambda key: path.evaluate_available(path.sample_reference(key)))(keys)
    return points, costs.sum()


@eqx.filter_jit
def _move(
    path: AnnealingPath, points: Point, rng_key: PRNGKey, beta: Scalar, step_size: Scalar, n_moves: Array
) -> tuple[Point, Array, Evaluations]:
    """Take steps at one β, adapting the pooled step size; return points, step size and cost."""
    n, dim = points.position.shape
    dtype = points.position.dtype
    density = path.at(beta.astype(dtype))
    has_gradient = path.density.has_gradient

    def body(i: Array, carry: Any) -> Any:
        at, step, made = carry
        noise = draw_noise(jax.random.fold_in(rng_key, i), (n,), dim, dtype)
        kernel: AbstractKernel = MALA(step) if has_gradient else RandomWalk(jnp.sqrt(2 * step))
        moved, info = jax.vmap(lambda z, p: kernel.move(z, p, density))(noise, at)
        gain = 2.0 * (jnp.mean(info.acceptance_prob) - kernel.target_acceptance)
        return moved, step * jnp.exp(gain).astype(step.dtype), made + info.evaluations.sum()

    return jax.lax.fori_loop(0, n_moves, body, (points, step_size, Evaluations.zero()))


def _inside(points: Point, rng_key: PRNGKey) -> Point | None:
    """Replace draws outside the support by copies of others: draws of the reference within the support."""
    inside = np.flatnonzero(np.asarray(points.target.log_density) > -np.inf)
    n = len(points.target.log_density)
    if len(inside) == 0:
        return None
    if len(inside) == n:
        return points
    chosen = np.array(jax.random.choice(rng_key, jnp.asarray(inside), (n,)))
    chosen[inside] = inside
    return jax.tree.map(lambda a: a[chosen], points)
