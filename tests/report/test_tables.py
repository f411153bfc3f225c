import io
import re

import numpy as np
import pytest
from rich.console import Console

from cdsampler.kernels import MALA
from cdsampler.metrics import Floor, MetricValue
from cdsampler.paths import GaussianReference, geometric_schedule
from cdsampler.report import annealing_table, cost_table, metrics_table, tempering_table, warnings_panel
from cdsampler.samplers import SMC, AnnealingDiagnostics


def rendered(renderable, width=120, **options):
    console = Console(record=True, width=width, file=io.StringIO(), **options)
    console.print(renderable)
    return console.export_text(styles="force_terminal" in options)


def row(text, label):
    """Cells of the first row whose first cell is the label."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("│").split("│")]
        if cells[0] == label:
            return cells[1:]
    raise AssertionError(f"no row {label!r} in\n{text}")


class TestMetrics:
    def test_each_error_stands_beside_its_floor_and_multiple(self, metrics):
        text = rendered(metrics_table(metrics))
        assert row(text, "Wasserstein-2") == ["5.13", "4.8 ± 1.4", "1.06 ×", "500"]
        assert row(text, "MMD² of energies") == ["-0.00120", "(9.3 ± 8.1)e-04", "-1.29 ×", "500"]
        assert row(text, "TV of mode weights") == ["0.300", "0.100 ± 0.010", "3.00 ×", "500"]

    def test_modes_are_counted_out_of_all(self, metrics):
        assert row(rendered(metrics_table(metrics, n_modes=40)), "modes found") == [
            "38 of 40",
            "–",
            "–",
            "500",
        ]
        assert row(rendered(metrics_table(metrics)), "modes found")[0] == "38"

    def test_colour_tells_noise_from_error(self):
        floor = Floor(0.1, 0.01, 40)
        values = [MetricValue(name, v, floor, v / 0.1, 10) for name, v in (("a", 0.119), ("b", 0.15), ("c", 0.21))]
        text = rendered(metrics_table(values), force_terminal=True, color_system="standard")
        coloured = re.findall(r"\x1b\[(3\d)m *([\d.]+ ×)", text)
        green, yellow, red = "32", "33", "31"
        assert coloured == [(green, "1.19 ×"), (yellow, "1.50 ×"), (red, "2.10 ×")]

    def test_a_floor_of_one_repeat_has_no_spread(self):
        values = [MetricValue("wasserstein_1", 2.0, Floor(1.9, float("nan"), 1), 2 / 1.9, 10)]
        assert row(rendered(metrics_table(values)), "Wasserstein-1") == ["2.00", "1.90", "1.05 ×", "10"]

    def test_a_metric_without_a_ratio_keeps_its_floor(self):
        values = [MetricValue("relative_mae", 0.1, Floor(0.0, 0.0, 3), None, 10)]
        assert row(rendered(metrics_table(values)), "error of ⟨observable⟩") == ["0.100", "0", "–", "10"]

    def test_what_is_no_error_stands_beside_the_exact_value(self):
        floor = Floor(0.010, 0.002, 40)
        values = [MetricValue("c7ax_weight", v, floor, None, 500, is_error=False) for v in (0.013, 0.017, 0.03)]
        text = rendered(metrics_table(values))
        assert row(text, "weight of C7ax") == ["0.0130", "0.0100 ± 0.0020", "+1.5 sd", "500"]
        coloured = rendered(metrics_table(values), force_terminal=True, color_system="standard")
        green, yellow, red = "32", "33", "31"
        assert re.findall(r"\x1b\[(3\d)m *([+\d.]+) sd", coloured) == [
            (green, "+1.5"),
            (yellow, "+3.5"),
            (red, "+10.0"),
        ]
        never = [MetricValue("c7ax_weight", 0.1, Floor(0.0, 0.0, 40), None, 500, is_error=False)]
        assert row(rendered(metrics_table(never)), "weight of C7ax")[2] == "–"


class TestCost:
    def test_both_accountings_and_the_totals(self, result):
        text = rendered(cost_table(result))
        assert row(text, "samples returned") == ["50"]
        assert row(text, "evaluations per independent sample (its own chain)") == ["304"]
        assert row(text, "evaluations per returned sample (tuning included)") == ["504"]
        assert row(text, "evaluations in production") == ["15,200"]
        assert row(text, "of the value alone") == ["200"]
        assert row(text, "with the gradient") == ["15,000"]
        assert row(text, "evaluations in tuning") == ["10,000"]

    def test_time_has_compilation_apart(self, result):
        text = rendered(cost_table(result))
        assert row(text, "production time") == ["2 s"]
        assert row(text, "compilation time") == ["5 s"]
        assert row(text, "evaluations per second (without compilation)") == ["7,600"]

    def test_non_finite_outcomes_appear_only_if_there_are_any(self, make_result, evaluations, result):
        assert "that gave" not in rendered(cost_table(result))
        counted = make_result(
            evaluations=evaluations(50, gradient=100, nan=1),
            tuning_evaluations=evaluations(1, gradient=1000, neg_inf=3).total(),
        )
        text = rendered(cost_table(counted))
        assert row(text, "evaluations that gave NaN") == ["50 (0.8 %)"]
        assert row(text, "evaluations that gave -inf") == ["3 (<0.1 %)"]
        assert "+inf" not in text

    def test_no_rate_without_a_time(self, make_result):
        instant = make_result(timing=make_result().timing._replace(total=5.0))
        assert row(rendered(cost_table(instant)), "evaluations per second (without compilation)") == ["–"]

    def test_an_interrupted_run_says_so(self, make_result):
        assert "interrupted" in rendered(cost_table(make_result(is_partial=True)))


class TestTempering:
    def test_rates_and_travels(self, result):
        text = rendered(tempering_table(result))
        assert row(text, "barrier Λ") == ["2.00"]
        assert row(text, "replicas") == ["6"]
        assert row(text, "round trips per chain") == ["mean 1.50, min 1, none in 0 %"]
        assert row(text, "restarts per chain") == ["mean 2.00, min 0, none in 20 %"]
        assert row(text, "swap rejection") == ["0.30 to 0.50 (mean 0.40)"]
        # 1 / (2 + 2 Σ r/(1-r)) with r = .30, .35, .40, .45, .50
        assert row(text, "predicted round trips per step") == ["0.112 (one in 8.90 steps)"]

    def test_acceptance_is_that_of_the_replicas_that_move(self, result, make_result, flat_tempering):
        assert row(rendered(tempering_table(result)), "local acceptance") == ["0.55 to 0.60 (mean 0.57)"]
        flat = rendered(tempering_table(make_result(tempering=flat_tempering)))
        assert row(flat, "local acceptance") == ["0.50 to 0.60 (mean 0.55)"]

    def test_evidence_both_ways(self, result):
        text = rendered(tempering_table(result))
        assert row(text, "log Z ± standard error") == ["-1.250 ± 0.031"]
        assert row(text, "stepping stones up and down") == ["-1.230 and -1.270"]

    def test_one_chain_has_no_error_and_a_flat_reference_no_evidence(self, make_result, make_tempering, flat_tempering):
        evidence = make_tempering().evidence._replace(standard_error=float("nan"))
        one = rendered(tempering_table(make_result(tempering=make_tempering(evidence=evidence))))
        assert row(one, "log Z ± standard error") == ["-1.25 (one chain: no error)"]
        flat = rendered(tempering_table(make_result(tempering=flat_tempering)))
        assert row(flat, "log Z") == ["none (flat reference)"]

    def test_a_closed_ladder_predicts_no_round_trips(self, make_result, make_tempering):
        closed = make_tempering(rejection=np.array([0.3, 1.0, 0.3, 0.3, 0.3]))
        text = rendered(tempering_table(make_result(tempering=closed)))
        assert row(text, "predicted round trips per step") == ["0"]

    def test_nothing_without_the_stage(self, make_result):
        assert tempering_table(make_result(tempering=None)) is None


class TestWarnings:
    def test_each_has_its_meaning_and_advice(self, make_result, warnings):
        text = rendered(warnings_panel(make_result(warnings=warnings)))
        assert "2 warnings" in text
        assert "few-restarts: 12% of the samples never received a draw. Raise the budget." in text
        assert "nan: 3 of 100 evaluations [of them] gave NaN. Mend the density." in text  # no markup

    def test_nothing_without_any(self, result):
        assert warnings_panel(result) is None


@pytest.mark.parametrize("width", [80, 120])
def test_tables_fit_a_terminal(result, metrics, width):
    for table in (metrics_table(metrics, n_modes=40), cost_table(result), tempering_table(result)):
        text = rendered(table, width)
        assert "…" not in text
        assert max(map(len, text.splitlines())) <= width


class TestAnnealing:
    def particles(self, make_result, evaluations, **changes):
        sampler = SMC(GaussianReference(3.0), geometric_schedule(6, 1e-3), MALA(0.5), n_particles=10)
        fields = {"sampler": sampler, "evaluations": evaluations(5, gradient=600), "tempering": None, **changes}
        return make_result(**fields)

    def test_groups_their_worth_and_log_z(self, make_result, evaluations):
        annealing = AnnealingDiagnostics(-1.25, 0.03, 5, 10, 4.5, 0.52, 6.4, 3.0, 0.57)
        text = rendered(annealing_table(self.particles(make_result, evaluations, annealing=annealing)))
        assert row(text, "groups") == ["5"]
        assert row(text, "groups that their weights are worth") == ["4.50"]
        assert row(text, "smallest effective share before resampling") == ["52 %"]
        assert row(text, "log Z ± standard error") == ["-1.250 ± 0.030"]
        alone = annealing._replace(n_groups=1, standard_error=float("nan"))
        text = rendered(annealing_table(self.particles(make_result, evaluations, annealing=alone)))
        assert "one group: no error" in row(text, "log Z ± standard error")[0]

    def test_without_particles_there_is_none(self, result):
        assert annealing_table(result) is None

    def test_a_groups_cost_is_called_that(self, make_result, evaluations):
        text = rendered(cost_table(self.particles(make_result, evaluations)))
        assert row(text, "evaluations per group of 10 particles") == ["600"]

    def test_waiting_for_longer_chains_is_shown(self, make_result, evaluations):
        result = self.particles(make_result, evaluations, executed_evaluations=3500)
        assert row(rendered(cost_table(result)), "evaluations executed while chains waited for longer ones") == ["500"]
