import numpy as np
import pytest

from cdsampler.errors import InvalidInputError
from cdsampler.metrics import energy_total_variation, plausible_range


def test_equal_samples_do_not_differ(rng):
    u = rng.standard_normal(500)
    assert energy_total_variation(u, rng.permutation(u)) == 0
    assert energy_total_variation(u, np.repeat(u, 3)) == pytest.approx(0, abs=1e-12)


def test_disjoint_samples_differ_fully(rng):
    assert energy_total_variation(rng.random(100), 5 + rng.random(70)) == pytest.approx(1)


def test_known_shares():
    # Two bins on [0, 1]: shares (3/4, 1/4) against (1/2, 1/2).
    u, v = [0.0, 0.1, 0.2, 1.0], [0.0, 0.0, 0.9, 1.0]
    assert energy_total_variation(u, v, bins=2) == pytest.approx(0.25)
    assert energy_total_variation(u, v, bins=1) == 0


def test_agrees_with_numpy_histograms(rng):
    u, v = rng.standard_normal(3000), rng.standard_normal(2000) + 0.5
    edges = np.histogram_bin_edges(np.concatenate([u, v]), 200)
    expected = np.abs(np.histogram(u, edges)[0] / 3000 - np.histogram(v, edges)[0] / 2000).sum() / 2
    assert energy_total_variation(u, v) == pytest.approx(expected, abs=2e-3)  # a value on an edge may differ


def test_gaussians_approach_the_closed_form(rng):
    u, v = rng.standard_normal(200_000), rng.standard_normal(200_000) + 1
    assert energy_total_variation(u, v) == pytest.approx(0.38292, abs=0.02)  # 2 Φ(1/2) − 1


def test_non_finite_energies_count_fully():
    u = np.array([0.0, 1.0, np.inf, np.nan])
    v = np.array([0.0, 1.0])
    # Shares (1/4, 1/4) and 1/2 lost, against (1/2, 1/2).
    assert energy_total_variation(u, v) == pytest.approx(0.5)
    assert energy_total_variation(u, u) == pytest.approx(0.5)
    assert energy_total_variation([np.inf], [np.nan]) == 1
    assert energy_total_variation([np.inf], v) == pytest.approx(1)


def test_one_extreme_value_hides_nothing_within_limits(rng):
    exact = rng.standard_normal(2000)
    wrong = np.concatenate([exact[:1999] + 2, [1e9]])
    assert energy_total_variation(wrong, exact) < 0.01  # every bulk in the first bin
    limits = plausible_range(exact)
    assert energy_total_variation(wrong, exact, limits=limits) > 0.6
    assert energy_total_variation(exact + 1e6, exact, limits=limits) == 1
    other = rng.standard_normal(2000)
    assert energy_total_variation(exact, other, limits=limits) == energy_total_variation(exact, other)
    assert plausible_range([1.0, 3.0, np.inf]) == (0.0, 4.0)


@pytest.mark.parametrize("values", [[2.0, 2.0], [1e9, np.nextafter(1e9, 2e9)], [-1.7e308, 1.7e308]])
def test_extreme_ranges(values):
    assert energy_total_variation(values, values) == 0


def test_bad_input_is_refused():
    with pytest.raises(InvalidInputError, match="bins is 0"):
        energy_total_variation([1.0], [2.0], bins=0)
    with pytest.raises(InvalidInputError, match="shape"):
        energy_total_variation(np.ones((3, 2)), np.ones(3))
    with pytest.raises(InvalidInputError, match="shape"):
        energy_total_variation([], [1.0])
