import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from cdsampler import InvalidInputError
from cdsampler.paths import MixtureReference

MEANS = np.array([[0.0, 0.0], [5.0, 1.0], [-3.0, 2.0]])
TRILS = np.array([[[1.0, 0.0], [0.5, 2.0]], [[3.0, 0.0], [0.0, 0.2]], [[1.0, 0.0], [0.0, 1.0]]])
LABELS = np.array([0, 1, 1])
WEIGHTS = np.array([1.0, 2.0, 1.0])


@pytest.fixture
def mixture():
    return MixtureReference(MEANS, TRILS, LABELS, WEIGHTS)


def test_log_density_and_gradient_are_the_mixtures(mixture):
    position = np.array([1.3, -0.4])
    value, gradient = mixture.log_density_and_gradient(jnp.asarray(position), jnp.zeros(2))
    parts = [
        w / 4 * multivariate_normal(m, TRILS[label] @ TRILS[label].T).pdf(position)
        for w, m, label in zip(WEIGHTS, MEANS, LABELS, strict=True)
    ]
    np.testing.assert_allclose(value, np.log(np.sum(parts)), rtol=1e-10)
    by_autodiff = jax.grad(lambda y: mixture.log_density_and_gradient(y, jnp.zeros(2))[0])(jnp.asarray(position))
    np.testing.assert_allclose(gradient, by_autodiff, rtol=1e-9)


def test_draws_have_the_mixtures_moments(mixture):
    n = 20_000
    keys = jax.random.split(jax.random.key(0), n)
    draws = np.asarray(jax.vmap(lambda key: mixture.sample(key, jnp.full(2, 99.0)))(keys))
    weights = WEIGHTS / WEIGHTS.sum()
    mean = weights @ MEANS
    second = sum(
        w * (TRILS[label] @ TRILS[label].T + np.outer(m, m)) for w, m, label in zip(weights, MEANS, LABELS, strict=True)
    )
    variance = np.diag(second) - mean**2
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 4 * np.sqrt(variance / n))
    squares = draws**2
    assert np.all(np.abs(squares.mean(axis=0) - np.diag(second)) < 4 * squares.std(axis=0) / np.sqrt(n))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"means": np.zeros(2)}, "means must have shape"),
        ({"scale_trils": np.zeros((1, 3, 3))}, "scale_trils must have shape"),
        ({"labels": np.array([0, 1, 7])}, "labels must name"),
        ({"weights": np.array([1.0, -1.0, 1.0])}, "non-negative"),
        ({"scale_trils": np.zeros((3, 2, 2))}, "positive diagonals"),
    ],
)
def test_bad_input_is_named(change, words):
    settings = {"means": MEANS, "scale_trils": TRILS, "labels": LABELS, "weights": WEIGHTS, **change}
    with pytest.raises(InvalidInputError, match=words):
        MixtureReference(**settings)
