import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cdsampler import LogDensity
from cdsampler.errors import InvalidInputError
from cdsampler.paths import AnnealingPath, FlatReference
from cdsampler.tuning import _reference_width as width_module
from cdsampler.tuning import minimise_skl

DIM, SIGMA, N = 5, 3.0, 4000


@pytest.fixture(scope="module")
def density():
    return LogDensity(lambda x: -0.5 * jnp.sum(x**2) / SIGMA**2, DIM)


def replicas(density, width):
    """Return exact draws of the reference and the target as the ends of a ladder of two."""
    normal = jax.random.normal(jax.random.key(0), (N, 2, DIM))
    positions = normal * jnp.array([width, SIGMA])[None, :, None]
    path = AnnealingPath(FlatReference(), density, jnp.zeros(DIM))
    points, _ = jax.vmap(jax.vmap(path.evaluate))(positions)
    return points


@pytest.mark.parametrize("width", [1.5, 3.0, 6.0])
def test_slope_is_that_of_two_gaussians(density, width):
    """Both terms are averages over N pairs of chi-square variables with variances of a few D r^±4."""
    points = replicas(density, width)
    slope = float(width_module._skl_slope(points, jnp.zeros(DIM), jnp.asarray(width)))
    ratio = SIGMA / width
    truth = DIM * (ratio**2 - ratio**-2)
    error = np.sqrt(8 * DIM * (DIM + 8) * (ratio**4 + ratio**-4) / N)
    assert abs(slope - truth) < 4 * error
    if width != SIGMA:
        # The score with the paper's factor, 1/t² instead of 1/t, is another slope.
        wrong = points._replace(target=points.target._replace(gradient=points.target.gradient * width))
        assert abs(float(width_module._skl_slope(wrong, jnp.zeros(DIM), jnp.asarray(width))) - truth) > 4 * error


@pytest.mark.parametrize("start", [1.0, 30.0])
def test_the_width_of_a_gaussian_is_found_from_either_side(density, start):
    search = minimise_skl(density, np.zeros(DIM), jax.random.key(1), width=start, n_replicas=4, n_rounds=24)
    assert abs(search.width - SIGMA) < 0.15 * SIGMA
    assert search.widths[0] == pytest.approx(start, rel=1e-6)
    assert int(search.evaluations.count) > 0


@pytest.mark.parametrize(("settings", "word"), [({"width": 0.0}, "width"), ({"width": 1.0, "n_rounds": 1}, "rounds")])
def test_bad_input_is_named(density, settings, word):
    with pytest.raises(InvalidInputError, match=word):
        minimise_skl(density, np.zeros(DIM), jax.random.key(0), **settings)
