"""Coefficients of the conditional SDE's integrators in target coordinates, on the host in float64."""

from typing import NamedTuple

import numpy as np

from cdsampler.errors import InvalidInputError
from cdsampler.interpolants import AbstractAffineInterpolant

INTEGRATORS = ("exponential", "metropolis", "euler-maruyama", "leimkuhler-matthews")


class StepCoefficients(NamedTuple):
    """One step `y' = keep·y + pull·z + drift·∇ℓ(y) + noise·ξ`; each array has one entry per step.

    Attributes
    ----------
    keep, pull, drift, noise : ndarray, shape (n_steps,)
    """

    keep: np.ndarray
    pull: np.ndarray
    drift: np.ndarray
    noise: np.ndarray


def checked_times(times: np.ndarray, variances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return times and variances as float64 after checking them.

    Raises
    ------
    InvalidInputError
        Times don't increase strictly from above 0 to 1, or there isn't one non-negative finite variance per step.
    """
    t, v = np.asarray(times, dtype=np.float64), np.asarray(variances, dtype=np.float64)
    if t.ndim != 1 or len(t) < 2 or not (t[0] > 0 and np.all(np.diff(t) > 0) and t[-1] == 1):
        raise InvalidInputError(f"Times must increase strictly from t0 > 0 to 1, got {times!r}.")
    if v.shape != (len(t) - 1,) or not np.all(np.isfinite(v) & (v >= 0)):
        raise InvalidInputError(
            f"Give one finite noise variance >= 0 for each of the {len(t) - 1} steps, got {variances!r}."
        )
    return t, v


def langevin_steps(interpolant: AbstractAffineInterpolant, times: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Return each step's Langevin time `h = ∫ σ²/(2b²) dt`.

    Parameters
    ----------
    interpolant
        Affine interpolant.
    times : ndarray, shape (n_steps + 1,)
    variances : ndarray, shape (n_steps,)
        σ², constant within a step.

    Returns
    -------
    ndarray, shape (n_steps,)
    """
    return 0.5 * variances * interpolant.inverse_square_integral(times[:-1], times[1:])


def capped_variances(
    interpolant: AbstractAffineInterpolant, times: np.ndarray, variances: np.ndarray, max_step: float
) -> np.ndarray:
    """Return σ², lowered where a step's Langevin time would exceed `max_step`; shape (n_steps,)."""
    steps = langevin_steps(interpolant, np.asarray(times), np.asarray(variances))
    return np.where(steps > max_step, variances * max_step / np.maximum(steps, max_step), variances)


def constant_step_variances(interpolant: AbstractAffineInterpolant, times: np.ndarray, step: float) -> np.ndarray:
    """Return σ² for which every step has the same Langevin time; shape (n_steps,).

    Parameters
    ----------
    interpolant
        Affine interpolant.
    times : ndarray, shape (n_steps + 1,)
    step
        Langevin time of each step, in squared target units.
    """
    return step / langevin_steps(interpolant, np.asarray(times), np.ones(len(times) - 1))


def step_coefficients(
    interpolant: AbstractAffineInterpolant, times: np.ndarray, variances: np.ndarray, integrator: str
) -> StepCoefficients:
    """Return the coefficients of every step of an integrator.

    Parameters
    ----------
    interpolant
        Affine interpolant `x = a z + b y`.
    times : ndarray, shape (n_steps + 1,)
    variances : ndarray, shape (n_steps,)
        σ².
    integrator
        "exponential" (exact in the velocity and in the noise integral, so that a step is one of Langevin dynamics)
        and "metropolis" (the same, each step accepted or rejected so that the target stays exactly invariant) and
        "leimkuhler-matthews" (with averaged noise) or "euler-maruyama" (in x, as in the paper's
        Algorithm 1, rewritten in y).

    Returns
    -------
    StepCoefficients
    """
    if integrator not in INTEGRATORS:
        raise InvalidInputError(f"Unknown integrator {integrator!r}: choose from {', '.join(INTEGRATORS)}.")
    if integrator != "euler-maruyama":
        h = langevin_steps(interpolant, times, variances)
        return StepCoefficients(np.ones_like(h), np.zeros_like(h), h, np.sqrt(2 * h))
    now, then = times[:-1], times[1:]
    dt = then - now
    (a0, b0), (a1, b1) = interpolant.coefficients(now), interpolant.coefficients(then)
    a_rate, b_rate = interpolant.rates(now)
    return StepCoefficients(
        keep=(b0 + dt * b_rate) / b1,
        pull=(a0 + dt * a_rate - a1) / b1,
        drift=0.5 * variances * dt / (b0 * b1),
        noise=np.sqrt(variances * dt) / b1,
    )
