import jax
import jax.numpy as jnp
import jaxtyping
import pytest

from cdsampler.density import LogDensity

GRADIENT = {"finite": 2.0, "nan": jnp.nan, "inf": jnp.inf, "-inf": -jnp.inf}


@pytest.fixture
def without_type_checks():
    """Reach the library's own checks with arguments that the run-time type checker would stop first."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


@pytest.fixture(scope="session")
def outcome():
    """Evaluate a density whose value is the first coordinate and whose gradient is the second one, in every entry."""
    density = LogDensity(lambda x: x[0], 2, value_and_grad=lambda x: (x[0], jnp.full(2, x[1])))
    value, both = jax.jit(density.value), jax.jit(density.value_and_gradient)

    def evaluate(number, slope):
        point = jnp.array([number, slope])
        return value(point), both(point)

    return evaluate
