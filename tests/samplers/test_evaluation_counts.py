"""Reported evaluations are those that an instrumented density saw, and never exceed a budget."""

import re
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdsampler.density import LogDensity
from cdsampler.errors import InvalidInputError
from cdsampler.interpolants import AutodiffInterpolant, Linear, geometric_times, noise_variances
from cdsampler.kernels import HMC, MALA, RandomWalk
from cdsampler.paths import FlatReference, GaussianReference, linear_schedule
from cdsampler.samplers import CDS, NRPT, Corrector, LocalChain, chain_keys, run_chunk
from cdsampler.tuning import find_mode, tune

N_CHAINS = 6
TIMES = geometric_times(0.1, 5)
VARIANCES = noise_variances(TIMES, 0.05)
SETTINGS = settings(derandomize=True, deadline=None, max_examples=200, database=None)


class Meter:
    """A Gaussian in two dimensions that is computed on the host and counts how many points it was given."""

    def __init__(self):
        self.lock = threading.Lock()
        self.reset()
        scalar = jax.ShapeDtypeStruct((), np.float64)
        vector = jax.ShapeDtypeStruct((2,), np.float64)

        def log_density(y):
            return jax.pure_callback(self._value, scalar, y, vmap_method="expand_dims")

        def value_and_grad(y):
            return jax.pure_callback(self._both, (scalar, vector), y, vmap_method="expand_dims")

        self.density = LogDensity(log_density, 2, value_and_grad=value_and_grad)

    def reset(self):
        self.value = self.gradient = 0

    def _value(self, y):
        y = np.asarray(y)
        with self.lock:
            self.value += int(np.prod(y.shape[:-1]))
        return -0.5 * np.sum(y**2, axis=-1)

    def _both(self, y):
        y = np.asarray(y)
        with self.lock:
            self.gradient += int(np.prod(y.shape[:-1]))
        return -0.5 * np.sum(y**2, axis=-1), -y


@pytest.fixture(scope="module")
def meter():
    return Meter()


def tempering(kernel, n_steps=4, **settings):
    return NRPT(GaussianReference(2.0), linear_schedule(3), kernel, n_steps, **settings)


SLOW = ("tempering by random walk", "local random walk")  # the flat reference has a random walk too
GENERAL = AutodiffInterpolant(Linear().forward, Linear().inverse)
SAMPLERS = {
    "tempering by MALA": lambda: tempering(MALA(0.5)),
    "tempering by HMC": lambda: tempering(HMC(0.5, 3)),
    "tempering by random walk": lambda: tempering(RandomWalk(0.5)),
    "tempering from a flat reference": lambda: NRPT(
        FlatReference(), [0.1, 0.4, 1.0], RandomWalk(0.5), 4, start="anchor"
    ),
    "transport with corrector": lambda: CDS(
        tempering(MALA(0.5)), TIMES, VARIANCES, corrector=Corrector(HMC(0.2, 3), 2)
    ),
    "transport in path coordinates": lambda: CDS(
        tempering(MALA(0.01)), TIMES, VARIANCES, interpolant=GENERAL, corrector=Corrector(MALA(0.2))
    ),
    "inverse map": lambda: CDS(tempering(MALA(0.5)), 0.1, transport="inverse-map"),
    "local chain": lambda: LocalChain(HMC(0.5, 4), 5),
    "local random walk": lambda: LocalChain(RandomWalk(0.5), 5),
}


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in SAMPLERS])
def test_reported_evaluations_are_those_made(meter, name):
    sampler = SAMPLERS[name]()
    meter.reset()
    outcome = run_chunk(
        sampler, meter.density, chain_keys(jax.random.key(0), np.arange(N_CHAINS)), jnp.zeros((N_CHAINS, 2))
    )
    total = outcome.evaluations.total()
    assert (total.value, total.gradient) == (meter.value, meter.gradient)
    assert total.count == sampler.cost() * N_CHAINS
    np.testing.assert_array_equal(outcome.evaluations.count, sampler.cost())
    assert (meter.value == 0) != (meter.gradient == 0)
    assert (meter.value > 0) == ("random walk" in name or "flat" in name)


