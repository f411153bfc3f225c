"""The integrators on a Gaussian, where mean and variance obey an exact recursion; refusals; coefficients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdsampler.density import LogDensity
from cdsampler.interpolants import Linear, Trigonometric, geometric_times, linear_times, noise_variances
from cdsampler.kernels import MALA
from cdsampler.paths import GaussianReference
from cdsampler.samplers import (
    CDS,
    NRPT,
    LocalChain,
    chain_keys,
    langevin_steps,
    run_chunk,
    step_coefficients,
)
from cdsampler.samplers._integrators import capped_variances
from cdsampler.targets import gaussian_mixture

N_CHAINS, T0 = 10_000, 0.05


@pytest.fixture(scope="module")
def transported(plane_path):
    """Positions after a transport that starts at the anchor, hence without any spread."""
    keys = chain_keys(jax.random.key(6), np.arange(N_CHAINS))
    anchor = np.array([0.5, 2.0])

    def run(times, variances, integrator):
        sampler = CDS(LocalChain(MALA(0.1), 0), times, variances, integrator=integrator)
        outcome = run_chunk(sampler, plane_path.density(), keys, jnp.broadcast_to(jnp.asarray(anchor), (N_CHAINS, 2)))
        assert np.all(outcome.statistics[1].refused == 0)
        return outcome.position

    return run, anchor


def deviations(positions, mean, variance):
    """Deviations of each axis's mean and variance in standard errors."""
    n = len(positions)
    means = (positions.mean(axis=0) - mean) / np.sqrt(variance / n)
    variances = (((positions - mean) ** 2).mean(axis=0) / variance - 1) / np.sqrt(2 / n)
    return np.abs(np.concatenate([means, variances])).max()


def test_the_exponential_integrator_is_a_chain_of_langevin_steps(transported, plane_path):
    run, anchor = transported
    times = geometric_times(T0, 20)
    variances = noise_variances(times, 0.04)
    h = 0.5 * variances * (1 / times[:-1] - 1 / times[1:])
    mean, variance = anchor, 0.0
    for step in h / plane_path.sd**2:
        mean = mean + step * (plane_path.mean - mean)
        variance = (1 - step) ** 2 * variance + 2 * step * plane_path.sd**2
    positions = run(times, variances, "exponential")
    assert deviations(positions, mean, variance) < 5
    # The Euler-Maruyama step has less noise, by t_n / t_{n+1}: a control that the two are told apart.
    assert deviations(run(times, variances, "euler-maruyama"), mean, variance) > 10


def test_leimkuhler_matthews_has_no_bias_where_the_exponential_integrator_has(transported, plane_path):
    run, _ = transported
    times = linear_times(0.5, 60)
    step = 0.5  # h over the target's variance, constant: the noise variance makes up for the interpolant
    variances = 2 * step * plane_path.sd**2 / (1 / times[:-1] - 1 / times[1:])
    np.testing.assert_allclose(langevin_steps(Linear(), times, variances), step * plane_path.sd**2, rtol=1e-12)
    exact, biased = plane_path.sd**2, plane_path.sd**2 / (1 - step / 2)
    averaged = run(times, variances, "leimkuhler-matthews")
    assert deviations(averaged, plane_path.mean, exact) < 5
    plain = run(times, variances, "exponential")
    assert deviations(plain, plane_path.mean, biased) < 5
    assert deviations(plain, plane_path.mean, exact) > 15


def test_euler_maruyama_of_the_linear_interpolant_in_target_coordinates():
    times = np.array([0.1, 0.15, 0.4, 0.9, 1.0])
    variances = np.array([0.3, 0.0, 2.0, 0.7])
    now, then = times[:-1], times[1:]
    found = step_coefficients(Linear(), times, variances, "euler-maruyama")
    np.testing.assert_allclose(found.keep, 1.0, rtol=1e-14)
    np.testing.assert_allclose(found.pull, 0.0, atol=1e-14)
    np.testing.assert_allclose(found.drift, variances * (then - now) / (2 * now * then), rtol=1e-14)
    np.testing.assert_allclose(found.noise, np.sqrt(variances * (then - now)) / then, rtol=1e-14)
    h = langevin_steps(Linear(), times, variances)
    np.testing.assert_allclose(found.noise**2, 2 * h * now / then, rtol=1e-14)


