"""Random symmetries of targets: each takes a row of a draw to another row that is equally likely."""

import numpy as np
from scipy.spatial.transform import Rotation

from cdsampler.targets._bayesian_neural_network import N_HIDDEN
from cdsampler.targets.molecules import random_labels


def relabelled(rng: np.random.Generator, rows: np.ndarray, *, rotors: tuple[tuple[int, ...], ...]) -> np.ndarray:
    """Return configurations, shape (n, 3 n_particles), with each rotor's equivalent atoms permuted cyclically."""
    return random_labels(rows.reshape(len(rows), -1, 3), rotors, rng).reshape(rows.shape)


def rotated(rng: np.random.Generator, rows: np.ndarray) -> np.ndarray:
    """Return configurations, shape (n, 3 n_particles), each turned by a uniform proper rotation of its own."""
    # A normalised Gaussian quaternion is a uniform rotation.
    turns = Rotation.from_quat(rng.standard_normal((len(rows), 4))).as_matrix()
    return np.matmul(rows.reshape(len(rows), -1, 3), turns).reshape(rows.shape)


def of_cluster(rng: np.random.Generator, rows: np.ndarray) -> np.ndarray:
    """Return configurations of identical particles, shape (n, 3 n_particles), turned, reflected and relabelled."""
    turned = rotated(rng, rows) * rng.choice([-1.0, 1.0], (len(rows), 1))
    particles = turned.reshape(len(rows), -1, 3)
    labels = _permutations(rng, len(rows), particles.shape[1])
    return np.take_along_axis(particles, labels[:, :, None], axis=1).reshape(rows.shape)


def of_network(rng: np.random.Generator, rows: np.ndarray) -> np.ndarray:
    """Return parameters of the neural network, shape (n, 550), with each row's hidden units relabelled."""
    # Weights of the first layer, one input after the other, biases and last weights: all of them unit by unit.
    by_unit = rows.reshape(len(rows), -1, N_HIDDEN)
    labels = _permutations(rng, len(rows), N_HIDDEN)
    return np.take_along_axis(by_unit, labels[:, None, :], axis=2).reshape(rows.shape)


def _permutations(rng: np.random.Generator, n: int, size: int) -> np.ndarray:
    """Return n random orders of 0 to size - 1, one to a row."""
    return rng.permuted(np.tile(np.arange(size), (n, 1)), axis=1)
