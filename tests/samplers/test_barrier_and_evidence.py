"""Rates and log Z against the Gaussian path, on which both are known by quadrature."""

import jax
import numpy as np
import pytest

from cdsampler.kernels import MALA
from cdsampler.samplers import NRPT, tempering_diagnostics

N_CHAINS, N_STEPS = 1000, 160
BETAS = np.array([0.0, 0.0005, 0.002, 0.006, 0.02, 0.06, 0.2, 1.0])


def expected_counts(acceptance, n_steps, ramp, *, is_reversible):
    """Expected restarts and round trips of a chain whose swaps are independent, step by step.

    A label tells which end a slot's point visited last; its probability in each slot moves linearly.
    """
    n = len(acceptance) + 1
    from_reference, from_target = np.zeros(n), np.zeros(n)
    from_target[-1] = 1.0
    restarts = round_trips = 0.0
    for step in range(n_steps):
        if step >= ramp:
            sweeps = [(p, 0.5) for p in (0, 1)] if is_reversible else [(step % 2, 1.0)]
            moved = [np.zeros(n), np.zeros(n)]
            for parity, chance in sweeps:
                swap = np.eye(n)
                for i in range(parity, n - 1, 2):
                    a = acceptance[i]
                    swap[i : i + 2, i : i + 2] = [[1 - a, a], [a, 1 - a]]
                moved = [
                    total + chance * swap @ old for total, old in zip(moved, (from_reference, from_target), strict=True)
                ]
            from_reference, from_target = moved
            restarts += from_reference[-1]
            round_trips += from_target[0]
        from_reference[[0, -1]], from_target[[0, -1]] = [1.0, 0.0], [0.0, 1.0]
    return restarts, round_trips


@pytest.fixture(scope="module")
def exploring(line_path, exact_kernel, quick_run):
    """Runs whose local exploration is perfect, by scheme."""

    def run(is_reversible):
        stage = NRPT(line_path.reference(), BETAS, exact_kernel(line_path), N_STEPS, is_reversible=is_reversible)
        return stage, quick_run(stage, line_path.density(), N_CHAINS).statistics

    return {scheme: run(scheme == "reversible") for scheme in ("alternating", "reversible")}


def within(measured, expected, n_errors=5):
    """Whether the mean over chains is within standard errors of what is expected."""
    error = measured.std(axis=0, ddof=1) / np.sqrt(len(measured))
    return np.all(np.abs(measured.mean(axis=0) - expected) < n_errors * error)


def test_rejections_are_those_of_quadrature(line_path, exploring):
    _, statistics = exploring["alternating"]
    expected = line_path.rejections(BETAS)
    per_chain = statistics.rejection / statistics.n_recorded[:, None]
    assert within(per_chain, expected)
    assert not within(per_chain, expected + 0.01)
    tempering = tempering_diagnostics(BETAS, statistics, has_evidence=True)
    np.testing.assert_allclose(tempering.rejection, per_chain.mean(axis=0), rtol=1e-12)


def test_the_barrier_is_the_integral_of_the_local_barrier(line_path, exploring):
    _, statistics = exploring["alternating"]
    tempering = tempering_diagnostics(BETAS, statistics, has_evidence=True)
    truth = line_path.barrier()
    error = (statistics.rejection.sum(axis=1) / statistics.n_recorded).std() / np.sqrt(N_CHAINS)
    # The sum of rejections differs from Λ by the discretisation, which quadrature knows.
    discretisation = line_path.rejections(BETAS).sum() - truth
    assert abs(tempering.barrier - truth - discretisation) < 5 * error
    assert abs(discretisation) < 0.1 * truth
    assert truth > 1.0
    grid, local = tempering.local_barrier(2001)
    np.testing.assert_allclose(np.trapezoid(local, grid), tempering.barrier, rtol=0.02)
    assert np.all(local > -1e-12 * local.max())


