import numpy as np
import pytest

from cdsampler.errors import InvalidInputError
from cdsampler.metrics import METRICS, ExactReference, FloorRepeats, evaluate

N = 1200
QUICK = FloorRepeats(transport=2, cheap=10)


def by_name(samples, reference, **options):
    options = {"max_transport_samples": 300, "floor_repeats": QUICK} | options
    return {value.name: value for value in evaluate(samples, reference, **options)}


@pytest.fixture(scope="module")
def exact_values(mixture):
    """Metrics of four exact samples."""
    return [by_name(mixture.draw(seed, N), mixture.reference()) for seed in range(4)]


def test_reports_every_metric_in_order(exact_values):
    assert list(exact_values[0]) == list(METRICS)
    assert all(description for description in METRICS.values())


def test_exact_samples_read_about_their_floors(exact_values):
    for name in ("wasserstein_2", "wasserstein_1", "energy_total_variation", "mode_weight_total_variation"):
        ratios = [values[name].ratio for values in exact_values]
        assert 0.5 < np.mean(ratios) < 1.8, name
    for name in ("relative_mae", "mmd_squared_energy"):
        assert all(abs(values[name].ratio) < 6 for values in exact_values), name
    assert all(values["modes_found"].value == 5 for values in exact_values)


def test_floors_and_sizes_are_as_asked(exact_values):
    for name, value in exact_values[0].items():
        assert value.n_used == (300 if name.startswith("wasserstein") else N)
        if name == "modes_found":
            assert (value.floor, value.ratio) == (None, None)
        else:
            assert value.ratio == pytest.approx(value.value / value.floor.mean)
            assert value.floor.mean > 0
    repeats = {name: value.floor.repeats for name, value in exact_values[0].items() if value.floor}
    assert repeats["wasserstein_2"] == repeats["wasserstein_1"] == 2
    assert repeats["mmd_squared_energy"] == repeats["energy_total_variation"] == 10
    assert repeats["relative_mae"] == repeats["mode_weight_total_variation"] == 20


def test_floors_do_not_depend_on_the_judged_sample(mixture, exact_values):
    shifted = by_name(mixture.draw(0, N) + 3, mixture.reference())
    assert {k: v.floor for k, v in shifted.items()} == {k: v.floor for k, v in exact_values[0].items()}


def test_a_wrong_sample_is_seen_by_every_metric(mixture, rng):
    # Half of the modes are lost and the rest is twice too wide.
    component = rng.choice([0, 1], N)
    values = by_name(mixture.means[component] + 2 * rng.standard_normal((N, 2)), mixture.reference())
    assert all(value.ratio > 3 for name, value in values.items() if name != "modes_found")
    assert values["modes_found"].value < 5


def test_same_seed_same_result(mixture):
    samples = mixture.draw(11, 200)
    first, second = (by_name(samples, mixture.reference(), seed=4) for _ in range(2))
    assert first == second
    assert first != by_name(samples, mixture.reference(), seed=5)


def test_order_of_samples_does_not_matter_without_a_subsample(mixture):
    samples = mixture.draw(11, 150)
    options = {"max_transport_samples": None, "floor_repeats": FloorRepeats(1, 1)}
    first = by_name(samples, mixture.reference(), **options)
    second = by_name(samples[::-1], mixture.reference(), **options)
    assert first["wasserstein_2"].n_used == 150
    for name in METRICS:
        assert first[name].value == pytest.approx(second[name].value)


def test_subsample_is_spread_over_sorted_samples(mixture):
    samples = mixture.draw(3, N)
    ordered = samples[np.argsort(samples[:, 0])]
    assert by_name(ordered, mixture.reference())["wasserstein_2"].ratio < 1.8


def test_reference_without_modes(mixture):
    values = by_name(mixture.draw(1, 100), ExactReference(mixture.draw, mixture.log_density))
    assert list(values) == [name for name in METRICS if "mode" not in name]


