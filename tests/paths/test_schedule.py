import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdsampler.errors import InvalidInputError
from cdsampler.paths import (
    check_schedule,
    cumulative_barrier,
    equal_rejection_schedule,
    geometric_schedule,
    linear_schedule,
)

# --- the plain ones ---------------------------------------------------------------------------------------------


def test_geometric_schedule_with_zero():
    np.testing.assert_allclose(geometric_schedule(5, 1e-3), [0, 1e-3, 1e-2, 1e-1, 1], rtol=1e-13)


def test_geometric_schedule_without_zero():
    np.testing.assert_allclose(geometric_schedule(4, 1e-3, with_zero=False), [1e-3, 1e-2, 1e-1, 1], rtol=1e-13)


def test_smallest_geometric_schedules():
    assert geometric_schedule(2, 0.1).tolist() == [0, 1]
    np.testing.assert_allclose(geometric_schedule(3, 0.1), [0, 0.1, 1], rtol=1e-14)
    np.testing.assert_allclose(geometric_schedule(2, 0.1, with_zero=False), [0.1, 1], rtol=1e-14)


def test_linear_schedule():
    np.testing.assert_allclose(linear_schedule(5), [0, 0.25, 0.5, 0.75, 1], rtol=1e-15)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(n=st.integers(2, 60), beta_min=st.floats(1e-12, 0.999), with_zero=st.booleans())
def test_geometric_schedules_pass_the_check(n, beta_min, with_zero):
    betas = geometric_schedule(n, beta_min, with_zero=with_zero)
    assert betas.shape == (n,)
    assert check_schedule(betas, proper_reference=with_zero) is not None


@pytest.mark.parametrize("n", [1, 0, -3])
@pytest.mark.parametrize("schedule", [lambda n: geometric_schedule(n, 0.1), linear_schedule])
def test_too_few_replicas(schedule, n):
    with pytest.raises(InvalidInputError, match=f"at least 2 replicas, got {n}"):
        schedule(n)


@pytest.mark.parametrize("beta_min", [0.0, 1.0, -0.1, 2.0, np.nan])
def test_smallest_beta_outside_the_open_interval(beta_min):
    with pytest.raises(InvalidInputError, match=f"beta_min must lie in .0, 1., got {beta_min}"):
        geometric_schedule(4, beta_min)


# --- the check --------------------------------------------------------------------------------------------------


def test_checked_schedule_is_float64():
    betas = check_schedule(np.array([0.0, 0.5, 1.0], np.float32), proper_reference=True)
    assert betas.dtype == np.float64
    assert betas.tolist() == [0.0, 0.5, 1.0]


@pytest.mark.parametrize("proper", [True, False])
@pytest.mark.parametrize(
    ("betas", "message"),
    [
        ([1.0], "at least 2"),
        ([], "at least 2"),
        ([[0.0, 1.0]], "one dimension"),
        ([0.0, 0.5, 0.5, 1.0], "increase strictly"),
        ([0.0, 0.7, 0.5, 1.0], "increase strictly"),
        ([0.0, 0.5], "end at 1"),
        ([0.0, 0.5, 1.1], "end at 1"),
        ([-0.1, 0.5, 1.0], "within"),
        ([0.0, np.nan, 1.0], "increase strictly"),
        ([np.nan, 0.5, 1.0], "increase strictly|within"),
    ],
)
def test_wrong_schedules(betas, message, proper):
    with pytest.raises(InvalidInputError, match=message):
        check_schedule(np.array(betas), proper_reference=proper)


def test_start_must_suit_the_reference():
    with pytest.raises(InvalidInputError, match=r"must start at 0, got 0\.1"):
        check_schedule(np.array([0.1, 1.0]), proper_reference=True)
    with pytest.raises(InvalidInputError, match="must start above 0"):
        check_schedule(np.array([0.0, 1.0]), proper_reference=False)


# --- equal rejection --------------------------------------------------------------------------------------------

BARRIERS = {  # Λ(β), with a schedule that resolves it
    "even": (lambda b: 3 * b, linear_schedule(12)),
    "square": (lambda b: 5 * b**2, linear_schedule(16)),
    "root": (lambda b: 4 * np.sqrt(b), geometric_schedule(16, 1e-3)),
    "logarithm": (lambda b: np.log1p(b / 1e-3), geometric_schedule(20, 1e-4)),
    "logarithm from above zero": (lambda b: np.log(b / 1e-3), geometric_schedule(12, 1e-3, with_zero=False)),
    "transition": (lambda b: 2 * b + 2 / (1 + np.exp(-(b - 0.6) / 0.05)), linear_schedule(30)),
}


