"""Wasserstein distances between two samples, by exact optimal transport.

Source: Castro-Macías et al. 2026, 'Conditional Diffusion Sampling', appendix 'Evaluation Metrics'. The order
is the exponent of the cost: ``W_2`` moves mass at *squared* distance and takes the square root of the total.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from cdsampler.errors import InvalidInputError
from cdsampler.metrics._validate import FloatArray, as_finite_rows, as_vector, require_same_dim


def wasserstein(x: ArrayLike, y: ArrayLike, order: float = 2) -> float:
    """Wasserstein distance between two equally weighted samples of the same size.

    The optimal plan between two uniform samples of equal size is a permutation, found exactly by the
    assignment problem; in one dimension it pairs the sorted values.

    Parameters
    ----------
    x, y : array_like, [n, dim] or [n]
        The samples.
    order : float
        The order p ≥ 1 of the distance; the cost of a move is `|x − y|^p`.

    Returns
    -------
    float
        ``min_π (1/n Σ_i |x_i − y_π(i)|^p)^(1/p)``, in the units of the samples.

    Raises
    ------
    InvalidInputError
        If sizes or dimensions differ, a row is not finite, or ``order < 1``.

    Notes
    -----
    For dim > 1 time grows as n³ and memory is 16 n² bytes (half of it for order 1): at n = 10 000 about a
    minute and 1.6 GB.
    """
    if not (np.isfinite(order) and order >= 1):
        raise InvalidInputError(f"order is {order}; a Wasserstein distance has a finite order of at least 1.")
    rows_x, rows_y = _equal_samples(x, y)
    return _distances_of_orders(rows_x, rows_y, (order,))[0]


def wasserstein_1_and_2(x: ArrayLike, y: ArrayLike) -> tuple[float, float]:
    """``W_1`` and ``W_2`` between two samples, from one matrix of distances.

    Parameters
    ----------
    x, y : array_like, [n, dim] or [n]
        The samples, of equal size.

    Returns
    -------
    tuple of float
        ``(W_1, W_2)``, each with its own optimal plan; ``W_1 <= W_2``.

    Raises
    ------
    InvalidInputError
        If sizes or dimensions differ, or a row is not finite.
    """
    first, second = _distances_of_orders(*_equal_samples(x, y), (1, 2))
    return first, second


def energy_wasserstein_1(u: ArrayLike, v: ArrayLike) -> float:
    """``W_1`` between two samples of energies: the mean gap between the sorted values.

    Parameters
    ----------
    u, v : array_like, [n]
        Energies of the two samples, of equal size.

    Returns
    -------
    float
        In the unit of the energies; +inf if an energy is not finite.

    Raises
    ------
    InvalidInputError
        If a sample is empty or not one-dimensional, or the sizes differ.
    """
    energies_u, energies_v = as_vector("u", u), as_vector("v", v)
    require_same_size(energies_u, energies_v)
    if not (np.isfinite(energies_u).all() and np.isfinite(energies_v).all()):
        return float("inf")
    return float(np.abs(np.sort(energies_u) - np.sort(energies_v)).mean())


def require_same_size(x: FloatArray, y: FloatArray) -> None:
    """Raise `InvalidInputError` unless ``x`` and ``y`` have as many rows."""
    if len(x) != len(y):
        raise InvalidInputError(
            f"x has {len(x)} rows and y has {len(y)}; both samples need the same size: "
            f"take a random subsample of {min(len(x), len(y))} rows of the larger."
        )


def _equal_samples(x: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
    rows_x, rows_y = as_finite_rows("x", x), as_finite_rows("y", y)
    require_same_dim(rows_x, rows_y)
    require_same_size(rows_x, rows_y)
    return rows_x, rows_y


def _distances_of_orders(x: FloatArray, y: FloatArray, orders: tuple[float, ...]) -> list[float]:
    if x.shape[1] == 1:
        moves = np.abs(np.sort(x[:, 0]) - np.sort(y[:, 0]))
        return [_power_mean(moves, order) for order in orders]
    return transport_costs(cdist(x, y), orders)


def transport_costs(distances: FloatArray, orders: tuple[float, ...]) -> list[float]:
    """Return the Wasserstein distance of each order between two samples that are ``distances`` [n, n] apart."""
    return [_power_mean(_assigned(distances, order), order) for order in orders]


def _assigned(distances: FloatArray, order: float) -> FloatArray:
    """Return the distances [n] of the moves of an optimal plan at cost ``distances ** order``."""
    rows, columns = linear_sum_assignment(distances if order == 1 else distances**order)
    return distances[rows, columns]


def _power_mean(moves: FloatArray, order: float) -> float:
    return float(np.mean(moves**order) ** (1 / order))
