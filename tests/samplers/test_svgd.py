"""SVGD: converges where it should, keeps the shares it was given, and counts its evaluations."""

import threading

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cdsampler.density import LogDensity
from cdsampler.errors import InvalidInputError
from cdsampler.paths import FlatReference, GaussianReference
from cdsampler.samplers import chain_keys, run_chunk
from cdsampler.samplers._svgd import SVGD
from cdsampler.targets import GaussianMixture

MEAN, SD = np.array([1.0, -2.0]), np.array([1.0, 0.5])


def keys(n_chains, seed=0):
    return chain_keys(jax.random.key(seed), np.arange(n_chains))


def gaussian(dtype=np.float64):
    mean, sd = jnp.asarray(MEAN, dtype), jnp.asarray(SD, dtype)
    return LogDensity(lambda y: -0.5 * jnp.sum(((y - mean) / sd) ** 2), 2, dtype=dtype)


@pytest.mark.parametrize(("optimizer", "rate"), [("adam", 0.05), ("adagrad", 0.3), ("sgd", 0.5)])
def test_it_converges_to_a_gaussians_moments(optimizer, rate):
    sampler = SVGD(40, rate, 400, optimizer=optimizer, reference=GaussianReference(2.0))
    outcome = run_chunk(sampler, gaussian(), keys(4), jnp.zeros((4, 2)))
    assert outcome.position.shape == (4, 40, 2)
    # Much better than independent draws, whose mean errs by sd/√40 = 0.16 sd.
    np.testing.assert_allclose(outcome.position.mean(axis=1), np.tile(MEAN, (4, 1)), atol=0.05)
    np.testing.assert_allclose(outcome.position.std(axis=1) / SD, 1.0, atol=0.25)
    assert np.all(outcome.statistics[0].update < 0.05)
    assert np.all(outcome.statistics[0].is_coincident == 0)


def test_float32_and_a_start_about_the_anchor():
    sampler = SVGD(40, 0.05, 300, start="anchor", jitter=0.5)
    outcome = run_chunk(sampler, gaussian(np.float32), keys(2), jnp.zeros((2, 2), jnp.float32))
    assert outcome.position.dtype == np.float32
    np.testing.assert_allclose(outcome.position.mean(axis=1), np.tile(MEAN, (2, 1)), atol=0.1)


def test_no_mass_moves_between_modes():
    mixture = GaussianMixture("two", [[-6.0, 0.0], [6.0, 0.0]], [0.2, 0.8], 1.0)
    sampler = SVGD(30, 0.05, 200, reference=GaussianReference(6.0))
    start = run_chunk(sampler.with_steps(0), mixture.density(), keys(6), jnp.zeros((6, 2))).position
    end = run_chunk(sampler, mixture.density(), keys(6), jnp.zeros((6, 2))).position
    before, after = (np.mean(position[..., 0] > 0, axis=1) for position in (start, end))
    assert np.all(np.abs(after - before) < 0.2)
    assert np.abs(after.mean() - 0.5) < 0.15  # as the start has it, not the target
    assert np.abs(np.abs(end[..., 0]).mean() - 6) < 0.6


def test_counts_are_those_of_the_density():
    lock, seen = threading.Lock(), []
    scalar, vector = jax.ShapeDtypeStruct((), np.float64), jax.ShapeDtypeStruct((2,), np.float64)

    def both(y):
        y = np.asarray(y)
        with lock:
            seen.append(int(np.prod(y.shape[:-1])))
        return -0.5 * np.sum(y**2, axis=-1), -y

    density = LogDensity(
        lambda y: -0.5 * jnp.sum(y**2),
        2,
        value_and_grad=lambda y: jax.pure_callback(both, (scalar, vector), y, vmap_method="expand_dims"),
    )
    sampler = SVGD(5, 0.1, reference=GaussianReference(1.0)).with_budget(64)
    assert (int(sampler.n_steps), sampler.cost()) == (11, 60)
    outcome = run_chunk(sampler, density, keys(3), jnp.zeros((3, 2)))
    assert outcome.executed == sum(seen) == 3 * 60
    np.testing.assert_array_equal(outcome.evaluations.gradient, 60)
    np.testing.assert_array_equal(outcome.evaluations.value, 0)
    # The points' log densities are those of where they are.
    np.testing.assert_allclose(outcome.log_density, -0.5 * np.sum(outcome.position**2, axis=-1), rtol=1e-12)


def test_a_group_depends_on_its_own_key_alone_and_rates_compile_nothing(monkeypatch):
    density = gaussian()

    def run(rate, chains):
        sampler = SVGD(8, rate, 5, reference=GaussianReference(1.0))
        return run_chunk(sampler, density, keys(4)[chains], jnp.zeros((2, 2))).position

    first, last = run(0.1, np.array([0, 1])), run(0.1, np.array([2, 3]))
    np.testing.assert_array_equal(first, run(0.1, np.array([0, 1])))
    np.testing.assert_array_equal(run(0.1, np.array([3, 0])), np.stack([last[1], first[0]]))
    assert not np.any(first[0] == first[1])
    monkeypatch.setattr("cdsampler.samplers._svgd.OPTIMIZERS", {"adam": None})  # tracing anew would call it
    assert not np.any(run(0.2, np.array([0, 1])) == first)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"n_particles": 1}, "n_particles"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"optimizer": "newton"}, "optimizer"),
        ({"start": "elsewhere"}, "start"),
        ({"start": "anchor"}, "never part"),
        ({"start": "anchor", "jitter": -1.0}, "jitter"),
        ({"reference": FlatReference()}, "proper reference"),
        ({"reference": None}, "proper reference"),
    ],
)
def test_bad_arguments_are_refused(arguments, named):
    with pytest.raises(InvalidInputError, match=named):
        SVGD(**{"n_particles": 4, "learning_rate": 0.1, "reference": GaussianReference(1.0), **arguments})


def test_particles_at_the_same_place_are_reported():
    sampler = SVGD(4, 0.1, start="anchor", jitter=1.0)
    state = sampler.init(jax.random.key(0), sampler.path(gaussian(), jnp.zeros(2)), None)
    assert sampler.statistics(state).is_coincident == 0
    same = state.particles._replace(position=state.particles.position.at[3].set(state.particles.position[1]))
    assert sampler.statistics(eqx.tree_at(lambda s: s.particles, state, same)).is_coincident == 1
