import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.distributions.transforms import ExpTransform

from cdsampler.charts import NumpyroChart, TransformedLogDensity
from cdsampler.density import LogDensity
from cdsampler.interpolants import ChartedInterpolant, ConditionalChart, Linear, Trigonometric, conditional_density

TIMES = [0.02, 0.4, 1.0]
MEANS = np.array([[-2.0, 1.0], [1.5, -1.0], [0.5, 3.0]])
WEIGHTS = np.array([0.5, 0.2, 0.3])
N = 2000


@pytest.mark.parametrize("t", TIMES)
def test_value_is_that_of_the_target_less_the_log_determinant(maps, place, gamma, conditional_value, t):
    (anchor, y), t = place, jnp.asarray(t)
    jacobian = jax.jacfwd(maps.interpolant.forward, argnums=1)(anchor, y, t)
    expected = gamma.value(y)[0] - np.linalg.slogdet(jacobian)[1]
    value = conditional_value(gamma, maps.interpolant, anchor, t, maps.forward(anchor, y, t))
    np.testing.assert_allclose(value, expected, rtol=1e-11)


@pytest.mark.parametrize("t", TIMES)
def test_score_is_the_gradient_of_the_value(maps, place, gamma, conditional_score, t):
    (anchor, y), t = place, jnp.asarray(t)
    x = maps.forward(anchor, y, t)
    value, score, counts, plain, slope = conditional_score(gamma, maps.interpolant, anchor, t, x)
    np.testing.assert_allclose(value, plain, rtol=1e-12)
    np.testing.assert_allclose(score, slope, rtol=1e-9)
    assert [int(n) for n in jax.tree.leaves(counts)] == [0, 1, 0, 0, 0]


def test_score_of_the_linear_interpolant_is_the_targets_divided_by_t(place, gamma):
    (anchor, y), t = place, jnp.asarray(0.25)
    x = Linear().forward(anchor, y, t)
    _, score, _ = conditional_density(gamma, Linear(), anchor, t).value_and_gradient(x)
    np.testing.assert_allclose(score, (2 / y - 1) / 0.25, rtol=1e-12)


def test_conditional_chart_maps_both_ways(closed, place):
    (anchor, y), t = place, jnp.asarray(0.3)
    chart = ConditionalChart(closed, anchor, t)
    x = chart.to_chart(y)
    back, log_det = chart.to_target(x)
    np.testing.assert_allclose(x, closed.forward(anchor, y, t), rtol=1e-14)
    np.testing.assert_allclose(back, y, rtol=1e-13)
    np.testing.assert_allclose(log_det, -closed.log_det(anchor, y, t), rtol=1e-13)


@pytest.mark.parametrize("t", TIMES)
def test_charted_interpolant_is_the_linear_one_in_the_charts_coordinates(place, gamma, conditional_value, t):
    (anchor, y), t = place, jnp.asarray(t)
    chart = NumpyroChart(ExpTransform())
    x = ChartedInterpolant(Linear(), chart).forward(anchor, y, t)
    in_chart = TransformedLogDensity(gamma, chart)
    # log π_{t|z}(x) = log π^q_{t|T(z)}(q) + log|det ∂q/∂x| at q = log x
    value_q = conditional_value(in_chart, Linear(), jnp.log(anchor), t, jnp.log(x))
    value_x = conditional_value(gamma, ChartedInterpolant(Linear(), chart), anchor, t, x)
    np.testing.assert_allclose(value_x, value_q - jnp.sum(jnp.log(x)), rtol=1e-11)


@pytest.mark.parametrize("t", TIMES)
def test_normalising_constant_does_not_depend_on_time(maps, conditional_value, t):
    density = LogDensity(lambda y: jnp.sum(jnp.where(y > 0, 2 * jnp.log(jnp.where(y > 0, y, 1)) - y, -jnp.inf)), 1)
    anchor, t = jnp.array([1.7]), jnp.asarray(t)
    # Points that the map takes from an even grid in log y: the integrand is smooth there, whatever t.
    y = jnp.exp(jnp.linspace(-12.0, 5.0, 2001))[:, None]
    x = jax.vmap(lambda v: maps.interpolant.forward(anchor, v, t))(y)
    values = jax.vmap(lambda v: conditional_value(density, maps.interpolant, anchor, t, v))(x)
    integral = jnp.trapezoid(jnp.exp(values), x[:, 0])
    np.testing.assert_allclose(integral, 2.0, rtol=1e-4)  # the trapezoid's own error is about 1e-5


