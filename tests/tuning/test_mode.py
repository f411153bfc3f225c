import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cdsampler import DensityError, InvalidInputError, LogDensity, find_mode

CENTRE = np.array([3.0, -5.0])


def gaussian(y):
    return -0.5 * jnp.sum((y - CENTRE) ** 2 / jnp.array([1.0, 100.0]))


def test_the_mode_of_a_gaussian_is_found_and_every_evaluation_counted():
    calls = []

    def counted(y):
        jax.debug.callback(lambda: calls.append(1))
        return gaussian(y)

    mode = find_mode(LogDensity(counted, 2))
    jax.effects_barrier()
    np.testing.assert_allclose(mode.position, CENTRE, atol=1e-3)
    assert abs(mode.log_density) < 1e-6
    assert int(mode.evaluations.total().gradient) == len(calls)
    assert int(mode.evaluations.total().value) == 0


def test_a_limit_is_kept():
    mode = find_mode(LogDensity(gaussian, 2), max_evaluations=3)
    assert int(mode.evaluations.total().count) <= 3


def test_a_mode_behind_a_hard_edge_is_found():
    edge = LogDensity(lambda y: jnp.where(y[0] > 1.0, gaussian(y), -jnp.inf), 2)
    mode = find_mode(edge, np.array([1.5, 0.0]))
    np.testing.assert_allclose(mode.position, CENTRE, atol=1e-2)


@pytest.mark.parametrize("start", [np.zeros(3), np.array([0.0, np.nan]), np.array([[0.0, 0.0]])])
def test_a_start_of_the_wrong_shape_or_not_finite_is_refused(start):
    with pytest.raises(InvalidInputError, match="must be 2 finite numbers"):
        find_mode(LogDensity(gaussian, 2), start)


@pytest.mark.parametrize(("value", "words"), [(-jnp.inf, "not finite"), (jnp.nan, "not finite"), (jnp.inf, r"\+inf")])
def test_a_start_outside_the_support_is_named(value, words):
    density = LogDensity(lambda y: jnp.where(y[0] > 1.0, gaussian(y), value), 2)
    with pytest.raises(DensityError, match=words) as caught:
        find_mode(density, np.array([0.25, 0.0]))
    assert "0.25" in str(caught.value)


def test_a_singular_start_is_named():
    density = LogDensity(lambda x: jnp.sum(jnp.sqrt(x) - x**2), 1)
    with pytest.raises(DensityError, match=r"\[0\.\]"):
        find_mode(density, np.zeros(1))
