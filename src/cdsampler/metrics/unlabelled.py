"""Comparisons of configurations of identical particles, whose labels mean nothing.

The deviation of `cdsampler.metrics.kabsch` tells a configuration from its relabelled copy. Minimising it over all
permutations and rotations together is hard: `matched_rmsd` gives an upper bound for two configurations. The
distances between particles and from the centroid are cheap, and exactly invariant: they compare whole samples.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from scipy.spatial.transform import Rotation

from cdsampler.metrics._validate import FloatArray, require_at_least
from cdsampler.metrics.histogram import energy_total_variation
from cdsampler.metrics.kabsch import best_rotations, superposed_deviations, two_samples
from cdsampler.metrics.transport import wasserstein


def matched_rmsd(
    a: ArrayLike, b: ArrayLike, *, reflections: bool = False, random_starts: int = 20, seed: int = 0
) -> float:
    """Root-mean-square deviation of two configurations of identical particles: an upper bound.

    The best labels for a rotation (an assignment problem) and the best rotation for the labels alternate until
    neither improves. The starts are the given labels, the four ways to align the principal axes and random
    rotations.

    Parameters
    ----------
    a, b : array_like, [n_particles, 3] or [3 n_particles]
        The configurations.
    reflections : bool
        Whether mirror images count as equal.
    random_starts : int
        Number of random rotations to start from.
    seed : int
        Fixes those rotations.

    Returns
    -------
    float
        The least deviation found, in the units of ``a``. Each search ends in a local minimum, so the true one
        may be lower; it is never above `kabsch_distances` of the two.

    Raises
    ------
    InvalidInputError
        If a shape is not that of a configuration in three dimensions, the numbers of particles differ, a
        coordinate is not finite or ``random_starts < 0``.
    """
    require_at_least("random_starts", random_starts, 0)
    samples = two_samples(np.asarray(a, dtype=np.float64)[None], np.asarray(b, dtype=np.float64)[None])
    left, right = samples[0][0], samples[1][0]
    images = [left, left * np.array([[-1.0, 1.0, 1.0]])] if reflections else [left]
    rng = np.random.default_rng(seed)
    found = [_alternate(image, right, start) for image in images for start in _starts(image, right, random_starts, rng)]
    return float(min(found))


def pair_distance_total_variation(x: ArrayLike, y: ArrayLike, bins: int = 200) -> float:
    """Total variation between the histograms of all distances between two particles (radial distributions).

    Parameters
    ----------
    x, y : array_like, [n, n_particles, 3] or [n, 3 n_particles], and [m, ...]
        The samples; their sizes may differ.
    bins : int
        Number of equal bins on the range of the distances of both samples.

    Returns
    -------
    float
        In [0, 1]. It ignores translations, rotations, reflections and permutations of the particles, and also
        everything about a configuration beyond its pairs: 0 does not mean equal laws.

    Raises
    ------
    InvalidInputError
        If shapes or numbers of particles differ, there are fewer than two particles, a configuration is not
        finite, or ``bins < 1``.
    """
    a, b = two_samples(x, y)
    require_at_least("The number of particles", a.shape[1], 2)
    return energy_total_variation(_pair_distances(a), _pair_distances(b), bins)


def sorted_radius_wasserstein_2(x: ArrayLike, y: ArrayLike) -> float:
    """``W_2`` between the sorted distances of the particles from their centroid.

    Parameters
    ----------
    x, y : array_like, [n, n_particles, 3] or [n, 3 n_particles]
        The samples, of equal size.

    Returns
    -------
    float
        With the root of the mean over particles of the squared difference as distance between two sorted
        vectors, in the units of the samples. It ignores translations, rotations, reflections and permutations
        of the particles, and bounds from below the ``W_2`` at the deviation minimised over all of them.

    Raises
    ------
    InvalidInputError
        If sizes, shapes or numbers of particles differ, or a configuration is not finite.
    """
    a, b = (np.sort(np.linalg.norm(sample, axis=2), axis=1) for sample in two_samples(x, y))
    return wasserstein(a, b, 2) / float(np.sqrt(a.shape[1]))


def _starts(a: FloatArray, b: FloatArray, random_starts: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Yield rotations R [3, 3] that bring ``a @ R`` near ``b``."""
    yield best_rotations(a[None], b[None])[0]
    axes_a, axes_b = np.linalg.svd(a.T @ a)[0], np.linalg.svd(b.T @ b)[0]
    handedness = np.sign(np.linalg.det(axes_a) * np.linalg.det(axes_b))
    for signs in ([1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]):
        yield (axes_a * (handedness * np.array([signs], dtype=np.float64))) @ axes_b.T
    if random_starts:
        # A normalised Gaussian quaternion is a uniform rotation.
        yield from Rotation.from_quat(rng.standard_normal((random_starts, 4))).as_matrix()


def _alternate(a: FloatArray, b: FloatArray, rotation: FloatArray) -> float:
    """Deviation at the local minimum over labels and rotations that the search from ``rotation`` ends in."""
    best = np.inf
    while True:
        # The squared distances differ from minus the inner products by a constant.
        _, labels = linear_sum_assignment(-(a @ rotation) @ b.T)
        matched = b[labels]
        deviation = float(superposed_deviations(a[None], matched[None])[0])
        if not deviation < best:
            return best
        best, rotation = deviation, best_rotations(a[None], matched[None])[0]


def _pair_distances(x: FloatArray) -> FloatArray:
    """Return the distances of all pairs of particles of all configurations, [n n_particles (n_particles − 1) / 2]."""
    parts = [np.linalg.norm(x[:, i + 1 :] - x[:, i : i + 1], axis=2).ravel() for i in range(x.shape[1] - 1)]
    return np.concatenate(parts)
