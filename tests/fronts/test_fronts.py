import csv
import math

import numpy as np
import pytest

from cdsampler.benchmark import fronts as analysis
from cdsampler.errors import InvalidInputError, MissingExtraError


def area(points, reference):
    """Dominated area in two dimensions, as a sum of rectangles under the sorted front: the yardstick."""
    total, height = 0.0, reference[1]
    for x, y in sorted(map(tuple, points)):
        if x < reference[0] and y < height:
            total += (reference[0] - x) * (height - y)
            height = y
    return total


def test_hypervolume_of_a_front_made_by_hand():
    assert analysis.hypervolume(np.array([[1, 3], [2, 2], [3, 1]]), [4, 4]) == 6.0
    assert analysis.hypervolume(np.array([[5.0, 1.0]]), [4, 4]) == 0.0
    assert analysis.hypervolume(np.zeros((0, 2))) == 0.0


def test_hypervolume_agrees_with_the_yardstick():
    rng = np.random.default_rng(0)
    for _ in range(50):
        points = rng.uniform(0, 1.3, size=(rng.integers(1, 30), 2))
        assert analysis.hypervolume(points) == pytest.approx(area(points, (1.1, 1.1)), abs=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_hypervolume_refuses_what_is_not_finite(bad):
    with pytest.raises(InvalidInputError, match="1 of 2"):
        analysis.hypervolume(np.array([[0.5, 0.5], [0.1, bad]]))
    with pytest.raises(InvalidInputError, match="shape"):
        analysis.hypervolume(np.zeros(3))


def test_without_moocore_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "moocore", None)
    with pytest.raises(MissingExtraError, match=r"cdsampler\[benchmark\]"):
        analysis.hypervolume(np.array([[0.5, 0.5]]))


def test_nondominated_points_by_hand():
    costs = np.array([3.0, 1.0, 2.0, 2.0, 4.0, np.nan, 1.0])
    errors = np.array([1.0, 3.0, 2.0, 2.5, 1.0, 0.0, 3.0])
    assert analysis.nondominated(costs, errors).tolist() == [1, 2, 0]
    assert not len(analysis.nondominated(np.array([]), np.array([])))
    with pytest.raises(InvalidInputError, match="shape"):
        analysis.nondominated(np.zeros(2), np.zeros(3))


def test_costs_follow_the_accounting(fake):
    records = [fake.record(budget=1000)]
    assert analysis.cells_of(records)[0].cost == 997
    assert analysis.cells_of(records, "returned")[0].cost == 1200
    with pytest.raises(InvalidInputError, match="independent, returned"):
        analysis.cells_of(records, "other")
    with pytest.raises(InvalidInputError, match="evaluations_per_sample is None"):
        analysis.cells_of([fake.record() | {"evaluations_per_sample": None}])


def test_metrics_that_are_no_error_and_failed_runs_are_left_out(fake):
    (cell,) = analysis.cells_of([fake.record(), fake.record(seed=1, status="failed")])
    assert cell.metrics == ("wasserstein_2", "mmd_squared_energy")
    assert (len(cell.costs), cell.n_runs) == (1, 2)


def test_an_error_that_cannot_be_on_a_logarithmic_axis_is_raised(fake):
    records = [fake.record(seed=seed, values={"mmd_squared_energy": value}) for seed, value in enumerate([-1.0, 0.01])]
    (cell,) = analysis.cells_of(records)
    np.testing.assert_allclose(cell.errors["mmd_squared_energy"], [0.1 * 0.2 * 1e-3, 0.01])
    np.testing.assert_allclose(cell.ratios["mmd_squared_energy"], [0.02, 10])
    assert cell.n_raised == {"mmd_squared_energy": 1}


