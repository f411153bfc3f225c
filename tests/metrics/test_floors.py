import numpy as np
import pytest

from cdsampler.errors import InvalidInputError
from cdsampler.metrics import Floor, one_sample_floor, two_sample_floor, wasserstein


def normals(seed, n):
    return np.random.default_rng(seed).standard_normal((n, 1))


def gap_of_means(x, y):
    return float(abs(x.mean() - y.mean()))


def test_two_sample_floor_has_its_theoretical_value(rng):
    # The difference of two means of n normals is N(0, 2/n): E|·| = √(4 / (π n)).
    floor = two_sample_floor(gap_of_means, normals, 50, 500, rng)
    assert floor.repeats == 500
    assert abs(floor.mean - np.sqrt(4 / (np.pi * 50))) < 4 * floor.std / np.sqrt(500)


def test_one_sample_floor_has_its_theoretical_value(rng):
    floor = one_sample_floor(lambda x: float(abs(x.mean())), normals, 50, 500, rng)
    assert abs(floor.mean - np.sqrt(2 / (np.pi * 50))) < 4 * floor.std / np.sqrt(500)


def test_an_exact_sample_reads_about_its_floor(rng):
    floor = two_sample_floor(wasserstein, normals, 400, 30, rng)
    readings = [wasserstein(normals(s, 400), normals(s + 1, 400)) for s in range(0, 60, 2)]
    assert np.mean(readings) / floor.mean == pytest.approx(1, abs=0.3)


def test_a_pair_is_the_halves_of_one_draw_and_seeds_differ(rng):
    seeds, pairs = [], []

    def record(seed, n):
        seeds.append((seed, n))
        return normals(seed, n)

    def keep(x, y):
        pairs.append((x, y))
        return 0.0

    two_sample_floor(keep, record, 5, 10, rng)
    assert len(set(seeds)) == 10
    assert all(isinstance(seed, int) and 0 <= seed < 2**31 and n == 10 for seed, n in seeds)
    for (seed, n), halves in zip(seeds, pairs, strict=True):
        np.testing.assert_array_equal(np.concatenate(halves), normals(seed, n))


def test_floors_of_a_finite_pool_compare_disjoint_halves(rng):
    pool = np.arange(20.0)[:, None]
    common = lambda x, y: float(len(np.intersect1d(x, y)))  # noqa: E731
    sample = lambda seed, n: np.random.default_rng(seed).permutation(pool)[:n]  # noqa: E731
    assert two_sample_floor(common, sample, 10, 20, rng).mean == 0


def test_one_repeat_has_no_spread(rng):
    floor = two_sample_floor(gap_of_means, normals, 5, 1, rng)
    assert np.isnan(floor.std)
    assert floor.repeats == 1


def test_same_generator_state_gives_the_same_floor():
    first, second = (two_sample_floor(gap_of_means, normals, 20, 5, np.random.default_rng(1)) for _ in range(2))
    assert isinstance(first, Floor)
    assert first == second


@pytest.mark.parametrize(("n", "repeats"), [(0, 3), (5, 0)])
def test_bad_sizes_are_refused(rng, n, repeats):
    with pytest.raises(InvalidInputError, match="at least 1"):
        two_sample_floor(gap_of_means, normals, n, repeats, rng)
    with pytest.raises(InvalidInputError, match="at least 1"):
        one_sample_floor(lambda x: 0.0, normals, n, repeats, rng)
