import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from cdsampler.errors import InvalidInputError
from cdsampler.paths import FlatReference, GaussianReference

ANCHOR = jnp.array([1.0, -2.0, 0.5])


@pytest.mark.parametrize("scale", [0.3, 4.0])
def test_normalised(scale):
    reference, anchor = GaussianReference(scale), jnp.array([1.5])
    x = jnp.linspace(1.5 - 12 * scale, 1.5 + 12 * scale, 2001)
    values, _ = jax.vmap(lambda v: reference.log_density_and_gradient(v[None], anchor))(x)
    np.testing.assert_allclose(jnp.trapezoid(jnp.exp(values), x), 1, rtol=1e-12)


@pytest.mark.parametrize("scale", [0.3, 4.0, 1e-8, 1e8])
def test_log_density_against_scipy(scale):
    position = ANCHOR + scale * jnp.array([0.3, -1.7, 4.0])
    value, _ = GaussianReference(scale).log_density_and_gradient(position, ANCHOR)
    np.testing.assert_allclose(value, norm.logpdf(position, ANCHOR, scale).sum(), rtol=1e-6 if scale < 1e-6 else 1e-12)


@pytest.mark.parametrize("scale", [0.3, 4.0])
def test_gradient_is_that_of_the_value(scale):
    reference, position = GaussianReference(scale), jnp.array([0.1, 0.7, -3.0])
    _, gradient = reference.log_density_and_gradient(position, ANCHOR)
    slope = jax.grad(lambda x: reference.log_density_and_gradient(x, ANCHOR)[0])(position)
    np.testing.assert_allclose(gradient, slope, rtol=1e-13)


def test_moments_of_the_draws():
    n, scale = 20_000, 2.5
    reference, keys = GaussianReference(scale), jax.random.split(jax.random.key(3), n)
    draws = np.asarray(jax.vmap(lambda key: reference.sample(key, ANCHOR))(keys))
    assert draws.shape == (n, 3)
    standard = (draws - np.asarray(ANCHOR)) / scale
    assert np.all(np.abs(standard.mean(axis=0)) < 5 / np.sqrt(n))
    covariance = standard.T @ standard / n
    assert np.all(np.abs(np.diag(covariance) - 1) < 5 * np.sqrt(2 / n))
    assert np.all(np.abs(covariance[np.triu_indices(3, 1)]) < 5 / np.sqrt(n))


def test_draws_depend_on_the_key_alone():
    draw = GaussianReference(1.0).sample
    assert jnp.array_equal(draw(jax.random.key(0), ANCHOR), draw(jax.random.key(0), ANCHOR))
    assert not jnp.any(draw(jax.random.key(0), ANCHOR) == draw(jax.random.key(1), ANCHOR))


def test_single_precision_is_kept():
    reference, anchor = GaussianReference(2.0), ANCHOR.astype(jnp.float32)
    value, gradient = reference.log_density_and_gradient(anchor + 1, anchor)
    assert value.dtype == gradient.dtype == reference.sample(jax.random.key(0), anchor).dtype == jnp.float32


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf])
def test_scale_that_is_not_positive_and_finite(scale):
    with pytest.raises(InvalidInputError, match=f"scale must be positive and finite, got {scale}"):
        GaussianReference(scale)


def test_scale_may_be_traced():
    value = jax.jit(lambda s: GaussianReference(s).log_density_and_gradient(ANCHOR, ANCHOR)[0])(2.0)
    np.testing.assert_allclose(value, 3 * norm.logpdf(0, 0, 2.0), rtol=1e-12)


def test_plain_scale_inside_compiled_code():
    value = jax.jit(lambda x: GaussianReference(2.0).log_density_and_gradient(x, ANCHOR)[0])(ANCHOR)
    np.testing.assert_allclose(value, 3 * norm.logpdf(0, 0, 2.0), rtol=1e-12)


def test_flat_reference_is_zero_with_a_zero_gradient():
    value, gradient = FlatReference().log_density_and_gradient(ANCHOR + 3, ANCHOR)
    assert (value.shape, float(value), gradient.tolist()) == ((), 0.0, [0.0, 0.0, 0.0])


def test_flat_reference_has_nothing_to_draw_from():
    with pytest.raises(InvalidInputError, match=r"flat reference can't be sampled.*GaussianReference"):
        FlatReference().sample(jax.random.key(0), ANCHOR)


def test_which_references_are_proper():
    assert GaussianReference(1.0).is_proper
    assert not FlatReference().is_proper
