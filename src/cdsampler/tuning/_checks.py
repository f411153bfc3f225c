"""What a pilot saw that bears on trust."""

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cdsampler.density import AbstractLogDensity
from cdsampler.paths import GaussianReference
from cdsampler.tuning._agreement import energy_test
from cdsampler.tuning._draws import Draws

if TYPE_CHECKING:
    from cdsampler.tuning._survey import Survey
    from cdsampler.tuning._tempering import Verified


@dataclass(frozen=True)
class Checks:
    """What the pilot saw that bears on trust.

    Attributes
    ----------
    cover : float
        Standard deviation of log ref over the cold chain's draws that ℓ doesn't explain; should be about 1 or less
        for a Gaussian reference. NaN for a learned one.
    distance : float
        Median Mahalanobis distance of cold draws from the reference's centre, per √dim. NaN for a learned one.
    agreement_p : float
        Permutation p-value of equal distributions from two starts: the modes found, and the reference.
    unseen : float
        Estimated mass of modes that no chain of the survey found.
    surprise : float
        Share of the last round's draws that no component of the reference explained.
    mode_gap : float
        Log density of the highest point known above the highest that the cold chain visited.
    typical_gap : float
        That difference for a Gaussian of this dimension, with a margin.
    size_ratio : float
        Widest over narrowest mode, in geometric mean standard deviations; 1 if there is one.
    is_bounded : bool
        Whether the draws stopped spreading when the reference was widened.
    stuck : float
        Share of pilot chains whose cold replica never moved.
    resolution : float
        Spacing of floating-point numbers at the log densities of the cold chain, in nats.
    smallest_acceptance : float
        Of the local kernel over replicas.
    memory : float
        Of local chains without tempering, the largest share of a coordinate's variance that is between chains.
    """

    cover: float = float("nan")
    distance: float = float("nan")
    agreement_p: float = float("nan")
    unseen: float = 0.0
    surprise: float = 0.0
    mode_gap: float = 0.0
    typical_gap: float = float("inf")
    size_ratio: float = 1.0
    is_bounded: bool = True
    stuck: float = 0.0
    resolution: float = 0.0
    smallest_acceptance: float = 1.0
    memory: float = 0.0


def take_checks(
    found: "Survey",
    verified: "Verified",
    draws: Draws,
    surprise: float,
    density: AbstractLogDensity,
    rng: np.random.Generator,
) -> Checks:
    """Return what the survey and the verified rounds say about trust; costs no evaluation.

    Parameters
    ----------
    found
        The survey.
    verified
        The last, frozen round.
    draws
        All draws of the pilot.
    surprise
        Share of the last learning round's draws that no component explained.
    density
        Target.
    rng
        Permutes chains.
    """
    measured, ladder = verified.measured, verified.ladder
    chains = np.moveaxis(measured.cold, 0, 1)
    cold, log_density = measured.cold.reshape(-1, density.dim), measured.cold_log_density.reshape(-1)
    n = verified.n_from_reference
    cover = distance = float("nan")
    if isinstance(ladder.reference, GaussianReference):
        cover, distance = _reference_cover(cold, log_density, found)
    elif ladder.fit is not None:
        surprise = max(surprise, ladder.fit.wide_share(np.unique(cold, axis=0)))
    _, p = energy_test(chains[:n], chains[n:], rng)
    moved = np.ptp(measured.cold, axis=0).max(axis=1) > 0
    finite = log_density[np.isfinite(log_density)]
    typical = float(np.max(np.abs(finite))) if len(finite) else 0.0
    return Checks(
        cover=cover,
        distance=distance,
        agreement_p=p,
        unseen=found.unseen,
        surprise=surprise,
        mode_gap=float(draws.log_density.max()) - float(log_density.max()),
        typical_gap=0.5 * density.dim + 5.0,
        size_ratio=(ladder.fit or found.fit).size_ratio(),
        is_bounded=found.is_bounded,
        stuck=float(np.mean(~moved)),
        resolution=float(np.finfo(density.dtype).eps) * typical,
        smallest_acceptance=float(measured.acceptance[1:].min()),
    )


def _reference_cover(cold: np.ndarray, log_density: np.ndarray, found: "Survey") -> tuple[float, float]:
    """Return the part of sd(log ref) that ℓ doesn't explain, and the distance from the reference in its widths."""
    squares = np.sum((cold - found.centre) ** 2, axis=1) / found.width**2
    inside = np.isfinite(log_density)
    log_reference, ell = -0.5 * squares[inside], log_density[inside]
    distance = float(np.sqrt(np.median(squares) / cold.shape[1]))
    if len(ell) < 3:
        return float("nan"), distance
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        correlation = np.corrcoef(log_reference, ell)[0, 1]
    explained = correlation**2 if np.isfinite(correlation) else 0.0
    return float(log_reference.std() * np.sqrt(max(1 - explained, 0.0))), distance
