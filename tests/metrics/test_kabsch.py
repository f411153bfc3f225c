import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cdsampler.errors import InvalidInputError
from cdsampler.metrics.kabsch import kabsch_distances, kabsch_wasserstein_1_and_2
from cdsampler.metrics.unlabelled import matched_rmsd, pair_distance_total_variation, sorted_radius_wasserstein_2

MIRROR = np.array([[1.0, 1.0, -1.0]])


def moved(x, rng):
    """Every configuration of x [n, p, 3] rotated and shifted by its own amount."""
    rotations = Rotation.from_quat(rng.standard_normal((len(x), 4))).as_matrix()
    return x @ rotations + rng.standard_normal((len(x), 1, 3))


def relabelled(x, rng):
    return np.stack([rng.permutation(configuration) for configuration in x])


def scipy_distances(x, y):
    x, y = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
    return np.array([[Rotation.align_vectors(a, b)[1] / np.sqrt(len(a)) for b in y] for a in x])


def squeezed(rng, n, scales):
    return rng.standard_normal((n, 7, 3)) * np.array(scales)


@pytest.mark.parametrize(
    "scales", [(1, 1, 1), (1, 1, 0), (1, 1, 1e-4), (1, 1e-4, 1e-4), (1, 1e-7, 0)], ids=lambda scales: str(scales)
)
@pytest.mark.filterwarnings("ignore:Optimal rotation is not uniquely")
def test_agrees_with_scipy(rng, scales):
    x, y = moved(squeezed(rng, 12, scales), rng), moved(squeezed(rng, 9, scales), rng)
    np.testing.assert_allclose(kabsch_distances(x, y), scipy_distances(x, y), atol=1e-7)


def test_more_than_a_tile_agrees_with_its_parts(rng):
    x, y = rng.standard_normal((300, 4, 3)), rng.standard_normal((520, 4, 3))
    whole = kabsch_distances(x, y)
    assert whole.shape == (300, 520)
    np.testing.assert_allclose(whole[250:, 500:], kabsch_distances(x[250:], y[500:]), atol=1e-12)


@pytest.mark.parametrize("particles", [1, 2, 3, 13, 200])
def test_moved_copies_are_at_distance_zero(rng, particles):
    x = rng.standard_normal((20, particles, 3))
    distances = kabsch_distances(x, moved(x, rng))
    assert np.isfinite(distances).all()
    np.testing.assert_allclose(np.diagonal(distances), 0, atol=1e-13)


@pytest.mark.parametrize("size", [1e-9, 1e-6, 1e-4, 1e-3, 1e-2])
def test_small_deviations_do_not_cancel(rng, size):
    # A breathing mode: about the centroid, a configuration scaled by 1 + size is at size times its radius.
    x = rng.standard_normal((10, 13, 3))
    x -= x.mean(axis=1, keepdims=True)
    radii = np.sqrt((x**2).sum(axis=2).mean(axis=1))
    observed = np.diagonal(kabsch_distances(x, moved((1 + size) * x, rng)))
    np.testing.assert_allclose(observed, size * radii, rtol=1e-6, atol=1e-14)


def test_collinear_and_coincident_particles():
    line = np.array([[[-1.0, 0, 0], [0, 0, 0], [1, 0, 0]]])
    longer = 2 * line[:, :, [1, 0, 2]]
    point = np.ones((1, 3, 3))
    # Along one axis the difference is ±1, 0, ±1: a mean square of 2/3.
    assert kabsch_distances(line, longer) == pytest.approx(np.sqrt(2 / 3))
    assert kabsch_distances(line, point) == pytest.approx(np.sqrt(2 / 3))
    assert kabsch_distances(point, point) == 0


def test_rotations_are_proper():
    # A chiral corner: its mirror image is apart, though one reflection would bring it onto itself.
    corner = np.array([[[0.0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3]]])
    image = corner * MIRROR
    assert kabsch_distances(corner, image)[0, 0] > 0.1
    np.testing.assert_allclose(kabsch_distances(corner, image), scipy_distances(corner, image), atol=1e-12)


def test_facing_a_mirror_image_with_a_double_root():
    # M has singular values (a, b, b) and a negative determinant: the two largest roots coincide.
    octahedron = np.concatenate([np.diag([2.0, 1, 1]), -np.diag([2.0, 1, 1])])[None]
    observed = kabsch_distances(octahedron, octahedron * MIRROR)
    # Least sum: |a|² + |b|² − 2 (8 + 2 − 2) = 24 − 16.
    assert observed == pytest.approx(np.sqrt(8 / 6), abs=1e-12)


