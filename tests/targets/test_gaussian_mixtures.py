import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from cdsampler import InvalidInputError
from cdsampler.targets import GaussianMixture, gaussian_mixture

ALL = [(2, True), (2, False), (16, True), (16, False)]


@pytest.mark.parametrize(("dim", "uniform"), ALL)
def test_density_and_gradient_are_those_of_scipy_and_autodiff(dim, uniform):
    target = gaussian_mixture(dim, uniform=uniform)
    assert target.name == f"gm{'' if uniform else 'nu'}-{dim}"
    variance = np.log1p(np.e)
    points = np.asarray(target.sample(jax.random.key(0), 20)) + 0.5
    components = [multivariate_normal(m, variance * np.eye(dim)).logpdf(points) for m in np.asarray(target.means)]
    weights = np.asarray(target.mode_weights)
    expected = logsumexp(np.array(components).T, b=weights, axis=1)
    density = target.density()
    values, gradients, _ = jax.vmap(density.value_and_gradient)(jnp.asarray(points))
    np.testing.assert_allclose(values, expected, rtol=1e-6)

    def plain(y):
        return jax.nn.logsumexp(-0.5 * jnp.sum((y[None, :] - target.means) ** 2, axis=-1) / target.variance, b=weights)

    np.testing.assert_allclose(gradients, jax.vmap(jax.grad(plain))(jnp.asarray(points)), rtol=1e-6, atol=1e-8)


def test_six_components_are_twenty_times_as_heavy():
    weights = np.asarray(gaussian_mixture(2, uniform=False).mode_weights)
    np.testing.assert_allclose(weights[:6] / weights[6], 20, rtol=1e-6)
    np.testing.assert_allclose(weights.sum(), 1, rtol=1e-6)
    np.testing.assert_allclose(gaussian_mixture(2, uniform=True).mode_weights, 1 / 40, rtol=1e-6)


def test_means_are_the_published_ones():
    means = np.asarray(gaussian_mixture(16, uniform=True).means)
    assert means.shape == (40, 16)
    assert np.all(np.abs(means) <= 40)
    # The first number of PyTorch's CPU generator with seed 0 is .4963 (rand), that is -0.2994 here.
    np.testing.assert_allclose(means[0, 0], (0.49625658988952637 - 0.5) * 80, rtol=1e-6)


@pytest.mark.parametrize("uniform", [True, False])
def test_log_z_is_zero_by_quadrature(uniform):
    density = gaussian_mixture(2, uniform=uniform).density()
    axis = np.linspace(-50, 50, 401)
    grid = jnp.asarray(np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2))
    values = jax.jit(jax.vmap(lambda y: density.value(y)[0]))(grid)
    np.testing.assert_allclose(np.exp(values).sum() * (axis[1] - axis[0]) ** 2, 1, rtol=1e-5)


@pytest.mark.parametrize(("dim", "uniform"), ALL)
def test_exact_draws_have_the_right_weights(dim, uniform):
    target, n = gaussian_mixture(dim, uniform=uniform), 20_000
    share = np.asarray(target.responsibilities(target.sample(jax.random.key(1), n)))
    errors = np.abs(share.mean(0) - np.asarray(target.mode_weights)) / (share.std(0) / np.sqrt(n))
    assert np.all(errors < 5)
    assert np.all(np.abs(share[:, ::-1].mean(0) - np.asarray(target.mode_weights)) < 1)  # shapes agree


def test_single_precision_is_as_good_as_its_rounding_near_the_modes():
    target = gaussian_mixture(16, uniform=True)
    points = np.asarray(target.sample(jax.random.key(2), 200))
    single, double = target.density("float32"), target.density("float64")
    low = jax.vmap(lambda y: single.value(y)[0])(jnp.asarray(points, "float32"))
    high = jax.vmap(lambda y: double.value(y)[0])(jnp.asarray(points, "float32").astype("float64"))
    assert low.dtype == jnp.float32
    # The expanded square cancels terms of size ‖y‖²/2v against each other.
    scale = np.sum(points**2, axis=1) / target.variance
    assert np.all(np.abs(np.asarray(low) - np.asarray(high)) < 8 * np.finfo("float32").eps * scale)


def test_wrong_shapes_are_refused():
    with pytest.raises(InvalidInputError, match="2 or 16 dimensions, got 3"):
        gaussian_mixture(3, uniform=True)
    with pytest.raises(InvalidInputError, match="shape"):
        GaussianMixture("bad", [[0.0], [1.0]], [1.0], 1.0)
    with pytest.raises(InvalidInputError, match="positive"):
        GaussianMixture("bad", [[0.0], [1.0]], [1.0, -1.0], 1.0)