@pytest.mark.parametrize("interpolant", [Linear(), Trigonometric()], ids=["linear", "trigonometric"])
@pytest.mark.parametrize("integrator", ["exponential", "leimkuhler-matthews"])
def test_balanced_integrators_step_by_the_langevin_time(interpolant, integrator):
    times, variances = geometric_times(0.02, 9), noise_variances(geometric_times(0.02, 9), 0.7, "linear")
    found = step_coefficients(interpolant, times, variances, integrator)
    # The Langevin time by quadrature of σ²/2b².
    nodes, weights = np.polynomial.legendre.leggauss(40)
    inner = 0.5 * (times[1:] - times[:-1])[:, None] * (nodes + 1)[None] + times[:-1, None]
    b = interpolant.coefficients(inner)[1]
    h = 0.5 * variances * (0.5 * (times[1:] - times[:-1]) * (weights[None] / b**2).sum(axis=1))
    np.testing.assert_allclose(found.drift, h, rtol=1e-9)
    np.testing.assert_allclose(found.noise, np.sqrt(2 * h), rtol=1e-9)
    np.testing.assert_array_equal(found.keep, 1.0)
    np.testing.assert_array_equal(found.pull, 0.0)


@settings(derandomize=True, deadline=None, max_examples=100, database=None)
@given(
    t0=st.floats(1e-4, 0.9),
    n_steps=st.integers(1, 40),
    variance=st.floats(1e-6, 1e3),
    limit=st.floats(1e-6, 1e3),
    interpolant=st.sampled_from([Linear(), Trigonometric()]),
)
def test_capped_variances_respect_the_cap_and_touch_nothing_below_it(t0, n_steps, variance, limit, interpolant):
    times = geometric_times(t0, n_steps)
    variances = noise_variances(times, variance, "linear")
    capped = capped_variances(interpolant, times, variances, limit)
    before, after = (langevin_steps(interpolant, times, v) for v in (variances, capped))
    assert np.all(after <= limit * (1 + 1e-12))
    is_below = before <= limit
    np.testing.assert_array_equal(capped[is_below], variances[is_below])
    np.testing.assert_allclose(after[~is_below], limit, rtol=1e-12)


def test_the_cap_reaches_the_transport():
    times = geometric_times(0.01, 10)
    stage1 = NRPT(GaussianReference(1.0), [0.0, 1.0], MALA(0.1))
    capped = CDS(stage1, times, noise_variances(times, 0.5), max_langevin_step=0.05).stages()[1]
    assert langevin_steps(Linear(), capped.times, capped.variances).max() == pytest.approx(0.05, rel=1e-6)
    free = CDS(stage1, times, noise_variances(times, 0.5)).stages()[1]
    assert langevin_steps(Linear(), free.times, free.variances).max() > 0.05


def test_a_tiny_initial_time_in_single_precision_stays_finite():
    """The authors' code diverges here; a step beyond the stability limit may be poor but never poisons a sample."""
    density = gaussian_mixture(2, uniform=True).density(np.float32)
    times = geometric_times(0.001, 10)
    keys, starts = chain_keys(jax.random.key(7), np.arange(64)), 50 * jax.random.normal(jax.random.key(1), (64, 2))
    medians = {}
    for limit in (None, 0.5):
        sampler = CDS(LocalChain(MALA(0.7), 0), times, noise_variances(times, 0.5), max_langevin_step=limit)
        outcome = run_chunk(sampler, density, keys, starts.astype(np.float32))
        assert outcome.position.dtype == np.float32
        assert np.all(np.isfinite(outcome.position))
        assert np.all(np.isfinite(outcome.log_density))
        medians[limit] = np.median(outcome.log_density)
    # An exact draw has a median of -log 40 - log 2πv - log 2 = -6.5; ten steps end near that only if they are stable.
    assert medians[0.5] == pytest.approx(-6.5, abs=1.0)
    assert medians[None] < -100


def test_refused_steps_at_a_hard_edge_are_counted():
    """A flat density on (-1, 1): every step that leaves is refused, at a rate that is known."""
    box = LogDensity(lambda y: jnp.where(jnp.abs(y[0]) < 1, 0.0 * y[0], -jnp.inf), 1)
    times = linear_times(0.5, 1)
    n = 4000
    for sd in (1e-3, 2.0):
        variances = sd**2 / (1 / times[:-1] - 1 / times[1:])
        sampler = CDS(LocalChain(MALA(0.1), 0), times, variances)
        outcome = run_chunk(sampler, box, chain_keys(jax.random.key(8), np.arange(n)), jnp.zeros((n, 1)))
        assert np.all(np.abs(outcome.position) < 1)
        refused = outcome.statistics[1].refused
        outside = 0.0 if sd < 1 else 0.617075  # P(|N(0, 4)| > 1)
        assert abs(refused.mean() - outside) <= 5 * np.sqrt(outside * (1 - outside) / n)
        np.testing.assert_array_equal(refused == 1, outcome.position[:, 0, 0] == 0)
        assert np.sum(outcome.evaluations.neg_inf) == refused.sum()
