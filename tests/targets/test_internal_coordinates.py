import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cdsampler.errors import InvalidInputError
from cdsampler.targets._internal_coordinates import InternalCoordinates, ZMatrix, winding_log_window

DIPEPTIDE = [(0, 1), (1, 2), (1, 3), (1, 4), (4, 5), (4, 6), (6, 7), (6, 8), (8, 9), (8, 10), (8, 14), (10, 11)]
DIPEPTIDE += [(10, 12), (10, 13), (14, 15), (14, 16), (16, 17), (16, 18), (18, 19), (18, 20), (18, 21)]
ROTATABLE = [(1, 4), (4, 6), (6, 8), (8, 10), (8, 14), (14, 16), (16, 18)]


def random_tree(n_atoms):
    rng = np.random.default_rng(n_atoms)
    return [(int(rng.integers(k)), k) for k in range(1, n_atoms)]


MOLECULES = {
    "chain": [(2, 0), (0, 3), (3, 1)],
    "star": [(4, 0), (4, 1), (4, 2), (4, 3)],
    "tree": random_tree(13),
    "ring with a tail": [(0, 1), (1, 2), (2, 3), (3, 0), (3, 4), (4, 5)],
    "dipeptide": DIPEPTIDE,
}


def example_of(bonds, seed=0):
    return np.random.default_rng(seed).normal(scale=0.1, size=(1 + max(map(max, bonds)), 3))


def point_of(coordinates, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=coordinates.dim))


@eqx.filter_jit
def place(coordinates, q):
    return coordinates.to_positions(q)


@eqx.filter_jit
def measure(coordinates, x):
    return coordinates.from_positions(x)


def distances(x):
    return np.linalg.norm(np.asarray(x)[:, None] - np.asarray(x)[None], axis=-1)


@pytest.fixture(params=MOLECULES, scope="module")
def molecule(request):
    bonds = MOLECULES[request.param]
    return InternalCoordinates(bonds, example_of(bonds))


@pytest.fixture(scope="module")
def dipeptide():
    return InternalCoordinates(DIPEPTIDE, example_of(DIPEPTIDE))


def test_coordinates_survive_the_round_trip(molecule):
    q = point_of(molecule)
    x, log_jacobian = place(molecule, q)
    assert (x.shape, q.shape, log_jacobian.shape) == ((molecule.n_atoms, 3), (3 * molecule.n_atoms - 6,), ())
    np.testing.assert_allclose(x.mean(axis=0), 0, atol=1e-14)
    *_, torsions = molecule.split(q)
    assert np.all(np.abs(torsions) < np.pi)
    np.testing.assert_allclose(measure(molecule, x), q, atol=1e-11)


@pytest.mark.parametrize("name", MOLECULES)
def test_positions_survive_the_round_trip_up_to_a_rigid_motion(name):
    bonds = MOLECULES[name]
    coordinates = InternalCoordinates(bonds, example_of(bonds))
    for seed in (0, 1):  # the example itself, and another
        before = example_of(bonds, seed)
        q = measure(coordinates, jnp.asarray(before))
        after = np.asarray(place(coordinates, q)[0])
        np.testing.assert_allclose(distances(after), distances(before), atol=1e-12)
        if seed == 0:
            np.testing.assert_allclose(q, 0, atol=1e-12)
        # A proper rotation, so handedness is kept everywhere.
        rotation, *_ = np.linalg.lstsq(before - before.mean(axis=0), after, rcond=None)
        np.testing.assert_allclose(np.linalg.det(rotation), 1, rtol=1e-9)


def test_a_mirror_image_has_other_coordinates_and_the_other_handedness(dipeptide):
    def handedness(x):  # of the substituents of atom 8
        return np.sign(np.linalg.det(np.asarray(x)[np.array([6, 10, 14])] - np.asarray(x)[8]))

    x = jnp.asarray(example_of(DIPEPTIDE))
    mirrored = x * jnp.array([[1.0, 1.0, -1.0]])
    q = measure(dipeptide, mirrored)
    bonds, angles, torsions = dipeptide.split(q)
    np.testing.assert_allclose(jnp.concatenate([bonds, angles]), 0, atol=1e-12)
    assert np.max(np.abs(torsions)) > 0.1
    assert handedness(place(dipeptide, jnp.zeros(60))[0]) == handedness(x)
    assert handedness(place(dipeptide, q)[0]) == handedness(mirrored) == -handedness(x)


