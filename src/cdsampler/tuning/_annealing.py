"""Independent annealed chains from a wide reference: how a pilot finds modes before anything is known of them."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array, PRNGKey, Scalar
from cdsampler.density import AbstractLogDensity, Evaluations, Point, check_bounded
from cdsampler.journal import AbstractEntry, NoEntry
from cdsampler.kernels import MALA, AbstractKernel, RandomWalk, draw_noise
from cdsampler.paths import AbstractReference, AnnealingPath, FlatReference
from cdsampler.samplers import Pace, in_blocks

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
    keep: AbstractEntry = NoEntry(),  # noqa: B008 - it has no state
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
    keep
        Is told how far the chains are after each temperature, and they begin where they were in an earlier session.

    Returns
    -------
    Annealed
        Without chains if no reference draw lies inside the support.
    """
    key_start, key_inside, key_moves = jax.random.split(rng_key, 3)
    path = AnnealingPath(reference, density, jnp.asarray(anchor, density.dtype))
    standing = keep.load()
    if standing is None:
        points, made = _draw(path, jax.random.split(key_start, n_chains))
        check_bounded(made, points)
        inside = _inside(points, key_inside)
        if inside is None:
            none = np.zeros(0)
            return Annealed(np.zeros((0, density.dim)), none, none, none, none, none, none, made.total())
        standing = inside, made, [0.0], [step_size], [], np.zeros(n_chains)
    points, made, betas, steps, rejection, log_weights = standing
    beta, pace = betas[-1], Pace()
    while beta < 1:
        left = np.inf if max_evaluations is None else max_evaluations - int(made.total().count)
        must_jump = left < (2 * n_moves + n_final_moves) * n_chains or len(betas) >= MAX_TEMPERATURES
        ratio = np.asarray(points.log_ratio, dtype=np.float64)
        beta = 1.0 if must_jump else min(1.0, beta + STRIDE / max(_spread(ratio), 1e-30))
        log_weights = log_weights + (beta - betas[-1]) * ratio
        moves = n_moves if beta < 1 else n_moves + n_final_moves
        if moves * n_chains > left:
            moves = max(int(left) // n_chains, 0)
        key = jax.random.fold_in(key_moves, len(betas))
        points, step, cost = _moved(path, points, key, beta, float(steps[-1]), moves, pace)
        check_bounded(cost, points)
        made = made + cost
        arrived = np.asarray(points.log_ratio, dtype=np.float64)
        rejection = [*rejection, _swap_rejection(beta - betas[-1], ratio, arrived)]
        betas, steps = [*betas, beta], [*steps, step]
        keep.offer((points, made, betas, steps, rejection, log_weights))
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
    density: AbstractLogDensity,
    start: np.ndarray,
    rng_key: PRNGKey,
    *,
    n_chains: int,
    n_moves: int,
    n_kept: int = 2,
    keep: AbstractEntry = NoEntry(),  # noqa: B008 - it has no state
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
    keep
        Is told of each of them, and the chains begin where they were in an earlier session.
    """
    path = AnnealingPath(FlatReference(), density, jnp.asarray(start, density.dtype))
    standing = keep.load()
    if standing is None:
        point, made = _evaluate(path)
        check_bounded(made, point)
        points = jax.tree.map(lambda a: jnp.broadcast_to(a, (n_chains, *a.shape)), point)
        standing = points, density.dim ** (-1 / 3), made, ()
    points, step, made, kept = standing
    pace = Pace()
    for part in range(len(kept), n_kept):
        key = jax.random.fold_in(rng_key, part)
        points, step, cost = _moved(path, points, key, 1.0, step, n_moves // n_kept, pace)
        check_bounded(cost, points)
        made = made + cost
        kept = (*kept, points)
        keep.offer((points, step, made, kept))
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


def _moved(
    path: AnnealingPath, points: Point, rng_key: PRNGKey, beta: float, step_size: float, n_moves: int, pace: Pace
) -> tuple[Point, float, Evaluations]:
    """Take MALA steps at one β, adapting the pooled step size; return points, step size and cost."""
    at = jnp.asarray(beta)
    # Of a strong type, as the loop returns it.
    step = jnp.asarray(step_size, jnp.zeros(()).dtype)
    points, step, made = in_blocks(
        lambda carry, first, last: _move(path, carry, rng_key, at, first, last),
        (points, step, Evaluations.zero()),
        n_moves,
        pace=pace,
    )
    return points, float(step), made


@eqx.filter_jit
def _move(
    path: AnnealingPath,
    carry: tuple[Point, Array, Evaluations],
    rng_key: PRNGKey,
    beta: Scalar,
    first: Array,
    last: Array,
) -> tuple[Point, Array, Evaluations]:
    """Take steps at one β, adapting the pooled step size; return points, step size and cost."""
    n, dim = carry[0].position.shape
    dtype = carry[0].position.dtype
    density = path.at(beta.astype(dtype))
    has_gradient = path.density.has_gradient

    def body(i: Array, carry: Any) -> Any:
        at, step, made = carry
        noise = draw_noise(jax.random.fold_in(rng_key, i), (n,), dim, dtype)
        kernel: AbstractKernel = MALA(step) if has_gradient else RandomWalk(jnp.sqrt(2 * step))
        moved, info = jax.vmap(lambda z, p: kernel.move(z, p, density))(noise, at)
        gain = 2.0 * (jnp.mean(info.acceptance_prob) - kernel.target_acceptance)
        return moved, step * jnp.exp(gain).astype(step.dtype), made + info.evaluations.sum()

    return jax.lax.fori_loop(first, last, body, carry)


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
