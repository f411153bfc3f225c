import ast
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import cdsampler.report
from cdsampler.errors import InvalidInputError
from cdsampler.metrics import Floor, MetricValue
from cdsampler.report import Shown, pair_figure, run_figure, save_figure

PNG = b"\x89PNG\r\n\x1a\n"
TEMPERING_AXES = 6


def exact(dim, n=400):
    draws = np.random.default_rng(11).standard_normal((n, dim)) * np.linspace(3, 1, dim)
    return draws, -0.5 * np.sum(draws**2, axis=1)


def titles(figure):
    return [axes.get_title(loc="left") for axes in figure.axes]


def labels(figure):
    return [axes.get_xlabel() for axes in figure.axes]


def drawn(figure):
    """Draw the figure and check that no panel's decorated box overlaps another's or leaves the page."""
    figure.draw_without_rendering()
    boxes = [axes.get_tightbbox() for axes in figure.axes]
    page = figure.bbox
    for i, box in enumerate(boxes):
        assert page.x0 - 1 <= box.x0 <= box.x1 <= page.x1 + 1
        assert page.y0 - 1 <= box.y0 <= box.y1 <= page.y1 + 1
        for other in boxes[i + 1 :]:
            across = min(box.x1, other.x1) - max(box.x0, other.x0)
            down = min(box.y1, other.y1) - max(box.y0, other.y0)
            assert across <= 1 or down <= 1, (i, box, other)
    return figure


class TestPanels:
    @pytest.mark.parametrize("dim", [2, 16])
    def test_everything(self, make_result, metrics, dim):
        draws, log_density = exact(dim)
        figure = run_figure(make_result(dim), draws, "gm", metrics, exact_log_density=log_density, n_modes=40)
        assert len(drawn(figure).axes) == 4 + TEMPERING_AXES
        assert titles(figure)[0].startswith("Exact draws (50 of 400)")
        assert titles(figure)[1].startswith("Samples (n = 50)")
        assert "Errors; modes found: 38 of 40" in titles(figure)

    @pytest.mark.parametrize(
        ("dim", "has_exact", "has_tempering", "n_axes"),
        [
            (1, True, True, 2 + TEMPERING_AXES),
            (1, False, False, 2),
            (2, True, True, 3 + TEMPERING_AXES),
            (2, True, False, 3),
            (2, False, True, 2 + TEMPERING_AXES),
            (2, False, False, 2),
            (16, True, False, 3),
            (16, False, True, 2 + TEMPERING_AXES),
        ],
    )
    def test_missing_parts_are_left_out(self, make_result, dim, has_exact, has_tempering, n_axes):
        result = make_result(dim) if has_tempering else make_result(dim, tempering=None)
        figure = run_figure(result, exact(dim)[0] if has_exact else None, "gm")
        assert len(drawn(figure).axes) == n_axes

    def test_errors_without_tempering(self, make_result, metrics):
        figure = run_figure(make_result(tempering=None), exact(2)[0], "gm", metrics)
        assert len(drawn(figure).axes) == 4

    def test_the_title_says_what_it_is(self, make_result):
        text = run_figure(make_result(is_partial=True), None, "$odd_{name").get_suptitle()
        assert text == (
            "$odd_{name: 50 samples by NRPT (interrupted)\n"
            "304 evaluations per sample, 504 per returned sample with tuning"
        )

    def test_two_coordinates_are_shown_as_they_are(self, make_result):
        result = make_result(names=("rate $/h", "loss $"))
        figure = drawn(run_figure(result, exact(2)[0], "gm"))
        first, second = figure.axes[:2]
        assert (second.get_xlabel(), second.get_ylabel()) == ("rate $/h", "loss $")
        assert first.get_xlim() == second.get_xlim()
        assert first.get_ylim() == second.get_ylim()
        dots = second.collections[0].get_offsets()
        np.testing.assert_allclose(dots, result.positions)

    def test_more_coordinates_are_projected_on_the_principal_axes_of_the_exact_draws(self, make_result):
        result, (draws, _) = make_result(16), exact(16, 20_000)
        axes = run_figure(result, draws, "gm").axes[1]
        assert "principal axes of exact draws" in axes.get_title(loc="left")
        # The scales fall from 3 to 1 along the coordinates, so the axes are about the first two.
        dots = np.asarray(axes.collections[0].get_offsets())
        assert abs(np.corrcoef(dots[:, 0], result.positions[:, 0])[0, 1]) > 0.8

    def test_without_exact_draws_the_axes_are_the_samples_own(self, make_result):
        assert "principal axes of samples" in titles(run_figure(make_result(5), None, "x"))[0]

    def test_outlying_samples_are_counted_not_shown(self, make_result):
        samples = make_result(n=1000).samples
        samples[3] = 1e6
        log_density = np.zeros((1000, 1))
        result = make_result(samples=samples, log_density=log_density, tempering=None)
        figure = drawn(run_figure(result, exact(2)[0], "gm"))
        assert ", 1 outside)" in titles(figure)[1]
        assert figure.axes[1].get_xlim()[1] < 100

    def test_energies_that_are_not_finite_are_counted(self, make_result):
        log_density = make_result().log_density
        log_density[:3] = -np.inf
        figure = drawn(run_figure(make_result(log_density=log_density), None, "gm"))
        assert labels(figure)[1] == "−log density (nats); 3 not finite"
        log_density[:] = np.nan
        drawn(run_figure(make_result(log_density=log_density), None, "gm"))

    def test_energy_histogram_is_a_density(self, make_result):
        draws, log_density = exact(2)
        axes = run_figure(make_result(), draws, "gm", exact_log_density=log_density).axes[2]
        heights, edges, _ = axes.patches[-1].get_data()
        assert np.sum(heights * np.diff(edges)) == pytest.approx(1, abs=0.05)
        assert [text.get_text() for text in axes.get_legend().get_texts()] == ["exact", "samples"]


