"""Negative log likelihood of held-out data under a sample of the posterior."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from cdsampler.errors import InvalidInputError


class NegativeLogLikelihoods(NamedTuple):
    """Negative log likelihoods per test point, in nats.

    Attributes
    ----------
    mean_nll : float
        Mean over the posterior's samples of each sample's own value: the published benchmark's metric.
    predictive_nll : float
        That of the posterior predictive, which averages the samples' likelihoods. It is never above
        ``mean_nll``, by Jensen's inequality.
    """

    mean_nll: float
    predictive_nll: float


def negative_log_likelihoods(log_likelihood: ArrayLike) -> NegativeLogLikelihoods:
    """Average the negative log likelihood of test points over a sample of the posterior, in two ways.

    Parameters
    ----------
    log_likelihood : array_like, [n_samples, n_points]
        Log likelihood of each test point under each sample; −inf where a sample rules a point out.

    Returns
    -------
    NegativeLogLikelihoods
        Either is +inf if a point is ruled out: ``mean_nll`` by one sample, ``predictive_nll`` by all.

    Raises
    ------
    InvalidInputError
        If the array has not two axes or is empty, or an entry is NaN or +inf.
    """
    values = np.asarray(log_likelihood, dtype=np.float64)
    if values.ndim != 2 or values.size == 0:
        raise InvalidInputError(
            f"log_likelihood has shape {values.shape}; pass a non-empty array [n_samples, n_points]."
        )
    bad = int(np.count_nonzero(np.isnan(values) | (values == np.inf)))
    if bad:
        raise InvalidInputError(
            f"log_likelihood: {bad} of {values.size} entries are NaN or +inf; check the model at those samples."
        )
    predictive = logsumexp(values, axis=0) - np.log(len(values))
    return NegativeLogLikelihoods(float(-values.mean()), float(-predictive.mean()))
