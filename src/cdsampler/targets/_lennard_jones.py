from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap
from numpy.typing import DTypeLike

from cdsampler._typing import Array, Float, Position, Scalar
from cdsampler.density import LogDensity
from cdsampler.errors import InvalidInputError
from cdsampler.targets._base import AbstractParticleTarget
from cdsampler.targets._zero_centroid import from_free, to_free

# Below this distance the pair potential is continued by its cubic Taylor polynomial.
SHORT_RANGE = 0.65
N_PARTICLES = (13, 55)


class LennardJones(AbstractParticleTarget):
    """A cluster of Lennard-Jones particles in a harmonic trap about their own centroid.

    `ℓ(x) = -[2 Σ_{i<j} (r⁻¹² - 2 r⁻⁶) + ½ Σ_i ‖x_i - x̄‖²]` with ε = 1, r_m = 1 and T = 1. The sum over pairs is
    doubled, as in the published benchmark. Below r = 0.65 a pair's energy goes on as its cubic Taylor polynomial,
    which is finite, repulsive and three times continuously differentiable; particles of equilibrium samples stay
    above 0.8.

    The density is flat along the centroid, so it lives on the configurations whose centroid is zero: coordinates are
    the `3 (N-1)` isometric ones of `to_positions`, in which log Z is well defined.

    Parameters
    ----------
    n_particles
        An odd number, at least 3.

    Raises
    ------
    InvalidInputError
        Another number of particles.

    Notes
    -----
    Köhler et al. 2020, 'Equivariant Flows', for the potential. Its deepest known modes are the Mackay icosahedra, with
    ℓ = 83.0896 (13 particles) and 491.637 (55), trap included; the trap holds them a little tighter than the minima
    of the bare pair sum, of which 2 · 44.3268 and 2 · 279.2485 would be the depths.
    """

    name: str = eqx.field(static=True)
    dim: int = eqx.field(static=True)
    n_particles: int = eqx.field(static=True)

    def __init__(self, n_particles: int):
        is_whole = isinstance(n_particles, int | np.integer) and not isinstance(n_particles, bool)
        if not is_whole or n_particles < 3 or n_particles % 2 == 0:
            raise InvalidInputError(
                f"n_particles must be odd and at least 3, got {n_particles!r}: give a number as 13."
            )
        self.name = f"lj-{n_particles}"
        self.n_particles = n_particles
        self.dim = 3 * (n_particles - 1)

    def density(self, dtype: DTypeLike | None = None) -> LogDensity:
        """Return the log density on the subspace, with its gradient in closed form."""
        return LogDensity(self.log_density, self.dim, value_and_grad=self.value_and_gradient, dtype=dtype)

    def log_density(self, q: Position) -> Scalar:
        """Return the log density at one point of the subspace; differentiable to any order."""
        return -_energy(self.to_positions(q))

    def value_and_gradient(self, q: Position) -> tuple[Scalar, Position]:
        """Return log density and gradient at one point of the subspace."""
        energy, gradient = _energy_and_gradient(q.reshape(self.n_particles - 1, 3))
        return -energy, -gradient.reshape(self.dim)

    def to_positions(self, q: Position) -> Float[Array, "particles 3"]:
        """Return the particles' positions, of zero centroid, in units of r_m."""
        return from_free(q.reshape(self.n_particles - 1, 3))

    def from_positions(self, positions: Float[Array, "particles 3"]) -> Position:
        """Return the coordinates of a configuration, whatever its centroid."""
        return to_free(positions).reshape(self.dim)


def lennard_jones(n_particles: int) -> LennardJones:
    """Return one of the paper's clusters, LJ-13 or LJ-55.

    Parameters
    ----------
    n_particles
        13 or 55.

    Raises
    ------
    InvalidInputError
        Another number.
    """
    _check_published(n_particles)
    return LennardJones(n_particles)


def icosahedron(n_particles: int) -> np.ndarray:
    """Return the icosahedron of 13 particles, or Mackay's of 55: next to the minima of the clusters.

    Parameters
    ----------
    n_particles
        13 or 55.

    Returns
    -------
    ndarray, shape (n_particles, 3)
        Edges are near 1, in units of r_m.

    Raises
    ------
    InvalidInputError
        Another number.
    """
    _check_published(n_particles)
    golden = (1 + np.sqrt(5)) / 2
    signs = [(a, b) for a in (-1, 1) for b in (-1, 1)]
    vertices = np.array([np.roll((0.0, a, b * golden), shift) for shift in range(3) for a, b in signs]) / 2
    shells = [np.zeros((1, 3)), vertices]
    if n_particles == 55:
        first, second = np.triu_indices(12, 1)
        is_edge = np.linalg.norm(vertices[first] - vertices[second], axis=1) < 1.1
        # Midpoints of the edges of the outer shell, which is twice as large.
        shells += [(vertices[first] + vertices[second])[is_edge], 2 * vertices]
    return np.concatenate(shells)


def _check_published(n_particles: int) -> None:
    if n_particles not in N_PARTICLES:
        raise InvalidInputError(f"The published clusters have 13 or 55 particles, got {n_particles}.")


class _Taylor(NamedTuple):
    """Value and derivatives of `r⁻¹² - 2 r⁻⁶` at the start of the short range."""

    value: float
    first: float
    second: float
    third: float


