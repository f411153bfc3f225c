import numpy as np
import pytest

from cdsampler.metrics import METRICS
from cdsampler.report._format import METRIC_LABELS, count, metric_label, number, percent, seconds, spread


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (300, "300"), (12.34, "12.3"), (12.0, "12"), (381.02, "381"), (1234567, "1,234,567")],
)
def test_count(value, text):
    assert count(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.24, "0.240"),
        (50.06, "50.1"),
        (284.0, "284"),
        (1234.6, "1,235"),
        (-0.000783, "-7.83e-04"),
    ],
)
def test_number(value, text):
    assert number(value) == text


@pytest.mark.parametrize("write", [count, number])
@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_what_is_not_finite_says_so(write, value):
    assert write(value) == str(value)


@pytest.mark.parametrize(
    ("mean", "deviation", "text"),
    [
        (27.5, 4.643, "27.5 ± 4.6"),
        (0.2401, 0.0249, "0.240 ± 0.025"),
        (12345.6, 130.0, "12,346 ± 130"),
        (0.00093, 0.00081, "(9.3 ± 8.1)e-04"),
        (-0.049, 0.1, "-0.05 ± 0.10"),
        (0.24, np.nan, "0.240"),
        (0.24, 0.0, "0.240"),
    ],
)
def test_spread_writes_the_mean_to_the_digits_of_its_deviation(mean, deviation, text):
    assert spread(mean, deviation) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0 %"), (1e-5, "<0.1 %"), (0.024, "2.4 %"), (0.33, "33 %"), (0.996, "99.6 %"), (1.0, "100 %")],
)
def test_percent_keeps_small_shares_apart_from_none_and_all(share, text):
    assert percent(share) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.119, "119 ms"), (7.26, "7.26 s"), (150.2, "2 min 30 s"), (7260, "2 h 1 min")]
)
def test_seconds(value, text):
    assert seconds(value) == text


def test_every_metric_has_a_label():
    assert set(METRIC_LABELS) == set(METRICS)
    assert metric_label("some_new_metric") == "some new metric"
