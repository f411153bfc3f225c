"""NUTS: exact draws stay exact, counts are those of an instrumented density, and budgets hold."""

import re
import threading

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from blackjax.mcmc import termination

from cdsampler.density import LogDensity
from cdsampler.errors import DensityError, InvalidInputError, MissingExtraError
from cdsampler.samplers import _blackjax, chain_keys, run_chunk
from cdsampler.samplers._nuts import NUTSChain
from cdsampler.targets import GaussianMixture
from cdsampler.tuning import adapt_nuts

N_CHAINS, N_ERRORS = 6_000, 5.0
MIXTURE = GaussianMixture("two", [[0.0, 0.0], [3.0, 1.0]], [0.7, 0.3], 1.0)


def keys(n_chains, seed=0):
    return chain_keys(jax.random.key(seed), np.arange(n_chains))


class Meter:
    """A Gaussian with standard deviations 1 and 3, computed on the host, that counts the points it was given."""

    def __init__(self, dim=2):
        self.lock, self.gradient, self.value = threading.Lock(), 0, 0
        scalar, vector = jax.ShapeDtypeStruct((), np.float64), jax.ShapeDtypeStruct((dim,), np.float64)
        precision = 1.0 / np.linspace(1, 3, dim) ** 2

        def value(y):
            with self.lock:
                self.value += int(np.prod(np.shape(y)[:-1]))
            return -0.5 * np.sum(precision * np.asarray(y) ** 2, axis=-1)

        def both(y):
            y = np.asarray(y)
            with self.lock:
                self.gradient += int(np.prod(y.shape[:-1]))
            return -0.5 * np.sum(precision * y**2, axis=-1), -precision * y

        self.density = LogDensity(
            lambda y: jax.pure_callback(value, scalar, y, vmap_method="expand_dims"),
            dim,
            value_and_grad=lambda y: jax.pure_callback(both, (scalar, vector), y, vmap_method="expand_dims"),
        )


@pytest.fixture(scope="module")
def meter():
    return Meter()


def errors(position):
    """Errors of means, second moments and weights, in standard errors, of draws of the mixture."""
    means, weights = np.asarray(MIXTURE.means), np.asarray(MIXTURE.mode_weights)
    mean = weights @ means
    variance = 1 + weights @ (means - mean) ** 2
    share = np.asarray(MIXTURE.responsibilities(position))
    values = np.concatenate([position - mean, (position - mean) ** 2 - variance, share[:, :1] - weights[0]], axis=1)
    return np.abs(values.mean(0)) / (values.std(0) / np.sqrt(len(values)))


def from_exact_draws(sampler, dtype=np.float64):
    draws = jnp.asarray(MIXTURE.sample(jax.random.key(1), N_CHAINS), dtype)
    density = LogDensity(lambda y: MIXTURE.density().log_density(y).astype(dtype), 2, dtype=dtype)
    outcome = run_chunk(sampler, density, keys(N_CHAINS), draws)
    assert outcome.position.dtype == dtype
    assert not np.allclose(outcome.position[:, 0], draws)
    return outcome.position[:, 0].astype(np.float64)


# In double precision it is BlackJAX's own, and exact at a hard edge, below.
@pytest.mark.parametrize("dtype", [pytest.param(np.float64, marks=pytest.mark.slow), np.float32])
def test_exact_draws_stay_exact(dtype):
    sampler = NUTSChain(0.9, 3, inverse_mass_matrix=[1.0, 0.5], max_num_doublings=4)
    assert np.all(errors(from_exact_draws(sampler, dtype)) < N_ERRORS)


def test_a_trajectory_with_wrong_energies_fails(monkeypatch):
    true = _blackjax.counted_integrator

    def wrong(density, momentum_update, coefficients):
        step = true(density, momentum_update, coefficients)

        def one_step(state, step_size):
            new = step(state, step_size)
            return new._replace(logdensity=0.5 * new.logdensity)

        return one_step

    monkeypatch.setattr("cdsampler.samplers._nuts.counted_integrator", wrong)
    # Another number of doublings than elsewhere, so that the compiled true one isn't served.
    assert np.max(errors(from_exact_draws(NUTSChain(0.9, 3, max_num_doublings=3)))) > 2 * N_ERRORS