def test_coordinates_are_the_named_ones(dipeptide):
    q = point_of(dipeptide)
    x = np.asarray(place(dipeptide, q)[0])
    z = dipeptide.zmatrix
    bonds, bends, turns = dipeptide.split(q)
    length = np.linalg.norm(x[list(z.order[1:])] - x[list(z.parent)], axis=1)
    np.testing.assert_allclose(length, dipeptide.bonds * jnp.exp(bonds), rtol=1e-12)
    for row in range(3, 22):
        atom, a, b, c = z.order[row], z.parent[row - 1], z.axis[row - 2], z.third[row - 3]
        u, v, w = x[atom] - x[a], x[b] - x[a], x[c] - x[b]
        angle = np.arccos(u @ v / np.linalg.norm(u) / np.linalg.norm(v))
        half = np.tan(dipeptide.angles[row - 2] / 2) * np.exp(bends[row - 2])
        np.testing.assert_allclose(angle, 2 * np.arctan(half), rtol=1e-9)
        # The textbook dihedral of c-b-a-atom: IUPAC sign, zero when cis.
        first, second = np.cross(-w, -v), np.cross(-v, u)
        torsion = np.arctan2(np.linalg.norm(v) * (-w @ second), first @ second)
        difference = torsion - dipeptide.torsions[row - 3] - turns[row - 3]
        np.testing.assert_allclose(np.cos(difference), 1, atol=1e-12)


def test_torsions_are_periodic_and_come_back_wrapped(dipeptide):
    q = point_of(dipeptide)
    n_turns = np.random.default_rng(1).integers(-3, 4, 19)
    wound = q.at[41:].add(jnp.asarray(2 * np.pi * n_turns))
    (x, log_jacobian), (y, same) = place(dipeptide, q), place(dipeptide, wound)
    np.testing.assert_allclose(y, x, atol=1e-13)
    assert log_jacobian == same
    np.testing.assert_allclose(measure(dipeptide, y), q, atol=1e-11)


# --- volume -----------------------------------------------------------------------------------------------------


@eqx.filter_jit
def jacobian(coordinates, q):
    return jax.jacfwd(lambda p: coordinates.to_positions(p)[0])(q)


def log_volume(coordinates, q):
    """Return log|det| of (q, rotation about the first atom, its translation) -> x, at no rotation or translation."""
    x = np.asarray(place(coordinates, q)[0])
    inner = np.asarray(jacobian(coordinates, q)).reshape(x.size, -1)
    spins = np.stack([np.cross(axis, x - x[0]).reshape(-1) for axis in np.eye(3)], axis=1)
    shifts = np.tile(np.eye(3), (coordinates.n_atoms, 1))
    return np.linalg.slogdet(np.concatenate([inner, spins, shifts], axis=1))[1]


def test_log_jacobian_is_the_volume_element(molecule):
    for seed in range(3):
        q = point_of(molecule, seed)
        np.testing.assert_allclose(place(molecule, q)[1], log_volume(molecule, q), rtol=1e-10)


def test_a_jacobian_without_the_sines_would_be_noticed(dipeptide):
    def without_sines(q):
        _, bends, _ = dipeptide.split(q)
        half = jnp.tan(dipeptide.angles / 2) * jnp.exp(bends)
        return place(dipeptide, q)[1] - jnp.sum(jnp.log(2 * half / (1 + half**2)))

    p, q = point_of(dipeptide, 0), point_of(dipeptide, 1)
    wrong = without_sines(p) - without_sines(q) - log_volume(dipeptide, p) + log_volume(dipeptide, q)
    assert abs(wrong) > 0.1


# --- one soft torsion for each rotatable bond -------------------------------------------------------------------


def proper_torsions(z):
    """Return the index of the proper torsion about each bond that has one."""
    return {
        tuple(sorted((z.parent[row - 1], z.axis[row - 2]))): row - 3
        for row in range(3, len(z.order))
        if z.is_proper[row - 3]
    }