def test_an_error_that_is_not_finite_counts_against_its_sampler(fake):
    def run(label, budget, seed, error):
        return fake.record(label=label, budget=budget, seed=seed, values={"wasserstein_2": error})

    def infinite(label, budget, seed):
        entry = {"value": None, "floor": 0.5, "floor_sd": 0.1, "ratio": None}  # as JSON has it
        return run(label, budget, seed, 1.0) | {"metrics": {"wasserstein_2": entry}}

    records = [run("a", 100, 0, 0.5), infinite("a", 100, 1), run("a", 900, 0, 2.0), run("a", 900, 1, 2.0)]
    records += [infinite("b", 100, 0), infinite("b", 100, 1)]
    cells = analysis.cells_of(records)
    assert [cell.error("wasserstein_2") for cell in cells] == [math.inf, 2.0, math.inf]
    (front,) = analysis.fronts(cells)
    assert front.errors.tolist() == [2.0]
    assert [reach.best for reach in analysis.reaches(cells)] == [4.0, math.inf]
    ratios = analysis.hypervolume_ratios(cells, records)
    assert {r.label: r.value for r in ratios if r.task == "all"} == {"a": 1.0, "b": 0.0}


def test_a_repeat_without_a_metric_is_left_out_of_its_mean(fake):
    records = [fake.record(values={"wasserstein_2": 2.0}), fake.record(seed=1, values={"mmd_squared_energy": 0.1})]
    (cell,) = analysis.cells_of(records)
    assert (cell.error("wasserstein_2"), cell.error("mmd_squared_energy")) == (2.0, 0.1)


def test_a_front_falls_in_steps_and_takes_the_best_configuration(fake):
    def run(budget, error, n_replicas):
        return fake.record(budget=budget, changes={"n_replicas": n_replicas}, values={"wasserstein_2": error})

    records = [run(100, 5.0, 5), run(100, 9.0, 9), run(1000, 6.0, 5), run(1000, 2.0, 9), run(3000, 3.0, 9)]
    (front,) = analysis.fronts(analysis.cells_of(records))
    assert front.costs.tolist() == [97, 997]
    assert front.errors.tolist() == [5.0, 2.0]
    assert [cell.configuration for cell in front.members] == [
        "n_replicas=5, preset recommended",
        "n_replicas=9, preset recommended",
    ]
    assert set(front.median) == {5.0, 2.0}
    assert np.all(np.diff(front.median) <= 0)
    assert front.median[front.grid < 997].min() == 5.0
    np.testing.assert_array_equal(front.low, front.high)  # one repeat: nothing to resample


def test_bands_hold_the_median_and_are_inf_before_the_first_point(fake):
    cells = analysis.cells_of(fake.grid())
    for front in analysis.fronts(cells):
        assert np.all(front.low <= front.median)
        assert np.all(front.median <= front.high)
        assert np.all(np.isfinite(front.high[-1:]))
        if front.label == "oasmc":  # its smallest budget is infeasible
            assert math.isinf(front.median[0])
    again = analysis.fronts([cell for cell in cells if cell.task == "gm-2"])
    first = next(front for front in analysis.fronts(cells) if front.task == "gm-2")
    np.testing.assert_array_equal(first.high, again[0].high)


def test_the_bootstrap_covers_the_spread_of_a_mean(fake):
    rng = np.random.default_rng(3)
    values = rng.normal(10, 1, size=25)
    records = [fake.record(seed=i, values={"wasserstein_2": value}) for i, value in enumerate(values)]
    records.append(fake.record(budget=9000, values={"wasserstein_2": 20.0}))
    (front,) = analysis.fronts(analysis.cells_of(records), n_resamples=400)
    width = front.high[0] - front.low[0]
    assert width == pytest.approx(2 * 1.645 * values.std() / 5, rel=0.2)


