"""Densities computed by Python code: counts, errors, time limits, workers."""

import importlib
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cdsampler as cds
from cdsampler.host import _workers
from cdsampler.host._errors import HostError


def gaussian(x: np.ndarray) -> float:
    return float(-0.5 * np.sum(x**2))


def gaussian_batch(x: np.ndarray) -> np.ndarray:
    return -0.5 * np.sum(x**2, axis=1)


def raising(x: np.ndarray) -> float:
    if x[0] > 2:
        raise ArithmeticError("too far")
    return gaussian(x)


def walk(density: Any, n_steps: int = 50, n_samples: int = 8) -> cds.Result:
    sampler = cds.LocalChain(cds.RandomWalk(1.0), n_steps=n_steps)
    return cds.run(sampler, density, n_samples, anchor=np.zeros(density.dim))


@pytest.mark.parametrize(("function", "batched"), [(gaussian, False), (gaussian_batch, True)])
def test_values_are_those_of_the_function_and_every_call_is_charged_as_value_only(function, batched):
    density = cds.HostLogDensity(function, 2, batched=batched)
    result = walk(density)
    assert density.n_calls == result.total_evaluations
    assert int(result.evaluations.total().gradient) == 0
    np.testing.assert_allclose(result.log_density.ravel(), gaussian_batch(result.positions), rtol=1e-12)


def test_a_host_density_gives_the_same_bits_as_the_same_formula_in_jax():
    host = walk(cds.HostLogDensity(gaussian, 2))
    traced = walk(cds.LogDensity(lambda x: -0.5 * jnp.sum(x**2), 2))
    np.testing.assert_allclose(host.positions, traced.positions, rtol=1e-12)


def test_gradients_are_given_apart_or_together():
    apart = cds.HostLogDensity(gaussian, 2, gradient=lambda x: -x)
    together = cds.HostLogDensity(None, 2, value_and_grad=lambda x: (gaussian(x), -x))
    points = jnp.asarray([[1.0, 2.0], [0.5, -1.0]])
    for density in (apart, together):
        assert density.has_gradient
        value, gradient, cost = jax.jit(jax.vmap(density.value_and_gradient))(points)
        np.testing.assert_allclose(value, gaussian_batch(np.asarray(points)))
        np.testing.assert_allclose(gradient, -points)
        assert int(cost.total().gradient) == 2
        np.testing.assert_allclose(jax.vmap(lambda x, d=density: d.value(x)[0])(points), value)


def test_without_gradients_nothing_that_needs_them_runs():
    density = cds.HostLogDensity(gaussian, 2)
    sampler = cds.LocalChain(cds.MALA(0.1), n_steps=1)
    with pytest.raises(cds.InvalidInputError, match="no gradient"):
        cds.run(sampler, density, 4, anchor=np.zeros(2))


def test_the_original_exception_comes_with_the_parameters():
    with pytest.raises(ArithmeticError, match="too far") as caught:
        walk(cds.HostLogDensity(raising, 1), n_steps=500)
    (note,) = caught.value.__notes__
    value = float(note.split("[")[1].split("]")[0])
    assert value > 2


def test_in_a_batch_the_note_says_so():
    def batch(x):
        raise KeyError("nothing works")

    with pytest.raises(KeyError, match="nothing works") as caught:
        walk(cds.HostLogDensity(batch, 1, batched=True))
    assert "in a batch of" in caught.value.__notes__[0]


@pytest.mark.parametrize("batched", [False, True])
def test_rejected_errors_are_counted_and_never_visited(batched):
    function = (lambda x: np.array([raising(row) for row in x])) if batched else raising
    density = cds.HostLogDensity(function, 1, on_error="reject", batched=batched)
    result = walk(density, n_steps=500)
    assert density.function.n_rejected > 0
    assert int(result.evaluations.total().nan) == density.function.n_rejected
    assert result.positions.max() <= 2
    assert isinstance(density.rejections[0].error, ArithmeticError)
    assert density.rejections[0].position[0] > 2
    assert any(warning.code == "nan" for warning in result.warnings)


def test_a_call_that_takes_too_long_is_left():
    def slow(x):
        time.sleep(5 if x[0] > 2 else 0)
        return gaussian(x)

    density = cds.HostLogDensity(slow, 1, timeout=0.2)
    began = time.perf_counter()
    with pytest.raises(HostError, match="TimeoutError"):
        density.function(np.array([[0.0], [3.0], [1.0]]))
    assert time.perf_counter() - began < 4
    rejecting = cds.HostLogDensity(slow, 1, timeout=0.2, on_error="reject")
    values, _ = rejecting.function(np.array([[0.0], [3.0], [1.0]]))
    np.testing.assert_array_equal(values, [0.0, np.nan, -0.5])


