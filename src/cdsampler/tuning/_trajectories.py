"""Hamiltonian trajectories of many chains at once, and what their chains' moments say."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array, PRNGKey
from cdsampler.density import AbstractLogDensity, Evaluations, Point
from cdsampler.journal import AbstractEntry, NoEntry
from cdsampler.kernels import HMC, draw_noise
from cdsampler.paths import AnnealingPath, FlatReference
from cdsampler.samplers import in_blocks

# Above the optimum for a product density: rejections cost most where the density is rugged.
TARGET_ACCEPTANCE = 0.8


class Moments(NamedTuple):
    """Per chain, of the coordinates and the log density: means and mean squares; and mean squared jumps of all."""

    mean: Array
    square: Array
    jump: Array
    acceptance: Array


def variances(moments: Moments) -> tuple[np.ndarray, np.ndarray]:
    """Return the variances within and between chains of every coordinate and of the log density."""
    mean, square = np.asarray(moments.mean, np.float64), np.asarray(moments.square, np.float64)
    return np.maximum(square - mean**2, 0).mean(axis=0), mean.var(axis=0, ddof=1)


def trajectories(
    density: AbstractLogDensity,
    points: Point,
    kernel: HMC,
    rng_key: PRNGKey,
    n_adapt: int,
    n_steps: int,
    *,
    keep: AbstractEntry = NoEntry(),  # noqa: B008 - it has no state
) -> tuple[Point, HMC, Moments, Evaluations]:
    """Run trajectories, adapting the pooled step size in the first `n_adapt`, and measure over the others.

    `keep` is told how far they are, and they begin where they were in an earlier session.
    """
    n, dim = points.position.shape
    dtype = points.position.dtype
    # Of a strong type, as the loop returns it.
    step = jax.lax.convert_element_type(kernel.step_size, kernel.step_size.dtype)
    kernel = eqx.tree_at(lambda k: k.step_size, kernel, step)
    zeros = jnp.zeros((n, dim + 1), dtype)
    moments = Moments(zeros, zeros, zeros[0], jnp.zeros((), dtype))
    lengths = jnp.int32(n_adapt), jnp.int32(n_steps)
    origin = _origin(points)
    return in_blocks(
        lambda carry, first, last: _advance(density, carry, rng_key, points.position[0], origin, *lengths, first, last),
        (points, kernel, moments, Evaluations.zero()),
        n_steps,
        keep=keep,
    )


def _functionals(at: Point) -> Array:
    return jnp.concatenate([at.position, at.target.log_density[:, None]], axis=1)


@eqx.filter_jit
def _origin(points: Point) -> Array:
    # Squares of numbers far from zero would drown their variance.
    return _functionals(points).mean(axis=0, keepdims=True)


@eqx.filter_jit
def _advance(
    density: AbstractLogDensity,
    carry: tuple[Point, HMC, Moments, Evaluations],
    rng_key: PRNGKey,
    anchor: Array,
    origin: Array,
    n_adapt: Array,
    n_steps: Array,
    first: Array,
    last: Array,
) -> tuple[Point, HMC, Moments, Evaluations]:
    n, dim = carry[0].position.shape
    dtype = carry[0].position.dtype
    tempered = AnnealingPath(FlatReference(), density, anchor).at(jnp.ones((), dtype))

    def body(i: Array, carry: Any) -> Any:
        at, current, moments, made = carry
        noise = draw_noise(jax.random.fold_in(rng_key, i), (n,), dim, dtype, is_jittered=current.is_jittered)
        moved, info = jax.vmap(lambda z, p: current.move(z, p, tempered))(noise, at)
        acceptance = jnp.mean(info.acceptance_prob)
        gain = jnp.where(i < n_adapt, 2.0 * jnp.maximum(1.0 + i - n_adapt // 2, 1.0) ** -0.6, 0.0)
        step = current.step_size * jnp.exp(gain * (acceptance - TARGET_ACCEPTANCE)).astype(current.step_size.dtype)
        before, after = _functionals(at), _functionals(moved)
        centred = after - origin
        new = Moments(centred, centred * centred, jnp.mean((after - before) ** 2, axis=0), acceptance)
        weight = (i >= n_adapt).astype(dtype) / (n_steps - n_adapt).astype(dtype)
        moments = jax.tree.map(lambda total, a: total + weight * a.astype(dtype), moments, new)
        return moved, eqx.tree_at(lambda k: k.step_size, current, step), moments, made + info.evaluations.sum()

    return jax.lax.fori_loop(first, last, body, carry)