def test_samples_outside_the_support_are_judged(rng):
    def log_density(x):
        return np.where((np.abs(x) < 1).all(axis=1), -(x[:, 0] ** 2), -np.inf)

    def draw(seed, n):
        generator = np.random.default_rng(seed)
        x = generator.uniform(-1, 1, (6 * n + 200, 3))
        return x[generator.random(len(x)) < np.exp(-(x[:, 0] ** 2))][:n]

    reference = ExactReference(draw, log_density)
    samples = draw(0, 400)
    samples[:200] += 5
    values = by_name(samples, reference, floor_repeats=FloorRepeats(1, 5))
    assert values["energy_total_variation"].value >= 0.5
    assert values["mmd_squared_energy"].value > 0.1


def test_constant_energy_has_no_ratio(rng):
    reference = ExactReference(lambda seed, n: np.random.default_rng(seed).random((n, 3)), lambda x: np.zeros(len(x)))
    values = by_name(rng.random((50, 3)), reference, floor_repeats=FloorRepeats(1, 2))
    assert values["energy_total_variation"].value == 0
    assert values["energy_total_variation"].ratio is None


def test_high_dimension_takes_the_expectation_in_blocks(rng):
    sizes = []

    def draw(seed, n):
        sizes.append(n)
        return np.broadcast_to(np.random.default_rng(seed).standard_normal((n, 1)), (n, 100))

    reference = ExactReference(draw, lambda x: -(x[:, 0] ** 2) / 2)
    by_name(rng.standard_normal((20, 100)), reference, floor_repeats=FloorRepeats(1, 1))
    assert sum(size for size in sizes if size > 20) == 200_000
    assert max(sizes) == 40_000


def test_non_finite_samples_are_refused_with_their_count(mixture):
    samples = mixture.draw(1, 100)
    samples[3, 0], samples[7], samples[8, 1] = np.nan, np.inf, -np.inf
    with pytest.raises(InvalidInputError, match="samples: 3 of 100 rows are not finite"):
        evaluate(samples, mixture.reference())


def test_bad_options_are_refused(mixture):
    reference, samples = mixture.reference(), mixture.draw(1, 10)
    with pytest.raises(InvalidInputError, match="max_transport_samples is 0"):
        evaluate(samples, reference, max_transport_samples=0)
    with pytest.raises(InvalidInputError, match=r"floor_repeats\.transport is 0"):
        evaluate(samples, reference, floor_repeats=FloorRepeats(transport=0))
    with pytest.raises(InvalidInputError, match=r"floor_repeats\.cheap is 0"):
        evaluate(samples, reference, floor_repeats=FloorRepeats(cheap=0))
    with pytest.raises(InvalidInputError, match="number of samples is 1"):
        evaluate(samples[:1], reference)
    with pytest.raises(InvalidInputError, match="3 and 2 dimensions"):
        evaluate(np.ones((10, 3)), reference)


def test_bad_references_are_refused(mixture):
    samples = mixture.draw(1, 10)
    with pytest.raises(InvalidInputError, match="need both"):
        ExactReference(mixture.draw, mixture.log_density, weights=mixture.weights)
    with pytest.raises(InvalidInputError, match="need both"):
        ExactReference(mixture.draw, mixture.log_density, mixture.responsibilities)
    with pytest.raises(InvalidInputError, match="returned 11 rows where 10"):
        evaluate(samples, ExactReference(lambda seed, n: mixture.draw(seed, n + 1), mixture.log_density))
    with pytest.raises(InvalidInputError, match="returned 9 numbers for 10 rows"):
        evaluate(samples, ExactReference(mixture.draw, lambda x: mixture.log_density(x)[:-1]))
    with pytest.raises(InvalidInputError, match="one number per sample"):
        evaluate(samples, ExactReference(mixture.draw, lambda x: x))
    with pytest.raises(InvalidInputError, match="exact sample: 10 of 10 rows"):
        evaluate(samples, ExactReference(lambda seed, n: np.full((n, 2), np.nan), mixture.log_density))
