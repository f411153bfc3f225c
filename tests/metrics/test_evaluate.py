import numpy as np
import pytest

from cdsampler.errors import InvalidInputError
from cdsampler.metrics import METRICS, ExactReference, FloorRepeats, evaluate, quadratic_observable

N = 1200
OF_MIXTURES = (
    "wasserstein_2",
    "wasserstein_1",
    "mmd_squared_energy",
    "energy_total_variation",
    "energy_wasserstein_1",
    "relative_mae",
    "mode_weight_total_variation",
    "modes_found",
)
QUICK = FloorRepeats(transport=2, cheap=10)


def by_name(samples, reference, **options):
    options = {"max_transport_samples": 300, "floor_repeats": QUICK} | options
    return {value.name: value for value in evaluate(samples, reference, **options)}


@pytest.fixture(scope="module")
def exact_values(mixture):
    """Metrics of four exact samples."""
    return [by_name(mixture.draw(seed, N), mixture.reference()) for seed in range(4)]


def test_reports_the_metrics_of_mixtures_in_order(exact_values):
    assert list(exact_values[0]) == [name for name in METRICS if name in OF_MIXTURES]
    assert set(OF_MIXTURES) < set(METRICS)
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
    for name in OF_MIXTURES:
        assert first[name].value == pytest.approx(second[name].value)


def test_subsample_is_spread_over_sorted_samples(mixture):
    samples = mixture.draw(3, N)
    ordered = samples[np.argsort(samples[:, 0])]
    assert by_name(ordered, mixture.reference())["wasserstein_2"].ratio < 1.8


def test_reference_without_modes(mixture):
    values = by_name(mixture.draw(1, 100), ExactReference(mixture.draw, mixture.log_density))
    assert list(values) == [name for name in OF_MIXTURES if "mode" not in name]


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
    assert values["energy_wasserstein_1"].value == np.inf


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
    assert sum(size for size in sizes if size > 40) == 200_000
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
    with pytest.raises(InvalidInputError, match="returned 21 rows where 20"):
        evaluate(samples, ExactReference(lambda seed, n: mixture.draw(seed, n + 1), mixture.log_density))
    with pytest.raises(InvalidInputError, match="returned 9 numbers for 10 rows"):
        evaluate(samples, ExactReference(mixture.draw, lambda x: mixture.log_density(x)[:-1]))
    with pytest.raises(InvalidInputError, match="one number per sample"):
        evaluate(samples, ExactReference(mixture.draw, lambda x: x))
    with pytest.raises(InvalidInputError, match="exact sample: 20 of 20 rows"):
        evaluate(samples, ExactReference(lambda seed, n: np.full((n, 2), np.nan), mixture.log_density))
    with pytest.raises(InvalidInputError, match="energy returned 9 numbers for 10 rows"):
        evaluate(samples, ExactReference(mixture.draw, mixture.log_density, energy=lambda x: x[:-1, 0]))
    with pytest.raises(InvalidInputError, match="pool is 3"):
        ExactReference(mixture.draw, mixture.log_density, size=3)


def pool_of(rows, log_density, **options):
    """Return the reference that draws from finitely many rows, without replacement."""
    sample = lambda seed, n: rows[np.random.default_rng(seed).permutation(len(rows))[:n]]  # noqa: E731
    return ExactReference(sample, log_density, size=len(rows), **options)


def shared_rows(x, y):
    return float(len(set(map(tuple, x)) & set(map(tuple, y))))


