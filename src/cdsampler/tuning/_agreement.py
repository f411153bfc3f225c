"""Do two groups of chains sample the same distribution? Energy distance, with chains permuted as wholes."""

import numpy as np
from scipy.spatial.distance import cdist


def energy_test(
    first: np.ndarray, second: np.ndarray, rng: np.random.Generator, *, n_permutations: int = 2000
) -> tuple[float, float]:
    """Return the energy distance between two groups of chains and its permutation p-value.

    Parameters
    ----------
    first, second : ndarray, shape (n_chains, n_draws, dim)
        Draws of one chain may depend on each other; chains may not.
    rng
        Chooses the permutations.
    n_permutations
        The smallest p-value is 1 over this.

    Notes
    -----
    Székely and Rizzo 2013. Coordinates are divided by their pooled standard deviations.
    """
    groups = np.concatenate([first, second]).astype(np.float64)
    n_chains, n_draws, dim = groups.shape
    flat = groups.reshape(-1, dim)
    scale = flat.std(axis=0)
    flat = flat / np.where(scale > 0, scale, 1.0)
    between = cdist(flat, flat).reshape(n_chains, n_draws, n_chains, n_draws).mean(axis=(1, 3))
    is_first = np.zeros(n_chains, dtype=bool)
    is_first[: len(first)] = True
    observed = _energy(between, is_first)
    shuffled = [_energy(between, rng.permutation(is_first)) for _ in range(n_permutations)]
    p = (1 + sum(s >= observed for s in shuffled)) / (1 + n_permutations)
    return observed, float(p)


def _energy(distances: np.ndarray, is_first: np.ndarray) -> float:
    a, b = is_first, ~is_first
    cross, one, two = distances[np.ix_(a, b)], distances[np.ix_(a, a)], distances[np.ix_(b, b)]
    return float(2 * cross.mean() - one.mean() - two.mean())
