"""What groups of annealed particles say together. Host arithmetic in float64."""

from typing import NamedTuple

import numpy as np

from cdsampler.samplers._smc import SMCStatistics


class AnnealingDiagnostics(NamedTuple):
    """Log Z and the health of a run of annealed particles.

    Attributes
    ----------
    log_z
        Log of the mean of the groups' unbiased estimates of Z, relative to a normalised reference.
    standard_error
        Of `log_z`, from the spread of the groups; NaN for one group.
    n_groups, n_particles : int
    effective_groups
        How many equal groups the groups' weights are worth: their effective sample size.
    smallest_ess
        Smallest effective share of a group's particles at any temperature, averaged over groups.
    n_ancestors
        Particles of the start that a group's last particles descend from, averaged over groups.
    n_resampled
        Resamplings, averaged over groups.
    acceptance
        Of the kernel.
    """

    log_z: float
    standard_error: float
    n_groups: int
    n_particles: int
    effective_groups: float
    smallest_ess: float
    n_ancestors: float
    n_resampled: float
    acceptance: float


def annealing_diagnostics(statistics: SMCStatistics, n_particles: int) -> AnnealingDiagnostics:
    """Average the statistics of all groups.

    Parameters
    ----------
    statistics
        Stacked over groups along the first axis.
    n_particles
        Of a group.
    """
    log_z = np.asarray(statistics.log_z, dtype=np.float64)
    largest = float(np.max(log_z))
    z = np.exp(log_z - largest) if np.isfinite(largest) else np.ones(len(log_z))
    n = len(z)
    error = float(np.std(z, ddof=1) / np.mean(z) / np.sqrt(n)) if n > 1 else float("nan")
    mean = lambda a: float(np.mean(a, dtype=np.float64))  # noqa: E731
    return AnnealingDiagnostics(
        log_z=largest + float(np.log(np.mean(z))),
        standard_error=error,
        n_groups=n,
        n_particles=n_particles,
        effective_groups=float(np.sum(z) ** 2 / np.sum(z**2)),
        smallest_ess=mean(statistics.smallest_ess),
        n_ancestors=mean(statistics.n_ancestors),
        n_resampled=mean(statistics.n_resampled),
        acceptance=mean(statistics.acceptance),
    )
