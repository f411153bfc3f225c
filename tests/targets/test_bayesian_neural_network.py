import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from cdsampler import InvalidInputError
from cdsampler.targets._bayesian_neural_network import bayesian_neural_network


@pytest.fixture(scope="module")
def target():
    return bayesian_neural_network()


def plain_outputs(positions, inputs):
    positions, inputs = np.asarray(positions), np.asarray(inputs)
    w1, b1, w2 = positions[:, :500].reshape(-1, 20, 25), positions[:, 500:525], positions[:, 525:]
    hidden = np.maximum(np.einsum("pi,nih->nph", inputs, w1) / np.sqrt(20) + b1[:, None, :], 0)
    return np.einsum("nph,nh->np", hidden, w2) / np.sqrt(25)


def draws(target, n, seed=0):
    """Near the truth as well as anywhere in the prior."""
    prior = target.sample_prior(jax.random.key(seed), n)
    return jnp.concatenate([prior, target.true_parameters[None, :] + 0.05 * prior])


def test_log_density_is_that_of_scipy(target):
    positions = draws(target, 8)
    prior = norm.logpdf(positions).sum(axis=1)
    outputs = plain_outputs(positions, target.train_inputs)
    likelihood = norm.logpdf(np.asarray(target.train_labels)[None], outputs, 0.1).sum(axis=1)
    np.testing.assert_allclose(jax.vmap(target.log_prior)(positions), prior, rtol=1e-12)
    np.testing.assert_allclose(jax.vmap(target.log_likelihood)(positions), likelihood, rtol=1e-11)
    density = target.density()
    np.testing.assert_allclose(jax.vmap(density.value)(positions)[0], prior + likelihood, rtol=1e-11)
    np.testing.assert_allclose(jax.vmap(density.value_and_gradient)(positions)[0], prior + likelihood, rtol=1e-11)


def test_gradient_is_that_of_autodiff_and_of_differences(target):
    positions, density = draws(target, 8, seed=1), target.density()
    _, gradients, _ = jax.vmap(density.value_and_gradient)(positions)
    np.testing.assert_allclose(gradients, jax.vmap(jax.grad(target.log_density))(positions), rtol=1e-9, atol=1e-8)
    direction = np.random.default_rng(0).standard_normal(550)
    step = 1e-6 * jnp.asarray(direction)[None, :]
    slopes = (jax.vmap(target.log_density)(positions + step) - jax.vmap(target.log_density)(positions - step)) / 2e-6
    np.testing.assert_allclose(np.asarray(gradients) @ direction, slopes, rtol=1e-3)


def test_parameters_are_flat_in_the_stated_order(target):
    inputs = jnp.asarray(np.random.default_rng(0).standard_normal((7, 20)))
    input_, unit = 3, 11
    y = np.zeros(550)
    y[input_ * 25 + unit], y[500 + unit], y[525 + unit] = 2.0, 0.3, 5.0
    expected = np.maximum(2 * np.asarray(inputs)[:, input_] / np.sqrt(20) + 0.3, 0)
    np.testing.assert_allclose(target.predict(jnp.asarray(y)[None, :], inputs)[0], expected, rtol=1e-12)


def test_data_are_those_of_the_seed_to_the_last_bit(target):
    assert (target.name, target.dim, target.data_seed) == ("bnn", 550, 0)
    assert target.train_inputs.shape == target.test_inputs.shape == (500, 20)
    assert target.train_labels.shape == target.test_labels.shape == (500,)
    assert float(target.true_parameters[0]) == 0.1257302210933933
    assert float(target.train_inputs[0, 0]) == 0.804078958119873
    assert float(target.train_labels[0]) == 1.0709175617298314
    assert float(target.test_inputs[-1, -1]) == -0.7585082604296735
    assert float(target.test_labels[-1]) == 0.9688482731149235