class TestPool:
    @pytest.mark.parametrize(("n", "used"), [(30, 30), (100, 100), (101, 100), (500, 100)])
    def test_at_most_half_is_judged_and_the_halves_are_disjoint(self, mixture, n, used):
        reference = pool_of(mixture.draw(1, 200), mixture.log_density, extra={"shared": shared_rows})
        values = by_name(mixture.draw(2, n), reference, max_transport_samples=80)
        assert values["shared"].n_used == values["relative_mae"].n_used == used
        assert values["wasserstein_2"].n_used == min(used, 80)
        assert values["shared"].floor.mean == 0
        # Two draws of a half each would share a quarter of the pool.
        first, second = reference.draw(1, 100), reference.draw(2, 100)
        assert shared_rows(first, second) == pytest.approx(50, abs=25)

    def test_no_more_is_drawn_than_there_is(self, mixture):
        reference = pool_of(mixture.draw(1, 50), mixture.log_density)
        with pytest.raises(InvalidInputError, match="has 50 rows, 51 were asked for"):
            reference.draw(0, 51)

    def test_the_floor_of_an_expectation_is_that_of_independent_samples(self, rng):
        # The error of n independent rows against the mean of N is N(0, σ² (1/n + 1/N)).
        n, size, dim = 250, 500, 3
        pools = [rng.standard_normal((size, dim)) for _ in range(30)]
        floors, values = [], []
        for pool in pools:
            reference = pool_of(pool, lambda x: -0.5 * (x**2).sum(axis=1))
            values_of_pool = by_name(rng.standard_normal((n, dim)), reference, floor_repeats=FloorRepeats(1, 20))
            reading = values_of_pool["relative_mae"]
            floors.append(reading.floor.mean)
            values.append(reading.value)
        f = quadratic_observable(rng.standard_normal((200_000, dim)))
        expected = np.sqrt(2 / np.pi) * f.std() / abs(f.mean()) * np.sqrt(1 / n + 1 / size)
        assert np.mean(floors) == pytest.approx(expected, rel=0.12)  # unscaled it would be 42 % less
        assert np.mean(values) == pytest.approx(expected, abs=4 * np.std(values) / np.sqrt(30))

    def test_exact_samples_read_about_their_floors(self, mixture):
        reference = pool_of(mixture.draw(1, 3000), mixture.log_density)
        readings = [by_name(mixture.draw(seed, 600), reference) for seed in range(2, 6)]
        for name in ("wasserstein_2", "energy_total_variation", "energy_wasserstein_1"):
            assert 0.5 < np.mean([values[name].ratio for values in readings]) < 1.8, name


class TestOwnMetrics:
    def test_others_replace_and_follow_the_standard_ones(self, mixture):
        reference = ExactReference(
            mixture.draw,
            mixture.log_density,
            transport=lambda x, y: {"kabsch_wasserstein_1": float(abs(x.mean() - y.mean()))},
            extra={"gap": lambda x, y: float(x.mean() - y.mean())},
            quantities={"c7ax_weight": lambda x: float((x[:, 0] > 0).mean())},
        )
        samples = mixture.draw(3, 400)
        values = by_name(samples, reference)
        assert next(iter(values)) == "kabsch_wasserstein_1"
        assert list(values)[-1] == "gap"
        assert "wasserstein_1" not in values
        assert values["kabsch_wasserstein_1"].n_used == 300
        assert values["gap"].floor.mean > 0
        quantity = values["c7ax_weight"]
        assert (quantity.value, quantity.ratio, quantity.is_error) == (np.mean(samples[:, 0] > 0), None, False)
        # The share of n exact draws is binomial; of the components, two lie on this side and one half does.
        p = 0.15 + 0.25 + 0.5 * 0.3
        assert quantity.floor.mean == pytest.approx(p, abs=5 * np.sqrt(p * (1 - p) / (400 * 20)))
        assert quantity.floor.std == pytest.approx(np.sqrt(p * (1 - p) / 400), rel=0.6)
        assert values["gap"].is_error

    def test_energies_may_be_other_than_the_log_density(self, mixture):
        samples = mixture.draw(3, 300)
        other = ExactReference(mixture.draw, mixture.log_density, energy=lambda x: 10 - 3 * mixture.log_density(x))
        plain, scaled = by_name(samples, mixture.reference()), by_name(samples, other)
        assert scaled["energy_wasserstein_1"].value == pytest.approx(3 * plain["energy_wasserstein_1"].value)
        assert scaled["energy_total_variation"].value == pytest.approx(plain["energy_total_variation"].value, abs=1e-2)
