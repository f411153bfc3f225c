"""Named parameters: shapes, bounds and Jacobians."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special

import cdsampler as cds
from cdsampler.parameters import ParameterSpace

SPACE = {"loc": (), "scale": cds.positive(), "w": cds.simplex(3), "deep": {"m": cds.positive_definite(2)}}


def test_names_and_sizes_follow_the_structure():
    space = ParameterSpace(SPACE)
    assert space.dim == 1 + 1 + 2 + 3
    assert space.labels == ("deep.m", "loc", "scale", "w")
    assert space.names == ("deep.m[0]", "deep.m[1]", "deep.m[2]", "loc", "scale", "w[0]", "w[1]")


def test_values_lie_in_their_supports_and_come_back():
    space = ParameterSpace(SPACE)
    q = np.random.default_rng(0).normal(size=(20, space.dim))
    variables = space.variables(q)
    assert np.all(variables["scale"] > 0)
    np.testing.assert_allclose(variables["w"].sum(axis=1), 1)
    assert np.all(np.linalg.eigvalsh(variables["deep.m"]) > 0)
    one = jax.tree.map(lambda a: a[3], space.flat(variables))
    np.testing.assert_allclose(space.unconstrain(one), q[3], atol=1e-6)


@pytest.mark.parametrize(
    ("parameter", "log_density", "log_z"),
    [
        (cds.positive(), lambda v: 2 * jnp.log(v) - v, np.log(2.0)),
        (cds.interval(-1, 3), lambda v: jnp.zeros(()), np.log(4.0)),
        (cds.interval(None, 2), lambda v: v, 2.0),
        (cds.simplex(2), lambda v: 2 * jnp.log(v[0]) + jnp.log(v[1]), np.log(special.beta(3, 2))),
    ],
)
def test_jacobians_keep_the_integral(parameter, log_density, log_z):
    """∫ exp(f) over the support is ∫ exp(f + log|J|) over the line."""
    space = ParameterSpace({"v": parameter})
    density = jax.jit(space.log_density(lambda p: log_density(p["v"])))
    integral, _ = integrate.quad(lambda q: float(np.exp(density(jnp.array([q])))), -40, 40, limit=500)
    assert np.log(integral) == pytest.approx(log_z, abs=1e-5)


def test_a_shape_or_a_value_means_real_numbers_and_integers_are_cast():
    space = ParameterSpace({"loc": 0, "w": np.zeros(3, np.int64), "m": (2, 2), "l": [1, 2]})
    assert space.dim == 1 + 3 + 4 + 2
    start = space.unconstrain({"loc": 1, "w": [0, 0, 1], "m": np.eye(2), "l": [3, 4]})
    assert start.dtype == np.float64
    values, log_det = space.constrain(jnp.asarray(start))
    assert log_det == 0
    np.testing.assert_array_equal(values["w"], [0, 0, 1])
    np.testing.assert_array_equal(values["l"], [3, 4])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ParameterSpace({}), "There are no parameters"),
        (lambda: ParameterSpace({"a": "wide"}), "Parameter 'a' must be a shape"),
        (lambda: cds.interval(2, 1), "between 2 and 1 has no room"),
        (lambda: cds.interval(np.inf, None), "low must be finite"),
        (lambda: cds.simplex(1), "at least 2, got 1"),
        (lambda: cds.real(0), "positive integers"),
        (lambda: ParameterSpace(SPACE).unconstrain({"loc": 0}), "missing: deep.m, scale, w"),
        (lambda: ParameterSpace({"a": ()}).unconstrain({"b": 0}), "missing: a; unknown: b"),
        (lambda: ParameterSpace({"a": cds.positive()}).unconstrain({"a": -1.0}), "a must be above 0"),
        (lambda: ParameterSpace({"a": cds.positive()}).unconstrain({"a": [1.0, 2.0]}), "a must be 1 finite numbers"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(cds.InvalidInputError, match=message):
        call()


def test_sample_takes_a_structure_and_gives_its_names_back():
    def log_density(p):
        return -0.5 * p["loc"] ** 2 + jnp.log(p["scale"]) - p["scale"] - 0.5 * jnp.sum(p["w"] ** 2)

    structure = {"loc": (), "scale": cds.positive(), "w": (3,)}
    start = {"loc": 0, "scale": 1, "w": [0, 0, 0]}
    result = cds.sample(log_density, params=structure, start=start, n_samples=1000, seed=1)
    draws = result.variables
    assert {name: values.shape[2:] for name, values in draws.items()} == {"loc": (), "scale": (), "w": (3,)}
    # Gamma(2, 1) has mean 2 and variance 2; standard errors from the effective size.
    error = np.sqrt(2 / result.ess.min())
    assert draws["scale"].mean() == pytest.approx(2, abs=4 * error)
    assert draws["scale"].min() > 0
    data = result.to_inference_data()
    assert set(data.posterior.data_vars) == {"loc", "scale", "w"}
    assert "w[2]" in result.summary()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dim": 1}, "dim=1 doesn't go with named parameters"),
        ({"names": ("a",)}, "names="),
        ({"start": {"b": 1.0}}, "missing: a; unknown: b"),
    ],
)
def test_sample_refuses_what_does_not_go_with_a_structure(arguments, message):
    with pytest.raises(cds.InvalidInputError, match=message):
        cds.sample(lambda p: -(p["a"] ** 2), params={"a": ()}, **arguments)