def test_flat_configurations_and_float32_are_accepted(rng):
    x, y = rng.standard_normal((5, 4, 3)), rng.standard_normal((6, 4, 3))
    expected = kabsch_distances(x, y)
    np.testing.assert_array_equal(kabsch_distances(x.reshape(5, 12), y.reshape(6, 12)), expected)
    np.testing.assert_allclose(kabsch_distances(x.astype(np.float32), y.astype(np.float32)), expected, atol=1e-6)


def test_wasserstein_of_moved_copies_in_another_order_is_zero(rng):
    x, other = rng.standard_normal((2, 60, 5, 3))
    assert kabsch_wasserstein_1_and_2(x, rng.permutation(moved(x, rng))) == pytest.approx((0, 0), abs=1e-12)
    first, second = kabsch_wasserstein_1_and_2(x, other)
    assert 0.1 < first <= second


def test_wasserstein_of_single_configurations_is_their_distance(rng):
    x, y = rng.standard_normal((2, 1, 5, 3))
    distance = kabsch_distances(x, y)[0, 0]
    assert kabsch_wasserstein_1_and_2(x, y) == pytest.approx((distance, distance))


@pytest.mark.parametrize("particles", [2, 7, 13])
def test_matched_rmsd_finds_relabelled_copies(rng, particles):
    x = rng.standard_normal((20, particles, 3))
    copies = relabelled(moved(x, rng), rng)
    found = [matched_rmsd(a, b) for a, b in zip(x, copies, strict=True)]
    np.testing.assert_allclose(found, 0, atol=1e-12)


def test_matched_rmsd_is_at_most_the_labelled_one(rng):
    x, y = rng.standard_normal((2, 20, 8, 3))
    labelled = np.diagonal(kabsch_distances(x, y))
    found = np.array([matched_rmsd(a, b, random_starts=0) for a, b in zip(x, y, strict=True)])
    assert (found <= labelled + 1e-12).all()
    assert found.mean() < 0.9 * labelled.mean()
    again = [matched_rmsd(a, b, random_starts=0) for a, b in zip(x, y, strict=True)]
    np.testing.assert_array_equal(found, again)


def test_matched_rmsd_counts_mirror_images_only_on_request(rng):
    x = rng.standard_normal((13, 3))
    image = rng.permutation(x * MIRROR)
    assert matched_rmsd(x, image, reflections=True) == pytest.approx(0, abs=1e-12)
    assert matched_rmsd(x, image) > 0.05


def test_unlabelled_comparisons_are_invariant(rng):
    x, y = rng.standard_normal((2, 100, 6, 3))
    disguised = relabelled(moved(x * MIRROR, rng), rng)
    assert pair_distance_total_variation(x, disguised) == pytest.approx(0, abs=2e-3)  # a value on an edge may differ
    assert sorted_radius_wasserstein_2(x, disguised) == pytest.approx(0, abs=1e-12)
    assert pair_distance_total_variation(x, 2 * y) > 0.2
    assert sorted_radius_wasserstein_2(x, 2 * y) > 0.2


def test_known_unlabelled_values():
    short, long = np.zeros((2, 4, 2, 3))
    short[:, 1, 0], long[:, 1, 0] = 2, 6
    # Radii 1 against 3, for both particles.
    assert sorted_radius_wasserstein_2(short, long) == pytest.approx(2)
    assert pair_distance_total_variation(short, long) == 1
    half = np.concatenate([short[:2], long[:2]])
    assert pair_distance_total_variation(short, half) == pytest.approx(0.5)


def test_sorted_radii_bound_the_matched_rmsd(rng):
    x, y = rng.standard_normal((2, 30, 5, 3))
    for a, b in zip(x, y, strict=True):
        assert sorted_radius_wasserstein_2(a[None], b[None]) <= matched_rmsd(a, b, reflections=True) + 1e-12


def test_bad_input_is_refused(rng):
    good = rng.standard_normal((4, 2, 3))
    with pytest.raises(InvalidInputError, match=r"x has shape \(4, 5\)"):
        kabsch_distances(np.ones((4, 5)), good)
    with pytest.raises(InvalidInputError, match=r"y has shape \(4, 3, 2\)"):
        kabsch_distances(good, np.ones((4, 3, 2)))
    with pytest.raises(InvalidInputError, match="6 and 9 dimensions"):
        kabsch_distances(good, np.ones((4, 3, 3)))
    with pytest.raises(InvalidInputError, match="x: 1 of 4 rows"):
        kabsch_distances(np.where(np.arange(4)[:, None, None] == 2, np.nan, good), good)
    with pytest.raises(InvalidInputError, match="x has 4 rows and y has 3"):
        kabsch_wasserstein_1_and_2(good, good[:3])
    with pytest.raises(InvalidInputError, match="random_starts is -1"):
        matched_rmsd(good[0], good[0], random_starts=-1)
    with pytest.raises(InvalidInputError, match="number of particles is 1"):
        pair_distance_total_variation(good[:, :1], good[:, :1])
