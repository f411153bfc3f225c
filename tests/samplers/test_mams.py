"""MAMS: exact draws stay exact, counts are those of an instrumented density, and budgets hold."""

import re
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from blackjax.mcmc import adjusted_mclmc_dynamic, integrators

from cdsampler.density import LogDensity
from cdsampler.errors import DensityError, InvalidInputError
from cdsampler.samplers import chain_keys, run_chunk
from cdsampler.samplers._mams import MAMSChain
from cdsampler.tuning import adapt_mams

N_CHAINS, N_ERRORS = 8_000, 5.0
SD = np.array([1.0, 0.3, 2.0])


def keys(n_chains, seed=0):
    return chain_keys(jax.random.key(seed), np.arange(n_chains))


def gaussian(dtype=np.float64):
    return LogDensity(lambda y: -0.5 * jnp.sum((y / jnp.asarray(SD, dtype)) ** 2), 3, dtype=dtype)


class Meter:
    """An isotropic Gaussian, computed on the host, that counts the points it was given."""

    def __init__(self, dim=2):
        self.lock, self.gradient = threading.Lock(), 0
        scalar, vector = jax.ShapeDtypeStruct((), np.float64), jax.ShapeDtypeStruct((dim,), np.float64)

        def both(y):
            y = np.asarray(y)
            with self.lock:
                self.gradient += int(np.prod(y.shape[:-1]))
            return -0.5 * np.sum(y**2, axis=-1), -y

        self.density = LogDensity(
            lambda y: -0.5 * jnp.sum(y**2),
            dim,
            value_and_grad=lambda y: jax.pure_callback(both, (scalar, vector), y, vmap_method="expand_dims"),
        )


@pytest.fixture(scope="module")
def meter():
    return Meter()


def errors(sampler, dtype=np.float64):
    """Errors of means, variances and a covariance after starting at exact draws, in standard errors."""
    draws = jnp.asarray(SD, dtype)[None] * jax.random.normal(jax.random.key(1), (N_CHAINS, 3), dtype)
    outcome = run_chunk(sampler, gaussian(dtype), keys(N_CHAINS), draws)
    assert outcome.position.dtype == dtype
    assert 0.2 < outcome.statistics[0].acceptance.mean() <= 1.0
    z = outcome.position[:, 0].astype(np.float64) / SD
    assert np.mean(np.any(z != np.asarray(draws) / SD, axis=1)) > 0.5
    values = np.concatenate([z, z**2 - 1, z[:, :1] * z[:, 1:2]], axis=1)
    return np.abs(values.mean(0)) / (values.std(0) / np.sqrt(N_CHAINS))


@pytest.mark.parametrize(("dtype", "is_random_length"), [(np.float64, True), (np.float32, False)])
def test_exact_draws_stay_exact(dtype, is_random_length):
    sampler = MAMSChain(0.6, 3, 4, is_random_length=is_random_length, inverse_mass_matrix=[1.0, 0.2, 2.0])
    assert np.all(errors(sampler, dtype) < N_ERRORS)


def test_a_chain_that_always_accepts_fails(monkeypatch):
    true = adjusted_mclmc_dynamic.build_kernel

    def accepting(**settings):
        kernel = true(**settings)

        def step(*arguments, **more):
            state, info = kernel(*arguments, **more)
            return state, info._replace(is_accepted=jnp.ones((), bool))

        return step

    monkeypatch.setattr(adjusted_mclmc_dynamic, "build_kernel", accepting)
    # Without a mass matrix, so that the compiled true one isn't served.
    assert np.max(errors(MAMSChain(1.8, 3, 4))) > 2 * N_ERRORS


def test_a_trajectory_without_its_kinetic_energy_fails(monkeypatch):
    true = integrators.esh_dynamics_momentum_update_one_step

    def without(mass):
        update = true(mass)
        return lambda *a, **k: (*(made := update(*a, **k))[:2], 0 * made[2])

    monkeypatch.setattr(integrators, "esh_dynamics_momentum_update_one_step", without)
    assert np.max(errors(MAMSChain(0.6, 3, 4, is_random_length=False))) > 2 * N_ERRORS


@pytest.mark.parametrize("is_random_length", [True, False])
def test_counts_are_those_of_the_density(meter, is_random_length):
    sampler = MAMSChain(0.3, 2.5, 12, is_random_length=is_random_length)
    made = []
    for stage, n_chains in ((sampler, 7), (sampler.with_budget(50).with_steps(20), 7)):
        meter.gradient = 0
        made.clear()
        outcome = run_chunk(stage, meter.density, keys(n_chains, 3), jnp.ones((n_chains, 2)), made.append)
        total = outcome.evaluations.total()
        assert (outcome.executed, total.value) == (meter.gradient, 0)
        assert sum(made) == total.count <= meter.gradient
        stopped = outcome.statistics[0].stopped
        if stage is sampler:
            assert np.all(stopped == 0)
            assert is_random_length or total.count == 7 * (1 + 12 * 2 * 3)
        else:
            assert np.all(outcome.evaluations.count <= 50)
            assert np.any(stopped > 0)
        assert is_random_length == (total.count < meter.gradient)