def test_hypervolume_ratios_against_the_yardstick(fake):
    def run(label, budget, error):
        return fake.record(label=label, budget=budget, values={"wasserstein_2": error})

    records = [run("a", 100, 10.0), run("a", 1000, 1.0), run("b", 100, 100.0), run("b", 1000, 10.0)]
    records.append(fake.record(label="c", status="failed"))
    ratios = analysis.hypervolume_ratios(analysis.cells_of(records), records)
    overall = {ratio.label: ratio for ratio in ratios if (ratio.task, ratio.metric) == ("all", "all")}
    best = area([(0, 0.5), (1, 0)], (1.1, 1.1))
    assert overall["a"].value == pytest.approx(1.0)
    assert overall["b"].value == pytest.approx(area([(0, 1), (1, 0.5)], (1.1, 1.1)) / best)
    assert overall["c"].value == 0.0
    assert overall["b"].low == overall["b"].high == pytest.approx(overall["b"].value)


def run(fake, label, budget, multiple, seed=0):
    """A run whose error is a multiple of its floor, 0.5."""
    return fake.record(label=label, budget=budget, seed=seed, values={"wasserstein_2": 0.5 * multiple})


def overall(ratios):
    return {ratio.label: ratio.value for ratio in ratios if (ratio.task, ratio.metric) == ("all", "all")}


def test_luck_below_the_floor_counts_for_nothing(fake):
    # Both reach the floor at the same cost, and one is lucky there.
    records = [run(fake, "lucky", 100, 10), run(fake, "lucky", 1000, 0.1)]
    records += [run(fake, "plain", 100, 10), run(fake, "plain", 1000, 1)]
    cells = analysis.cells_of(records)
    assert overall(analysis.hypervolume_ratios(cells)) == {"lucky": 1.0, "plain": 1.0}
    # As the paper has it, errors span two decades by the lucky one, and the other loses half a unit of height.
    best = area([(0, 1), (1, 0)], (1.1, 1.1))
    unclipped = overall(analysis.hypervolume_ratios(cells, is_clipped=False))
    assert unclipped["lucky"] == pytest.approx(1.0)
    assert unclipped["plain"] == pytest.approx(area([(0, 1), (1, 0.5)], (1.1, 1.1)) / best)
    lucky, plain = analysis.fronts(cells)
    assert lucky.errors.tolist() == plain.errors.tolist() == [5.0, 0.5]
    assert lucky.members[1].error("wasserstein_2") == pytest.approx(0.05)  # as it was, for tables
    assert analysis.fronts(cells, is_clipped=False)[0].errors.tolist() == pytest.approx([5.0, 0.05])


def test_a_point_that_is_only_luckier_is_not_on_the_front(fake):
    records = [run(fake, "a", 100, 0.9), run(fake, "a", 1000, 0.5)]
    (front,) = analysis.fronts(analysis.cells_of(records))
    assert front.costs.tolist() == [97]
    assert front.high.tolist() == [0.5] * len(front.grid)


def test_a_lucky_repeat_makes_up_for_an_unlucky_one(fake):
    # Means are clipped, not repeats: else every good sampler would seem worse than exact draws.
    (front,) = analysis.fronts(analysis.cells_of([run(fake, "a", 100, 0.6), run(fake, "a", 100, 1.4, seed=1)]))
    assert front.errors.tolist() == [0.5]
    assert front.low.min() == 0.5
    assert front.high.max() == pytest.approx(0.7)


def test_near_the_floor_chance_is_not_blown_up(fake):
    # One is at the floor, one 10 % above it: nearly as good, although the range between them is all there is.
    records = [run(fake, "at", 100, 1.0), run(fake, "near", 100, 1.1)]
    cells = analysis.cells_of(records)
    height = 1.1 - math.log(1.1) / math.log(1.2)
    assert overall(analysis.hypervolume_ratios(cells)) == pytest.approx({"at": 1.0, "near": height / 1.1})
    assert overall(analysis.hypervolume_ratios(cells, is_clipped=False))["near"] == pytest.approx(0.1 / 1.1)


def test_without_a_sampler_near_the_floor_nothing_is_clipped(fake):
    records = [run(fake, "a", 100, 10), run(fake, "a", 1000, 3), run(fake, "b", 100, 20), run(fake, "b", 1000, 2)]
    cells = analysis.cells_of(records)
    assert analysis.hypervolume_ratios(cells) == analysis.hypervolume_ratios(cells, is_clipped=False)


