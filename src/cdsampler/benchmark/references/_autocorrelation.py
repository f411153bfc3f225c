import math
import warnings

import numpy as np

with warnings.catch_warnings():
    # ArviZ 0.23 announces ArviZ 1 on import; this library supports both.
    warnings.simplefilter("ignore", FutureWarning)
    import arviz as az


def of_chains(values: np.ndarray) -> float:
    """Return the integrated autocorrelation of many chains that share one mean, in draws.

    Parameters
    ----------
    values : ndarray, shape (n_chains, n_draws)

    Returns
    -------
    float
        `1 + 2 Σ_k ρ_k` up to the first lag whose ρ can't be told from zero; at least 1. It can't exceed what chains of
        this length show: a value near `n_draws` is a lower bound.
    """
    n_chains, n_draws = values.shape
    deviation = values - values.mean()
    variance = float(np.mean(deviation**2))
    total = 1.0
    for lag in range(1, n_draws):
        if variance == 0:
            break
        correlation = float(np.mean(deviation[:, lag:] * deviation[:, : n_draws - lag])) / variance
        if correlation < 2 / math.sqrt(n_chains * (n_draws - lag)):
            break
        total += 2 * correlation
    return total


def of_series(values: np.ndarray) -> float:
    """Return the integrated autocorrelation of one series, its length over ArviZ' effective size; at least 1.

    Parameters
    ----------
    values : ndarray, shape (n,)
        Constant series and those of fewer than 8 values count as independent.
    """
    if len(values) < 8 or np.all(values == values[0]):
        return 1.0
    return max(
        1.0, len(values) / float(np.asarray(az.ess(np.asarray(values, dtype=np.float64)[None, :], method="mean")))
    )


def thinned(values: np.ndarray, autocorrelation: float) -> np.ndarray:
    """Return every k-th value, k the autocorrelation rounded up."""
    return values[:: max(1, math.ceil(autocorrelation - 1e-9))]
