from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.distributions import transforms

from cdsampler.charts import AbstractChart, AffineChart, NumpyroChart, TransformedLogDensity
from cdsampler.density import LogDensity
from cdsampler.errors import InvalidInputError


class Case(NamedTuple):
    """A chart, written out by hand a second time, with a target on its support."""

    transform: transforms.Transform
    to_target: object  # q -> y
    log_det: object  # q -> log|det ∂y/∂q|
    log_density: object  # on the support, unnormalised, independent over coordinates
    integral: float  # of the density over one coordinate


CASES = {
    "exp": Case(
        transforms.ExpTransform(),
        jnp.exp,
        jnp.sum,
        lambda y: jnp.sum(2 * jnp.log(y) - y),  # Gamma(3)
        2.0,
    ),
    "sigmoid": Case(
        transforms.SigmoidTransform(),
        lambda q: 1 / (1 + jnp.exp(-q)),
        lambda q: -jnp.sum(q + 2 * jnp.log1p(jnp.exp(-q))),
        lambda y: jnp.sum(jnp.log(y) + 2 * jnp.log1p(-y)),  # Beta(2, 3)
        1 / 12,
    ),
    "affine": Case(
        transforms.AffineTransform(3.0, -0.25),
        lambda q: 3.0 - 0.25 * q,
        lambda q: q.shape[0] * jnp.log(0.25),
        lambda y: -0.5 * jnp.sum((y - 2.5) ** 2),
        np.sqrt(2 * np.pi),
    ),
}
POSITION = jnp.array([0.7, -1.3, 0.2])


@pytest.fixture(params=CASES, scope="module")
def case(request):
    return CASES[request.param]


@pytest.fixture(scope="module")
def transformed(case):
    return TransformedLogDensity(LogDensity(case.log_density, 3), NumpyroChart(case.transform))


def test_to_target_is_the_transform(case):
    y, _ = NumpyroChart(case.transform).to_target(POSITION)
    np.testing.assert_allclose(y, case.to_target(POSITION), rtol=1e-14)


def test_round_trip(case):
    chart = NumpyroChart(case.transform)
    y, _ = chart.to_target(POSITION)
    np.testing.assert_allclose(chart.to_chart(y), POSITION, rtol=1e-13)


def test_log_det_is_that_of_the_jacobian(case):
    chart = NumpyroChart(case.transform)
    _, log_det = chart.to_target(POSITION)
    jacobian = jax.jacfwd(lambda q: chart.to_target(q)[0])(POSITION)
    assert log_det.shape == ()
    np.testing.assert_allclose(log_det, np.linalg.slogdet(jacobian)[1], rtol=1e-13)


def test_log_det_of_a_transform_of_whole_vectors():
    scale = jnp.array([[2.0, 0.0, 0.0], [1.0, 0.5, 0.0], [-3.0, 1.0, 4.0]])
    chart = NumpyroChart(transforms.LowerCholeskyAffine(jnp.array([1.0, 2.0, 3.0]), scale))
    y, log_det = chart.to_target(POSITION)
    np.testing.assert_allclose(log_det, np.log(2 * 0.5 * 4), rtol=1e-14)
    np.testing.assert_allclose(chart.to_chart(y), POSITION, rtol=1e-13)


def test_log_density_and_gradient_are_those_of_the_composed_function(case, transformed):
    def composed(q):
        return case.log_density(case.to_target(q)) + case.log_det(q)

    expected, slope = jax.value_and_grad(composed)(POSITION)
    value, _ = transformed.value(POSITION)
    both, gradient, _ = transformed.value_and_gradient(POSITION)
    np.testing.assert_allclose([value, both], [expected, expected], rtol=1e-13)
    np.testing.assert_allclose(gradient, slope, rtol=1e-12)


def test_gradient_uses_the_targets_own_gradient(case):
    density = LogDensity(
        case.log_density, 3, value_and_grad=lambda y: (case.log_density(y), jnp.array([1.0, 2.0, 3.0]))
    )
    _, gradient, _ = TransformedLogDensity(density, NumpyroChart(case.transform)).value_and_gradient(POSITION)
    jacobian = jax.jacfwd(case.to_target)(POSITION)
    expected = jacobian.T @ jnp.array([1.0, 2.0, 3.0]) + jax.grad(lambda q: 1.0 * case.log_det(q))(POSITION)
    np.testing.assert_allclose(gradient, expected, rtol=1e-12, atol=1e-14)


def test_normalising_constant_is_unchanged(case):
    transformed = TransformedLogDensity(LogDensity(case.log_density, 1), NumpyroChart(case.transform))
    q = jnp.linspace(-50.0, 50.0, 4001)[:, None]
    values, _ = jax.vmap(transformed.value)(q)
    np.testing.assert_allclose(jnp.trapezoid(jnp.exp(values), q[:, 0]), case.integral, rtol=1e-8)


def test_dimension_and_dtype_are_those_of_the_target():
    density = LogDensity(lambda y: -jnp.sum(y), 3, dtype="float32")
    transformed = TransformedLogDensity(density, NumpyroChart(transforms.ExpTransform()))
    value, gradient, _ = transformed.value_and_gradient(POSITION.astype(jnp.float32))
    assert (transformed.dim, transformed.dtype) == (3, np.dtype("float32"))
    assert value.dtype == gradient.dtype == np.dtype("float32")


