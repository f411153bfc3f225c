"""Interrupting a run keeps what is finished, and only that."""

import threading
import time

import jax.numpy as jnp
import numpy as np
import pytest

from cdsampler.density import LogDensity
from cdsampler.errors import InvalidInputError
from cdsampler.kernels import MALA
from cdsampler.paths import GaussianReference
from cdsampler.samplers import NRPT
from cdsampler.sampling import run

WIDTH, N_SAMPLES = 32, 320


@pytest.fixture(scope="module")
def gaussian():
    return LogDensity(lambda y: -0.5 * jnp.sum(y**2), 2)


def draw(gaussian, *, n_steps=20, on_progress=None, **settings):
    sampler = NRPT(GaussianReference(2.0), [0.0, 1.0], MALA(0.5), n_steps)
    return run(sampler, gaussian, N_SAMPLES, anchor=np.zeros(2), on_progress=on_progress, **settings)


@pytest.fixture
def whole(narrow_groups, gaussian):
    return draw(gaussian)


def test_an_interrupt_returns_the_finished_chains(whole, narrow_groups, gaussian):
    def interrupt(progress):
        if progress.finished >= WIDTH:
            raise KeyboardInterrupt

    result = draw(gaussian, on_progress=interrupt)
    assert result.is_partial
    n = len(result.positions)
    assert WIDTH <= n < N_SAMPLES
    assert n % WIDTH == 0
    np.testing.assert_array_equal(result.samples, whole.samples[:n])
    assert result.evaluations.count.shape == (n,)
    assert [w.code for w in result.warnings] == ["partial"]
    assert str(n) in str(result.warnings[0])
    assert result.attributes()["is_partial"] == 1
    assert not whole.is_partial
    assert whole.warnings == ()


def test_an_interrupt_before_any_chain_is_finished_is_passed_on(narrow_groups, gaussian):
    def interrupt(progress):
        assert progress.finished == 0
        raise KeyboardInterrupt

    began = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        draw(gaussian, n_steps=2**30, on_progress=interrupt)
    assert time.perf_counter() - began < 30


def test_another_error_in_the_report_ends_the_run_and_is_passed_on(narrow_groups, gaussian):
    def fail(progress):
        raise RuntimeError("no space left")

    before = threading.active_count()
    with pytest.raises(RuntimeError, match="no space left"):
        draw(gaussian, n_steps=2**30, on_progress=fail)
    assert threading.active_count() <= before


def test_progress_goes_up_to_the_whole(narrow_groups, gaussian):
    seen = []
    result = draw(gaussian, on_progress=seen.append)
    finished = [p.finished for p in seen]
    assert finished == sorted(finished)
    assert finished[-1] == N_SAMPLES
    assert seen[-1].evaluations == seen[-1].total == result.evaluations.total().count + result.spare_evaluations
    assert all(0 <= p.evaluations <= p.total for p in seen)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_samples": 0}, "n_samples"),
        ({"n_samples": True}, "n_samples"),
        ({"chunk_size": 0}, "chunk_size"),
        ({"seed": -1}, "seed"),
        ({"anchor": np.zeros(3)}, "2 finite numbers"),
        ({"anchor": np.array([0.0, np.nan])}, "2 finite numbers"),
        ({"anchor_scale": -1.0}, "anchor_scale"),
        ({"anchor_scale": np.inf}, "anchor_scale"),
    ],
)
def test_wrong_arguments_are_found_at_once(gaussian, settings, message):
    sampler = NRPT(GaussianReference(2.0), [0.0, 1.0], MALA(0.5), 2**30)
    with pytest.raises(InvalidInputError, match=message):
        run(sampler, gaussian, **{"n_samples": 4, "anchor": np.zeros(2)} | settings)
