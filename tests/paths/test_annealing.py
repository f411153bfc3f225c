import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cdsampler.density import LogDensity
from cdsampler.paths import AnnealingPath, GaussianReference, TemperedDensity

INSIDE, OUTSIDE = jnp.array([0.5, -1.0]), jnp.array([-0.5, -1.0])


def tempered(beta):
    return TemperedDensity(None, jnp.asarray(beta))


def test_evaluation_caches_both_components(gaussian_path, evaluate):
    point, counts = evaluate[0](INSIDE)
    reference, slope = gaussian_path.reference.log_density_and_gradient(INSIDE, gaussian_path.anchor)
    np.testing.assert_allclose(point.reference.log_density, reference, rtol=1e-14)
    np.testing.assert_allclose(point.reference.gradient, slope, rtol=1e-14)
    np.testing.assert_allclose(point.target.log_density, -1.125, rtol=1e-14)
    np.testing.assert_allclose(point.target.gradient, [-0.75, 3.0], rtol=1e-14)
    assert point.position.tolist() == INSIDE.tolist()
    assert [int(n) for n in jax.tree.leaves(counts)] == [0, 1, 0, 0, 0]


def test_evaluation_without_gradient(evaluate):
    point, counts = evaluate[1](INSIDE)
    full, _ = evaluate[0](INSIDE)
    assert point.target.gradient.tolist() == [0.0, 0.0]
    assert float(point.target.log_density) == float(full.target.log_density)
    assert float(point.reference.log_density) == float(full.reference.log_density)
    assert [int(n) for n in jax.tree.leaves(counts)] == [1, 0, 0, 0, 0]


@pytest.mark.parametrize("with_gradient", [True, False])
def test_density_at_one_beta_evaluates_like_the_path(gaussian_path, evaluate, with_gradient):
    density = gaussian_path.at(jnp.asarray(0.3))
    point, _ = density.evaluate(INSIDE) if with_gradient else density.evaluate_value(INSIDE)
    expected, _ = evaluate[0 if with_gradient else 1](INSIDE)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-14), point, expected)


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
def test_log_density_is_the_geometric_path(made_up_point, beta):
    value = tempered(beta).log_density(made_up_point(-3.0, -7.0))
    np.testing.assert_allclose(value, (1 - beta) * -3 + beta * -7, rtol=1e-15)


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
def test_gradient_is_the_geometric_path(made_up_point, beta):
    factor = (1 - beta) + 10 * beta
    np.testing.assert_allclose(tempered(beta).gradient(made_up_point(0, 0)), [factor, 2 * factor], rtol=1e-15)


def test_gradient_is_that_of_the_log_density(gaussian_path):
    density = gaussian_path.at(jnp.asarray(0.3))
    slope = jax.grad(lambda x: density.log_density(density.evaluate(x)[0]))(INSIDE)
    np.testing.assert_allclose(density.gradient(density.evaluate(INSIDE)[0]), slope, rtol=1e-12)


@pytest.mark.parametrize("bad", [-np.inf, np.inf, np.nan])
def test_target_has_no_say_at_beta_zero(made_up_point, bad):
    assert float(tempered(0.0).log_density(made_up_point(-3.0, bad))) == -3.0


@pytest.mark.parametrize("bad", [-np.inf, np.inf, np.nan])
def test_reference_has_no_say_at_beta_one(made_up_point, bad):
    assert float(tempered(1.0).log_density(made_up_point(bad, -7.0))) == -7.0


def test_outside_the_support(evaluate):
    point, counts = evaluate[0](OUTSIDE)
    assert int(counts.neg_inf) == 1
    assert np.isfinite(tempered(0.0).log_density(point))
    assert jnp.array_equal(tempered(0.0).gradient(point), point.reference.gradient)
    for beta in (1e-6, 0.5, 1.0):
        assert float(tempered(beta).log_density(point)) == -np.inf
        assert np.all(np.isfinite(tempered(beta).gradient(point)))


def test_target_equal_to_the_reference():
    reference, anchor = GaussianReference(1.3), jnp.array([1.0, -1.0])
    target = LogDensity(lambda x: reference.log_density_and_gradient(x, anchor)[0], 2)
    point, _ = AnnealingPath(reference, target, anchor).evaluate(INSIDE)
    assert float(point.log_ratio) == 0.0
    values = [float(tempered(beta).log_density(point)) for beta in (0.0, 0.1, 0.5, 1.0)]
    np.testing.assert_allclose(values, values[0], rtol=1e-15)


def test_draws_of_the_reference_are_about_the_anchor(gaussian_path):
    keys = jax.random.split(jax.random.key(5), 5000)
    draws = np.asarray(jax.vmap(gaussian_path.sample_reference)(keys))
    standard = (draws - np.asarray(gaussian_path.anchor)) / 1.5
    assert np.all(np.abs(standard.mean(axis=0)) < 5 / np.sqrt(5000))
    assert np.all(np.abs((standard**2).mean(axis=0) - 1) < 5 * np.sqrt(2 / 5000))