def _taylor(r: float) -> _Taylor:
    return _Taylor(
        r**-12 - 2 * r**-6,
        -12 * r**-13 + 12 * r**-7,
        156 * r**-14 - 84 * r**-8,
        -2184 * r**-15 + 672 * r**-9,
    )


TAYLOR = _taylor(SHORT_RANGE)


def pair_energy(squared_distance: Array) -> tuple[Array, Array]:
    """Return the energy of pairs and its derivative by r, divided by r.

    Parameters
    ----------
    squared_distance : Array, shape (...)
    """
    is_short = squared_distance < SHORT_RANGE**2
    value, slope = _long_range(jnp.where(is_short, SHORT_RANGE**2, squared_distance))
    r = jnp.sqrt(jnp.where(is_short, jnp.maximum(squared_distance, 1e-12), SHORT_RANGE**2))
    s = r - SHORT_RANGE
    cubic = TAYLOR.value + s * (TAYLOR.first + s * (TAYLOR.second / 2 + s * TAYLOR.third / 6))
    cubic_slope = (TAYLOR.first + s * (TAYLOR.second + s * TAYLOR.third / 2)) / r
    return jnp.where(is_short, cubic, value), jnp.where(is_short, cubic_slope, slope)


def _long_range(squared_distance: Array) -> tuple[Array, Array]:
    inverse = 1 / squared_distance
    sixth = inverse * inverse * inverse
    return sixth * sixth - 2 * sixth, -12 * (sixth * sixth - sixth) * inverse


def _energy(positions: Array) -> Scalar:
    first, second = np.triu_indices(len(positions), 1)
    difference = positions[first] - positions[second]
    pairs, _ = pair_energy(jnp.sum(difference * difference, axis=1))
    return 2 * jnp.sum(pairs) + 0.5 * jnp.sum(positions * positions)


def _batched(x: Array) -> tuple[Array, Array]:
    """Return energies and gradients of a batch of free points, shape (batch, N-1, 3).

    The batch is the fastest axis, so that every operation on a pair is one on vectors.
    """
    positions = from_free(jnp.transpose(x, (1, 2, 0)))
    energy, force, nearest = _pair_sums(positions, _long_range)
    # The continuation costs as much again, and configurations that need it are rare.
    energy, force = jax.lax.cond(
        jnp.min(nearest) < SHORT_RANGE**2, lambda: _pair_sums(positions, pair_energy)[:2], lambda: (energy, force)
    )
    trap = 0.5 * jnp.sum(positions * positions, axis=(0, 1))
    # `to_free` is the transpose of the isometry on vectors of zero sum, and forces between particles sum to zero.
    gradient = to_free(2 * force + positions)
    return 2 * energy + trap, jnp.transpose(gradient, (2, 0, 1))


def _pair_sums(positions: Array, pair: Callable[[Array], tuple[Array, Array]]) -> tuple[Array, Array, Array]:
    """Return sums over pairs of energies and of gradients, and least squared distances.

    Pairs are visited by cyclic shifts of the particles: each once, and without a table of N² distances.
    """
    n = positions.shape[0]
    twice = jnp.concatenate([positions, positions], axis=0)

    def shifted(shift: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        energy, force, nearest = carry
        difference = positions - jax.lax.dynamic_slice_in_dim(twice, shift, n, 0)
        squared = jnp.sum(difference * difference, axis=1)
        value, slope = pair(squared)
        pull = slope[:, None, :] * difference
        force = force.at[:n].add(pull)
        opposite = jax.lax.dynamic_slice_in_dim(force, shift, n, 0) - pull
        force = jax.lax.dynamic_update_slice_in_dim(force, opposite, shift, 0)
        return energy + jnp.sum(value, axis=0), force, jnp.minimum(nearest, squared)

    start = (jnp.zeros_like(positions[0, 0]), jnp.zeros_like(twice), jnp.full_like(positions[:, 0], jnp.inf))
    energy, force, nearest = jax.lax.fori_loop(1, (n + 1) // 2, shifted, start)
    return energy, force[:n] + force[n:], nearest


def _flattening(function: Callable[[Array], tuple[Array, Array]]) -> Callable[[Array], tuple[Array, Array]]:
    """Return the function of a batch such that a further vmap makes one larger batch."""

    @custom_vmap
    def apply(x: Array) -> tuple[Array, Array]:
        return function(x)

    @apply.def_vmap
    def rule(size: int, _: list[bool], x: Array) -> tuple[tuple[Array, Array], tuple[bool, bool]]:
        merged = apply(x.reshape(-1, *x.shape[2:]))
        split = jax.tree.map(lambda a: a.reshape(size, -1, *a.shape[1:]), merged)
        return split, (True, True)

    return apply


_flat_batch = _flattening(_batched)


@custom_vmap
def _energy_and_gradient(x: Array) -> tuple[Array, Array]:
    energy, gradient = _batched(x[None])
    return energy[0], gradient[0]


@_energy_and_gradient.def_vmap
def _rule(size: int, _: list[bool], x: Array) -> tuple[tuple[Array, Array], tuple[bool, bool]]:
    return _flat_batch(x), (True, True)
