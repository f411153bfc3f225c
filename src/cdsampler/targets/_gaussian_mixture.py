from importlib.resources import files

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import DTypeLike

from cdsampler._typing import Array, Float, Position, PRNGKey, Scalar
from cdsampler.density import LogDensity
from cdsampler.errors import InvalidInputError
from cdsampler.targets._base import AbstractExactTarget

N_MODES = 40
VARIANCE = 1.3132616875182228  # softplus(1)
N_HEAVY = 6  # 15 % of 40
HEAVY_WEIGHT = 20.0


class GaussianMixture(AbstractExactTarget):
    """A normalised mixture of Gaussians with one common isotropic variance; log Z = 0.

    Parameters
    ----------
    name
        Name of the target.
    means : Array, shape (n_modes, dim)
    weights : Array, shape (n_modes,)
        Normalised here.
    variance
        Of every component in every direction.
    """

    name: str = eqx.field(static=True)
    dim: int = eqx.field(static=True)
    means: Array
    log_weights: Array
    variance: Array

    def __init__(self, name: str, means: np.ndarray, weights: np.ndarray, variance: float):
        means, weights = np.asarray(means, dtype=np.float64), np.asarray(weights, dtype=np.float64)
        if means.ndim != 2 or weights.shape != (len(means),):
            raise InvalidInputError(
                f"means must have shape (n_modes, dim) and weights (n_modes,), got {means.shape} and {weights.shape}."
            )
        if not (np.all(weights > 0) and variance > 0):
            raise InvalidInputError("Weights and variance must be positive.")
        self.name = name
        self.dim = means.shape[1]
        dtype = jnp.zeros(()).dtype
        self.means = jnp.asarray(means, dtype)
        self.log_weights = jnp.asarray(np.log(weights / weights.sum()), dtype)
        self.variance = jnp.asarray(variance, dtype)

    @property
    def mode_weights(self) -> Array:
        """Weight of each component, shape (n_modes,)."""
        return jnp.exp(self.log_weights)

    def density(self, dtype: DTypeLike | None = None) -> LogDensity:
        """Return the log density, with its gradient in closed form."""
        wanted = np.dtype(jnp.zeros(()).dtype if dtype is None else dtype)
        cast = jax.tree.map(lambda a: a.astype(wanted), self)
        return LogDensity(cast.log_density, self.dim, value_and_grad=cast.value_and_gradient, dtype=wanted)

    def log_density(self, y: Position) -> Scalar:
        """Return the log density at one point."""
        return self.value_and_gradient(y)[0]

    def value_and_gradient(self, y: Position) -> tuple[Scalar, Position]:
        """Return log density and gradient at one point."""
        # The square is expanded, so that a batch of points is one matrix product.
        scores = self._scores(y)
        largest = jnp.max(scores)
        unnormalised = jnp.exp(scores - largest)
        total = jnp.sum(unnormalised)
        log_norm = 0.5 * self.dim * jnp.log(2 * jnp.pi * self.variance)
        value = largest + jnp.log(total) - 0.5 * jnp.sum(y * y) / self.variance - log_norm
        mean = (unnormalised / total) @ self.means
        return value, (mean - y) / self.variance

    def sample(self, rng_key: PRNGKey, n_samples: int) -> Float[Array, "n dim"]:
        """Draw independent samples."""
        key_mode, key_noise = jax.random.split(rng_key)
        mode = jax.random.categorical(key_mode, self.log_weights, shape=(n_samples,))
        noise = jax.random.normal(key_noise, (n_samples, self.dim), self.means.dtype)
        return self.means[mode] + jnp.sqrt(self.variance) * noise

    def responsibilities(self, positions: Float[Array, "n dim"]) -> Float[Array, "n modes"]:
        """Return the posterior probability of each component at each position."""
        return jax.nn.softmax(jax.vmap(self._scores)(positions), axis=-1)

    def _scores(self, y: Position) -> Array:
        norms = 0.5 * jnp.sum(self.means * self.means, axis=-1)
        return (self.means @ y - norms) / self.variance + self.log_weights


def gaussian_mixture(dim: int, *, uniform: bool) -> GaussianMixture:
    """Return one of the paper's 40-component mixtures: GM-2, GM-16, GMNU-2 or GMNU-16.

    Parameters
    ----------
    dim
        2 or 16.
    uniform
        Equal weights (GM); otherwise the first six components weigh 20 times the others (GMNU).

    Raises
    ------
    InvalidInputError
        Another dimension.
    """
    if dim not in (2, 16):
        raise InvalidInputError(f"The published mixtures have 2 or 16 dimensions, got {dim}.")
    with files("cdsampler.targets").joinpath(f"data/gm_means_{dim}.npy").open("rb") as file:
        means = np.load(file)
    weights = np.ones(N_MODES)
    if not uniform:
        weights[:N_HEAVY] = HEAVY_WEIGHT
    return GaussianMixture(f"gm{'' if uniform else 'nu'}-{dim}", means, weights, VARIANCE)
