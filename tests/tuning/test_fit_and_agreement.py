import numpy as np
import pytest

from cdsampler.tuning._agreement import energy_test
from cdsampler.tuning._fit import fit_mixture

CENTRES = np.array([[0.0, 0.0, 0.0], [20.0, 0.0, 0.0], [0.0, 30.0, 0.0]])


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def fitted(x, rng, groups=None):
    return fit_mixture(x, np.arange(len(x)), np.zeros(3), 40.0, rng, groups=groups)


def test_the_fit_finds_the_clusters_their_weights_and_their_widths(rng):
    labels = rng.choice(3, 600, p=[0.6, 0.3, 0.1])
    fit = fitted(CENTRES[labels] + rng.normal(size=(600, 3)), rng)
    assert fit.n_components == 3
    order = np.argmin(np.linalg.norm(fit.means[:-1, None] - CENTRES, axis=2), axis=1)
    np.testing.assert_array_equal(np.sort(order), [0, 1, 2])
    shares = np.bincount(labels) / 600
    np.testing.assert_allclose(fit.weights[:-1][np.argsort(order)] / fit.weights[:-1].sum(), shares, atol=0.01)
    np.testing.assert_allclose(fit.local_variance(), 3.0, rtol=0.15)
    assert fit.size_ratio() < 1.3


def test_held_out_draws_score_near_their_entropy(rng):
    fit = fitted(rng.normal(size=(400, 3)), rng)
    assert fit.n_components == 1
    entropy = 1.5 * np.log(2 * np.pi * np.e)
    assert abs(fit.score + entropy - np.log(0.9) * -1) < 4 * np.sqrt(1.5 / 400) + 0.05


def test_a_tiny_known_cluster_inside_a_broad_one_is_kept_apart(rng):
    spike, bulk = 0.01 * rng.normal(size=(32, 3)), 10 * rng.normal(size=(200, 3))
    groups = np.repeat([0, -1], [32, 200])
    fit = fitted(np.concatenate([spike, bulk]), rng, groups)
    assert fit.size_ratio() > 300
    assert np.mean(fit.log_density(spike)) > 5


def test_draws_far_from_every_component_are_a_surprise(rng):
    fit = fitted(rng.normal(size=(300, 3)), rng)
    assert fit.wide_share(rng.normal(size=(100, 3))) < 0.02
    assert fit.wide_share(np.full((10, 3), 25.0)) == 1.0


def test_the_energy_test_sees_a_shift_and_only_a_shift(rng):
    chains = rng.normal(size=(40, 8, 2)) + 0.5 * rng.normal(size=(40, 1, 2))
    _, same = energy_test(chains[:20], chains[20:], rng)
    _, shifted = energy_test(chains[:20], chains[20:] + 1.5, rng)
    assert same > 0.01
    assert shifted < 0.001