def test_wrong_place_of_the_determinant_changes_the_normalising_constant(conditional_value):
    """Negative control: the paper's lemma takes the determinant at x."""
    interpolant, anchor, t = (
        ChartedInterpolant(Linear(), NumpyroChart(ExpTransform())),
        jnp.array([1.7]),
        jnp.asarray(0.4),
    )
    y = jnp.exp(jnp.linspace(-12.0, 5.0, 2001))[:, None]
    x = jax.vmap(lambda v: interpolant.forward(anchor, v, t))(y)
    wrong = jax.vmap(lambda v, w: jnp.sum(2 * jnp.log(v) - v) - interpolant.log_det(anchor, w, t))(y, x)
    assert abs(jnp.trapezoid(jnp.exp(wrong), x[:, 0]) / 2.0 - 1) > 0.1


# --- Stein's identity: the derivative in time of log π_{t|z} has mean zero under π_{t|z} ------------------------


def mixture(y):
    squares = jnp.sum((y[None, :] - MEANS) ** 2, axis=1)
    return jax.nn.logsumexp(jnp.log(WEIGHTS) - squares / 2)


@pytest.fixture(scope="module")
def draws():
    rng = np.random.default_rng(71)
    return MEANS[rng.choice(3, N, p=WEIGHTS)] + rng.standard_normal((N, 2))


@eqx.filter_jit
def time_derivatives(density, interpolant, anchor, t, draws):
    def one(y):
        x = interpolant.forward(anchor, y, t)
        return jax.grad(lambda s: conditional_density(density, interpolant, anchor, s).value(x)[0])(t)

    return jax.vmap(one)(draws)


def standard_errors_from_zero(numbers):
    numbers = np.asarray(numbers)
    return abs(numbers.mean()) / (numbers.std(ddof=1) / np.sqrt(len(numbers)))


def linear_derivative(draws, anchor, t, power):
    """Return `-D/t - t^-power (x - z)·∇log π_{t|z}(x)`: the right power is 1, the paper's is 2."""
    scores = jax.vmap(jax.grad(mixture))(draws) / t
    return -2 / t - jnp.sum(t * (draws - anchor) * scores, axis=1) / t**power


@pytest.mark.parametrize("interpolant", [Linear(), Trigonometric()])
@pytest.mark.parametrize("t", [0.05, 0.6])
def test_mean_of_the_time_derivative_is_zero(interpolant, t, draws):
    anchor = jnp.array([1.0, -0.5])
    numbers = time_derivatives(LogDensity(mixture, 2), interpolant, anchor, jnp.asarray(t), draws)
    assert standard_errors_from_zero(numbers) < 5


def test_mean_of_the_time_derivative_is_zero_for_a_charted_interpolant(draws):
    density = LogDensity(lambda y: mixture(jnp.log(y)) - jnp.sum(jnp.log(y)), 2)
    interpolant = ChartedInterpolant(Linear(), NumpyroChart(ExpTransform()))
    numbers = time_derivatives(density, interpolant, jnp.array([2.0, 0.5]), jnp.asarray(0.6), np.exp(draws))
    assert standard_errors_from_zero(numbers) < 5


@pytest.mark.parametrize("t", [0.05, 0.6])
def test_time_derivative_of_the_linear_interpolant_in_closed_form(t, draws):
    anchor = jnp.array([1.0, -0.5])
    automatic = time_derivatives(LogDensity(mixture, 2), Linear(), anchor, jnp.asarray(t), draws)
    closed = linear_derivative(draws, anchor[None, :], t, power=1)
    np.testing.assert_allclose(automatic, closed, rtol=1e-9, atol=1e-9 / t)


@pytest.mark.parametrize("t", [0.05, 0.6])
def test_wrong_factor_of_the_score_is_noticed(t, draws):
    """Negative control: the paper's factor 1/t² in front of the conditional score."""
    wrong = linear_derivative(draws, jnp.array([[1.0, -0.5]]), t, power=2)
    assert standard_errors_from_zero(wrong) > 10
