"""Samplers on a density of the user's: agreement, disagreement, bad input, and the command."""

import json
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cdsampler.benchmark import Comparison, Entry, compare
from cdsampler.cli import main
from cdsampler.density import LogDensity
from cdsampler.errors import InvalidInputError
from cdsampler.report import comparison_figure, entries_table, pairs_table


@pytest.fixture(autouse=True)
def _double_precision():
    """Give back what the command sets."""
    yield
    jax.config.update("jax_enable_x64", True)


@pytest.fixture(scope="module")
def two_modes():
    """Equal modes at 1 and 9: a local chain from the nearer one never sees the other."""
    return LogDensity(lambda y: jnp.logaddexp(-0.5 * jnp.sum((y - 1) ** 2), -0.5 * jnp.sum((y - 9) ** 2)), 2)


@pytest.fixture(scope="module")
def comparison(two_modes):
    seen = []
    made = compare(two_modes, 200, 150, samplers=("oasmc", "nrpt", "cds-hmc", "nuts"), scale=3.0, on_entry=seen.append)
    assert [entry.name for entry in seen] == ["oasmc", "nrpt", "cds-hmc", "nuts"]
    return made


def test_those_that_are_right_agree_and_the_local_one_differs(comparison):
    pairs = {(pair.first, pair.second): pair for pair in comparison.pairs}
    assert pairs["oasmc", "nrpt"].p_value > 0.005
    assert abs(pairs["oasmc", "nrpt"].log_z_gap) < 4
    assert pairs["oasmc", "cds-hmc"].p_value < 0.001
    assert pairs["oasmc", "cds-hmc"].log_z_gap is None
    for entry in comparison.entries:
        assert entry.result.positions.shape == (200, 2)


def test_tables_and_figure_say_so(comparison):
    from rich.console import Console

    console = Console(width=160, record=True)
    console.print(entries_table(comparison.entries))
    console.print(pairs_table(comparison))
    text = console.export_text()
    assert "they differ" in text
    assert "no difference seen" in text
    figure = comparison_figure(comparison, ("a", "b"))
    assert len(figure.axes) == 3
    refused = Entry("rdmc", None, "too small", 0.1)
    assert "too small" in Console(width=120).render_str(str(refused))
    assert comparison_figure(Comparison((refused, comparison.entries[0]), ()), ("a", "b")).axes


def test_a_sampler_that_refuses_is_a_finding(two_modes):
    made = compare(two_modes, 60, 20, samplers=("oasmc", "rdmc", "mala"), scale=3.0)
    rdmc = next(entry for entry in made.entries if entry.name == "rdmc")
    assert rdmc.result is None
    assert "too small" in rdmc.error
    assert {name for pair in made.pairs for name in (pair.first, pair.second)} == {"oasmc", "mala"}


def test_bad_names_are_refused(two_modes):
    with pytest.raises(InvalidInputError, match=r"Unknown sampler 'nrtp'.*Did you mean 'nrpt'"):
        compare(two_modes, 10, 10, samplers=("nrtp", "oasmc"))
    with pytest.raises(InvalidInputError, match="at least 2 different samplers, got nrpt"):
        compare(two_modes, 10, 10, samplers=("nrpt",))


def call(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["cdsampler", "compare", *map(str, arguments)])
    code = 0
    try:
        main()
    except SystemExit as error:
        code = error.code or 0
    return code


def test_the_command_runs_a_file_and_writes_results(tmp_path, monkeypatch, capsys):
    (tmp_path / "model.py").write_text("import jax.numpy as jnp\n\ndef f(y):\n    return -0.5 * jnp.sum(y**2)\n")
    out = tmp_path / "out"
    code = call(
        monkeypatch, f"{tmp_path}/model.py:f", "--dim", 2, "--samples", 60, "--budget", 60,
        "--samplers", "mala,hmc", "--dtype", "float64", "--out", out,
    )  # fmt: skip
    assert code == 0
    assert "no difference seen" in capsys.readouterr().out
    summary = json.loads((out / "comparison.json").read_text())
    assert set(summary["runs"]) == {"mala", "hmc"}
    assert (out / "comparison.png").stat().st_size > 5000
    assert np.isfinite(summary["pairs"][0]["distance"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["model.py"], "FILE.py:NAME"),
        (["nowhere.py:f", "--dim", "2"], "no file nowhere.py"),
        (["{folder}/model.py:g", "--dim", "2"], "has no g"),
        (["{folder}/model.py:f"], "--dim says how many parameters"),
        (["{folder}/model.py:f", "--dim", "2", "--budget", "0"], "--budget must be at least 1, got 0"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_bad_input_is_one_line(tmp_path, monkeypatch, capsys, arguments, words):
    (tmp_path / "model.py").write_text("f = lambda y: -y @ y\n")
    assert call(monkeypatch, *[text.format(folder=tmp_path) for text in arguments]) == 2
    assert words in " ".join(capsys.readouterr().err.split())


def test_a_missing_extra_is_named_in_its_brackets(tmp_path, monkeypatch, capsys):
    (tmp_path / "model.py").write_text("f = lambda y: -y @ y\n")
    monkeypatch.setitem(sys.modules, "blackjax", None)
    code = call(monkeypatch, f"{tmp_path}/model.py:f", "--dim", 2, "--samplers", "nuts,mala")
    assert code == 2
    assert "pip install 'cdsampler[baselines]'" in " ".join(capsys.readouterr().err.split())
