import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdsampler.errors import InvalidInputError
from cdsampler.metrics import median_bandwidth, mmd_squared


def naive(u, v, bandwidth):
    u, v = (np.asarray(a, dtype=float).reshape(len(a), -1) for a in (u, v))

    def kernel(a, b):
        return np.exp(-((a[:, None] - b) ** 2).sum(axis=-1) / (2 * bandwidth**2))

    n, m = len(u), len(v)
    within = [(kernel(a, a).sum() - len(a)) / (len(a) * (len(a) - 1)) for a in (u, v)]
    return within[0] + within[1] - 2 * kernel(u, v).sum() / (n * m)


@pytest.mark.parametrize("shape", [(), (1,), (3,)])
@pytest.mark.parametrize("bandwidth", [0.01, 0.3, 1.0, 20.0, 1e4])
def test_agrees_with_the_definition(rng, shape, bandwidth):
    u = rng.standard_normal((150, *shape))
    v = 50 + 2 * rng.standard_normal((90, *shape))
    v[:60] -= 49
    assert mmd_squared(u, v, bandwidth) == pytest.approx(naive(u, v, bandwidth), rel=1e-9, abs=1e-13)


@given(
    seed=st.integers(0, 2**31),
    scale=st.floats(1e-3, 1e3),
    offset=st.floats(-1e4, 1e4),
    bandwidth=st.floats(0.1, 100),
)
@settings(max_examples=60, deadline=None)
def test_frequency_sums_agree_with_the_definition(seed, scale, offset, bandwidth):
    rng = np.random.default_rng(seed)
    u = offset + scale * rng.standard_normal(80)
    v = offset + scale * rng.standard_exponential(120)
    assert mmd_squared(u, v, bandwidth) == pytest.approx(naive(u, v, bandwidth), abs=1e-12)


def test_block_boundaries_do_not_show(rng, monkeypatch):
    from cdsampler.metrics import mmd

    u, v = rng.standard_normal((101, 2)), rng.standard_normal((53, 2))
    expected = mmd_squared(u, v, 1.0), mmd_squared(u[:, 0], v[:, 0], 1.0)
    monkeypatch.setattr(mmd, "_BLOCK_ENTRIES", 200)
    assert (mmd_squared(u, v, 1.0), mmd_squared(u[:, 0], v[:, 0], 1.0)) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("dim", [1, 2])
def test_unbiased_for_equal_laws(rng, dim):
    repeats = 300
    values = [mmd_squared(rng.standard_normal((40, dim)), rng.standard_normal((30, dim)), 1.0) for _ in range(repeats)]
    assert abs(np.mean(values)) < 4 * np.std(values) / np.sqrt(repeats)
    assert min(values) < 0 < max(values)


def test_unbiased_for_different_laws(rng):
    # For N(0, 1) and N(μ, 1), b = 1: MMD² = 2/√3 (1 − exp(−μ²/6)).
    shift, repeats = 0.8, 400
    values = [mmd_squared(rng.standard_normal(40), shift + rng.standard_normal(40), 1.0) for _ in range(repeats)]
    expected = 2 / np.sqrt(3) * (1 - np.exp(-(shift**2) / 6))
    assert abs(np.mean(values) - expected) < 4 * np.std(values) / np.sqrt(repeats)


def test_positive_for_different_laws(rng):
    assert mmd_squared(rng.standard_normal(2000), 1.3 * rng.standard_normal(2000)) > 0.002


def test_far_apart_samples_reach_the_largest_value():
    u = np.zeros(10)
    assert mmd_squared(u, u + 1e3, 1.0) == pytest.approx(2)


def test_non_finite_rows_match_nothing(rng):
    u, v = rng.standard_normal(50), rng.standard_normal(60)
    lost = np.concatenate([u, [np.inf, np.nan]])
    far = np.concatenate([u, [1e6, -1e6]])
    assert mmd_squared(lost, v, 1.0) == pytest.approx(mmd_squared(far, v, 1.0))
    assert mmd_squared([np.inf, np.inf], v, 1.0) == pytest.approx(mmd_squared([1e6, -1e6], v, 1.0))
    assert median_bandwidth(lost, v) == median_bandwidth(u, v)


@pytest.mark.parametrize("extreme", [1e160, 1e308])
@pytest.mark.parametrize("dim", [1, 2])
def test_extreme_values_are_merely_far_away(rng, extreme, dim):
    u, v = rng.standard_normal((50, dim)), rng.standard_normal((60, dim))
    far, lost = u.copy(), u.copy()
    far[0], far[1] = extreme, -extreme
    lost[:2] = np.inf
    for bandwidth in (0.1, 1.0):
        assert mmd_squared(far, v, bandwidth) == pytest.approx(mmd_squared(lost, v, bandwidth))


def test_median_bandwidth(rng):
    assert median_bandwidth([0.0, 1.0], [3.0]) == 2.0  # distances 1, 2, 3
    assert median_bandwidth([[0.0, 0.0]], [[3.0, 4.0]]) == 5.0
    u, v = rng.standard_normal((2, 5000))
    # The distance of two standard normals is √2 |N(0, 1)|, of median √2 · 0.6745.
    assert median_bandwidth(u, v) == pytest.approx(np.sqrt(2) * 0.6745, rel=0.05)
    assert median_bandwidth(u, v) == median_bandwidth(u, v)
    assert mmd_squared(u, v) == mmd_squared(u, v, median_bandwidth(u, v))


def test_median_bandwidth_of_repeated_values():
    assert median_bandwidth(np.zeros(10), [0.0, 1.0]) == pytest.approx(11 / 66)  # 11 pairs of 66 at distance 1
    assert median_bandwidth(np.ones(5), np.ones(5)) == 1.0
    assert mmd_squared(np.ones(5), np.ones(5)) == pytest.approx(0, abs=1e-14)


@pytest.mark.parametrize("dim", [1, 2])
def test_memory_stays_small(rng, dim):
    # An energy of 1e7 makes the range too wide for frequencies, so that both cases go block by block.
    u, v = rng.standard_normal((10_000, dim)), rng.standard_normal((1500, dim))
    u[0] = 1e7
    tracemalloc.start()
    mmd_squared(u[:4000], v, 1.0)
    peak_blocks = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    mmd_squared(u[1:, 0], v[:, 0])
    peak_frequency = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert max(peak_blocks, peak_frequency) < 100e6


def test_bad_input_is_refused():
    with pytest.raises(InvalidInputError, match="rows of u is 1"):
        mmd_squared([1.0], [1.0, 2.0])
    with pytest.raises(InvalidInputError, match="rows of v is 1"):
        mmd_squared([1.0, 2.0], [1.0])
    with pytest.raises(InvalidInputError, match="dimensions"):
        mmd_squared(np.ones((3, 2)), np.ones((3, 1)))
    for bandwidth in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(InvalidInputError, match="bandwidth"):
            mmd_squared([1.0, 2.0], [1.0, 2.0], bandwidth)
    with pytest.raises(InvalidInputError, match="finite rows"):
        mmd_squared([np.nan, np.inf], [np.nan, 1.0])