def test_it_is_blackjaxs_nuts_and_tells_what_it_evaluated():
    density = MIXTURE.density()
    sampler = NUTSChain(0.4, inverse_mass_matrix=[1.0, 0.5], max_num_doublings=5)
    path = sampler.path(density, jnp.array([0.3, -1.0]))
    start = sampler.init(jax.random.key(0), path, None)

    def both(key):
        made = sampler.transition(key, start.current, path, jnp.asarray(True))
        state = blackjax.nuts.init(path.anchor, density.log_density)
        theirs = blackjax.nuts.build_kernel()(key, state, density.log_density, 0.4, jnp.array([1.0, 0.5]), 5)
        return made, path.evaluate(made.point.position)[0], theirs

    made, fresh, (new, info) = jax.jit(jax.vmap(both))(keys(300, 2))
    np.testing.assert_allclose(made.point.position, new.position, rtol=1e-9)
    np.testing.assert_allclose(made.acceptance, info.acceptance_rate, rtol=1e-9)
    np.testing.assert_array_equal(made.is_divergent, info.is_divergent)
    np.testing.assert_array_equal(made.evaluations.gradient, info.num_integration_steps)
    np.testing.assert_array_equal(made.loops.sum(axis=1), made.evaluations.gradient)
    np.testing.assert_array_equal(np.sum(made.loops > 0, axis=1), info.num_trajectory_expansions)
    for a, b in zip(jax.tree.leaves(made.point), jax.tree.leaves(fresh), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)


@pytest.mark.parametrize(("is_in_step", "budget"), [(True, None), (False, None), (False, 90)])
def test_counts_are_those_of_the_density(meter, is_in_step, budget):
    meter.gradient = 0
    # Chains of one key never wait for each other.
    chains = jnp.repeat(keys(1, 3), 7) if is_in_step else keys(7, 3)
    sampler = NUTSChain(0.35, 12, max_num_doublings=5, mean_cost=7.0, sd_cost=4.0)
    sampler = sampler if budget is None else sampler.with_budget(budget).with_steps(20)
    made = []
    outcome = run_chunk(sampler, meter.density, chains, jnp.ones((7, 2)), made.append)
    total = outcome.evaluations.total()
    assert (outcome.executed, meter.value, total.value) == (meter.gradient, 0, 0)
    assert sum(made) == total.count <= meter.gradient
    assert is_in_step == (total.count == meter.gradient)
    stopped = outcome.statistics[0].stopped
    if budget is None:
        assert np.all(stopped == 0)
    else:
        assert np.all(outcome.evaluations.count <= budget)
        assert np.any(stopped > 0)


def test_budgets_hold(meter):
    for budget in (32, 63, 200, 1000):
        fitted = NUTSChain(0.35, max_num_doublings=5, mean_cost=8.0, sd_cost=3.0).with_budget(budget)
        assert int(fitted.n_steps) >= 1
        assert fitted.cost() <= budget
        outcome = run_chunk(fitted, meter.density, keys(7, 4), jnp.zeros((7, 2)))
        assert np.all(outcome.evaluations.count <= budget)


def test_the_least_budget_is_named():
    sampler = NUTSChain(0.3, max_num_doublings=5)
    with pytest.raises(InvalidInputError, match="too small") as caught:
        sampler.with_budget(31)
    assert int(re.search(r"at least (\d+)", str(caught.value)).group(1)) == 32
    assert int(sampler.with_budget(32).n_steps) == 1
    assert int(sampler.with_budget(1 + 31 * 9).n_steps) == 9


def test_the_same_seed_gives_the_same_bits_and_numbers_compile_nothing(meter):
    def run(step):
        return run_chunk(NUTSChain(step, 3, max_num_doublings=5), meter.density, keys(7), jnp.zeros((7, 2)))

    first, again = run(0.7), run(0.7)
    np.testing.assert_array_equal(first.position, again.position)
    np.testing.assert_array_equal(first.evaluations.gradient, again.evaluations.gradient)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(termination, "iterative_uturn_numpyro", None)  # tracing anew would call it
        run(0.8)