class TestTempering:
    def test_area_under_the_local_barrier_is_the_barrier(self, make_result, make_tempering):
        tempering = make_tempering()
        figure = run_figure(make_result(tempering=tempering), None, "gm")
        local, total = figure.axes[4], figure.axes[5]
        assert local.get_xscale() == "log"
        beta, height = local.lines[0].get_data()
        # All but the first pair, from 0, which a logarithmic axis doesn't hold.
        assert np.trapezoid(height, np.log(beta)) == pytest.approx(tempering.rejection[1:].sum(), rel=1e-3)
        assert total.lines[0].get_ydata()[-1] == pytest.approx(tempering.barrier)

    def test_an_even_schedule_has_plain_axes(self, make_result, make_tempering):
        tempering = make_tempering(np.linspace(0, 1, 8))
        figure = drawn(run_figure(make_result(tempering=tempering), None, "gm"))
        local = figure.axes[4]
        assert (local.get_xscale(), figure.axes[2].get_yscale()) == ("linear", "linear")
        beta, height = local.lines[0].get_data()
        assert np.trapezoid(height, beta) == pytest.approx(tempering.barrier, rel=1e-2)

    @pytest.mark.parametrize(
        "betas",
        [[0, 1], [0.5, 1], [0, 1e-3, 1], [1e-4, 1], np.append(0, np.geomspace(1e-12, 1, 150))],
        ids=["two", "two-flat", "three", "two-flat-log", "many"],
    )
    def test_ladders_of_any_size(self, make_result, make_tempering, betas):
        drawn(run_figure(make_result(tempering=make_tempering(betas)), None, "gm"))

    def test_a_flat_reference(self, make_result, flat_tempering):
        figure = drawn(run_figure(make_result(tempering=flat_tempering), None, "gm"))
        assert figure.axes[2].get_yscale() == "log"
        assert figure.axes[5].lines[0].get_ydata()[0] == 0

    def test_travels_are_counted_in_whole_bins(self, make_result, make_tempering):
        counts = np.array([1000] * 10 + [1150] * 30 + [1401] * 10)
        tempering = make_tempering(restarts=counts, round_trips=np.zeros(50, int))
        upper, lower = drawn(run_figure(make_result(tempering=tempering), None, "gm")).axes[6:8]
        assert sum(bar.get_height() for bar in upper.patches) == 50
        assert sum(bar.get_height() for bar in lower.patches) == 50
        assert lower.get_xlabel() == "round trips: mean 0, none in 100 %"


def test_one_sample(make_result, make_tempering):
    tempering = make_tempering(restarts=np.array([3]), round_trips=np.array([0]))
    for dim in (1, 2, 5):
        drawn(run_figure(make_result(dim, n=1, tempering=tempering), None, "gm"))


