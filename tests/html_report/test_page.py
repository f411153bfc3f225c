import io
import json
import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from cdsampler.cli._report import report
from cdsampler.errors import InvalidInputError
from cdsampler.report.html import write_report
from cdsampler.report.html._front_picture import front_picture
from cdsampler.report.html._look import looks
from cdsampler.report.html._study import study_lines
from cdsampler.report.html._sweep import analyse

VOID = {"meta", "link", "img", "br"}


class Outline(HTMLParser):
    """Checks that elements close, and gathers what a page refers to."""

    def __init__(self):
        super().__init__()
        self.open, self.addresses, self.pictures, self.texts = [], [], [], []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.addresses += [attributes[name] for name in ("src", "href") if name in attributes]
        if tag == "img":
            self.pictures.append(attributes["alt"])
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture(scope="module")
def written(fake, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    fake.write_store(folder, fake.grid(n_seeds=2), name="<sweep> & {{data}}")
    return write_report(folder, folder / "out" / "page.html", n_resamples=5)


def test_the_page_needs_no_other_file(written):
    text = written.page.read_text()
    outline = Outline()
    outline.feed(text)
    assert not outline.open
    assert all(address.startswith("data:") for address in outline.addresses)
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    assert len(outline.pictures) == 8  # 1 plane, 3 energies, 1 of angles, 3 of the replicas
    assert all(outline.pictures)
    assert "<sweep> & {{data}}" in "".join(outline.texts)
    leads = re.findall(r'<h2 [^>]*>[^<]*</h2>\s*<p class="lead">', text)
    assert len(leads) == text.count("<section")


def test_the_script_has_every_sampler_and_panel(written):
    text = written.page.read_text()
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL).group(1))
    assert [sampler["label"] for sampler in data["samplers"]] == ["cds", "nrpt", "oasmc", "mala"]  # best first
    assert len(data["panels"]["independent"]) == len(data["panels"]["returned"]) == 6
    panel = data["panels"]["returned"][0]
    series = {data["samplers"][one["sampler"]]["label"]: one for one in panel["series"]}
    assert series["nrpt"]["points"][0][0] == 600
    assert series["oasmc"]["low"][0] == [0, None]  # infeasible at the least budget
    assert 0 < series["oasmc"]["low"][1][0] < panel["grid"][2]
    assert sum(point[8] for point in series["nrpt"]["points"]) == 3


def test_errors_below_the_floor_are_drawn_there_and_told_as_they_were(fake, tmp_path):
    fake.write_store(tmp_path, [fake.record(values={"wasserstein_2": 0.2})], with_samples=False)
    written = write_report(tmp_path, n_resamples=2)
    data = json.loads(re.search(r'id="data">(.*?)</script>', written.page.read_text(), re.DOTALL).group(1))
    panel = data["panels"]["independent"][0]
    assert panel["floor"] == 0.5
    assert panel["series"][0]["points"][0][1:4] == [0.5, 0.2, 0.4]
    (points,) = [path for path in written.tables if path.name == "points.csv"]
    assert ",0.2,0.5,0.4," in points.read_text()


def test_the_bootstrap_is_done_once_for_each_accounting(fake, tmp_path, monkeypatch):
    calls = []
    module = sys.modules["cdsampler.benchmark.fronts._analysis"]
    original = module.means_of
    monkeypatch.setattr(module, "means_of", lambda *arguments: calls.append(1) or original(*arguments))
    fake.write_store(tmp_path, [fake.record()], with_samples=False)
    write_report(tmp_path, n_resamples=2)
    assert len(calls) == 2


def test_mixed_machines_and_missing_runs_are_said_on_the_page(fake, tmp_path):
    records = [fake.record(), fake.record(label="mala", device="gpu"), fake.record("lj-13")]
    fake.write_store(tmp_path, records, with_samples=False)
    text = write_report(tmp_path, n_resamples=1).page.read_text()
    assert "Runs of 2 devices are compared on gm-2: cpu (2 runs of nrpt); gpu (1 run of mala)" in text
    assert "lj-13 has runs of 1 of 2 samplers" in text


