"""Restarts and round trips where they can be counted by hand."""

import jax.numpy as jnp
import numpy as np
import pytest

from cdsampler.density import LogDensity
from cdsampler.kernels import MALA
from cdsampler.paths import GaussianReference, equal_rejection_schedule, linear_schedule
from cdsampler.samplers import NRPT, tempering_diagnostics
from cdsampler.sampling import run
from cdsampler.sampling._warnings import tempering_warnings

SCALE = 2.0


@pytest.fixture(scope="module")
def same_as_reference():
    """Target equal to the reference, so that every proposed swap is accepted."""
    reference = GaussianReference(SCALE)
    return LogDensity(lambda y: reference.log_density_and_gradient(y, jnp.zeros_like(y))[0], 2)


def arrivals(n_replicas, n_steps, first_swap):
    """Draws that leave replica 0 at an even step climb one rung a step and all arrive."""
    leave = [step for step in range(n_steps) if step >= first_swap and step % 2 == 0]
    return sum(step + n_replicas - 2 < n_steps for step in leave)


@pytest.mark.parametrize("n_replicas", [2, 5])
def test_accepted_swaps_carry_every_second_draw_straight_to_the_target(quick_run, same_as_reference, n_replicas):
    n_steps = 24 + n_replicas
    stage = NRPT(GaussianReference(SCALE), linear_schedule(n_replicas), MALA(0.5), n_steps)
    restarts = quick_run(stage, same_as_reference, 4).statistics.restarts
    assert restarts.tolist() == [arrivals(n_replicas, n_steps, first_swap=n_replicas - 1)] * 4
    assert restarts[0] >= 10


def test_a_start_at_the_anchor_counts_the_first_draw_too(quick_run, same_as_reference):
    # The reference draw of step 0 is fresh, and can arrive.
    stage = NRPT(GaussianReference(SCALE), linear_schedule(2), MALA(0.5), 9, start="anchor")
    restarts = quick_run(stage, same_as_reference, 4).statistics.restarts
    assert restarts.tolist() == [arrivals(2, 9, first_swap=0)] * 4


def test_target_equal_to_reference_is_not_an_error(quick_run, same_as_reference):
    betas = linear_schedule(5)
    stage = NRPT(GaussianReference(SCALE), betas, MALA(0.5), 60)
    tempering = tempering_diagnostics(betas, quick_run(stage, same_as_reference, 4).statistics, has_evidence=True)
    np.testing.assert_allclose(tempering.rejection, 0, atol=1e-14)
    assert tempering.barrier < 1e-13
    np.testing.assert_allclose(tempering.round_trip_rate, 0.5, rtol=1e-12)
    assert abs(tempering.evidence.log_z) < 1e-12
    assert tempering.evidence.standard_error < 1e-12
    assert tempering_warnings(tempering) == []
    moved = equal_rejection_schedule(betas, tempering.rejection)
    assert np.all(np.isfinite(moved))
    assert np.all(np.diff(moved) > 0)


@pytest.fixture(scope="module")
def far_away():
    """N((50, 50), .05² I), which no draw of N(0, I) comes near."""
    return LogDensity(lambda y: -0.5 * jnp.sum(((y - 50.0) / 0.05) ** 2), 2)


def test_a_reference_too_far_away_is_reported(far_away):
    stage = NRPT(GaussianReference(1.0), [0.0, 1.0], MALA(1e-3), 60)
    result = run(stage, far_away, 64, anchor=np.zeros(2), chunk_size=64)
    tempering = result.tempering
    assert np.all(tempering.restarts == 0)
    assert np.all(tempering.round_trips == 0)
    np.testing.assert_allclose(tempering.rejection, 1.0, atol=1e-12)
    assert tempering.round_trip_rate == 0.0
    assert np.all((tempering.acceptance >= 0) & (tempering.acceptance <= 1))
    assert "few-restarts" in [warning.code for warning in result.warnings]
    assert np.all(np.isfinite(result.samples))


def test_a_run_within_the_ramp_has_no_rates_and_no_nan(quick_run, same_as_reference):
    stage = NRPT(GaussianReference(SCALE), linear_schedule(5), MALA(0.5), 1)
    statistics = quick_run(stage, same_as_reference, 4).statistics
    tempering = tempering_diagnostics(np.asarray(stage.betas), statistics, has_evidence=True)
    assert np.all(statistics.n_recorded == 0)
    np.testing.assert_array_equal(tempering.rejection, 0.0)
    assert np.all(tempering.restarts == 0)
