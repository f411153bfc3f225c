import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdsampler.errors import InvalidInputError
from cdsampler.interpolants import NOISE_SHAPES, geometric_times, linear_times, noise_variances, polynomial_times

SCHEDULES = {
    "linear": linear_times,
    "polynomial": lambda t0, n: polynomial_times(t0, n, 3.0),
    "root": lambda t0, n: polynomial_times(t0, n, 0.5),
    "geometric": geometric_times,
}
PROFILES = {
    "constant": lambda t: 1.0 + 0 * t,
    "linear": lambda t: t,
    "quadratic": lambda t: t * t,
    "cosine": lambda t: np.sin(np.pi * t / 2) ** 2,
}


@pytest.mark.parametrize("name", SCHEDULES)
@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(t0=st.floats(1e-6, 0.999), n_steps=st.integers(1, 300))
def test_times_rise_from_t0_to_one(name, t0, n_steps):
    times = SCHEDULES[name](t0, n_steps)
    assert times.shape == (n_steps + 1,)
    assert times.dtype == np.float64
    assert times[0] == t0
    assert times[-1] == 1
    assert np.all(np.diff(times) > 0)


def test_linear_times():
    np.testing.assert_allclose(linear_times(0.2, 4), [0.2, 0.4, 0.6, 0.8, 1.0], rtol=1e-15)


def test_geometric_times():
    np.testing.assert_allclose(geometric_times(1e-3, 3), [1e-3, 1e-2, 1e-1, 1.0], rtol=1e-13)


def test_polynomial_times():
    np.testing.assert_allclose(polynomial_times(0.2, 2, 2.0), [0.2, 0.4, 1.0], rtol=1e-15)


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("t0", [0.0, 1.0, -0.1, 1.5, np.nan, np.inf])
def test_first_time_outside_the_open_interval(name, t0):
    with pytest.raises(InvalidInputError, match=f"t0 must lie in .0, 1., got {t0}"):
        SCHEDULES[name](t0, 3)


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("n_steps", [0, -2])
def test_no_steps(name, n_steps):
    with pytest.raises(InvalidInputError, match=f"at least 1, got {n_steps}"):
        SCHEDULES[name](0.1, n_steps)


@pytest.mark.parametrize("power", [0.0, -1.0, np.nan])
def test_power_that_is_not_positive(power):
    with pytest.raises(InvalidInputError, match=f"power must be positive and finite, got {power}"):
        polynomial_times(0.1, 3, power)


def test_power_that_is_not_finite():
    with pytest.raises(InvalidInputError, match="power"):
        polynomial_times(0.1, 3, np.inf)


# --- noise ------------------------------------------------------------------------------------------------------


def test_every_shape_is_described():
    assert set(PROFILES) == set(NOISE_SHAPES)


@pytest.mark.parametrize("shape", PROFILES)
def test_variance_of_a_step_is_taken_at_its_beginning(shape):
    times = geometric_times(0.01, 7)
    variances = noise_variances(times, 2.5, shape)
    assert variances.shape == (7,)
    assert variances.dtype == np.float64
    np.testing.assert_allclose(variances, 2.5 * PROFILES[shape](times[:-1]), rtol=1e-12)


@pytest.mark.parametrize("shape", ["linear", "quadratic", "cosine"])
def test_symmetric_variance(shape):
    times = linear_times(0.05, 9)
    f = PROFILES[shape](times[:-1])
    np.testing.assert_allclose(noise_variances(times, 2.5, shape, symmetric=True), 10 * f * (1 - f), rtol=1e-12)


@pytest.mark.parametrize("shape", ["linear", "quadratic", "cosine"])
def test_symmetric_variance_vanishes_at_both_ends(shape):
    ends = noise_variances(np.array([0.0, 1.0, 2.0]), 3.0, shape, symmetric=True)
    np.testing.assert_allclose(ends, 0, atol=1e-15)


@pytest.mark.parametrize("shape", ["linear", "cosine"])
def test_symmetric_variance_is_symmetric_in_time(shape):
    times = np.linspace(0, 1, 12)
    variances = noise_variances(np.append(times, 1.1), 3.0, shape, symmetric=True)
    np.testing.assert_allclose(variances, variances[::-1], atol=1e-14)
    assert variances.max() <= 3.0


def test_symmetric_constant_stays_constant():
    assert noise_variances(linear_times(0.1, 4), 2.0, "constant", symmetric=True).tolist() == [2.0] * 4


def test_constant_is_the_default():
    assert noise_variances(linear_times(0.1, 4), 2.0).tolist() == [2.0] * 4


def test_unknown_shape_names_the_known_ones():
    with pytest.raises(InvalidInputError, match=r"'cubic'.*constant, linear, quadratic, cosine"):
        noise_variances(linear_times(0.1, 4), 2.0, "cubic")


@pytest.mark.parametrize("variance", [0.0, -1.0, np.nan, np.inf])
def test_variance_that_is_not_positive_and_finite(variance):
    with pytest.raises(InvalidInputError, match=f"got {variance}"):
        noise_variances(linear_times(0.1, 4), variance)
