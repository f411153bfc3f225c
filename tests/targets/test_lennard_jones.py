import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import ortho_group

from cdsampler.errors import InvalidInputError
from cdsampler.targets import LennardJones, icosahedron, lennard_jones
from cdsampler.targets._lennard_jones import SHORT_RANGE, pair_energy
from cdsampler.targets._zero_centroid import from_free, to_free
from cdsampler.tuning import find_mode

SIZES = [13, 55]


def configurations(n_particles, n, seed=0):
    noise = np.random.default_rng(seed).normal(scale=0.03, size=(n, n_particles, 3))
    return 1.02 * icosahedron(n_particles) + noise


@eqx.filter_jit
def coordinates(target, positions):
    return jax.vmap(target.from_positions)(jnp.asarray(positions))


# Compiled once for each target and batch, and shared between tests.
@eqx.filter_jit
def evaluate(target, q):
    return jax.vmap(target.value_and_gradient)(q)


@eqx.filter_jit
def autodiff(target, q):
    return jax.vmap(jax.value_and_grad(target.log_density))(q)


@jax.jit
def pair(r):
    return pair_energy(r * r)[0]


@pytest.mark.parametrize("n_particles", SIZES)
def test_energy_is_that_of_a_double_loop(n_particles):
    target = lennard_jones(n_particles)
    assert (target.name, target.dim) == (f"lj-{n_particles}", 3 * n_particles - 3)
    x = configurations(n_particles, 6)
    expected = []
    for one in x:
        energy = 0.0
        for i in range(n_particles):
            energy += 0.5 * np.sum((one[i] - one.mean(axis=0)) ** 2)
            for j in range(n_particles):
                if i != j:  # each pair twice
                    r = np.linalg.norm(one[i] - one[j])
                    assert r > SHORT_RANGE
                    energy += r**-12 - 2 * r**-6
        expected.append(-energy)
    q = coordinates(target, x)
    np.testing.assert_allclose(autodiff(target, q)[0], expected, rtol=1e-12)
    np.testing.assert_allclose(evaluate(target, q)[0], expected, rtol=1e-12)


@pytest.mark.parametrize("n_particles", [3, *SIZES])
@pytest.mark.parametrize("is_short", [False, True])
def test_gradient_is_that_of_autodiff(n_particles, is_short):
    target = LennardJones(n_particles)
    # So dense a ball of normal points has many pairs on either side of the short range.
    scale = 0.5 if is_short else 5.0
    q = jnp.asarray(scale * np.random.default_rng(1).normal(size=(6, target.dim)))
    value, gradient = evaluate(target, q)
    expected, slope = autodiff(target, q)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(gradient, slope, rtol=1e-10, atol=1e-12 * np.abs(slope).max())


def test_batches_of_any_shape_give_the_numbers_of_single_points():
    target = lennard_jones(13)
    q = coordinates(target, configurations(13, 6))
    single = jax.jit(target.value_and_gradient)
    values, gradients = map(np.array, zip(*map(single, q), strict=True))
    flat = evaluate(target, q)
    nested = jax.jit(jax.vmap(jax.vmap(target.value_and_gradient)))(q.reshape(2, 3, -1))
    deep = jax.jit(jax.vmap(jax.vmap(jax.vmap(target.value_and_gradient))))(q.reshape(2, 1, 3, -1))
    other_axis = jax.jit(jax.vmap(target.value_and_gradient, in_axes=1))(q.T)
    for value, gradient in (flat, nested, deep, other_axis):
        np.testing.assert_allclose(value.reshape(-1), values, rtol=1e-12)
        np.testing.assert_allclose(gradient.reshape(6, -1), gradients, rtol=1e-9, atol=1e-10)
    assert nested[0].shape == (2, 3)


def test_one_configuration_in_the_short_range_leaves_the_others_alone():
    target = lennard_jones(13)
    x = configurations(13, 6)
    x[2, 3] = x[2, 4] + [0.3, 0.0, 0.0]
    q = coordinates(target, x)
    values, gradients = evaluate(target, q)
    expected, slopes = autodiff(target, q)
    assert values[2] < -100
    assert values[jnp.asarray([0, 1, 3, 4, 5])].min() > 60
    np.testing.assert_allclose(values, expected, rtol=1e-12)
    np.testing.assert_allclose(gradients, slopes, rtol=1e-9, atol=1e-9)


def test_pair_energy_is_continued_smoothly():
    r = SHORT_RANGE
    bare = {
        "value": r**-12 - 2 * r**-6,
        "slope": -12 * r**-13 + 12 * r**-7,
        "curvature": 156 * r**-14 - 84 * r**-8,
    }
    below, above = r * (1 - 1e-9), r * (1 + 1e-9)
    for name, function in (("value", pair), ("slope", jax.grad(pair)), ("curvature", jax.grad(jax.grad(pair)))):
        # Over 2e-9 r each changes by about 15 times as much, relatively.
        np.testing.assert_allclose([function(below), function(above)], bare[name], rtol=1e-7, err_msg=name)
    grid = jnp.linspace(1e-5, r, 400)
    assert np.all(np.diff(pair(grid)) < 0)
    assert np.all(jax.vmap(jax.grad(pair))(grid) < 0)
    assert pair(0.0) > pair(r)
    assert np.isfinite(pair(0.0))


