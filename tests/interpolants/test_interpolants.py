import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.distributions.transforms import ExpTransform
from scipy.integrate import quad

from cdsampler.charts import NumpyroChart
from cdsampler.interpolants import ChartedInterpolant, Linear, Trigonometric

TIMES = [1e-3, 0.05, 0.3, 0.77, 1.0]


@pytest.mark.parametrize("t", TIMES)
def test_inverse_undoes_forward_and_back(maps, place, t):
    anchor, y = place
    t = jnp.asarray(t)
    x = maps.forward(anchor, y, t)
    # x keeps y - z to eps/t, in the worst case in the logarithm of a chart.
    np.testing.assert_allclose(maps.inverse(anchor, x, t), y, rtol=1e-14 / float(t) + 1e-14)
    np.testing.assert_allclose(maps.forward(anchor, maps.inverse(anchor, x, t), t), x, rtol=1e-12)


def test_identity_at_time_one(maps, place):
    anchor, y = place
    t = jnp.asarray(1.0)
    np.testing.assert_allclose(maps.forward(anchor, y, t), y, rtol=1e-14)
    np.testing.assert_allclose(maps.inverse(anchor, y, t), y, rtol=1e-14)
    np.testing.assert_allclose(maps.log_det(anchor, y, t), 0, atol=1e-14)


def test_contracts_to_the_anchor(maps, place):
    anchor, y = place
    distance = [float(jnp.linalg.norm(maps.forward(anchor, y, jnp.asarray(t)) - anchor)) for t in (1e-3, 1e-5, 1e-7)]
    assert distance[-1] < 1e-6
    np.testing.assert_allclose(np.array(distance[:-1]) / distance[1:], 100, rtol=0.02)  # in proportion to t


def test_forward_of_the_affine_interpolants(place):
    anchor, y = place
    t = jnp.asarray(0.3)
    np.testing.assert_allclose(Linear().forward(anchor, y, t), 0.7 * anchor + 0.3 * y, rtol=1e-14)
    a, b = np.cos(0.15 * np.pi), np.sin(0.15 * np.pi)
    np.testing.assert_allclose(Trigonometric().forward(anchor, y, t), a * anchor + b * y, rtol=1e-14)


def test_linear_interpolant_in_the_logarithm_is_the_weighted_geometric_mean(place):
    anchor, y = place
    interpolant = ChartedInterpolant(Linear(), NumpyroChart(ExpTransform()))
    np.testing.assert_allclose(interpolant.forward(anchor, y, jnp.asarray(0.3)), anchor**0.7 * y**0.3, rtol=1e-14)


@pytest.mark.parametrize("t", TIMES)
def test_log_det_is_that_of_the_jacobian(maps, place, t):
    anchor, y = place
    jacobian = jax.jacfwd(maps.interpolant.forward, argnums=1)(anchor, y, jnp.asarray(t))
    log_det = maps.log_det(anchor, y, jnp.asarray(t))
    assert log_det.shape == ()
    np.testing.assert_allclose(log_det, np.linalg.slogdet(jacobian)[1], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("t", TIMES)
def test_closed_form_agrees_with_automatic_differentiation(pair, place, t):
    (closed, automatic), (anchor, y), t = pair, place, jnp.asarray(t)
    x = closed.forward(anchor, y, t)
    np.testing.assert_allclose(automatic.forward(anchor, y, t), x, rtol=1e-14)
    np.testing.assert_allclose(automatic.log_det(anchor, y, t), closed.log_det(anchor, y, t), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(automatic.velocity(anchor, x, t), closed.velocity(anchor, x, t), rtol=1e-10)


@pytest.mark.parametrize("t", [0.05, 0.3, 0.77])
def test_velocity_is_the_derivative_in_time(maps, place, t):
    anchor, y = place
    h = 1e-5
    ahead, behind = maps.forward(anchor, y, jnp.asarray(t + h)), maps.forward(anchor, y, jnp.asarray(t - h))
    velocity = maps.velocity(anchor, maps.forward(anchor, y, jnp.asarray(t)), jnp.asarray(t))
    np.testing.assert_allclose(velocity, (ahead - behind) / (2 * h), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("interpolant", [Linear(), Trigonometric()])
@pytest.mark.parametrize("t", [0.001, 0.3, 0.9, 1.0])
def test_rates_are_the_derivatives_of_the_coefficients(interpolant, t):
    rates = interpolant.rates(jnp.asarray(t))
    for number in (0, 1):
        expected = jax.grad(lambda s, number=number: 1.0 * interpolant.coefficients(s)[number])(t)
        np.testing.assert_allclose(rates[number], expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("interpolant", [Linear(), Trigonometric()])
@pytest.mark.parametrize(("t0", "t1"), [(1e-3, 1.0), (0.01, 0.02), (0.2, 0.9), (0.9, 1.0)])
def test_inverse_square_integral(interpolant, t0, t1):
    expected, _ = quad(lambda t: interpolant.coefficients(t)[1] ** -2, t0, t1, epsabs=0, epsrel=1e-11, limit=400)
    np.testing.assert_allclose(interpolant.inverse_square_integral(t0, t1), expected, rtol=1e-9)
    on_device = interpolant.inverse_square_integral(jnp.asarray(t0), jnp.asarray(t1))
    np.testing.assert_allclose(on_device, expected, rtol=1e-9)


@pytest.mark.parametrize("interpolant", [Linear(), Trigonometric()])
def test_inverse_square_integral_adds_up_over_a_schedule(interpolant):
    times = np.geomspace(1e-3, 1, 50)
    parts = interpolant.inverse_square_integral(times[:-1], times[1:])
    assert isinstance(parts, np.ndarray)
    np.testing.assert_allclose(parts.sum(), interpolant.inverse_square_integral(1e-3, 1.0), rtol=1e-12)


@pytest.mark.parametrize("interpolant", [Linear(), Trigonometric()])
def test_inverse_square_integral_of_a_short_step_keeps_its_precision(interpolant):
    t0, step = 0.25, 2.0**-40  # exact in binary: a difference of two primitives would keep 4 digits
    value = interpolant.inverse_square_integral(t0, t0 + step)
    np.testing.assert_allclose(value, step / interpolant.coefficients(t0)[1] ** 2, rtol=1e-10)