def test_troubles_alike_are_one_row(fake, tmp_path):
    runs = [fake.record(budget=budget, seed=seed) for budget in (100, 200, 400) for seed in range(2)]
    failed = [
        fake.record(task, "cds", budget, status="infeasible", error=f"A step costs {2 * budget} evaluations")
        for budget in (10, 20)
        for task in ("gm-2", "lj-13")
    ]
    noisy = [run | {"warnings": ["slow", "slow"], "warning_texts": [f"slow: {i} %."] * 2} for i, run in enumerate(runs)]
    fake.write_store(tmp_path, noisy + failed, with_samples=False)
    text = write_report(tmp_path, n_resamples=1).page.read_text()
    assert text.count("A step costs") == 1
    assert "4 of 4" in text
    assert "gm-2 at 10, 20; lj-13 at 10, 20" in text
    assert text.count("0 %.") == 1
    assert "nrpt</span> 6 of 6" in text


def test_names_are_explained(written):
    text = written.page.read_text()
    assert "<dt>lj-13</dt><dd>Cluster of 13 Lennard-Jones particles" in text
    assert "<dt>mala</dt>" in text
    assert "<dt>Wasserstein-2</dt>" in text


def test_tables_say_what_failed_and_what_it_costs(written):
    text = written.page.read_text()
    assert "SomeError: &lt;failed&gt; &amp; more" not in text  # of two repeats, the third failed nowhere
    assert "SomeError: &lt;infeasible&gt; &amp; more" in text
    assert "few-restarts" in text
    assert "not reached" in text
    assert "weight of C7ax" in text


def test_figures_and_tables_lie_beside_the_page(written):
    names = {path.relative_to(written.page.parent).as_posix() for path in written.figures + written.tables}
    assert {"figures/fronts-gm-2-returned.pdf", "figures/samples-gm-2.png", "tables/points.csv"} <= names
    assert all(path.stat().st_size > 0 for path in written.figures + written.tables)
    assert not list(written.page.parent.rglob(".*"))


def test_missing_samples_are_noted_and_the_rest_is_drawn(fake, tmp_path):
    fake.write_store(tmp_path, fake.grid(("gm-2",), n_seeds=1), with_samples=False, torn='{"half')
    notes = " ".join(write_report(tmp_path, n_resamples=2).notes)
    assert "no samples to draw for gm-2 (all samplers)" in notes
    assert "torn" in notes
    assert "torn" in (tmp_path / "report.html").read_text()


def test_a_sweep_without_samples_still_has_a_page(fake, tmp_path):
    fake.write_store(tmp_path, [fake.record(status="failed")])
    written = write_report(tmp_path, n_resamples=2)
    assert "SomeError" in written.page.read_text()


def test_samples_that_are_not_finite_or_far_away_are_drawn_as_far_as_they_can_be(fake, tmp_path):
    record = fake.record()
    fake.write_store(tmp_path, [record])
    broken = {"positions": np.array([[np.nan, 0], [1e9, 0], [0, 0]]), "energies": np.array([np.inf, 1e9, 18.0])}
    np.savez(tmp_path / record["samples_file"], **broken)
    names = [path.name for path in write_report(tmp_path, n_resamples=2).figures]
    assert "samples-gm-2.png" in names
    assert "energies-gm-2.png" in names


def test_a_sampler_whose_errors_are_not_finite_is_told_from_one_without_samples(fake, tmp_path):
    lost = fake.record(label="lost", values={"wasserstein_2": 1.0})
    lost["metrics"]["wasserstein_2"] |= {"value": None, "ratio": None}
    fake.write_store(tmp_path, [fake.record(values={"wasserstein_2": 1.0}), lost], with_samples=False)
    text = write_report(tmp_path, n_resamples=2).page.read_text()
    assert "best not finite" in text
    assert "no samples<" not in text
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL).group(1))
    assert [series["sampler"] for series in data["panels"]["independent"][0]["series"]] == [0]


