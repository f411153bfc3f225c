from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array, IntScalar, PRNGKey
from cdsampler.benchmark import _symmetries as symmetries
from cdsampler.benchmark.references._hmc import AbstractHMCRecipe, Starts
from cdsampler.density import AbstractLogDensity
from cdsampler.targets import LennardJones, icosahedron
from cdsampler.tuning import find_mode

# A hot start: a cloud of this width for 13 particles, denser than a gas and looser than the cluster, ...
CLOUD_WIDTH = 0.9
# ... relaxed by steps downhill, each particle by at most this far.
RELAXATION_STEPS, RELAXATION_REACH, RELAXATION_RATE = 300, 0.02, 1e-3


@dataclass(frozen=True)
class LennardJonesHMC(AbstractHMCRecipe):
    """Chains from the icosahedral minimum and from relaxed random clouds; then random symmetries for each sample.

    Parameters
    ----------
    n_particles
        13 or 55, or 3 to be quick.
    """

    n_particles: int
    method: ClassVar[str] = "Hamiltonian Monte Carlo with random rotations, reflections and permutations"
    minutes: ClassVar[float] = 2.0
    groups: ClassVar[tuple[str, str]] = ("minimum", "hot")

    @property
    def dim(self) -> int:
        """Coordinates of all particles."""
        return 3 * self.n_particles

    def density(self) -> AbstractLogDensity:
        """Return the density on configurations of zero centroid; float32 is fine for energies of tens or hundreds."""
        return LennardJones(self.n_particles).density(np.float32)

    def starts(self, rng_key: PRNGKey) -> Starts:
        """Return the minimum and relaxed clouds, alternately."""
        target = LennardJones(self.n_particles)
        width = CLOUD_WIDTH * (self.n_particles / 13) ** (1 / 3)
        shape = (self.chains_per_block, target.dim)
        clouds = _relaxed(self.density(), width * jax.random.normal(rng_key, shape, jnp.float32))
        group = np.arange(self.chains_per_block) % 2
        minimum = jnp.asarray(_minimum(self.n_particles), jnp.float32)
        return Starts(jnp.where(group[:, None] == 0, minimum[None, :], clouds), group)

    def to_samples(self, rng: np.random.Generator, positions: np.ndarray) -> np.ndarray:
        """Return particle positions, turned, mirrored and renamed at random: the density has these symmetries."""
        target = LennardJones(self.n_particles)
        particles = np.asarray(jax.vmap(target.to_positions)(jnp.asarray(positions)), dtype=np.float64)
        return symmetries.of_cluster(rng, particles.reshape(len(particles), -1))


@cache
def _minimum(n_particles: int) -> np.ndarray:
    """Return the free coordinates of the minimum next to the icosahedron, or next to a triangle of three."""
    target = LennardJones(n_particles)
    guess = icosahedron(n_particles) if n_particles in (13, 55) else np.eye(3) / np.sqrt(2)
    with jax.enable_x64(False):  # it's kept: whoever asks first must not matter
        return find_mode(target.density(np.float32), np.asarray(target.from_positions(jnp.asarray(guess)))).position


@eqx.filter_jit
def _relaxed(density: AbstractLogDensity, positions: Array) -> Array:
    def downhill(_: IntScalar, x: Array) -> Array:
        _value, gradient, _cost = jax.vmap(density.value_and_gradient)(x)
        return x + jnp.clip(RELAXATION_RATE * gradient, -RELAXATION_REACH, RELAXATION_REACH)

    return jax.lax.fori_loop(0, RELAXATION_STEPS, downhill, positions)
