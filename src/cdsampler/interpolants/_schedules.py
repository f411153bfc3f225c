"""Schedules on the host, in float64: times from t0 to 1 and noise variances along them."""

from collections.abc import Callable

import numpy as np

from cdsampler.errors import InvalidInputError


def linear_times(t0: float, n_steps: int) -> np.ndarray:
    """Return `n_steps + 1` equally spaced times from t0 to 1.

    Parameters
    ----------
    t0
        First time, in (0, 1).
    n_steps
        Number of steps, at least 1.

    Returns
    -------
    ndarray, shape (n_steps + 1,)
    """
    return polynomial_times(t0, n_steps, power=1.0)


def polynomial_times(t0: float, n_steps: int, power: float) -> np.ndarray:
    """Return the times `t0 + (1 - t0) u^power` with u equally spaced in [0, 1].

    Parameters
    ----------
    t0
        First time, in (0, 1).
    n_steps
        Number of steps, at least 1.
    power
        Positive; above 1 puts more steps near t0.

    Returns
    -------
    ndarray, shape (n_steps + 1,)
    """
    _check(t0, n_steps)
    if not (np.isfinite(power) and power > 0):
        raise InvalidInputError(f"power must be positive and finite, got {power}.")
    return t0 + (1 - t0) * np.linspace(0, 1, n_steps + 1) ** power


def geometric_times(t0: float, n_steps: int) -> np.ndarray:
    """Return `n_steps + 1` times from t0 to 1 with a constant quotient (the paper's choice).

    Parameters
    ----------
    t0
        First time, in (0, 1).
    n_steps
        Number of steps, at least 1.

    Returns
    -------
    ndarray, shape (n_steps + 1,)
    """
    _check(t0, n_steps)
    return np.geomspace(t0, 1.0, n_steps + 1)


NOISE_SHAPES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "constant": np.ones_like,
    "linear": lambda t: t,
    "quadratic": lambda t: t**2,
    "cosine": lambda t: 0.5 * (1 - np.cos(np.pi * t)),
}


def noise_variances(
    times: np.ndarray, variance: float, shape: str = "constant", *, symmetric: bool = False
) -> np.ndarray:
    """Return σ² for each step of a time schedule.

    Parameters
    ----------
    times : ndarray, shape (n_steps + 1,)
        The schedule; σ² of a step is taken at its beginning.
    variance
        Base variance σ², positive.
    shape
        A name of `NOISE_SHAPES`: f(t) is 1, t, t² or (1 - cos πt)/2.
    symmetric
        Use `4 f (1 - f)` instead of f, which vanishes at both ends. A constant shape stays constant.

    Returns
    -------
    ndarray, shape (n_steps,)

    Raises
    ------
    InvalidInputError
        Unknown shape, or a variance that isn't positive.
    """
    if shape not in NOISE_SHAPES:
        raise InvalidInputError(f"Unknown noise shape {shape!r}: choose from {', '.join(NOISE_SHAPES)}.")
    if not (np.isfinite(variance) and variance > 0):
        raise InvalidInputError(f"The noise variance must be positive and finite, got {variance}.")
    f = NOISE_SHAPES[shape](np.asarray(times, dtype=np.float64)[:-1])
    if symmetric and shape != "constant":
        f = 4 * f * (1 - f)
    return variance * f


def _check(t0: float, n_steps: int) -> None:
    if not 0 < t0 < 1:
        raise InvalidInputError(f"t0 must lie in (0, 1), got {t0}.")
    if n_steps < 1:
        raise InvalidInputError(f"The number of integration steps must be at least 1, got {n_steps}.")
