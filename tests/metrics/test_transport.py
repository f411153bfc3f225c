from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance

from cdsampler.errors import InvalidInputError
from cdsampler.metrics import energy_wasserstein_1, wasserstein, wasserstein_1_and_2


@pytest.mark.parametrize("dim", [1, 2, 5])
@pytest.mark.parametrize("order", [1, 1.5, 2, 3])
def test_shifted_copy_is_at_the_length_of_the_shift(rng, dim, order):
    x = rng.standard_normal((200, dim))
    shift = rng.standard_normal(dim)
    assert wasserstein(x, rng.permutation(x + shift), order) == pytest.approx(np.linalg.norm(shift))


def test_order_one_in_one_dimension_agrees_with_scipy(rng):
    x, y = rng.standard_normal(300), 2 * rng.standard_normal(300) + 1
    assert wasserstein(x, y, 1) == pytest.approx(wasserstein_distance(x, y))


def test_one_dimension_by_sorting_agrees_with_the_assignment(rng):
    x, y = rng.standard_normal(100), rng.standard_normal(100) ** 3
    on_a_line = np.zeros((100, 2)), np.zeros((100, 2))
    on_a_line[0][:, 1], on_a_line[1][:, 1] = x, y
    for order in (1, 2):
        assert wasserstein(x, y, order) == pytest.approx(wasserstein(*on_a_line, order))


def test_gaussians_in_one_dimension_approach_the_closed_form(rng):
    x, y = rng.standard_normal(200_000), 3 * rng.standard_normal(200_000) + 1
    # W2² = (difference of means)² + (difference of scales)² = 1 + 4
    assert wasserstein(x, y) == pytest.approx(np.sqrt(5), rel=0.01)


@pytest.mark.parametrize("order", [1, 2])
def test_small_case_agrees_with_all_permutations(rng, order):
    x, y = rng.standard_normal((6, 3)), rng.standard_normal((6, 3))
    totals = [(np.linalg.norm(x - y[list(p)], axis=1) ** order).mean() for p in permutations(range(6))]
    assert wasserstein(x, y, order) == pytest.approx(min(totals) ** (1 / order))


def test_cost_of_order_two_is_squared():
    # Moves of length 1 and 3: mean 2, root mean square √5.
    x = np.array([[0.0, 0.0], [100.0, 0.0]])
    y = np.array([[1.0, 0.0], [100.0, 3.0]])
    assert wasserstein(x, y, 1) == pytest.approx(2)
    assert wasserstein(x, y, 2) == pytest.approx(np.sqrt(5))


def test_each_order_has_its_own_plan():
    # One move of 2 and one of 0 beat two moves of √1.25 at plain distance, and lose to them squared.
    x = np.array([[0.0, 0.0], [1.0, 0.5]])
    y = np.array([[1.0, 0.5], [2.0, 0.0]])
    assert wasserstein_1_and_2(x, y) == pytest.approx((1, np.sqrt(1.25)))


@given(seed=st.integers(0, 2**31), dim=st.integers(1, 4), n=st.integers(1, 30))
@settings(max_examples=30, deadline=None)
def test_metric_properties(seed, dim, n):
    rng = np.random.default_rng(seed)
    x, y, z = rng.standard_normal((3, n, dim))
    first, second = wasserstein_1_and_2(x, y)
    assert first <= second + 1e-12
    assert (first, second) == pytest.approx((wasserstein(x, y, 1), wasserstein(x, y, 2)))
    assert wasserstein(y, x) == pytest.approx(second)
    assert wasserstein(x, x[::-1]) == pytest.approx(0, abs=1e-12)
    assert second <= wasserstein(x, z) + wasserstein(z, y) + 1e-12


def test_unequal_sizes_are_refused_with_both_sizes_and_a_remedy(rng):
    with pytest.raises(InvalidInputError, match=r"7 rows and y has 5.*subsample of 5"):
        wasserstein(rng.standard_normal((7, 2)), rng.standard_normal((5, 2)))


@pytest.mark.parametrize("order", [0.5, 0, -1, np.inf, np.nan])
def test_order_below_one_is_refused(order):
    with pytest.raises(InvalidInputError, match="order"):
        wasserstein(np.ones((3, 2)), np.ones((3, 2)), order)


def test_bad_arrays_are_refused():
    good = np.ones((3, 2))
    bad = np.array([[1.0, 2.0], [np.nan, 0.0], [0.0, np.inf]])
    with pytest.raises(InvalidInputError, match="x: 2 of 3 rows"):
        wasserstein(bad, good)
    with pytest.raises(InvalidInputError, match="2 and 3 dimensions"):
        wasserstein(good, np.ones((3, 3)))
    with pytest.raises(InvalidInputError, match="shape"):
        wasserstein(np.ones((3, 2, 1)), good)
    with pytest.raises(InvalidInputError, match="shape"):
        wasserstein_1_and_2(np.ones((0, 2)), np.ones((0, 2)))


def test_energies_agree_with_scipy_and_infinite_ones_are_infinitely_far(rng):
    u, v = rng.standard_normal(300), 2 * rng.standard_normal(300) + 1
    assert energy_wasserstein_1(u, v) == pytest.approx(wasserstein_distance(u, v))
    assert energy_wasserstein_1(u, rng.permutation(u)) == 0
    u[3] = np.inf
    assert energy_wasserstein_1(u, v) == energy_wasserstein_1(v, u) == np.inf
    with pytest.raises(InvalidInputError, match="same size"):
        energy_wasserstein_1(u, v[:-1])
