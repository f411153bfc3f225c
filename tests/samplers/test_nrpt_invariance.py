"""Tempering leaves the product of all π_β invariant, and moves cached values along with positions."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cdsampler.kernels import HMC, MALA, RandomWalk
from cdsampler.samplers import NRPT, _nrpt
from cdsampler.samplers._swap import swap_acceptance, swap_records

N_CHAINS, N_STEPS = 10_000, 15
KERNELS = {"mala": lambda: MALA(0.4), "hmc": lambda: HMC(0.5, 3), "random-walk": lambda: RandomWalk(0.9)}


@pytest.fixture(scope="module")
def make_stage(plane_path):
    @functools.cache
    def make(kernel, is_proper=True, is_reversible=False):
        betas = [0.0, 0.02, 0.1, 0.35, 1.0] if is_proper else [0.05, 0.15, 0.4, 1.0]
        start = "reference" if is_proper else "anchor"
        return NRPT(
            plane_path.reference(is_proper),
            betas,
            KERNELS[kernel](),
            start=start,
            ramp_steps=2,
            is_reversible=is_reversible,
        )

    return make


@pytest.fixture(scope="module")
def exact_states(plane_path, make_stage):
    """States whose replicas are independent exact draws of their π_β."""

    @functools.cache
    def draw(needs_gradient, is_proper):
        stage = make_stage("mala" if needs_gradient else "random-walk", is_proper)
        mean, variance = plane_path.moments(stage.betas, is_proper)
        annealing = stage.path(plane_path.density(), jnp.asarray(plane_path.anchor))
        evaluate = annealing.evaluate if needs_gradient else annealing.evaluate_value

        @jax.jit
        def states(key):
            noise = jax.random.normal(key, (N_CHAINS, stage.n_replicas, plane_path.dim))
            positions = jnp.asarray(mean)[None] + jnp.sqrt(jnp.asarray(variance))[None, :, None] * noise
            points = jax.vmap(jax.vmap(lambda y: evaluate(y)[0]))(positions)
            template = stage.init(key, annealing, None)
            all_states = jax.tree.map(lambda a: jnp.broadcast_to(a, (N_CHAINS, *a.shape)), template)
            return eqx.tree_at(lambda s: s.points, all_states, points)

        return states(jax.random.key(1))

    return draw


@pytest.fixture(scope="module")
def evolve(plane_path):
    """Take steps beyond the ramp, of both parities."""

    def run(stage, states):
        annealing = stage.path(plane_path.density(), jnp.asarray(plane_path.anchor))
        first = int(stage.ramp_length)

        # A new function each time: nothing compiled before a monkeypatch is used after it.
        @jax.jit
        def steps(keys, states):
            def body(i, states):
                def one(key, state):
                    return stage.step(jax.random.fold_in(key, i), state, i, None, annealing)

                return jax.vmap(one)(keys, states)

            return jax.lax.fori_loop(first, first + N_STEPS, body, states)

        return steps(jax.random.split(jax.random.key(2), N_CHAINS), states)

    return run


@pytest.fixture(scope="module")
def deviations(plane_path):
    """Largest deviation, in standard errors, of the replicas' means, variances and correlations."""

    def measure(states, stage):
        mean, variance = plane_path.moments(stage.betas, stage.reference.is_proper)
        standard = (np.asarray(states.points.position) - mean[None]) / np.sqrt(variance)[None, :, None]
        means = standard.mean(axis=0) * np.sqrt(N_CHAINS)
        variances = ((standard**2).mean(axis=0) - 1) * np.sqrt(N_CHAINS / 2)
        replicas = standard.reshape(N_CHAINS, -1)
        correlations = np.triu(replicas.T @ replicas, 1) / np.sqrt(N_CHAINS)
        return float(max(np.abs(means).max(), np.abs(variances).max(), np.abs(correlations).max()))

    return measure


@pytest.fixture(scope="module")
def stale_values(plane_path, fresh_points):
    """Largest difference between cached values and fresh evaluations."""

    def measure(states, stage):
        fresh = fresh_points(stage, plane_path.density(), plane_path.anchor, states.points)
        differences = jax.tree.map(lambda a, b: np.max(np.abs(np.asarray(a) - np.asarray(b))), states.points, fresh)
        return float(max(jax.tree.leaves(differences)))

    return measure


@pytest.mark.parametrize(
    ("kernel", "reference", "parity"),
    [
        ("mala", "proper", "alternating"),
        ("mala", "flat", "reversible"),
        ("hmc", "proper", "reversible"),
        ("random-walk", "flat", "alternating"),
        pytest.param("mala", "proper", "reversible", marks=pytest.mark.slow),
        pytest.param("mala", "flat", "alternating", marks=pytest.mark.slow),
        pytest.param("hmc", "proper", "alternating", marks=pytest.mark.slow),
        pytest.param("hmc", "flat", "alternating", marks=pytest.mark.slow),
        pytest.param("hmc", "flat", "reversible", marks=pytest.mark.slow),
        pytest.param("random-walk", "proper", "alternating", marks=pytest.mark.slow),
        pytest.param("random-walk", "proper", "reversible", marks=pytest.mark.slow),
        pytest.param("random-walk", "flat", "reversible", marks=pytest.mark.slow),
    ],
)
def test_every_replica_keeps_its_law(
    make_stage, exact_states, evolve, deviations, stale_values, kernel, reference, parity
):
    is_proper = reference == "proper"
    stage = make_stage(kernel, is_proper, parity == "reversible")
    start = exact_states(stage.kernel.needs_gradient, is_proper)
    end = evolve(stage, start)
    assert deviations(start, stage) < 5
    assert deviations(end, stage) < 5
    # It did move: every replica, in nearly every chain.
    assert np.mean(np.any(np.asarray(start.points.position != end.points.position), axis=-1)) > 0.9
    assert stale_values(end, stage) < 1e-10


def test_negative_control_the_inverse_ratio_is_caught(make_stage, exact_states, evolve, deviations, monkeypatch):
    monkeypatch.setattr(_nrpt, "swap_acceptance", lambda betas, log_ratio: swap_acceptance(betas, -log_ratio))
    stage = make_stage("mala")
    assert deviations(evolve(stage, exact_states(True, True)), stage) > 20


def test_negative_control_positions_that_move_alone_are_caught(
    make_stage, exact_states, evolve, stale_values, monkeypatch
):
    def positions_alone(records, is_swapped):
        points, origin = records
        moved, origin = swap_records((points.position, origin), is_swapped)
        return points._replace(position=moved), origin

    monkeypatch.setattr(_nrpt, "swap_records", positions_alone)
    stage = make_stage("mala")
    assert stale_values(evolve(stage, exact_states(True, True)), stage) > 0.1