def test_threads_work_side_by_side():
    running: list[int] = []
    most = []

    def watched(x):
        running.append(1)
        time.sleep(0.05)
        most.append(len(running))
        running.pop()
        return gaussian(x)

    density = cds.HostLogDensity(watched, 1, workers=4)
    density.function(np.zeros((16, 1)))
    assert 1 < max(most) <= 4


IN_A_MODULE = """
import os, time

def total(x):
    if x[0] == 7:
        os._exit(3)
    if x[0] == 8:
        time.sleep(60)
    return float(sum(x))
"""


def test_processes_compute_and_one_that_dies_or_hangs_is_named(tmp_path, monkeypatch):
    (tmp_path / "host_functions_of_a_test.py").write_text(IN_A_MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    total = importlib.import_module("host_functions_of_a_test").total
    density = cds.HostLogDensity(total, 2, workers=2, executor="processes")
    points = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    np.testing.assert_allclose(density.function(points)[0], points.sum(axis=1))
    with pytest.raises(HostError, match="died with exit code 3"):
        density.function(np.array([[7.0, 0.0]]))
    # The dead one was replaced.
    np.testing.assert_allclose(density.function(points)[0], points.sum(axis=1))
    hanging = cds.HostLogDensity(total, 1, executor="processes", timeout=1.0, on_error="reject")
    hanging.function(np.zeros((1, 1)))
    np.testing.assert_array_equal(hanging.function(np.array([[8.0], [1.0]]))[0], [np.nan, 1.0])


def test_a_function_for_processes_must_be_importable():
    with pytest.raises(cds.InvalidInputError, match="can't be sent to another process"):
        cds.HostLogDensity(lambda x: 0.0, 1, executor="processes")


def test_jax_inside_a_host_function_ends_with_a_result():
    density = cds.HostLogDensity(lambda x: jnp.sum(-0.5 * jnp.asarray(x) ** 2), 2)
    result = walk(density)
    np.testing.assert_allclose(result.log_density.ravel(), gaussian_batch(result.positions), rtol=1e-6)


def test_a_function_stuck_in_jax_is_named(monkeypatch):
    monkeypatch.setattr(_workers, "STUCK_SECONDS", 0.3)
    monkeypatch.setattr(_workers, "STUCK_SHARE", 0.5)
    namespace: dict[str, Any] = {"__name__": "jax.waiting", "time": time}
    exec("def wait(x):\n    time.sleep(20)\n    return 0.0", namespace)
    with pytest.raises(HostError, match="StuckInJax"):
        cds.HostLogDensity(namespace["wait"], 1).function(np.zeros((1, 1)))
    # The same wait outside JAX is no fault.
    assert cds.HostLogDensity(lambda x: time.sleep(1) or 0.0, 1).function(np.zeros((1, 1)))[0] == 0


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x, r"must have shape \(\), got \(2,\)"),
        (lambda x: "much", "must be a real number, got 'much'"),
        (lambda x: None, "must be a real number|must have shape"),
    ],
)
def test_what_a_function_returns_is_checked(function, message):
    with pytest.raises(cds.DensityError, match=message):
        walk(cds.HostLogDensity(function, 2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on_error": "ignore"}, "on_error must be 'raise' or 'reject', got 'ignore'"),
        ({"executor": "gpu"}, "executor must be"),
        ({"workers": 0}, "workers must be a positive integer, got 0"),
        ({"timeout": -1.0}, "timeout must be positive"),
        ({"gradient": 3}, "gradient must be callable, got 3"),
        ({"gradient": gaussian, "value_and_grad": gaussian}, "not both"),
        ({"names": ("a", "b", "c")}, "3 entries for dim=2"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(cds.InvalidInputError, match=message):
        cds.HostLogDensity(gaussian, 2, **options)


def test_a_numpy_function_given_as_it_is_says_what_to_do():
    with pytest.raises(jax.errors.TracerArrayConversionError) as caught:
        cds.sample(lambda x: -0.5 * np.sum(np.asarray(x) ** 2), dim=2)
    assert any("HostLogDensity" in note for note in caught.value.__notes__)