def test_other_seeds_give_other_data(target):
    other = bayesian_neural_network(1)
    assert not np.any(np.asarray(other.train_labels) == np.asarray(target.train_labels))
    assert not np.any(np.asarray(target.test_inputs) == np.asarray(target.train_inputs))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_true_parameters_predict_as_well_as_the_noise_allows(seed):
    target = bayesian_neural_network(seed)
    losses = -np.asarray(target.test_log_likelihood(target.true_parameters[None, :]))[0]
    assert losses.shape == (500,)
    entropy = 0.5 * np.log(2 * np.pi * 0.01) + 0.5
    assert abs(losses.mean() - entropy) < 4 * losses.std() / np.sqrt(500)


def test_prior_draws_are_standard_normal(target):
    prior = np.asarray(target.sample_prior(jax.random.key(2), 200))
    assert prior.shape == (200, 550)
    assert abs(prior.mean()) < 4 / np.sqrt(prior.size)
    assert abs((prior**2).mean() - 1) < 4 * np.sqrt(2 / prior.size)


def test_predictions_in_pieces_are_those_at_once(target):
    positions = draws(target, 150)  # more than are worked on at once
    expected = plain_outputs(positions, target.test_inputs)
    np.testing.assert_allclose(target.predict(positions, target.test_inputs), expected, rtol=1e-10, atol=1e-12)


def test_predictive_band_includes_the_noise(target):
    positions = jnp.tile(target.true_parameters[None, :], (4000, 1))
    outputs = np.asarray(target.predict(positions[:1], target.test_inputs[:5]))[0]
    mean, band = target.predictive_band(jax.random.key(3), positions, target.test_inputs[:5], [0.1, 0.5, 0.9])
    np.testing.assert_allclose(mean, outputs, rtol=1e-10)
    expected = outputs[None] + 0.1 * norm.ppf([0.1, 0.5, 0.9])[:, None]
    np.testing.assert_allclose(band, expected, atol=5 * 0.1 * 1.71 / np.sqrt(4000))


def test_single_precision_is_close(target):
    positions = draws(target, 50)
    single, double = target.density("float32"), target.density("float64")
    rounded = positions.astype("float32")
    low, low_gradient, _ = jax.vmap(single.value_and_gradient)(rounded)
    high, high_gradient, _ = jax.vmap(double.value_and_gradient)(rounded.astype("float64"))
    assert low.dtype == low_gradient.dtype == jnp.float32
    np.testing.assert_allclose(low, high, rtol=1e-5)
    np.testing.assert_allclose(jax.vmap(single.value)(rounded)[0], high, rtol=1e-5)
    scale = np.linalg.norm(np.asarray(high_gradient), axis=1)
    assert np.all(np.linalg.norm(np.asarray(low_gradient) - np.asarray(high_gradient), axis=1) < 1e-4 * scale)


def test_nothing_is_computed_in_double_precision_unasked(target):
    cast = jax.tree.map(lambda a: a.astype("float32"), target)
    for function in (cast.log_density, cast.value_and_gradient):
        assert "f64" not in str(jax.make_jaxpr(function)(jnp.zeros(550, "float32")))


@pytest.mark.parametrize("seed", [-1, 0.5, True, "0"])
def test_other_seeds_than_natural_numbers_are_refused(seed):
    with pytest.raises(InvalidInputError, match=f"data_seed must be a non-negative integer, got {seed!r}"):
        bayesian_neural_network(seed)


def test_wrong_shapes_and_quantiles_are_refused(target):
    with pytest.raises(InvalidInputError, match=r"positions must have shape \(n, 550\), got \(550,\)"):
        target.predict(target.true_parameters, target.test_inputs)
    with pytest.raises(InvalidInputError, match=r"inputs must have shape \(n, 20\), got \(500,\)"):
        target.predict(target.true_parameters[None, :], target.test_labels)
    with pytest.raises(InvalidInputError, match="between 0 and 1"):
        target.predictive_band(jax.random.key(0), target.true_parameters[None, :], target.test_inputs, [5, 95])
