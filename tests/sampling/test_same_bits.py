"""The seed decides every bit of a sample, whatever the chunk size."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdsampler.density import LogDensity
from cdsampler.interpolants import geometric_times, noise_variances
from cdsampler.kernels import MALA
from cdsampler.paths import GaussianReference, geometric_schedule
from cdsampler.samplers import CDS, NRPT, Corrector
from cdsampler.sampling import run
from cdsampler.sampling._run import MAX_WIDTH, cache_width, group_width
from cdsampler.targets import gaussian_mixture

BETAS = geometric_schedule(4, 1e-2)
TIMES = geometric_times(0.02, 20)
SAMPLERS = {
    "tempering": NRPT(GaussianReference(50.0), BETAS, MALA(1.0), 30),
    "transport": CDS(
        NRPT(GaussianReference(1.0), BETAS, MALA(1.0), 30),
        TIMES,
        noise_variances(TIMES, 0.01),
        corrector=Corrector(MALA(0.5)),
    ),
}


def draw(name, density, n_samples=200, seed=3, **settings):
    return run(SAMPLERS[name], density, n_samples, anchor=np.zeros(density.dim), seed=seed, **settings)


@pytest.mark.parametrize(
    ("name", "dim", "dtype"),
    [
        ("tempering", 2, np.float64),
        ("transport", 16, np.float32),
        pytest.param("tempering", 16, np.float32, marks=pytest.mark.slow),
        pytest.param("transport", 2, np.float64, marks=pytest.mark.slow),
        pytest.param("tempering", 2, np.float32, marks=pytest.mark.slow),
        pytest.param("tempering", 16, np.float64, marks=pytest.mark.slow),
        pytest.param("transport", 2, np.float32, marks=pytest.mark.slow),
        pytest.param("transport", 16, np.float64, marks=pytest.mark.slow),
    ],
)
def test_every_chunk_size_gives_the_same_bits(narrow_groups, name, dim, dtype):
    density = gaussian_mixture(dim, uniform=True).density(dtype)
    plain = draw(name, density)
    assert plain.samples.dtype == dtype
    for chunk_size in (7, 64, 100, 200):
        other = draw(name, density, chunk_size=chunk_size)
        np.testing.assert_array_equal(plain.samples, other.samples)
        np.testing.assert_array_equal(plain.log_density, other.log_density)
        np.testing.assert_array_equal(plain.evaluations.count, other.evaluations.count)
    again, different = draw(name, density), draw(name, density, seed=4)
    np.testing.assert_array_equal(plain.samples, again.samples)
    assert not np.any(plain.samples == different.samples)
    assert len(np.unique(plain.samples[:, 0, 0])) == 200


@pytest.fixture(scope="module")
def gaussian():
    return LogDensity(lambda y: -0.5 * jnp.sum(y**2), 2)


def test_more_samples_begin_with_the_same_ones(narrow_groups, gaussian):
    few, many = draw("tempering", gaussian, 64), draw("tempering", gaussian, 192)
    np.testing.assert_array_equal(few.samples, many.samples[:64])
    assert len(np.unique(many.samples[:, 0, 0])) == 192


def test_each_chain_has_its_own_anchor_if_asked(gaussian):
    """The anchor's stream is apart from the chain's: with no steps taken the sample is the anchor."""
    sampler = NRPT(GaussianReference(1.0), [0.0, 1.0], MALA(0.1), 0, start="anchor")
    settings = {"anchor": np.array([5.0, -5.0]), "seed": 2}
    n = 4000
    scattered = run(sampler, gaussian, n, anchor_scale=0.5, **settings).positions
    assert np.all(np.abs(scattered.mean(axis=0) - settings["anchor"]) < 5 * 0.5 / np.sqrt(n))
    assert np.all(np.abs(scattered.var(axis=0) / 0.25 - 1) < 5 * np.sqrt(2 / n))
    assert np.all(run(sampler, gaussian, n, **settings).positions == settings["anchor"])


@settings(derandomize=True, deadline=None, max_examples=500, database=None)
@given(n_samples=st.integers(1, 10**6), widest=st.integers(1, 5000))
def test_groups_hold_all_samples_and_little_else(n_samples, widest):
    width, n_groups = group_width(n_samples, widest)
    spare = width * n_groups - n_samples
    assert 1 <= width <= widest
    assert 0 <= spare < n_groups
    least = -(-n_samples // widest)
    assert least <= n_groups <= 1.25 * least


@pytest.mark.parametrize(
    ("n_samples", "widest", "expected"), [(7, 4, (4, 2)), (8, 4, (4, 2)), (200, 64, (50, 4)), (1, 64, (1, 1))]
)
def test_groups_of_known_sizes(n_samples, widest, expected):
    assert group_width(n_samples, widest) == expected


@pytest.mark.parametrize("n_replicas", [2, 300])
def test_the_width_fits_the_cache(gaussian, n_replicas):
    sampler = NRPT(GaussianReference(1.0), geometric_schedule(n_replicas, 1e-3), MALA(0.1), 5)
    width = cache_width(sampler, gaussian)
    assert 32 <= width <= MAX_WIDTH
    assert width * n_replicas * 7 * 8 <= 1_000_000 or width == 32
    assert isinstance(width, int)