def test_dtype_is_that_of_the_target_with_a_chart_in_double_precision():
    density = LogDensity(lambda y: -0.5 * jnp.sum(y**2), 3, dtype="float32")
    chart = NumpyroChart(transforms.AffineTransform(jnp.array(1.0), jnp.array(2.0)))
    transformed = TransformedLogDensity(density, chart)
    value, _ = transformed.value(POSITION.astype(jnp.float32))
    both, gradient, _ = transformed.value_and_gradient(POSITION.astype(jnp.float32))
    assert (value.dtype, both.dtype, gradient.dtype) == (np.dtype("float32"),) * 3


# --- counts -----------------------------------------------------------------------------------------------------


class Partial(AbstractChart):
    """The identity, with a log determinant that is NaN below -1 and minus infinity between -1 and 0."""

    def to_chart(self, y):
        return y

    def to_target(self, q):
        return q, jnp.where(q[0] < -1, jnp.nan, jnp.where(q[0] < 0, -jnp.inf, 0.0))


@pytest.fixture(scope="module")
def counted():
    """Value and counts of a target that is 0, -inf, NaN or +inf below 10, 20, 30 and 40, seen through `Partial`."""

    def log_density(y):
        inside = 0.0 * y[0]
        beyond = jnp.where(y[0] < 20, -jnp.inf, jnp.where(y[0] < 30, jnp.nan, jnp.inf))
        return jnp.where(y[0] < 10, inside, beyond)

    density = LogDensity(log_density, 1, value_and_grad=lambda y: (log_density(y), jnp.zeros(1)))
    transformed = TransformedLogDensity(density, Partial())
    value, both = eqx.filter_jit(transformed.value), eqx.filter_jit(transformed.value_and_gradient)

    def evaluate(q):
        cheap, cheap_counts = value(jnp.array([q]))
        dear, gradient, dear_counts = both(jnp.array([q]))
        assert float(cheap) == float(dear)
        assert gradient.tolist() == [0.0]
        return float(cheap), *([int(n) for n in jax.tree.leaves(c)] for c in (cheap_counts, dear_counts))

    return evaluate


@pytest.mark.parametrize(
    ("q", "value", "counts"),
    [
        (5.0, 0.0, [0, 0, 0]),
        (15.0, -np.inf, [1, 0, 0]),
        (25.0, -np.inf, [0, 1, 0]),
        (35.0, np.inf, [0, 0, 1]),
        (-0.5, -np.inf, [1, 0, 0]),  # the chart's own doing
        (-1.5, -np.inf, [0, 1, 0]),
    ],
)
def test_each_outcome_is_counted_once(counted, q, value, counts):
    assert counted(q) == (value, [1, 0, *counts], [0, 1, *counts])


def test_target_that_is_undefined_and_chart_too_is_counted_once():
    density = LogDensity(lambda y: jnp.log(y[0]), 1)  # NaN below 0
    _, counts = TransformedLogDensity(density, Partial()).value(jnp.array([-1.5]))
    assert [int(n) for n in jax.tree.leaves(counts)] == [1, 0, 0, 1, 0]


def test_overflow_of_the_chart_is_outside_the_support():
    density = LogDensity(lambda y: -jnp.sum(y), 2)
    transformed = TransformedLogDensity(density, NumpyroChart(transforms.ExpTransform()))
    value, gradient, counts = transformed.value_and_gradient(jnp.array([800.0, 0.0]))
    assert (float(value), gradient.tolist()) == (-np.inf, [0.0, 0.0])
    assert [int(n) for n in jax.tree.leaves(counts)] == [0, 1, 1, 0, 0]


# --- errors -----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("without_type_checks")
@pytest.mark.parametrize("thing", [None, 3, jnp.exp, "ExpTransform"])
def test_something_that_is_not_a_transform(thing):
    with pytest.raises(InvalidInputError, match="Not a NumPyro transform"):
        NumpyroChart(thing)


def test_class_of_a_transform_instead_of_a_transform():
    with pytest.raises(InvalidInputError, match="Not a NumPyro transform"):
        NumpyroChart(transforms.ExpTransform)


@pytest.mark.usefixtures("without_type_checks")
def test_transform_to_another_dimension():
    density = LogDensity(lambda y: jnp.sum(jnp.log(y)), 3)
    with pytest.raises(InvalidInputError, match="dimension"):
        TransformedLogDensity(density, NumpyroChart(transforms.StickBreakingTransform()))


def test_an_affine_chart_inverts_itself_and_has_its_determinant():
    tril = np.array([[2.0, 0.0], [0.5, 0.25]])
    chart = AffineChart(np.array([1.0, -3.0]), tril)
    q = jnp.array([0.7, -1.1])
    y, log_det = chart.to_target(q)
    np.testing.assert_allclose(y, np.array([1.0, -3.0]) + tril @ np.asarray(q))
    np.testing.assert_allclose(chart.to_chart(y), q, rtol=1e-12)
    np.testing.assert_allclose(log_det, np.log(0.5))


@pytest.mark.parametrize("tril", [np.zeros((2, 2)), np.eye(3), np.array([[1.0, 0.0], [np.nan, 1.0]])])
def test_a_bad_affine_chart_is_an_error(tril):
    with pytest.raises(InvalidInputError, match=r"matrix|positive diagonal"):
        AffineChart(np.zeros(2), tril)