def test_one_dimension_and_a_hard_edge():
    half = LogDensity(lambda y: jnp.where(y[0] > 0, -0.5 * y[0] ** 2, jnp.where(y[0] > -1, -jnp.inf, jnp.nan)), 1)
    draws = np.abs(jax.random.normal(jax.random.key(5), (N_CHAINS, 1)))
    outcome = run_chunk(NUTSChain(1.0, 2, max_num_doublings=4), half, keys(N_CHAINS, 5), draws)
    position = outcome.position[:, 0, 0]
    assert np.all(position > 0)
    for power, expected in ((1, np.sqrt(2 / np.pi)), (2, 1.0)):
        values = position**power
        assert abs(values.mean() - expected) < N_ERRORS * values.std() / np.sqrt(N_CHAINS)
    total = outcome.evaluations.total()
    assert total.neg_inf > 0
    assert total.nan > 0
    # A trajectory ends at the first point outside.
    assert total.neg_inf + total.nan == round(float(outcome.statistics[0].divergent.sum() * 2))


def test_an_unbounded_density_is_found():
    spike = LogDensity(lambda y: jnp.where(y[0] > 1, jnp.inf, -0.5 * jnp.sum(y**2)), 2)
    with pytest.raises(DensityError, match="unbounded"):
        run_chunk(NUTSChain(0.5, 20, max_num_doublings=4), spike, keys(4), jnp.zeros((4, 2)))


def test_adaptation_reaches_its_target_and_counts(meter):
    meter.gradient, start = 0, NUTSChain(0.02, max_num_doublings=5)
    adapted = adapt_nuts(start, meter.density, np.zeros(2), jax.random.key(7), n_chains=8, n_steps=160)
    assert adapted.executed == meter.gradient
    assert 8 < adapted.evaluations.count <= adapted.executed
    assert abs(adapted.acceptance - 0.8) < 0.12
    assert int(adapted.sampler.limit) == int(start.limit)
    fitted = adapted.sampler.with_budget(300)
    assert 1 <= float(fitted.mean_cost) < 20
    assert 0 < float(fitted.sd_cost) < 20
    outcome = run_chunk(fitted, meter.density, keys(7, 8), jnp.zeros((7, 2)))
    assert np.all(outcome.evaluations.count <= 300)
    assert np.sum(outcome.statistics[0].stopped) == 0


def test_a_mass_matrix_is_adapted(meter):
    meter.gradient = 0
    start = NUTSChain(0.3, max_num_doublings=5)
    adapted = adapt_nuts(
        start, meter.density, np.zeros(2), jax.random.key(7), n_chains=8, n_steps=160, is_adapting_mass=True
    )
    assert adapted.executed == meter.gradient
    assert abs(adapted.acceptance - 0.8) < 0.12
    np.testing.assert_allclose(np.sqrt(adapted.sampler.inverse_mass_matrix), [1, 3], rtol=0.4)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"step_size": 0.0}, "step_size"),
        ({"max_num_doublings": 0}, "max_num_doublings"),
        ({"inverse_mass_matrix": [1.0, -1.0]}, "inverse_mass_matrix"),
        ({"mean_cost": 0.5}, "mean_cost"),
    ],
)
def test_bad_numbers_are_refused(arguments, named):
    with pytest.raises(InvalidInputError, match=named):
        NUTSChain(**{"step_size": 0.1, **arguments})


def test_a_mass_matrix_of_another_dimension_is_refused():
    with pytest.raises(InvalidInputError, match="inverse_mass_matrix"):
        NUTSChain(0.1, inverse_mass_matrix=[1.0]).path(MIXTURE.density(), jnp.zeros(2))


def test_without_blackjax_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "blackjax", None)
    with pytest.raises(MissingExtraError, match="baselines"):
        NUTSChain(0.1)
