import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from cdsampler.metrics import ExactReference


class Mixture:
    """Gaussian mixture with identity covariance: everything about it is known exactly."""

    def __init__(self, means, weights):
        self.means = np.asarray(means, dtype=np.float64)
        self.weights = np.asarray(weights, dtype=np.float64)

    def draw(self, seed, n):
        return self.draw_from(np.random.default_rng(seed), n, self.weights)

    def draw_from(self, rng, n, weights):
        component = rng.choice(len(weights), n, p=weights)
        return self.means[component] + rng.standard_normal((n, self.means.shape[1]))

    def joint_log_density(self, x):
        squares = ((np.asarray(x)[:, None, :] - self.means) ** 2).sum(axis=-1)
        return np.log(self.weights) - squares / 2 - self.means.shape[1] / 2 * np.log(2 * np.pi)

    def log_density(self, x):
        return logsumexp(self.joint_log_density(x), axis=1)

    def responsibilities(self, x):
        return softmax(self.joint_log_density(x), axis=1)

    def reference(self):
        return ExactReference(self.draw, self.log_density, self.responsibilities, self.weights)


@pytest.fixture(scope="session")
def mixture():
    means = [[-6.0, -6.0], [6.0, -6.0], [-6.0, 6.0], [6.0, 6.0], [0.0, 1.0]]
    return Mixture(means, [0.1, 0.15, 0.2, 0.25, 0.3])


@pytest.fixture
def rng():
    return np.random.default_rng(20260)
