"""Edges, holes and poles: right moments where there are some, the point's name where there aren't."""

import functools
import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cdsampler.density import LogDensity
from cdsampler.errors import DensityError
from cdsampler.kernels import MALA
from cdsampler.paths import GaussianReference
from cdsampler.samplers import NRPT
from cdsampler.sampling import run

N_SAMPLES, N_STEPS = 1000, 300


def tempering(n_steps=N_STEPS, step_size=0.6, scale=3.0):
    return NRPT(GaussianReference(scale), [0.0, 0.1, 0.4, 1.0], MALA(step_size), n_steps)


class CutNormal(eqx.Module):
    """-x²/2, but something else below an edge; edge and value are arrays, so that all share one program."""

    edge: jax.Array
    below: jax.Array

    def __call__(self, x):
        return jnp.where(x[0] < self.edge, self.below, -0.5 * x[0] ** 2)


def cut_normal(edge, below):
    return LogDensity(CutNormal(jnp.asarray(edge), jnp.asarray(below)), 1)


def box(x):
    return jnp.where(jnp.all((x > -1) & (x < 2)), 0.0 * x[0], -jnp.inf)


CASES = {  # log density, mean, variance, log Z
    "hard edge": (cut_normal(0.0, -np.inf), 0.7979, 0.3634, 0.2258),
    "NaN region": (cut_normal(-1.0, np.nan), 0.2876, 0.6297, 0.7462),
    "box": (LogDensity(box, 2), 0.5, 0.75, 2.1972),
}


@functools.cache
def drawn(name):
    density = CASES[name][0]
    return run(tempering(), density, N_SAMPLES, anchor=np.zeros(density.dim), seed=1)


@pytest.mark.parametrize("name", CASES)
def test_moments_and_log_z_are_right(name):
    _, mean, variance, log_z = CASES[name]
    result = drawn(name)
    x = result.positions
    assert np.all(np.isfinite(result.log_density))
    assert np.all(np.abs(x.mean(axis=0) - mean) < 5 * np.sqrt(variance / N_SAMPLES))
    squares = (x - mean) ** 2
    assert np.all(np.abs(squares.mean(axis=0) - variance) < 5 * squares.std(axis=0) / np.sqrt(N_SAMPLES))
    evidence = result.tempering.evidence
    assert abs(evidence.log_z - log_z) < 4 * evidence.standard_error < 0.05
    assert np.all((result.tempering.rejection > 0) & (result.tempering.rejection < 1))


@pytest.mark.parametrize("name", CASES)
def test_outcomes_outside_are_counted_by_kind(name):
    total = drawn(name).evaluations.total()
    outside, other = (total.nan, total.neg_inf) if name == "NaN region" else (total.neg_inf, total.nan)
    # A third or more of the reference's draws lie outside.
    assert outside > 0.3 * N_SAMPLES * N_STEPS
    assert other == total.pos_inf == 0
    warnings = {w.code: w for w in drawn(name).warnings}
    assert ("nan" in warnings) == (name == "NaN region")
    if "nan" in warnings:
        assert f"{int(total.nan)} of {int(total.count)}" in warnings["nan"].meaning


@pytest.mark.parametrize("name", CASES)
def test_both_directions_of_log_z_agree_at_an_edge(name):
    # The way down the ladder has to allow for the share of the reference that lies inside the support.
    evidence = drawn(name).tempering.evidence
    assert abs(evidence.forward - evidence.backward) < max(5 * evidence.gap_standard_error, 0.05)
    assert "log-z-gap" not in [w.code for w in drawn(name).warnings]


@pytest.fixture(scope="module")
def stuck():
    """Too few and too short steps for every replica to find the support."""
    return run(tempering(12, step_size=1e-3), CASES["box"][0], N_SAMPLES, anchor=np.zeros(2), seed=1)


def test_replicas_still_outside_the_support_do_not_poison_log_z(stuck):
    # A colder replica outside has r = -inf; exp(-Δβ r) would be +inf and spoil the sum of all chains.
    assert np.isfinite(stuck.tempering.evidence.log_z)
    assert np.isfinite(stuck.tempering.evidence.standard_error)


def test_samples_outside_the_support_are_warned_of(stuck):
    n_outside = int(np.sum(stuck.log_density == -np.inf))
    assert n_outside > 0
    assert any(str(n_outside) in w.meaning and "support" in w.meaning for w in stuck.warnings)


def test_plus_infinity_is_an_error_that_names_the_point():
    with pytest.raises(DensityError, match=r"\+inf at \[") as caught:
        run(tempering(), cut_normal(-2.0, np.inf), N_SAMPLES, anchor=np.zeros(1))
    assert float(re.search(r"\+inf at \[(\S+)\]", str(caught.value)).group(1)) < -2


def test_plus_infinity_at_the_anchor_is_found_before_the_first_step():
    sampler = NRPT(GaussianReference(1.0), [0.0, 1.0], MALA(0.1), 3, start="anchor")
    with pytest.raises(DensityError, match=r"\+inf at \[-1\.25\]"):
        run(sampler, cut_normal(-1.0, np.inf), 10, anchor=np.array([-1.25]))
