import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler.metrics import ExactReference
from cdsampler.targets import AbstractExactTarget


def exact_reference(target: AbstractExactTarget) -> ExactReference:
    """Return what metrics need of a target that can be sampled exactly; none of it is charged to a sampler."""
    density = target.density()

    @eqx.filter_jit
    def log_density(x: jax.Array) -> jax.Array:
        return jax.vmap(lambda y: density.value(y)[0])(x)

    def sample(seed: int, n: int) -> np.ndarray:
        return np.asarray(target.sample(jax.random.key(seed), n), dtype=np.float64)

    return ExactReference(
        sample=sample,
        log_density=lambda x: np.asarray(log_density(jnp.asarray(x, density.dtype)), dtype=np.float64),
        responsibilities=lambda x: np.asarray(target.responsibilities(jnp.asarray(x, density.dtype)), dtype=np.float64),
        weights=np.asarray(target.mode_weights, dtype=np.float64),
    )
