"""For affine interpolants path coordinates and target coordinates are the same sampler, step by step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cdsampler.density import LogDensity
from cdsampler.errors import InvalidInputError
from cdsampler.interpolants import AutodiffInterpolant, Linear, Trigonometric, geometric_times, noise_variances
from cdsampler.kernels import HMC, MALA
from cdsampler.paths import GaussianReference, linear_schedule
from cdsampler.samplers import CDS, NRPT, Corrector, InverseMap, PathTransport, chain_keys, run_chunk

T0, N_CHAINS = 0.1, 32
TIMES = geometric_times(T0, 12)
VARIANCES = noise_variances(TIMES, 0.05, "linear")
STEP_SIZES = np.array([0.3, 0.4, 0.25, 0.2])
INTERPOLANTS = {"linear": Linear(), "trigonometric": Trigonometric()}


@pytest.fixture(scope="module")
def ring():
    """A curved density with a hard edge, so that integration steps are refused too."""
    return LogDensity(lambda y: jnp.where(y[1] < 1.5, -2 * (jnp.sqrt(jnp.sum(y**2) + 0.01) - 2) ** 2, -jnp.inf), 2)


@pytest.fixture(scope="module")
def start():
    keys = chain_keys(jax.random.key(4), np.arange(N_CHAINS))
    anchors = 0.5 * jax.random.normal(jax.random.key(5), (N_CHAINS, 2))
    return keys, anchors


def make(interpolant, *, in_path_coordinates, corrector=None, transport="sde"):
    """The same sampler in either kind of coordinates."""
    _, b = interpolant.coefficients(np.asarray(T0))
    steps = STEP_SIZES * (float(b) ** 2 if in_path_coordinates else 1.0)
    stage1 = NRPT(GaussianReference(1.0), linear_schedule(4), MALA(jnp.asarray(steps)), 15)
    general = AutodiffInterpolant(interpolant.forward, interpolant.inverse)
    return CDS(
        stage1,
        TIMES if transport == "sde" else T0,
        VARIANCES if transport == "sde" else None,
        interpolant=general if in_path_coordinates else interpolant,
        integrator="euler-maruyama",
        corrector=corrector,
        transport=transport,
    )


def both(interpolant, density, start, **settings):
    return [run_chunk(make(interpolant, in_path_coordinates=x, **settings), density, *start) for x in (True, False)]


@pytest.mark.parametrize(
    ("name", "has_corrector"),
    [
        ("linear", True),
        ("trigonometric", False),
        pytest.param("linear", False, marks=pytest.mark.slow),
        pytest.param("trigonometric", True, marks=pytest.mark.slow),
    ],
)
def test_the_sde_is_the_same_in_both_coordinates(ring, start, name, has_corrector):
    corrector = Corrector(HMC(0.2, 2), 2) if has_corrector else None
    in_x, in_y = both(INTERPOLANTS[name], ring, start, corrector=corrector)
    np.testing.assert_allclose(in_x.position, in_y.position, rtol=0, atol=1e-8)
    np.testing.assert_allclose(in_x.log_density, in_y.log_density, rtol=0, atol=1e-8)
    for path, target in zip(in_x.statistics, in_y.statistics, strict=True):
        for a, b in zip(jax.tree.leaves(path), jax.tree.leaves(target), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8)
    for a, b in zip(jax.tree.leaves(in_x.evaluations), jax.tree.leaves(in_y.evaluations), strict=True):
        np.testing.assert_array_equal(a, b)
    # The edge was met, and the chains differ.
    assert np.sum(in_y.statistics[1].refused) > 0
    assert np.std(in_y.position[:, 0, 0]) > 0.5
    if has_corrector:
        assert np.all(in_y.statistics[1].acceptance > 0.3)


@pytest.mark.parametrize("name", INTERPOLANTS)
def test_the_inverse_map_is_the_same_in_both_coordinates(ring, start, name):
    in_x, in_y = both(INTERPOLANTS[name], ring, start, transport="inverse-map")
    np.testing.assert_allclose(in_x.position, in_y.position, rtol=0, atol=1e-8)
    np.testing.assert_allclose(in_x.log_density, in_y.log_density, rtol=0, atol=1e-8)


def test_the_sde_moves_what_the_inverse_map_leaves(ring, start):
    """A control: the two transports do differ."""
    moved = run_chunk(make(Linear(), in_path_coordinates=False), ring, *start)
    mapped = run_chunk(make(Linear(), in_path_coordinates=False, transport="inverse-map"), ring, *start)
    assert np.mean(np.abs(moved.position - mapped.position)) > 0.05


def test_transport_cannot_come_first(ring, start):
    for stage in (PathTransport(Linear(), TIMES, VARIANCES), InverseMap(Linear(), T0)):
        with pytest.raises(InvalidInputError, match="can't be the first"):
            run_chunk(stage, ring, *start)