def test_returned_slope_is_the_derivative():
    r = jnp.linspace(0.05, 3, 200)
    _, slope = pair_energy(r * r)
    np.testing.assert_allclose(slope * r, jax.vmap(jax.grad(pair))(r), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_coincident_particles_have_a_finite_value_and_gradient(dtype):
    target = lennard_jones(13)
    density = target.density(dtype)
    x = configurations(13, 6)
    x[0, 1] = x[0, 2]
    x[1] = 0  # all at one point
    q = coordinates(target, x).astype(dtype)
    values, gradients, counts = jax.jit(jax.vmap(density.value_and_gradient))(q)
    assert np.all(np.isfinite(values))
    assert np.all(np.isfinite(gradients))
    assert int(counts.nan.sum()) == int(counts.neg_inf.sum()) == 0
    assert np.all(np.isfinite(autodiff(target, q)[1]))


@pytest.mark.parametrize("n_particles", SIZES)
def test_coordinates_are_isometric(n_particles):
    target = lennard_jones(n_particles)
    q = jnp.asarray(np.random.default_rng(2).normal(size=(2, target.dim)))
    x = jax.jit(jax.vmap(target.to_positions))(q)
    np.testing.assert_allclose(np.linalg.norm(x[0] - x[1]), np.linalg.norm(q[0] - q[1]), rtol=1e-12)
    np.testing.assert_allclose(x.mean(axis=1), 0, atol=1e-14)
    np.testing.assert_allclose(coordinates(target, x), q, atol=1e-13)
    np.testing.assert_allclose(coordinates(target, x + jnp.asarray([[[3.0, -1, 2]]])), q, atol=1e-12)
    jacobian = np.asarray(jax.jacobian(target.to_positions)(q[0])).reshape(3 * n_particles, target.dim)
    np.testing.assert_allclose(jacobian.T @ jacobian, np.eye(target.dim), atol=1e-13)


@pytest.mark.parametrize("n", [2, 3, 8])
def test_to_free_inverts_from_free_and_is_its_transpose(n):
    free = jnp.asarray(np.random.default_rng(n).normal(size=(n - 1, 2)))
    np.testing.assert_allclose(to_free(from_free(free)), free, atol=1e-14)
    points = jnp.asarray(np.random.default_rng(n + 1).normal(size=(n, 2)))
    centred = points - points.mean(axis=0, keepdims=True)
    _, pull = jax.vjp(from_free, free)
    np.testing.assert_allclose(pull(centred)[0], to_free(points), atol=1e-13)


@pytest.mark.parametrize("n_particles", SIZES)
def test_rotations_reflections_and_permutations_change_nothing(n_particles):
    target = lennard_jones(n_particles)
    rng = np.random.default_rng(3)
    x = configurations(n_particles, 1)[0]
    turn = ortho_group.rvs(3, random_state=4)
    turned = np.stack([x, x @ turn, x @ turn @ np.diag([1, 1, -1]), rng.permutation(x), x + 5.0, 1.02 * x])
    values = np.asarray(evaluate(target, coordinates(target, turned))[0])
    np.testing.assert_allclose(values[:-1], values[0], rtol=1e-12)
    assert abs(values[-1] - values[0]) > 0.1  # a stretch does


# Over particles of the pair sum alone, doubled, depths would be 88.65 and 558.50 (Wales and Doye 1997).
@pytest.mark.parametrize(("n_particles", "expected", "bare"), [(13, 83.0896, 44.326801), (55, 491.64, 279.248470)])
def test_icosahedra_are_the_known_modes_with_the_trap(n_particles, expected, bare):
    target = lennard_jones(n_particles)
    start = np.asarray(coordinates(target, icosahedron(n_particles)[None])[0])
    start = start + 0.02 * np.random.default_rng(5).normal(size=target.dim)
    mode = find_mode(target.density(), start)
    np.testing.assert_allclose(mode.log_density, expected, atol=5e-3 if n_particles == 55 else 5e-5)
    trap = 0.5 * np.sum(mode.position**2)
    # The trap shifts the minimum, so that the pair sum there is just above its own least value.
    assert 0 < 2 * bare - (mode.log_density + trap) < 0.02 * bare
    assert trap > 5


@pytest.mark.parametrize("n_particles", SIZES)
def test_single_precision_is_near_double(n_particles):
    target = lennard_jones(n_particles)
    q = coordinates(target, configurations(n_particles, 6)).astype("float32")
    low, high = evaluate(target, q), evaluate(target, q.astype("float64"))
    assert low[0].dtype == low[1].dtype == jnp.float32
    x = from_free(np.asarray(q[0], "float64").reshape(-1, 3))
    r = np.linalg.norm(np.asarray(x[:, None] - x[None]), axis=-1) + 100 * np.eye(n_particles)
    # Positions are right to a few roundings of the largest; a pair's r⁻¹² then to twelve times as much, relatively.
    rounding = 4 * np.finfo("float32").eps * np.abs(x).max()
    np.testing.assert_allclose(low[0], high[0], rtol=0, atol=12 * rounding * np.sum(r**-13 + r**-7))
    np.testing.assert_allclose(low[1], high[1], rtol=0, atol=12 * 13 * rounding * np.sum(r**-14, axis=1).max())


@pytest.mark.parametrize("n", [1, 2, 12, -3, 13.0, True])
def test_other_numbers_of_particles_are_refused(n):
    with pytest.raises(InvalidInputError, match=f"odd and at least 3, got {n}"):
        LennardJones(n)


def test_only_published_sizes_have_a_name():
    with pytest.raises(InvalidInputError, match="13 or 55 particles, got 15"):
        lennard_jones(15)
