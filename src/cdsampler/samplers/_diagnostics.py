"""What the sums of a tempering run say: barrier, rates and evidence. Host arithmetic in float64."""

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from cdsampler.paths import cumulative_barrier
from cdsampler.samplers._nrpt import TemperingStatistics


class Evidence(NamedTuple):
    """Estimates of log Z, relative to a normalised reference.

    Attributes
    ----------
    log_z
        By the geometric bridge between neighbours, which uses both and has light tails (Meng and Wong 1996).
    standard_error
        Of `log_z`, by the jackknife over independent chains; NaN for one chain, infinite if one chain is all that
        a pair's estimate rests on.
    forward, backward
        By stepping stones up and down the ladder. Going down is heavy-tailed.
    gap_standard_error
        Of their difference: a gap of many standard errors says that neither can be trusted.
    """

    log_z: float
    standard_error: float
    forward: float
    backward: float
    gap_standard_error: float


class TemperingDiagnostics(NamedTuple):
    """Rates of a tempering run, averaged over chains and recorded steps.

    Attributes
    ----------
    betas : ndarray, shape (n_replicas,)
    rejection : ndarray, shape (n_replicas - 1,)
        `E[1 - min(1, α)]` of each neighbouring pair.
    acceptance : ndarray, shape (n_replicas,)
        Of the local kernel; 1 where the reference is drawn from.
    barrier
        Λ, the sum of the rejections.
    restarts, round_trips : ndarray, shape (n_chains,)
    evidence
        None for a flat reference.
    """

    betas: np.ndarray
    rejection: np.ndarray
    acceptance: np.ndarray
    barrier: float
    restarts: np.ndarray
    round_trips: np.ndarray
    evidence: Evidence | None

    def local_barrier(self, n_points: int = 400) -> tuple[np.ndarray, np.ndarray]:
        """Return a grid of β and λ(β), the derivative of the cumulative barrier."""
        grid = np.linspace(self.betas[0], self.betas[-1], n_points)
        return grid, cumulative_barrier(self.betas, self.rejection).derivative()(grid)

    @property
    def round_trip_rate(self) -> float:
        """Predicted round trips per step at this schedule, `1 / (2 + 2 Σ r/(1-r))` (Syed et al. 2022)."""
        with np.errstate(divide="ignore"):
            return float(1 / (2 + 2 * np.sum(self.rejection / (1 - self.rejection))))


def tempering_diagnostics(
    betas: np.ndarray, statistics: TemperingStatistics, *, has_evidence: bool
) -> TemperingDiagnostics:
    """Average the sums of all chains.

    Parameters
    ----------
    betas : ndarray, shape (n_replicas,)
    statistics
        Stacked over chains along the first axis.
    has_evidence
        Whether the reference is normalised.
    """
    n_recorded = np.maximum(np.sum(statistics.n_recorded, dtype=np.int64), 1)
    rejection = np.sum(statistics.rejection, axis=0, dtype=np.float64) / n_recorded
    return TemperingDiagnostics(
        betas=np.asarray(betas, dtype=np.float64),
        rejection=np.clip(rejection, 0.0, 1.0),
        acceptance=np.sum(statistics.acceptance, axis=0, dtype=np.float64) / n_recorded,
        barrier=float(np.clip(rejection, 0.0, 1.0).sum()),
        restarts=np.asarray(statistics.restarts),
        round_trips=np.asarray(statistics.round_trips),
        evidence=stepping_stones(statistics) if has_evidence else None,
    )


def stepping_stones(statistics: TemperingStatistics) -> Evidence:
    """Return log Z from the sums of `exp(±Δβ r)`, both ways.

    Parameters
    ----------
    statistics
        Stacked over chains along the first axis; every chain recorded as many steps.
    """
    # Every sum runs over as many draws, so the counts cancel in the bridge.
    log_count = np.log(max(int(np.sum(statistics.n_recorded, dtype=np.int64)), 1))
    stones = np.moveaxis(np.asarray(statistics.log_stones, dtype=np.float64), 1, 0)
    bridge_up, bridge_down, forward, backward = (float(np.sum(logsumexp(s, axis=0) - log_count)) for s in stones)
    left_out = [_leave_one_out(s) for s in stones]
    # The target's draws say nothing about the reference's mass outside the support.
    with np.errstate(divide="ignore"):
        inside = float(np.log(np.sum(statistics.inside, dtype=np.int64)) - log_count)
    # Where no swap of a pair had a chance in any chain, log Z is NaN and its error infinite.
    with np.errstate(invalid="ignore"):
        differences = left_out[0] - left_out[1]
    return Evidence(
        log_z=bridge_up - bridge_down,
        standard_error=_jackknife(differences),
        forward=forward,
        backward=inside - backward,
        gap_standard_error=_jackknife(left_out[2] + left_out[3]),
    )


def _leave_one_out(log_sums: np.ndarray) -> np.ndarray:
    """Return, for each chain left out, the sum over pairs of the log of the mean of the others; (n_chains,)."""
    if len(log_sums) < 2:
        return np.full(len(log_sums), np.nan)
    total = logsumexp(log_sums, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.minimum(np.exp(log_sums - total), 1.0)
        return np.sum(total + np.log1p(-share), axis=1)


def _jackknife(left_out: np.ndarray) -> float:
    n = len(left_out)
    if n < 2:
        return float("nan")
    if not np.all(np.isfinite(left_out)):
        return float("inf")  # a single chain carries the whole sum
    return float(np.sqrt((n - 1) / n * np.sum((left_out - left_out.mean()) ** 2)))