@pytest.mark.parametrize("scheme", ["alternating", "reversible"])
def test_restarts_and_round_trips_come_as_often_as_expected(line_path, exploring, scheme):
    stage, statistics = exploring[scheme]
    acceptance = 1 - line_path.rejections(BETAS)
    restarts, round_trips = expected_counts(
        acceptance, N_STEPS, int(stage.ramp_length), is_reversible=scheme == "reversible"
    )
    assert within(statistics.restarts, restarts)
    assert within(statistics.round_trips, round_trips)
    other, _ = expected_counts(acceptance, N_STEPS, int(stage.ramp_length), is_reversible=scheme == "alternating")
    assert not within(statistics.restarts, other)


def test_the_predicted_round_trip_rate_is_the_asymptotic_one(line_path, exploring):
    _, statistics = exploring["alternating"]
    rejection = line_path.rejections(BETAS)
    counts = [expected_counts(1 - rejection, n, 0, is_reversible=False)[1] for n in (4000, 8000)]
    exact = tempering_diagnostics(BETAS, statistics, has_evidence=True)._replace(rejection=rejection)
    np.testing.assert_allclose((counts[1] - counts[0]) / 4000, exact.round_trip_rate, rtol=1e-3)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_log_z_of_an_unnormalised_gaussian(plane_path, quick_run, dtype):
    stage = NRPT(plane_path.reference(), [0.0, 0.05, 0.3, 1.0], MALA(0.3), 120)
    states = quick_run(stage, plane_path.density(np.dtype(dtype)), 1000)
    assert states.points.position.dtype == dtype
    evidence = tempering_diagnostics(np.asarray(stage.betas), states.statistics, has_evidence=True).evidence
    assert 0 < evidence.standard_error < 0.02
    assert abs(evidence.log_z - plane_path.log_z) < 4 * evidence.standard_error
    assert abs(evidence.forward - evidence.backward) < 5 * evidence.gap_standard_error
    assert abs(evidence.log_z + 1 - plane_path.log_z) > 4 * evidence.standard_error


def test_the_reported_standard_error_is_the_spread_between_groups_of_chains(line_path, exploring):
    _, statistics = exploring["alternating"]
    groups = [jax.tree.map(lambda a, g=g: a[g::50], statistics) for g in range(50)]
    found = [tempering_diagnostics(BETAS, group, has_evidence=True).evidence for group in groups]
    spread = np.std([e.log_z for e in found], ddof=1)
    reported = np.sqrt(np.mean([e.standard_error**2 for e in found]))
    # The spread of 50 normal numbers is itself known to 10 % (one standard error).
    assert 0.6 < spread / reported < 1.5
    mean = np.mean([e.log_z for e in found])
    assert abs(mean - line_path.log_z) < 5 * spread / np.sqrt(50)


def test_one_chain_has_no_standard_error(exploring):
    _, statistics = exploring["alternating"]
    one = jax.tree.map(lambda a: a[:1], statistics)
    evidence = tempering_diagnostics(BETAS, one, has_evidence=True).evidence
    assert np.isfinite(evidence.log_z)
    assert np.isnan(evidence.standard_error)
    assert tempering_diagnostics(BETAS, one, has_evidence=False).evidence is None


def test_a_large_constant_changes_log_z_and_nothing_else(gaussian_path, quick_run):
    plain = gaussian_path(scale=3.0, mean=[0.0, 0.0], sd=1.0)
    lifted = gaussian_path(scale=3.0, mean=[0.0, 0.0], sd=1.0, constant=1e6)
    stage = NRPT(plain.reference(), [0.0, 0.1, 0.3, 1.0], MALA(0.5), 100)
    low, high = (quick_run(stage, path.density(), 1000) for path in (plain, lifted))
    np.testing.assert_array_equal(low.points.position, high.points.position)
    evidence = tempering_diagnostics(np.asarray(stage.betas), high.statistics, has_evidence=True).evidence
    assert abs(evidence.log_z - (1e6 + np.log(2 * np.pi))) < 4 * evidence.standard_error
    assert 0 < evidence.standard_error < 0.05
    below = tempering_diagnostics(np.asarray(stage.betas), low.statistics, has_evidence=True).evidence
    assert abs(evidence.log_z - 1e6 - below.log_z) < 1e-6
