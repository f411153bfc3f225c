import numpy as np
import pytest
from scipy.stats import norm

from cdsampler.errors import InvalidInputError
from cdsampler.metrics.likelihood import negative_log_likelihoods


def test_known_values():
    result = negative_log_likelihoods(np.log([[0.5, 0.2], [0.25, 0.6]]))
    assert result.mean_nll == pytest.approx(-np.log(0.5 * 0.2 * 0.25 * 0.6) / 4)
    assert result.predictive_nll == pytest.approx(-np.log(0.375 * 0.4) / 2)


def test_predictive_is_at_most_the_mean(rng):
    for spread in (0.1, 1, 10, 1000):
        result = negative_log_likelihoods(spread * rng.standard_normal((30, 8)))
        assert result.predictive_nll < result.mean_nll
    same = np.repeat(rng.standard_normal((1, 8)), 30, axis=0)
    assert np.diff(negative_log_likelihoods(same)) == pytest.approx(0, abs=1e-14)


def test_gaussian_approaches_the_closed_form(rng):
    # Parameter N(0, 1), data N(parameter, 1): the predictive is N(0, 2).
    parameters, points = rng.standard_normal((100_000, 1)), np.array([[-1.0, 0.5, 2.0]])
    result = negative_log_likelihoods(norm.logpdf(points, parameters, 1))
    assert result.predictive_nll == pytest.approx(-norm.logpdf(points, 0, np.sqrt(2)).mean(), abs=0.01)
    # E (y − θ)² = y² + 1
    assert result.mean_nll == pytest.approx(np.log(2 * np.pi) / 2 + ((points**2).mean() + 1) / 2, abs=0.02)


def test_a_point_that_one_sample_rules_out_is_lost_to_the_mean_alone():
    result = negative_log_likelihoods([[0.0, -np.inf], [0.0, 0.0]])
    assert result.mean_nll == np.inf
    assert result.predictive_nll == pytest.approx(np.log(2) / 2)
    assert negative_log_likelihoods([[0.0, -np.inf]]).predictive_nll == np.inf


def test_bad_input_is_refused():
    with pytest.raises(InvalidInputError, match=r"shape \(3,\)"):
        negative_log_likelihoods(np.zeros(3))
    with pytest.raises(InvalidInputError, match="shape"):
        negative_log_likelihoods(np.zeros((0, 3)))
    with pytest.raises(InvalidInputError, match="2 of 4 entries"):
        negative_log_likelihoods([[np.nan, 0.0], [np.inf, -np.inf]])
