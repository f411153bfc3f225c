"""Tuning on gm-2: acceptances reach the optimum, rejections become equal, all of it from the key alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cdsampler.density import LogDensity
from cdsampler.errors import InvalidInputError
from cdsampler.interpolants import AutodiffInterpolant, Linear
from cdsampler.kernels import HMC, MALA
from cdsampler.paths import FlatReference, GaussianReference, geometric_schedule
from cdsampler.samplers import CDS, NRPT, LocalChain
from cdsampler.targets import gaussian_mixture
from cdsampler.tuning import tune

BETAS = geometric_schedule(6, 1e-3)


@pytest.fixture(scope="module")
def density():
    return gaussian_mixture(2, uniform=True).density()


def start(scale=50.0, kernel=MALA(5.0)):  # noqa: B008
    return NRPT(GaussianReference(scale), BETAS, kernel, 10)


@pytest.fixture(scope="module")
def pilot(density):
    return tune(start(), density, np.zeros(2), jax.random.key(0), n_rounds=4)


def test_step_sizes_reach_the_optimal_acceptance(pilot):
    last = pilot.rounds[-1]
    np.testing.assert_allclose(last.acceptance[1:], MALA.target_acceptance, atol=0.05)
    # Where it started, acceptance was far off: a control.
    assert np.all(np.diff(last.step_sizes[1:]) < 0)
    assert last.step_sizes[1] > 20 * last.step_sizes[-1]


def test_rejections_become_equal(pilot):
    first, last = pilot.rounds[0].rejection, pilot.rounds[-1].rejection
    assert last.max() - last.min() < 0.15
    assert first.max() - first.min() > 0.3
    np.testing.assert_array_equal(pilot.rounds[0].betas, BETAS)
    assert not np.allclose(pilot.rounds[-1].betas, BETAS, rtol=0.1)


def test_the_frozen_sampler_is_what_the_last_round_measured(pilot):
    sampler, last = pilot.sampler, pilot.rounds[-1]
    np.testing.assert_allclose(sampler.betas, last.betas, rtol=1e-15)
    np.testing.assert_allclose(sampler.kernel.step_size, last.step_sizes, rtol=1e-15)
    assert int(sampler.n_steps) == 10
    assert [r.n_steps for r in pilot.rounds] == [37, 74, 148, 296]
    assert pilot.evaluations.count == 64 * sum(6 * r.n_steps for r in pilot.rounds) + 64 * 6


def test_the_key_decides_everything(pilot, density):
    again = tune(start(), density, np.zeros(2), jax.random.key(0), n_rounds=4)
    other = tune(start(), density, np.zeros(2), jax.random.key(1), n_rounds=4)
    for a, b in zip(jax.tree.leaves(pilot), jax.tree.leaves(again), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    assert not np.array_equal(pilot.sampler.kernel.step_size, other.sampler.kernel.step_size)
    np.testing.assert_allclose(other.rounds[-1].acceptance[1:], MALA.target_acceptance, atol=0.05)


def test_the_step_size_that_nothing_uses_stays_where_it_was(pilot):
    # Replica 0 is drawn, always "accepted": adapted like the others, its step size would grow until it overflows.
    assert pilot.rounds[-1].step_sizes[0] < 1e6


def test_conditional_sampling_is_tuned_in_target_coordinates(pilot, density):
    """Linear, t0 = 1/50: the same path, hence the same numbers."""
    sampler = CDS(start(scale=1.0), 0.02, transport="inverse-map")
    tuned = tune(sampler, density, np.zeros(2), jax.random.key(0), n_rounds=4)
    assert isinstance(tuned.sampler, CDS)
    np.testing.assert_allclose(tuned.sampler.stage1.betas, pilot.sampler.betas, rtol=1e-6)
    np.testing.assert_allclose(tuned.sampler.stage1.kernel.step_size, pilot.sampler.kernel.step_size, rtol=1e-6)
    assert float(tuned.sampler.stage1.reference.scale) == 1.0


def test_conditional_sampling_can_be_tuned_in_path_coordinates(density):
    general = AutodiffInterpolant(Linear().forward, Linear().inverse)
    sampler = CDS(start(scale=1.0, kernel=MALA(0.01)), 0.02, interpolant=general, transport="inverse-map")
    tuned = tune(sampler, density, np.zeros(2), jax.random.key(0), n_chains=32, n_rounds=3)
    last = tuned.rounds[-1]
    np.testing.assert_allclose(last.acceptance[1:], MALA.target_acceptance, atol=0.05)
    # The target's own step size, seen through x = t0 y.
    assert 0.1 * 0.02**2 < last.step_sizes[-1] < 10 * 0.02**2


@pytest.mark.slow
def test_a_flat_path_is_tuned_at_every_replica(density):
    sampler = NRPT(FlatReference(), BETAS[1:], HMC(1.0, 2), start="anchor")
    tuned = tune(sampler, density, np.full(2, 20.0), jax.random.key(0), n_chains=32, n_rounds=3)
    np.testing.assert_allclose(tuned.rounds[-1].acceptance, HMC.target_acceptance, atol=0.06)
    assert float(tuned.sampler.betas[0]) == pytest.approx(BETAS[1])
    fixed = tune(sampler, density, np.full(2, 20.0), jax.random.key(0), n_chains=32, n_rounds=3, adapts_schedule=False)
    np.testing.assert_array_equal(fixed.sampler.betas, BETAS[1:])


def test_other_numbers_are_not_traced_anew():
    traces = []

    def log_density(y):
        traces.append(1)
        return -0.5 * jnp.sum(y**2)

    density = LogDensity(log_density, 2)
    tune(start(), density, np.zeros(2), jax.random.key(0), n_chains=4, n_rounds=2, first_round=8)
    before = len(traces)
    tune(start(2.0, MALA(0.1)), density, np.ones(2), jax.random.key(1), n_chains=4, n_rounds=3, first_round=9)
    assert len(traces) == before > 0


def test_what_cannot_be_tuned_says_so(density):
    local = CDS(LocalChain(MALA(0.1)), 0.02, transport="inverse-map")
    with pytest.raises(InvalidInputError, match="LocalChain"):
        tune(local, density, np.zeros(2), jax.random.key(0))
    for settings in ({"n_chains": 0}, {"n_rounds": 0}):
        with pytest.raises(InvalidInputError, match="at least 1"):
            tune(start(), density, np.zeros(2), jax.random.key(0), **settings)
