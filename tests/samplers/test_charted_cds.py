"""A non-affine interpolant: linear in log y, for a log-normal target."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.distributions.transforms import ExpTransform

from cdsampler.charts import NumpyroChart, TransformedLogDensity
from cdsampler.density import LogDensity
from cdsampler.interpolants import ChartedInterpolant, Linear, geometric_times, noise_variances
from cdsampler.kernels import MALA
from cdsampler.paths import GaussianReference
from cdsampler.samplers import CDS, NRPT, chain_keys, run_chunk, tempering_diagnostics

N_CHAINS, MU, SD, T0 = 3000, 1.0, 0.6, 0.4
CHART = NumpyroChart(ExpTransform())


@pytest.fixture(scope="module")
def log_normal():
    def log_density(y):
        q = jnp.log(y[0])
        return -0.5 * ((q - MU) / SD) ** 2 - q - jnp.log(SD) - 0.5 * jnp.log(2 * jnp.pi)

    return LogDensity(log_density, 1)


@pytest.fixture(scope="module")
def keys():
    return chain_keys(jax.random.key(9), np.arange(N_CHAINS))


def make(interpolant, step_size):
    # So many steps that the bias of Euler-Maruyama, about .002 in log y, is far below the standard error of .011.
    times = geometric_times(T0, 40)
    stage1 = NRPT(GaussianReference(1.5), [0.0, 0.3, 1.0], MALA(step_size), 60)
    return CDS(stage1, times, noise_variances(times, 0.02), interpolant=interpolant, integrator="euler-maruyama")


@pytest.fixture(scope="module")
def in_chart(log_normal, keys):
    """The interpolant is charted; the target stays as it is."""
    anchors = jnp.full((N_CHAINS, 1), 1.5)
    return run_chunk(make(ChartedInterpolant(Linear(), CHART), 0.1), log_normal, keys, anchors)


@pytest.fixture(scope="module")
def transformed(log_normal, keys):
    """The target is seen through the chart; the interpolant is linear, in closed form."""
    anchors = jnp.full((N_CHAINS, 1), jnp.log(1.5))
    return run_chunk(make(Linear(), 0.4), TransformedLogDensity(log_normal, CHART), keys, anchors)


def test_log_y_has_the_right_mean_and_variance(in_chart):
    q = np.log(in_chart.position[:, 0, 0])
    assert abs(q.mean() - MU) < 5 * SD / np.sqrt(N_CHAINS)
    assert abs(((q - MU) ** 2).mean() / SD**2 - 1) < 5 * np.sqrt(2 / N_CHAINS)
    # A control: the reference alone, or the conditional density at t0 taken for the target, would be far off.
    assert abs(T0 * MU + (1 - T0) * np.log(1.5) - MU) > 5 * SD / np.sqrt(N_CHAINS)


def test_both_views_have_the_same_law(in_chart, transformed):
    # Below this distance of two empirical distributions lie all but one in 10⁶ pairs (Kolmogorov and Smirnov).
    limit = np.sqrt(0.5 * np.log(2 / 1e-6)) * np.sqrt(2 / N_CHAINS)
    charted, linear = np.log(in_chart.position[:, 0, 0]), transformed.position[:, 0, 0]
    grid = np.sort(np.concatenate([charted, linear]))
    distance = np.abs(
        np.searchsorted(np.sort(charted), grid, "right") - np.searchsorted(np.sort(linear), grid, "right")
    ).max() / N_CHAINS  # fmt: skip
    assert distance < limit
    shifted = np.searchsorted(np.sort(charted), grid, "right") - np.searchsorted(np.sort(linear + 0.15), grid, "right")
    assert np.abs(shifted).max() / N_CHAINS > limit


def test_log_z_is_that_of_the_target_in_either_view(in_chart, transformed):
    for outcome in (in_chart, transformed):
        evidence = tempering_diagnostics(np.array([0.0, 0.3, 1.0]), outcome.statistics[0], has_evidence=True).evidence
        assert abs(evidence.log_z) < 4 * evidence.standard_error < 0.1


def test_points_outside_the_chart_are_counted_not_followed(in_chart, transformed):
    assert np.all(in_chart.position > 0)
    assert np.sum(in_chart.evaluations.nan) > 0  # log y of reference draws below zero
    assert np.sum(transformed.evaluations.nan) == 0
    assert np.all(np.isfinite(in_chart.log_density))


def test_log_densities_at_the_end_are_the_targets(in_chart, transformed, log_normal):
    y = in_chart.position[:, 0, 0]
    q = np.log(y)
    np.testing.assert_allclose(
        in_chart.log_density[:, 0], -0.5 * ((q - MU) / SD) ** 2 - q - np.log(SD) - 0.5 * np.log(2 * np.pi), atol=1e-9
    )
    q = transformed.position[:, 0, 0]
    expected = -0.5 * ((q - MU) / SD) ** 2 - np.log(SD) - 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(transformed.log_density[:, 0], expected, atol=1e-9)