@pytest.mark.parametrize("length", [1.0, 1.3, 2.0, 3.7, 10.0])
def test_the_cost_of_random_lengths_is_known(length):
    sampler = MAMSChain(0.3, length)
    draw = adjusted_mclmc_dynamic.make_random_trajectory_length_fn(True)
    drawn = 2 * np.asarray(
        jax.vmap(lambda k: draw(k, sampler.num_integration_steps))(jax.random.split(keys(1)[0], 20_000))
    )
    mean, deviation = sampler.expected_cost()
    np.testing.assert_allclose(mean, 2 * length, rtol=1e-6)
    assert abs(drawn.mean() - mean) <= N_ERRORS * deviation / np.sqrt(len(drawn)) + 1e-9
    np.testing.assert_allclose(drawn.std(), deviation, rtol=0.05)
    assert drawn.max() == sampler.cost_step()


def test_budgets_hold_and_the_least_is_named(meter):
    sampler = MAMSChain(0.3, 2.5)
    with pytest.raises(InvalidInputError, match="too small") as caught:
        sampler.with_budget(0)
    least = int(re.search(r"at least (\d+)", str(caught.value)).group(1))
    assert least == 1 + sampler.cost_step()
    for budget in (least, 30, 500):
        fitted = sampler.with_budget(budget)
        assert int(fitted.n_steps) >= 1
        assert fitted.cost() <= budget
        outcome = run_chunk(fitted, meter.density, keys(7, 4), jnp.zeros((7, 2)))
        assert np.all(outcome.evaluations.count <= budget)
        assert np.all(outcome.statistics[0].stopped == 0)
    fixed = MAMSChain(0.3, 3, is_random_length=False)
    assert int(fixed.with_budget(1 + 6 * 9).n_steps) == 9


def test_the_same_seed_gives_the_same_bits_and_numbers_compile_nothing(monkeypatch):
    density = gaussian()
    run = lambda *numbers: run_chunk(MAMSChain(*numbers, 3), density, keys(20), jnp.ones((20, 3)))  # noqa: E731
    first, again = run(0.5, 2.0), run(0.5, 2.0)
    np.testing.assert_array_equal(first.position, again.position)
    np.testing.assert_array_equal(first.evaluations.gradient, again.evaluations.gradient)
    monkeypatch.setattr(adjusted_mclmc_dynamic, "build_kernel", None)  # tracing anew would call it
    assert run(0.6, 4.0).evaluations.count.mean() > first.evaluations.count.mean()


def test_one_dimension_is_refused_before_any_evaluation():
    meter, sampler = Meter(1), MAMSChain(0.3, 2, 3)
    with pytest.raises(InvalidInputError, match="at least 2 dimensions"):
        run_chunk(sampler, meter.density, keys(3), jnp.zeros((3, 1)))
    with pytest.raises(InvalidInputError, match="at least 2 dimensions"):
        adapt_mams(sampler, meter.density, np.zeros(1), jax.random.key(0))
    assert meter.gradient == 0


def test_a_hard_edge_can_be_entered_but_not_left():
    edge = LogDensity(lambda y: jnp.where(jnp.all(y > 0), -0.5 * jnp.sum(y**2), -jnp.inf), 2)
    start = jnp.where(jnp.arange(1000)[:, None] < 500, -0.1, 0.5) * jnp.ones((1, 2))
    outcome = run_chunk(MAMSChain(0.3, 2, 4), edge, keys(1000, 5), start)
    is_inside = np.all(outcome.position[:, 0] > 0, axis=1)
    assert np.all(is_inside[500:])
    assert is_inside[:500].mean() > 0.2
    assert outcome.evaluations.total().neg_inf > 500


def test_an_unbounded_density_is_found():
    spike = LogDensity(lambda y: jnp.where(y[0] > 1, jnp.inf, -0.5 * jnp.sum(y**2)), 2)
    with pytest.raises(DensityError, match="unbounded"):
        run_chunk(MAMSChain(0.5, 3, 20), spike, keys(4), jnp.zeros((4, 2)))


def test_adaptation_reaches_its_target_and_counts():
    meter = Meter(3)
    adapted = adapt_mams(MAMSChain(5.0, 3.0), meter.density, np.zeros(3), jax.random.key(7), n_chains=8, n_steps=160)
    assert adapted.executed == meter.gradient
    assert 8 < adapted.evaluations.count <= adapted.executed
    assert abs(adapted.acceptance - 0.9) < 0.07
    assert float(adapted.sampler.num_integration_steps) == 3


@pytest.mark.parametrize(
    ("arguments", "named"), [({"step_size": -1.0}, "step_size"), ({"num_integration_steps": 0.5}, "num_integration")]
)
def test_bad_numbers_are_refused(arguments, named):
    with pytest.raises(InvalidInputError, match=named):
        MAMSChain(**{"step_size": 0.1, "num_integration_steps": 2, **arguments})