def test_many_samples_are_thinned(make_result):
    axes = run_figure(make_result(n=20_001, tempering=None), exact(2)[0], "gm").axes[1]
    assert len(axes.collections[0].get_offsets()) <= 5000
    assert axes.get_title(loc="left").endswith("of 20,001)")


@pytest.mark.parametrize("bad", [np.zeros((5, 3)), np.zeros(2), np.zeros((0, 2)), np.full((5, 2), np.nan)])
def test_bad_exact_draws_are_refused(result, bad):
    with pytest.raises(InvalidInputError, match=r"shape \(n, 2\)"):
        run_figure(result, bad, "gm")


def test_bad_exact_log_densities_are_refused(result):
    with pytest.raises(InvalidInputError, match="log densities"):
        run_figure(result, None, "gm", exact_log_density=np.zeros((3, 1)))


def test_pyplot_is_never_used():
    for file in Path(cdsampler.report.__file__).parent.glob("*.py"):
        names = [
            node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ImportFrom | ast.Import)
        ]
        assert not any("pyplot" in ast.unparse(node) for node in names), file


class TestPairs:
    def test_a_panel_for_each_pair_and_each_coordinate(self, make_result):
        figure = pair_figure(make_result(dim=3))
        assert len(figure.axes) == 6
        assert all(axes.lines or axes.patches for axes in figure.axes)

    def test_names_choose_and_wrong_ones_are_named(self, make_result):
        result = make_result(dim=3)
        assert len(pair_figure(result, names=result.names[:2]).axes) == 3
        with pytest.raises(InvalidInputError, match="'nothing'"):
            pair_figure(result, names=["x0", "nothing"])
        with pytest.raises(InvalidInputError, match="two coordinates"):
            pair_figure(result, names=["x0"])


class TestSave:
    def test_a_png_in_a_new_folder_and_nothing_else(self, result, tmp_path):
        path = save_figure(run_figure(result, None, "gm"), tmp_path / "new" / "run.png")
        assert path.read_bytes().startswith(PNG)
        assert [file.name for file in path.parent.iterdir()] == ["run.png"]

    def test_a_failure_leaves_the_old_file_and_no_other(self, tmp_path, monkeypatch):
        path = tmp_path / "run.png"
        path.write_bytes(b"old")

        def fail(self, file, **options):
            Path(file).write_bytes(b"half")
            raise OSError("disk full")

        monkeypatch.setattr(Figure, "savefig", fail)
        with pytest.raises(OSError, match="disk full"):
            save_figure(Figure(), path)
        assert path.read_bytes() == b"old"
        assert list(tmp_path.iterdir()) == [path]

    def test_an_old_file_is_replaced(self, tmp_path):
        path = tmp_path / "run.png"
        path.write_bytes(b"old")
        save_figure(Figure(figsize=(1, 1)), str(path))
        assert path.read_bytes().startswith(PNG)


class TestOtherQuantities:
    def test_two_quantities_replace_the_coordinates(self, make_result):
        rng = np.random.default_rng(1)
        shown = Shown(rng.uniform(-180, 180, (50, 2)), rng.uniform(-180, 180, (300, 2)), ("φ (degrees)", "ψ (degrees)"))
        figure = drawn(run_figure(make_result(60), None, "aldp", shown=shown))
        assert labels(figure)[:2] == ["φ (degrees)", "φ (degrees)"]
        np.testing.assert_allclose(figure.axes[1].collections[0].get_offsets(), shown.samples)

    def test_one_quantity_of_parts_of_samples_is_a_histogram(self, make_result):
        rng = np.random.default_rng(1)
        shown = Shown(rng.random((700, 1)), rng.random((9000, 1)), ("pair distance (r_m)",))
        energies = Shown(rng.random((50, 1)), rng.random((80, 1)), ("potential energy (kJ/mol)",))
        figure = drawn(run_figure(make_result(36), None, "lj-13", shown=shown, energies=energies))
        assert labels(figure)[:2] == ["pair distance (r_m)", "potential energy (kJ/mol)"]
        assert titles(figure)[0] == "Samples (n = 700)"

    def test_errors_over_many_decades_keep_their_ticks_apart(self, make_result):
        metrics = [MetricValue("mmd_squared_energy", 0.6, Floor(0.001, 0.0007, 20), 4600.0, 500)]
        axes = drawn(run_figure(make_result(tempering=None), None, "gm", metrics)).axes[-1]
        assert list(axes.get_xticks()) == [1, 10, 100, 1000]
