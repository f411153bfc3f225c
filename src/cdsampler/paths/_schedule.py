"""Schedules of β and the communication barrier that they are chosen by."""

import numpy as np
from scipy.interpolate import PchipInterpolator

from cdsampler.errors import InvalidInputError


def geometric_schedule(n_replicas: int, beta_min: float, *, with_zero: bool = True) -> np.ndarray:
    """Return β growing geometrically from `beta_min` to 1, by default preceded by β = 0.

    Parameters
    ----------
    n_replicas
        Number of values, at least 2 (3 with zero, unless β jumps from 0 to 1).
    beta_min
        Smallest positive value, in (0, 1).
    with_zero
        Whether the first value is 0 (a proper reference) or `beta_min` (a flat one).

    Returns
    -------
    ndarray, shape (n_replicas,)

    Raises
    ------
    InvalidInputError
        Too few replicas, or `beta_min` outside (0, 1).
    """
    _check_count(n_replicas)
    if not 0 < beta_min < 1:
        raise InvalidInputError(f"beta_min must lie in (0, 1), got {beta_min}.")
    n_positive = n_replicas - 1 if with_zero else n_replicas
    positive = np.geomspace(beta_min, 1.0, n_positive) if n_positive > 1 else np.ones(1)
    return np.concatenate([[0.0], positive]) if with_zero else positive


def linear_schedule(n_replicas: int) -> np.ndarray:
    """Return `n_replicas` equally spaced β from 0 to 1.

    Parameters
    ----------
    n_replicas
        Number of values, at least 2.

    Returns
    -------
    ndarray, shape (n_replicas,)
    """
    _check_count(n_replicas)
    return np.linspace(0.0, 1.0, n_replicas)


def check_schedule(betas: np.ndarray, *, proper_reference: bool) -> np.ndarray:
    """Return β as float64 after checking it.

    Parameters
    ----------
    betas : array_like, shape (n_replicas,)
    proper_reference
        A proper reference needs β_0 = 0; a flat one needs β_0 > 0.

    Raises
    ------
    InvalidInputError
        β isn't strictly increasing within [0, 1], doesn't end at 1, or starts wrongly for the reference.
    """
    values = np.asarray(betas, dtype=np.float64)
    if values.ndim != 1 or len(values) < 2:
        raise InvalidInputError(f"A schedule needs at least 2 values of beta in one dimension, got {betas!r}.")
    if not (np.all(np.diff(values) > 0) and values[0] >= 0 and values[-1] == 1):
        raise InvalidInputError(f"A schedule must increase strictly within [0, 1] and end at 1, got {values}.")
    if proper_reference and values[0] != 0:
        raise InvalidInputError(f"With a reference that can be sampled the schedule must start at 0, got {values[0]}.")
    if not proper_reference and values[0] == 0:
        raise InvalidInputError("With a flat reference the schedule must start above 0: it can't be sampled at 0.")
    return values


def cumulative_barrier(betas: np.ndarray, rejections: np.ndarray) -> PchipInterpolator:
    """Return the barrier from β_0 to β as a monotone spline; its derivative is the local barrier λ(β).

    Parameters
    ----------
    betas : ndarray, shape (n_replicas,)
    rejections : ndarray, shape (n_replicas - 1,)
        Mean swap rejection `E[1 - min(1, α)]` of each neighbouring pair.

    Notes
    -----
    Syed et al. 2022, "Non-reversible parallel tempering", section 5: the sum of rejections approximates Λ with an
    error of second order in the spacing.
    """
    return PchipInterpolator(betas, np.concatenate([[0.0], np.cumsum(rejections)]))


def equal_rejection_schedule(betas: np.ndarray, rejections: np.ndarray, n_replicas: int | None = None) -> np.ndarray:
    """Return the schedule whose neighbours have equal rejection, by inverting the cumulative barrier.

    Parameters
    ----------
    betas : ndarray, shape (n_replicas,)
        Schedule at which the rejections were measured.
    rejections : ndarray, shape (n_replicas - 1,)
        Mean swap rejection of each neighbouring pair.
    n_replicas
        Size of the new schedule; default that of the old one.

    Returns
    -------
    ndarray, shape (n_replicas,)
        With no measured barrier at all (target equal to reference) the old end points, equally spaced.
    """
    count = len(betas) if n_replicas is None else n_replicas
    _check_count(count)
    # A pair that never rejects would make the inverse multivalued; a trace of barrier keeps it strictly monotone.
    padded = np.asarray(rejections, dtype=np.float64) + 1e-4 * np.diff(betas)
    barrier = cumulative_barrier(betas, padded)
    total = float(barrier(betas[-1]))
    fine = np.unique(np.concatenate([_log_grid(betas), np.linspace(betas[0], betas[-1], 2001), betas]))
    inner = np.interp(np.linspace(0, total, count)[1:-1], barrier(fine), fine)
    return np.concatenate([[betas[0]], inner, [betas[-1]]])


def _log_grid(betas: np.ndarray) -> np.ndarray:
    smallest = betas[betas > 0][0] * 1e-3
    return np.geomspace(smallest, betas[-1], 4001)[:-1].clip(betas[0])


def _check_count(n_replicas: int) -> None:
    if n_replicas < 2:
        raise InvalidInputError(f"Tempering needs at least 2 replicas, got {n_replicas}: use a local sampler for one.")