def test_each_rotatable_bond_has_one_proper_torsion_and_others_are_of_siblings(dipeptide):
    z = dipeptide.zmatrix
    assert sorted(proper_torsions(z)) == ROTATABLE
    assert sum(z.is_proper) == len(ROTATABLE)
    for row in range(3, 22):
        a, b, c = z.parent[row - 1], z.axis[row - 2], z.third[row - 3]
        for bond in ((z.order[row], a), (a, b), (b, c) if z.is_proper[row - 3] else (a, c)):
            assert tuple(sorted(bond)) in DIPEPTIDE


@pytest.mark.parametrize("bond", ROTATABLE)
def test_a_proper_torsion_turns_one_side_of_its_bond_as_a_whole(dipeptide, bond):
    index = proper_torsions(dipeptide.zmatrix)[bond]
    q = point_of(dipeptide)
    before = distances(place(dipeptide, q)[0])
    after = distances(place(dipeptide, q.at[41 + index].add(0.9))[0])
    side = {bond[1]}
    for _ in range(22):
        side |= {k for pair in DIPEPTIDE if pair != bond and side & set(pair) for k in pair}
    is_beyond = np.isin(np.arange(22), list(side))
    same = is_beyond[:, None] == is_beyond[None]
    np.testing.assert_allclose(after[same], before[same], atol=1e-12)
    assert np.max(np.abs(after - before)[~same]) > 0.01


def test_the_order_depends_on_bonds_alone_and_is_hashable():
    z = ZMatrix.from_bonds(DIPEPTIDE, 22)
    assert z == ZMatrix.from_bonds(np.array(DIPEPTIDE)[::-1, ::-1], 22)
    assert len({z, ZMatrix.from_bonds(DIPEPTIDE, 22)}) == 1
    assert sorted(z.order) == list(range(22))
    assert len(z.levels) == 4


# --- derivatives ------------------------------------------------------------------------------------------------


def test_derivatives_of_first_and_second_order():
    bonds = MOLECULES["tree"]
    coordinates = InternalCoordinates(bonds, example_of(bonds))
    rng = np.random.default_rng(2)
    weights = jnp.asarray(rng.normal(size=(13, 3)))
    q, direction = 0.5 * point_of(coordinates), jnp.asarray(rng.normal(size=coordinates.dim))

    def weighted(q):
        return jnp.sum(weights * coordinates.to_positions(q)[0])

    # Forwards over backwards: one program has both modes and both orders.
    @jax.jit
    def derivatives(q):
        (value, gradient), (slope, curvature) = jax.jvp(jax.value_and_grad(weighted), (q,), (direction,))
        return value, gradient, slope, curvature

    _, gradient, slope, curvature = derivatives(q)
    step = 1e-5
    above, below = derivatives(q + step * direction), derivatives(q - step * direction)
    np.testing.assert_allclose(slope, gradient @ direction, rtol=1e-10)
    np.testing.assert_allclose(slope, (above[0] - below[0]) / (2 * step), rtol=1e-6)
    scale = np.abs(curvature).max()
    np.testing.assert_allclose(curvature, (above[1] - below[1]) / (2 * step), rtol=1e-6, atol=1e-6 * scale)


@pytest.mark.parametrize("size", [40.0, -40.0])
def test_gradient_is_finite_where_the_molecule_is_folded_up(dipeptide, size):
    q = jnp.zeros(60).at[21:41].set(size)  # every angle 0 or π to machine precision

    def density(q):
        x, log_jacobian = place(dipeptide, q)
        return jnp.sum(x**2) + log_jacobian

    value, gradient = jax.value_and_grad(density)(q)
    assert np.isfinite(value)
    assert np.all(np.isfinite(gradient))


def test_single_precision_stays_single(dipeptide):
    q = point_of(dipeptide)
    batch = jnp.stack([q, 0.5 * q])
    exact, _ = jax.vmap(lambda q: place(dipeptide, q))(batch)
    x, log_jacobian = jax.vmap(lambda q: place(dipeptide, q))(batch.astype(jnp.float32))
    assert x.dtype == log_jacobian.dtype == measure(dipeptide, x[0]).dtype == jnp.float32
    np.testing.assert_allclose(x, exact, atol=1e-4)


# --- window of torsions -----------------------------------------------------------------------------------------

SPREADS = [0.05, 0.5, 1.5, 4.0, 20.0]