def test_blocks_report_what_they_made(meter):
    made = []
    sampler = SAMPLERS["transport with corrector"]()
    keys = chain_keys(jax.random.key(0), np.arange(N_CHAINS))
    run_chunk(sampler, meter.density, keys, jnp.zeros((N_CHAINS, 2)), made.append)
    assert sum(made) == sampler.cost() * N_CHAINS


def test_tuning_reports_what_it_made(meter):
    meter.reset()
    pilot = tune(
        tempering(MALA(0.5)), meter.density, np.zeros(2), jax.random.key(1), n_chains=4, n_rounds=2, first_round=4
    )
    assert (pilot.evaluations.value, pilot.evaluations.gradient) == (meter.value, meter.gradient)
    # 3 to start and 3 a step, 4 + 8 steps, 4 chains.
    assert meter.gradient == (3 + 3 * 12) * 4
    assert [r.n_steps for r in pilot.rounds] == [4, 8]


def test_the_search_for_a_mode_reports_what_it_made(meter):
    meter.reset()
    mode = find_mode(meter.density, np.array([3.0, -2.0]))
    total = mode.evaluations.total()
    assert (total.value, total.gradient) == (meter.value, meter.gradient)
    assert meter.gradient > 1
    np.testing.assert_allclose(mode.position, 0, atol=1e-4)


def test_the_search_for_a_mode_keeps_to_its_limit():
    # L-BFGS-B itself looks at a limit only between line searches.
    banana = LogDensity(lambda y: -100 * (y[1] - y[0] ** 2) ** 2 - (1 - y[0]) ** 2, 2)
    for limit in range(2, 30):
        spent = find_mode(banana, np.array([-1.2, 1.0]), max_evaluations=limit).evaluations.total()
        assert spent.count <= limit, (limit, spent.count)


BUDGETED = {
    "tempering": tempering(MALA(0.5), 0),
    "tempering by HMC": tempering(HMC(0.5, 7), 0, start="anchor"),
    "flat": NRPT(FlatReference(), [0.1, 1.0], RandomWalk(0.5), start="anchor"),
    "local": LocalChain(HMC(0.5, 5)),
    "transport": CDS(tempering(HMC(0.5, 2), 0), TIMES, VARIANCES, corrector=Corrector(MALA(0.2), 3)),
    "path coordinates": CDS(tempering(MALA(0.5), 0), TIMES, VARIANCES, interpolant=GENERAL),
    "inverse map": CDS(tempering(MALA(0.5), 0), 0.1, transport="inverse-map"),
}


def least_budget(sampler):
    with pytest.raises(InvalidInputError, match="too small") as caught:
        sampler.with_budget(0)
    return int(re.search(r"at least (\d+)", str(caught.value)).group(1))


@SETTINGS
@given(name=st.sampled_from(sorted(BUDGETED)), budget=st.integers(0, 10_000))
def test_a_budget_is_used_up_and_never_exceeded(name, budget):
    sampler = BUDGETED[name]
    step = sampler.stages()[0].cost_step()
    if budget < least_budget(sampler):
        with pytest.raises(InvalidInputError, match="too small"):
            sampler.with_budget(budget)
        return
    fitted = sampler.with_budget(budget)
    assert budget - step < fitted.cost() <= budget
    assert int(fitted.stages()[0].n_steps) >= 1


@pytest.mark.parametrize("name", BUDGETED)
def test_the_least_budget_is_named_and_works(name):
    sampler = BUDGETED[name]
    least = least_budget(sampler)
    fitted = sampler.with_budget(least)
    assert fitted.cost() == least
    assert int(fitted.stages()[0].n_steps) == 1
    with pytest.raises(InvalidInputError, match=str(least)):
        sampler.with_budget(least - 1)


def test_a_schedules_steps_are_not_a_matter_of_budget():
    transport = BUDGETED["transport"].stages()[1]
    with pytest.raises(InvalidInputError, match="schedule"):
        transport.with_steps(3)
    with pytest.raises(InvalidInputError, match="negative"):
        BUDGETED["local"].with_steps(-1)
