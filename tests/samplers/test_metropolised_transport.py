"""The Metropolised SDE leaves the target exactly invariant, at a step at which the plain one visibly doesn't."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cdsampler import LogDensity
from cdsampler.density import Evaluations
from cdsampler.interpolants import Linear, geometric_times
from cdsampler.samplers import AffineTransport, chain_keys, constant_step_variances, langevin_steps

N, STEP, N_STEPS = 20_000, 0.6, 12


def variance_after(integrator):
    times = geometric_times(0.1, N_STEPS)
    stage = AffineTransport(Linear(), times, constant_step_variances(Linear(), times, STEP), integrator)
    density = LogDensity(lambda y: -0.5 * jnp.sum(y**2), 1)
    path = stage.path(density, jnp.zeros(1))
    starts = jax.random.normal(jax.random.key(1), (N, 1))
    rows = stage.rows(0, N_STEPS)

    def carry(key, start):
        state = stage.init(key, path, path.evaluate(start)[0])

        def step(i, state):
            row = jax.tree.map(lambda a: jnp.asarray(a)[i], rows)
            return stage.step(jax.random.fold_in(key, i), state, i, row, path)

        return jax.lax.fori_loop(0, N_STEPS, step, state)

    states = jax.vmap(carry)(chain_keys(jax.random.key(2), np.arange(N)), starts)
    assert isinstance(states.evaluations, Evaluations)
    assert np.all(np.asarray(states.evaluations.count) == N_STEPS)
    return float(np.var(np.asarray(states.current.position)))


def test_it_keeps_the_targets_variance():
    assert abs(variance_after("metropolis") - 1) < 4 * np.sqrt(2 / N)


def test_the_control_without_the_metropolis_step_does_not():
    # Langevin steps of h on N(0, 1) settle at variance 1/(1 - h/2).
    assert variance_after("exponential") == pytest.approx(1 / (1 - STEP / 2), rel=0.05)


def test_every_step_has_the_same_langevin_time():
    times = geometric_times(0.01, 7)
    variances = constant_step_variances(Linear(), times, 0.3)
    np.testing.assert_allclose(langevin_steps(Linear(), times, variances), 0.3)
