import equinox as eqx
import jax.numpy as jnp
import pytest

from cdsampler.density import Component, LogDensity, Point
from cdsampler.paths import AnnealingPath, GaussianReference


@pytest.fixture(scope="session")
def gaussian_path():
    """Return the path from N((1, -2), 1.5² I) to exp(-|x0|³ - |x1|³), cut off at x0 <= 0."""

    def log_density(x):
        return jnp.where(x[0] > 0, -jnp.sum(jnp.abs(x) ** 3), -jnp.inf)

    return AnnealingPath(GaussianReference(1.5), LogDensity(log_density, 2), jnp.array([1.0, -2.0]))


@pytest.fixture(scope="session")
def evaluate(gaussian_path):
    return eqx.filter_jit(gaussian_path.evaluate), eqx.filter_jit(gaussian_path.evaluate_value)


@pytest.fixture(scope="session")
def made_up_point():
    """Return a point with the given log densities and gradients (1, 2) in the reference and (10, 20) in the target."""

    def make(reference, target):
        gradient = jnp.array([1.0, 2.0])
        return Point(
            jnp.zeros(2),
            Component(jnp.asarray(reference, float), gradient),
            Component(jnp.asarray(target, float), 10 * gradient),
        )

    return make
