import warnings

import jax
import numpy as np
import pytest

import cdsampler
from cdsampler.errors import SamplingWarning


@pytest.fixture(autouse=True, scope="module")
def forget_programs():
    """Free compiled programs: those of a dozen targets exhaust the memory maps that Linux grants a process."""
    yield
    jax.clear_caches()


@pytest.fixture
def draw():
    """Call the front door and return its result; its warnings are in the result."""

    def run(log_density, dim=None, n_samples=2000, **settings):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SamplingWarning)
            return cdsampler.sample(log_density, dim, n_samples, **settings)

    return run


@pytest.fixture
def check_moments():
    """Compare mean and variance with the truth, within 4 standard errors from the draws' own effective size."""

    def check(result, mean, variance):
        x = result.positions.astype(np.float64)
        ess = np.minimum(result.ess, len(x))
        error = np.sqrt(np.asarray(variance) / ess)
        assert np.all(np.abs(x.mean(axis=0) - mean) < 4 * error)
        squares = (x - np.asarray(mean)) ** 2
        assert np.all(np.abs(squares.mean(axis=0) - variance) < 4 * squares.std(axis=0) / np.sqrt(ess))

    return check


@pytest.fixture
def codes():
    """Return the codes of a result's warnings."""
    return lambda result: {warning.code for warning in result.warnings}