@pytest.mark.parametrize("name", BARRIERS)
def test_barrier_passes_through_the_sums_of_rejections(name):
    barrier, betas = BARRIERS[name]
    spline = cumulative_barrier(betas, np.diff(barrier(betas)))
    np.testing.assert_allclose(spline(betas), barrier(betas) - barrier(betas[0]), atol=1e-12)
    between = np.sort(np.concatenate([betas, (betas[1:] + betas[:-1]) / 2]))
    assert np.all(np.diff(spline(between)) >= 0)
    assert np.all(spline.derivative()(between) >= 0)


@pytest.mark.parametrize("n_replicas", [None, 7, 40])
@pytest.mark.parametrize("name", BARRIERS)
def test_equal_rejection_divides_the_barrier_evenly(name, n_replicas):
    barrier, betas = BARRIERS[name]
    moved = equal_rejection_schedule(betas, np.diff(barrier(betas)), n_replicas)
    increments = np.diff(barrier(moved))
    assert len(moved) == (len(betas) if n_replicas is None else n_replicas)
    assert (moved[0], moved[-1]) == (betas[0], betas[-1])
    # The spline's error between the old β; the old schedule itself is off by far more (next test).
    np.testing.assert_allclose(increments, increments.mean(), rtol=0.2)


def test_schedules_of_the_test_are_uneven_at_first():
    """Negative control of the test above: the same tolerance refuses the schedules that it starts from."""
    for name in ("square", "root", "transition"):
        barrier, betas = BARRIERS[name]
        increments = np.diff(barrier(betas))
        assert np.max(np.abs(increments / increments.mean() - 1)) > 0.5


@pytest.mark.parametrize("name", BARRIERS)
def test_repeated_adaptation_converges(name):
    barrier, betas = BARRIERS[name]
    for _ in range(6):
        betas = equal_rejection_schedule(betas, np.diff(barrier(betas)))
    increments = np.diff(barrier(betas))
    np.testing.assert_allclose(increments, increments.mean(), rtol=0.01)


@pytest.mark.parametrize("betas", [geometric_schedule(8, 1e-4), geometric_schedule(8, 1e-4, with_zero=False)])
def test_no_rejection_at_all_spaces_evenly(betas):
    moved = equal_rejection_schedule(betas, np.zeros(7))
    np.testing.assert_allclose(moved, np.linspace(betas[0], 1, 8), rtol=1e-6)
    assert check_schedule(moved, proper_reference=betas[0] == 0) is not None


def test_two_replicas_stay():
    assert equal_rejection_schedule(np.array([0.0, 1.0]), np.array([0.4])).tolist() == [0.0, 1.0]


def test_one_pair_with_all_the_barrier_gets_the_replicas():
    betas = linear_schedule(6)
    moved = equal_rejection_schedule(betas, np.array([0.0, 0.0, 1.0, 0.0, 0.0]))
    assert np.all((moved[1:-1] > 0.4) & (moved[1:-1] < 0.6))


@pytest.mark.parametrize("n_replicas", [1, 0])
def test_equal_rejection_with_too_few_replicas(n_replicas):
    with pytest.raises(InvalidInputError, match="at least 2 replicas"):
        equal_rejection_schedule(linear_schedule(4), np.full(3, 0.2), n_replicas)


@st.composite
def measured(draw):
    """A schedule from 0 or above to 1 with rejections, many of them exactly 0 or 1."""
    n = draw(st.integers(2, 12))
    beta_min = draw(st.sampled_from([1e-8, 1e-4, 0.01, 0.3]))
    betas = geometric_schedule(n, beta_min, with_zero=draw(st.booleans()))
    if draw(st.booleans()):
        betas = np.concatenate([betas[:1], np.sort(np.random.default_rng(n).uniform(betas[0], 1, n - 2)), [1.0]])
    rejection = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))
    return betas, np.array(draw(st.lists(rejection, min_size=n - 1, max_size=n - 1)))


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(case=measured(), n_replicas=st.one_of(st.none(), st.integers(2, 30)))
def test_result_is_always_a_schedule(case, n_replicas):
    betas, rejections = case
    moved = equal_rejection_schedule(betas, rejections, n_replicas)
    assert len(moved) == (len(betas) if n_replicas is None else n_replicas)
    assert (moved[0], moved[-1]) == (betas[0], 1)
    assert np.all(np.diff(moved) > 0)