def window(torsions, spread):
    return jnp.exp(jax.vmap(lambda t: winding_log_window(t[None], spread))(torsions))


@pytest.mark.parametrize("spread", SPREADS)
def test_windows_of_all_turns_add_up_to_one(spread):
    angles = np.array([-np.pi, -3.0, -0.1, 0.0, 1.0, np.pi, 40.0])
    turns = 2 * np.pi * np.arange(-60, 61)
    weights = window(jnp.asarray(angles[:, None] + turns[None]).reshape(-1), spread).reshape(7, -1)
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize("spread", [0.5, 1.5, 4.0])
def test_integral_over_the_line_is_that_over_the_circle(spread):
    def periodic(t):
        return np.exp(np.cos(t) + 0.5 * np.sin(2 * t))

    circle = np.linspace(-np.pi, np.pi, 1001)
    line = np.linspace(-60, 60, 60001)
    on_line = np.trapezoid(periodic(line) * np.asarray(window(jnp.asarray(line), spread)), line)
    np.testing.assert_allclose(on_line, np.trapezoid(periodic(circle), circle), rtol=1e-10)


@pytest.mark.parametrize("spread", SPREADS)
def test_window_is_smooth_where_the_angle_wraps(spread):
    near = jnp.array([np.pi - 1e-9, np.pi + 1e-9, 3 * np.pi - 1e-9, 3 * np.pi + 1e-9])
    value, slope = jax.vmap(jax.value_and_grad(lambda t: winding_log_window(t[None], spread)))(near)
    curvature = 1e-8 * (1 + 10 / spread**4)
    np.testing.assert_allclose(value[::2], value[1::2], atol=curvature)
    np.testing.assert_allclose(slope[::2], slope[1::2], atol=10 * curvature)


def test_windows_of_several_torsions_multiply_and_are_stable_far_out():
    torsions = jnp.array([0.3, -2.0, 500.0])
    value, slope = jax.value_and_grad(winding_log_window)(torsions, 0.7)
    parts = [winding_log_window(t[None], 0.7) for t in torsions]
    np.testing.assert_allclose(value, sum(parts), rtol=1e-13)
    assert np.all(np.isfinite(slope))
    single = winding_log_window(torsions.astype(jnp.float32), 0.7)
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, value, rtol=1e-5)


# --- errors -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bonds", "n_atoms", "message"),
    [
        ([(0, 1), (1, 2)], 3, "at least 4 atoms, and the molecule has 3"),
        ([(0, 1), (1, 2), (2, 3)], 5, "to atom 4"),
        ([(0, 1), (1, 2), (3, 4)], 5, "to atom 3"),
        ([(0, 1), (1, 2), (2, 4)], 4, r"\(2, 4\)"),
        ([(0, 1), (1, 2), (-1, 3)], 4, r"\(-1, 3\)"),
        ([(0, 1), (1, 2), (2, 2)], 4, r"\(2, 2\)"),
        (np.zeros((3, 3), int), 4, "pairs"),
        (np.zeros((3, 2)), 4, "pairs"),
    ],
)
def test_bad_bonds_are_named(bonds, n_atoms, message):
    with pytest.raises(InvalidInputError, match=message):
        ZMatrix.from_bonds(bonds, n_atoms)


@pytest.mark.parametrize(
    ("example", "message"),
    [
        (np.zeros(12), "shape"),
        (np.array([[0.0, 0, 0], [1, 0, 0], [1, np.nan, 0], [1, 1, 1]]), "atom 2"),
        (np.array([[0.0, 0, 0], [1, 0, 0], [1, 0, 0], [1, 1, 1]]), "coincide"),
        (np.array([[0.0, 0, 0], [1, 0, 0], [2, 0, 0], [2, 1, 1]]), "on a line"),
        (np.array([[0.0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 0]]), "on a line"),
    ],
)
def test_bad_examples_are_named(example, message):
    with pytest.raises(InvalidInputError, match=message):
        InternalCoordinates([(0, 1), (1, 2), (2, 3)], example)


@pytest.mark.parametrize("spread", [0.0, -1.0, np.inf, np.nan])
def test_bad_spread_is_an_error(spread):
    with pytest.raises(InvalidInputError, match="spread"):
        winding_log_window(jnp.zeros(2), spread)
