"""Local chains without tempering: taken where starts are forgotten, refused where they aren't."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cdsampler
from cdsampler import LogDensity, Plan, SamplingWarning
from cdsampler.benchmark import build_target
from cdsampler.tuning import _local as local
from cdsampler.tuning._account import Account
from cdsampler.tuning._first_look import first_look
from cdsampler.tuning._scan import scan


@pytest.fixture
def always_slow(monkeypatch):
    monkeypatch.setattr(local, "VERY_SLOW", 0.0)


def trial_of(density, limit=None, kind=local.try_local):
    account = Account(limit)
    look = first_look(density, np.zeros(density.dim), jax.random.key(0), account, scale=1.0)
    made = int(account.spent.count)
    return kind(density, look, jax.random.key(1), account, lambda s: None), account, made


def anisotropic(x):
    return -0.5 * jnp.sum((x / jnp.geomspace(1.0, 30.0, 10)) ** 2)


def test_trajectories_forget_their_starts_in_one_basin(always_slow):
    trial, account, made = trial_of(LogDensity(anisotropic, 10))
    assert trial is not None
    assert trial.memory <= local.FORGOTTEN
    assert trial.positions.shape == (local.N_CHAINS, 10)
    assert np.all(np.isfinite(trial.log_density))
    assert account.spent.count > made
    # The chains' ends are draws: their variance is within five standard errors, √(2/31) each, of the target's.
    variance = np.asarray(trial.chart.scale_tril).diagonal() ** 2 * trial.positions.var(axis=0, ddof=1)
    ratio = variance / np.geomspace(1.0, 30.0, 10) ** 2
    assert np.all(np.abs(ratio - 1) < 5 * np.sqrt(2 / 31))


def test_trajectories_that_stay_in_their_modes_are_refused(always_slow):
    trial, _, _ = trial_of(build_target("gm-2").density())
    assert trial is None


def test_fast_local_moves_leave_the_matter_to_tempering():
    trial, account, made = trial_of(LogDensity(anisotropic, 10))
    assert trial is None
    assert account.spent.count == made


def test_the_account_is_never_overdrawn(always_slow):
    for limit in (3000, 12_000, 30_000, 60_000):
        _, account, _ = trial_of(LogDensity(anisotropic, 10), limit)
        assert account.spent.count <= limit


def banana(x):
    return -0.5 * x[0] ** 2 - 0.5 * (x[1] - x[0] ** 2) ** 2 / 0.01


def test_jittered_trajectories_get_along_a_curved_ridge_where_others_are_stuck():
    assert trial_of(LogDensity(banana, 2))[0] is None
    trial, account, made = trial_of(LogDensity(banana, 2), kind=local.try_jittered)
    assert trial is not None
    assert trial.kernel.is_jittered
    assert trial.memory <= local.FORGOTTEN
    assert account.spent.count > made
    x = trial.positions @ np.asarray(trial.chart.scale_tril).T + np.asarray(trial.chart.shift)
    # The ends are draws: their mean is within five standard errors of E x₂ = 1, of 32 with variance 2.01.
    assert abs(x[:, 1].mean() - 1) < 5 * np.sqrt(2.01 / 32)


def test_jittered_trajectories_are_not_tried_where_annealing_is_easy():
    trial, account, made = trial_of(LogDensity(anisotropic, 10), kind=local.try_jittered)
    assert trial is None
    assert account.spent.count == made


def test_jittered_trajectories_never_overdraw_the_account():
    for limit in (90_000, 200_000, 400_000):
        _, account, _ = trial_of(LogDensity(banana, 2), limit, local.try_jittered)
        assert account.spent.count <= limit


def test_a_scan_stops_where_wider_references_lose_the_mass():
    def steep(x):  # energies of 1e13 a few widths away, as of molecules whose atoms overlap
        return -0.5 * jnp.sum(x**2) - jnp.sum(jnp.where(jnp.abs(x) > 20, 1e10 * (jnp.abs(x) - 20) ** 2, 0.0))

    found = scan(LogDensity(steep, 20), jax.random.key(0), Account(), 1.0)
    assert found.is_bounded
    assert found.positions.std() < 3


@pytest.fixture(scope="module")
def cluster():
    density = build_target("lj-13").density()
    with pytest.warns(SamplingWarning):
        return cdsampler.sample(density, n_samples=256, seed=1, max_evaluations=500_000)


@pytest.mark.slow
def test_a_liquid_is_sampled_without_tempering(cluster):
    assert cluster.plan.starts is not None
    assert cluster.tempering is None
    assert cluster.total_evaluations <= 500_000
    energy = -cluster.log_density
    error = energy.mean(axis=1).std(ddof=1) / np.sqrt(len(energy))
    assert abs(energy.mean() + 42.93) < 5 * np.hypot(error, 0.07)
    assert cluster.attributes()["reference"] == "none"


@pytest.mark.slow
def test_its_plan_survives_json_and_gives_the_same_samples(cluster, tmp_path):
    plan = Plan.load(cluster.plan.save(tmp_path / "plan.json"))
    np.testing.assert_array_equal(plan.starts, cluster.plan.starts)
    left = 500_000 - int(cluster.tuning_evaluations.count)
    density = build_target("lj-13").density()
    with pytest.warns(SamplingWarning):
        again = cdsampler.sample(density, n_samples=256, seed=1, max_evaluations=left, plan=plan)
    np.testing.assert_array_equal(again.samples, cluster.samples)
    assert "tempering" in str(plan)
