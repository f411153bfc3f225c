"""Swaps: probabilities that are probabilities, records that move whole, caches that are never stale."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdsampler.density import LogDensity
from cdsampler.kernels import MALA
from cdsampler.paths import GaussianReference
from cdsampler.samplers import NRPT, chain_keys, tempering_diagnostics
from cdsampler.samplers._programs import advance, init
from cdsampler.samplers._swap import draw_swaps, swap_acceptance, swap_records

N = 5
SETTINGS = settings(derandomize=True, deadline=None, max_examples=300, database=None)
acceptance_of = jax.jit(swap_acceptance)
ratios = st.one_of(st.floats(-1e300, 1e300, allow_subnormal=False), st.just(-np.inf), st.floats(-50, 50))
schedules = st.lists(st.integers(1, 10**6 - 1), min_size=N - 2, max_size=N - 2, unique=True).map(
    lambda inner: np.array([0, *sorted(inner), 10**6]) / 1e6
)
# A strict schedule in double precision may have equal neighbours in single precision.
weak_schedules = st.lists(st.integers(0, 4), min_size=N - 2, max_size=N - 2).map(
    lambda inner: np.array([0, *sorted(inner), 4]) / 4
)
pairings = st.lists(st.booleans(), min_size=N - 1, max_size=N - 1).map(
    lambda wanted: np.array([w and not any(wanted[max(i - 1, 0) : i]) for i, w in enumerate(wanted)])
)


@SETTINGS
@given(betas=schedules, log_ratio=st.lists(ratios, min_size=N, max_size=N))
def test_acceptance_is_a_probability_and_follows_the_formula(betas, log_ratio):
    r = np.array(log_ratio)
    acceptance = np.asarray(acceptance_of(jnp.asarray(betas), jnp.asarray(r)))
    assert np.all((acceptance >= 0) & (acceptance <= 1))
    hot, cold = r[:-1], r[1:]
    assert np.all(acceptance[hot == -np.inf] == 0)
    assert np.all(acceptance[(hot > -np.inf) & (cold == -np.inf)] == 1)
    is_finite = np.isfinite(hot) & np.isfinite(cold)
    hot, cold = hot[is_finite], cold[is_finite]
    expected = np.exp(np.minimum(np.diff(betas)[is_finite] * (hot - cold), 0))
    np.testing.assert_allclose(acceptance[is_finite], expected, rtol=1e-9, atol=1e-300)


@SETTINGS
@given(betas=weak_schedules, log_ratio=st.lists(ratios, min_size=N, max_size=N))
def test_acceptance_is_a_probability_when_rounding_merged_two_betas(betas, log_ratio):
    # 0 · (finite - (-inf)) must not become NaN.
    acceptance = np.asarray(acceptance_of(jnp.asarray(betas), jnp.asarray(np.array(log_ratio))))
    assert np.all((acceptance >= 0) & (acceptance <= 1))


def test_a_swap_towards_higher_density_is_certain_and_the_other_way_rare():
    acceptance = acceptance_of(jnp.array([0.0, 0.5, 1.0, 1.0, 1.0]), jnp.array([3.0, 1.0, 2.0, 2.0, 2.0]))
    np.testing.assert_allclose(acceptance[:2], [1.0, np.exp(-0.5)], rtol=1e-14)


@SETTINGS
@given(is_swapped=pairings)
def test_records_are_permuted(is_swapped):
    ids, doubled = swap_records((jnp.arange(N), 2.0 * jnp.arange(N)), jnp.asarray(is_swapped))
    expected = np.arange(N)
    for i in np.flatnonzero(is_swapped):
        expected[i], expected[i + 1] = expected[i + 1], expected[i]
    assert np.asarray(ids).tolist() == expected.tolist()
    np.testing.assert_array_equal(doubled, 2.0 * expected)


def test_pairs_of_one_parity_are_proposed_and_swap_at_their_rate():
    n_draws, acceptance = 20_000, jnp.array([0.0, 0.3, 1.0, 0.7])
    keys = jax.random.split(jax.random.key(0), n_draws)
    for parity in (0, 1):
        drawn = jax.jit(jax.vmap(lambda key: draw_swaps(key, acceptance, parity, True)))(keys)  # noqa: B023
        is_proposed = np.arange(4) % 2 == parity
        rate = np.asarray(drawn).mean(axis=0)
        assert np.all(rate[~is_proposed] == 0)
        error = np.sqrt(np.asarray(acceptance * (1 - acceptance)) / n_draws)
        assert np.all(np.abs(rate - acceptance)[is_proposed] <= 5 * error[is_proposed])
    assert not np.any(draw_swaps(keys[0], jnp.ones(4), 0, False))


@pytest.fixture(scope="module")
def half_plane():
    """A smooth density with a hard edge, so that replicas meet minus infinity."""
    return LogDensity(lambda y: jnp.where(y[0] > 0, -0.5 * jnp.sum(y**2) + jnp.sin(3 * y[1]), -jnp.inf), 2)


@pytest.mark.parametrize("n_steps", [2, 3, 40], ids=["in the ramp", "at its end", "beyond"])
def test_caches_are_fresh_after_a_run(half_plane, fresh_points, n_steps):
    stage = NRPT(GaussianReference(3.0), [0.0, 0.1, 0.4, 1.0], MALA(0.5))
    keys, anchors = chain_keys(jax.random.key(3), np.arange(64)), jnp.zeros((64, 2))
    state = init(stage, half_plane, keys, anchors, None)
    state, _ = advance(stage, half_plane, keys, anchors, state, None, jnp.int32(0), jnp.int32(n_steps))
    fresh = fresh_points(stage, half_plane, np.zeros(2), state.points)
    for cached, evaluated in zip(jax.tree.leaves(state.points), jax.tree.leaves(fresh), strict=True):
        np.testing.assert_allclose(cached, evaluated, rtol=1e-12, atol=1e-12)
    log_density = np.asarray(state.points.target.log_density)
    assert np.any(log_density == -np.inf)
    assert not np.any(np.isnan(log_density))
    rejection = np.asarray(state.statistics.rejection)
    n_recorded = np.asarray(state.statistics.n_recorded)[:, None]
    assert np.all((rejection >= 0) & (rejection <= n_recorded))


def test_betas_that_rounding_merged_leave_log_z_defined(quick_run):
    box = LogDensity(lambda y: jnp.where(jnp.all((y > -1) & (y < 2)), 0.0 * y[0], -jnp.inf), 2, dtype=np.float32)
    stage = NRPT(GaussianReference(3.0), [0.0, 0.3, 1 - 1e-9, 1.0], MALA(0.5), 8)
    stage = eqx.tree_at(lambda s: s.betas, stage, stage.betas.astype(np.float32))  # as where x64 is not enabled
    assert stage.betas[-1] == stage.betas[-2]
    statistics = quick_run(stage, box, 400).statistics
    tempering = tempering_diagnostics(np.asarray(stage.betas), statistics, has_evidence=True)
    assert np.all((tempering.rejection >= 0) & (tempering.rejection <= 1))
    assert np.isfinite(tempering.evidence.log_z)