def test_a_task_on_which_a_setting_does_not_vary_has_no_study(fake, tmp_path):
    records = [*fake.study(), fake.record("lj-13", "cds"), fake.record("lj-13", "nrpt")]
    fake.write_store(tmp_path, records, with_samples=False)
    names = {path.stem for path in write_report(tmp_path, n_resamples=1).figures}
    assert {name for name in names if name.startswith("study")} == {"study-rho-gm-2"}


def test_legends_stay_within_the_figure(fake, tmp_path):
    records = [fake.record(label=f"a sampler with a long name {i}") for i in range(9)]
    fake.write_store(tmp_path, records, with_samples=False)
    figure = front_picture(analyse(tmp_path, n_resamples=1), "gm-2", "independent").figure
    figure.savefig(io.BytesIO(), format="png")
    (legend,) = figure.legends
    assert legend.get_window_extent().x1 <= figure.bbox.x1
    assert legend.get_window_extent().y0 >= max(axes.bbox.y1 for axes in figure.axes)


def test_damaged_samples_are_refused(fake, tmp_path):
    record = fake.record()
    fake.write_store(tmp_path, [record])
    (tmp_path / record["samples_file"]).write_bytes(b"nothing")
    with pytest.raises(InvalidInputError, match="cannot be read"):
        write_report(tmp_path, n_resamples=2)


def test_a_study_is_told_from_a_plain_sweep(fake, tmp_path):
    fake.write_store(tmp_path / "study", fake.study(), with_samples=False)
    lines = study_lines(analyse(tmp_path / "study", n_resamples=1))
    assert [(line.name, line.setting) for line in lines] == [("cds", "rho"), ("nrpt", "rho")]
    records = fake.grid(labels=("mala", "oasmc"))
    fake.write_store(tmp_path / "plain", records, with_samples=False)
    assert not study_lines(analyse(tmp_path / "plain", n_resamples=1))


def test_a_study_with_a_label_for_each_value_is_one_line(fake, tmp_path):
    records = [fake.record(label=f"cds {kind}", changes={"kernel": kind}) | {"sampler": "cds"} for kind in ("a", "b")]
    fake.write_store(tmp_path, records, with_samples=False)
    (line,) = study_lines(analyse(tmp_path, n_resamples=1))
    assert (line.name, line.setting) == ("cds", "kernel")
    assert "study-kernel-gm-2.png" in {path.name for path in write_report(tmp_path, n_resamples=1).figures}


def test_a_study_of_two_settings_has_a_line_for_each_value_of_the_lesser(fake, tmp_path):
    grid = [{"noise": noise, "steps": steps} for noise in (0.1, 0.5, 2.0) for steps in (0, 1)]
    fake.write_store(tmp_path, [fake.record(changes=changes) for changes in grid], with_samples=False)
    lines = study_lines(analyse(tmp_path, n_resamples=1))
    assert [(line.name, line.setting) for line in lines] == [("nrpt, steps=0", "noise"), ("nrpt, steps=1", "noise")]
    assert [sorted(line.values.values()) for line in lines] == [[0.1, 0.5, 2.0]] * 2
    assert "study-noise-gm-2.png" in {path.name for path in write_report(tmp_path, n_resamples=1).figures}


def test_many_samplers_look_different():
    labels = [f"s{i}" for i in range(20)]
    assert len(set(looks(labels).values())) == 20


def test_wrong_input_is_refused(fake, tmp_path):
    with pytest.raises(InvalidInputError, match="accounting"):
        write_report(tmp_path, accounting="free")
    with pytest.raises(InvalidInputError, match="is a folder"):
        write_report(tmp_path, tmp_path)
    with pytest.raises(InvalidInputError, match="no store"):
        write_report(tmp_path)


def test_the_command_writes_the_page(fake, tmp_path):
    fake.write_store(tmp_path / "s", fake.grid(("lj-13",), ("nrpt",), n_seeds=1))
    app = typer.Typer()
    app.command("report")(report)
    out = tmp_path / "page.html"
    result = CliRunner().invoke(app, [str(tmp_path / "s"), "--out", str(out), "--accounting", "returned"])
    assert result.exit_code == 0, result.output
    assert '<body data-accounting="returned">' in out.read_text()
