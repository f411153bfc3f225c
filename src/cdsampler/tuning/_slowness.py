"""How slowly a local kernel forgets where it was."""

# Local autocorrelation times, in steps of MALA: above the first, tuning takes longer rounds and tries trajectories in
# tempering; above the second, it tries trajectories without tempering first.
SLOW, VERY_SLOW = 10.0, 400.0


def local_autocorrelation(jump: float, variance: float) -> float:
    """Return the local kernel's integrated autocorrelation time in steps, from its mean squared jump.

    Parameters
    ----------
    jump
        Mean squared distance of a step.
    variance
        Trace of the local covariance: a reversible chain's lag-1 correlation is `1 - jump / (2 variance)`.
    """
    correlation = 1 - min(jump / (2 * variance), 1.0)
    return (1 + correlation) / max(1 - correlation, 1e-6)
