import numpy as np
import pytest

from cdsampler.errors import InvalidInputError
from cdsampler.metrics import mode_weight_total_variation, mode_weights, modes_found


def test_known_case():
    responsibilities = [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]
    np.testing.assert_allclose(mode_weights(responsibilities), [0.75, 0.25, 0.0])
    assert mode_weight_total_variation(responsibilities, [0.5, 0.25, 0.25]) == pytest.approx(0.25)
    assert modes_found(responsibilities, [0.5, 0.25, 0.25]) == 2
    assert modes_found(responsibilities, [0.1, 0.8, 0.1], fraction=0.5) == 1


def test_exact_draws_read_what_the_multinomial_says(mixture):
    # The modes are far apart, so counts are multinomial and E|p − w| ≈ √(2 w (1 − w) / (π n)).
    n, repeats = 1000, 60
    expected = np.sqrt(2 * mixture.weights * (1 - mixture.weights) / (np.pi * n)).sum() / 2
    values = [
        mode_weight_total_variation(mixture.responsibilities(mixture.draw(seed, n)), mixture.weights)
        for seed in range(repeats)
    ]
    assert abs(np.mean(values) - expected) < 4 * np.std(values) / np.sqrt(repeats) + 0.01 * expected


def test_soft_weights_of_overlapping_modes_are_unbiased(mixture, rng):
    close = type(mixture)([[0.0, 0.0], [1.0, 0.0]], [0.2, 0.8])
    responsibilities = close.responsibilities(close.draw(3, 40_000))
    deviation = mode_weights(responsibilities)[0] - 0.2
    assert abs(deviation) < 4 * responsibilities[:, 0].std() / np.sqrt(40_000)


@pytest.mark.parametrize("dropped", range(5))
def test_a_dropped_mode_costs_at_least_its_weight(mixture, rng, dropped):
    weights = mixture.weights.copy()
    weights[dropped] = 0
    x = mixture.draw_from(rng, 2000, weights / weights.sum())
    responsibilities = mixture.responsibilities(x)
    missing = mixture.weights[dropped] - responsibilities[:, dropped].mean()
    assert missing == pytest.approx(mixture.weights[dropped], abs=1e-4)
    assert mode_weight_total_variation(responsibilities, mixture.weights) >= missing - 1e-12
    assert modes_found(responsibilities, mixture.weights) == 4


def test_all_modes_of_an_exact_sample_are_found(mixture):
    assert modes_found(mixture.responsibilities(mixture.draw(1, 2000)), mixture.weights) == 5


def test_a_mode_without_weight_is_not_counted():
    assert modes_found([[0.5, 0.5, 0.0]], [0.5, 0.5, 0.0]) == 2


def test_float32_responsibilities_are_taken(rng):
    weights = np.full(40, 1 / 40, dtype=np.float32)
    responsibilities = rng.dirichlet(np.ones(40), 1000).astype(np.float32)
    assert mode_weights(responsibilities).sum() == pytest.approx(1, abs=1e-12)
    assert mode_weight_total_variation(responsibilities, weights) < 0.1


def test_bad_input_is_refused():
    good = [[0.5, 0.5]]
    with pytest.raises(InvalidInputError, match="responsibilities sums to"):
        mode_weights([[0.5, 0.4]])
    with pytest.raises(InvalidInputError, match="negative"):
        mode_weights([[1.5, -0.5]])
    with pytest.raises(InvalidInputError, match="1 of 1 rows"):
        mode_weights([[np.nan, 1.0]])
    with pytest.raises(InvalidInputError, match="weights sums to"):
        mode_weight_total_variation(good, [0.5, 0.1])
    with pytest.raises(InvalidInputError, match="2 columns but there are 3 weights"):
        mode_weight_total_variation(good, [0.5, 0.25, 0.25])
    for fraction in (0.0, -1.0, 1.5):
        with pytest.raises(InvalidInputError, match="fraction"):
            modes_found(good, [0.5, 0.5], fraction)