def test_hypervolume_ratios_average_tasks_then_metrics(fake):
    records = fake.grid()
    ratios = analysis.hypervolume_ratios(analysis.cells_of(records), records)
    value = {(r.label, r.task, r.metric): r.value for r in ratios}
    mmd = [value["nrpt", task, "mmd_squared_energy"] for task in ("gm-2", "lj-13")]
    assert value["nrpt", "all", "mmd_squared_energy"] == pytest.approx(np.mean(mmd))
    metrics = {metric for label, task, metric in value if (label, task) == ("nrpt", "all")} - {"all"}
    assert value["nrpt", "all", "all"] == pytest.approx(np.mean([value["nrpt", "all", m] for m in metrics]))
    assert all(0 <= r.low <= r.high <= 1 for r in ratios)
    assert value["cds", "all", "all"] > value["mala", "all", "all"]


def test_one_budget_and_one_sampler_need_no_scale(fake):
    records = [fake.record()]
    assert {r.value for r in analysis.hypervolume_ratios(analysis.cells_of(records))} == {1.0}


def test_what_it_costs_to_come_near_the_floor(fake):
    def run(label, budget, ratios):
        return [fake.record(label=label, budget=budget, seed=i, values={"wasserstein_2": 0.5 * r}) for i, r in ratios]

    records = run("a", 100, [(0, 1.0), (1, 1.6)]) + run("a", 200, [(0, 1.0), (1, 1.3)]) + run("b", 900, [(0, 3.0)])
    records += [fake.record(label="c", status="failed")]
    reached, missed = analysis.reaches(analysis.cells_of(records))
    assert reached.cost == 197
    assert reached.best == pytest.approx(1.15)
    assert missed.cost is None
    assert missed.best == pytest.approx(3.0)
    assert reached.is_lasting
    (lucky,) = analysis.reaches(analysis.cells_of(run("a", 100, [(0, 1.0)]) + run("a", 200, [(0, 1.5)])))
    assert (lucky.cost, lucky.is_lasting) == (97, False)
    rows = analysis.tables(records, n_resamples=1)["evaluations_to_floor"]
    assert {(row["label"], row["status"], row["cost"]) for row in rows if row["accounting"] == "independent"} == {
        ("a", "reached", 197),
        ("b", "not reached", None),
        ("c", "no samples", None),
    }
    with pytest.raises(InvalidInputError, match="threshold"):
        analysis.reaches([], threshold=0)


def test_tables_are_written_and_read_back(fake, tmp_path):
    tables = analysis.tables(fake.grid(), n_resamples=3)
    for name, rows in tables.items():
        written = analysis.write_table(rows, tmp_path, name)
        with written[0].open(newline="") as file:
            assert len(list(csv.DictReader(file))) == len(rows)
        if len(written) > 1:
            parquet = pytest.importorskip("pyarrow.parquet")
            assert parquet.read_table(written[1]).num_rows == len(rows)
    assert {row["accounting"] for row in tables["points"]} == {"independent", "returned"}
    assert all(row["unclipped"] <= 1 for row in tables["hypervolume_ratios"])
    done = {name: analysis.analyse_records(fake.grid(), name, n_resamples=3) for name in analysis.ACCOUNTINGS}
    assert analysis.tables(fake.grid(), done) == tables
    assert not analysis.write_table([], tmp_path, "nothing")
    with pytest.raises(InvalidInputError, match="Row 1"):
        analysis.write_table([{"a": 1}, {"b": 1}], tmp_path, "mixed")


def test_fewer_than_one_resample_is_refused():
    with pytest.raises(InvalidInputError, match="n_resamples"):
        analysis.fronts([], n_resamples=0)
    with pytest.raises(InvalidInputError, match="n_resamples"):
        analysis.hypervolume_ratios([], n_resamples=0)
