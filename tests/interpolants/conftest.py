from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from numpyro.distributions.transforms import ExpTransform

from cdsampler.charts import NumpyroChart
from cdsampler.density import LogDensity
from cdsampler.interpolants import AutodiffInterpolant, ChartedInterpolant, Linear, Trigonometric, conditional_density

CLOSED = {
    "linear": Linear(),
    "trigonometric": Trigonometric(),
    "charted": ChartedInterpolant(Linear(), NumpyroChart(ExpTransform())),
}
AUTODIFF = {f"autodiff-{name}": AutodiffInterpolant(i.forward, i.inverse) for name, i in CLOSED.items()}


def compiled(interpolant):
    return SimpleNamespace(
        interpolant=interpolant,
        forward=eqx.filter_jit(interpolant.forward),
        inverse=eqx.filter_jit(interpolant.inverse),
        log_det=eqx.filter_jit(interpolant.log_det),
        velocity=eqx.filter_jit(interpolant.velocity),
    )


COMPILED = {name: compiled(interpolant) for name, interpolant in {**CLOSED, **AUTODIFF}.items()}


@pytest.fixture(params=COMPILED)
def maps(request):
    """Each interpolant, its methods compiled once."""
    return COMPILED[request.param]


@pytest.fixture(params=CLOSED)
def pair(request):
    """An interpolant in closed form and the same one by automatic differentiation."""
    return COMPILED[request.param], COMPILED[f"autodiff-{request.param}"]


@pytest.fixture(params=CLOSED)
def closed(request):
    return CLOSED[request.param]


@pytest.fixture(scope="session")
def place():
    """Return an anchor and a point that suit every interpolant."""
    return jnp.array([0.4, 2.0, 1.1]), jnp.array([3.0, 0.2, 0.9])


@pytest.fixture(scope="session")
def gamma():
    """Return independent Gamma(3) coordinates, dimension 3: positive, so that every interpolant applies."""
    return LogDensity(lambda y: jnp.sum(2 * jnp.log(y) - y), 3)


@pytest.fixture(scope="session")
def conditional_value():
    """Return `log π_{t|z}(x)`, compiled."""

    @eqx.filter_jit
    def value(density, interpolant, anchor, t, x):
        return conditional_density(density, interpolant, anchor, t).value(x)[0]

    return value


@pytest.fixture(scope="session")
def conditional_score():
    """Return value, score and counts of `π_{t|z}`, with the gradient of its value by automatic differentiation."""

    @eqx.filter_jit
    def score(density, interpolant, anchor, t, x):
        conditional = conditional_density(density, interpolant, anchor, t)
        return *conditional.value_and_gradient(x), *jax.value_and_grad(lambda v: conditional.value(v)[0])(x)

    return score
