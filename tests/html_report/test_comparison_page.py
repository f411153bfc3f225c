"""The page of a comparison: agreement, energies, log Z and warnings, from made-up runs and by the command."""

import re
import sys
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from cdsampler.benchmark import Comparison, Entry, Pair
from cdsampler.cli import main
from cdsampler.report.html import write_comparison
from cdsampler.report.html._comparison import _most_different, verdict


def entry(name, shift=0.0, log_z=(1.0, 0.1), warnings=(), n=300, dim=3):
    rng = np.random.default_rng(len(name))
    positions = rng.standard_normal((n, dim))
    positions[:, -1] += shift
    result = SimpleNamespace(
        positions=positions,
        log_density=-0.5 * np.sum(positions**2, axis=1),
        log_z=log_z,
        evaluations_per_returned_sample=123.4,
        warnings=tuple(SimpleNamespace(code=code, meaning="It <was> seen.", advice="Do it.") for code in warnings),
    )
    return Entry(name, result, "", 1.5)


def pairs(names, differing=()):
    found = []
    for index, first in enumerate(names):
        for second in names[index + 1 :]:
            p_value = 1e-4 if {first, second} in [set(pair) for pair in differing] else 0.4
            found.append(Pair(first, second, 0.1, p_value, None))
    return tuple(found)


def test_the_page_says_who_agrees_and_needs_no_other_file(tmp_path):
    refused = Entry("rdmc", None, "the budget <20> is too small", 0.1)
    entries = (entry("nrpt"), entry("mala", 3.0, None, ["few-moves"]), refused, entry("cds", log_z=(np.nan, np.nan)))
    compared = pairs(["nrpt", "mala", "cds"], [("nrpt", "mala"), ("mala", "cds")])
    page = write_comparison(Comparison(entries, compared), ("a", "b", "c"), tmp_path / "new" / "c.html", {"seed": 7})
    text = page.read_text()
    assert "2 groups that agree within and differ between: nrpt, cds; mala. At most one is right." in text
    assert text.count('class="differs"') == 2
    assert text.count('class="agrees"') == 1
    assert "the budget &lt;20&gt; is too small" in text
    assert "It &lt;was&gt; seen." in text
    assert "1.00 ± 0.10" in text
    assert "not finite" in text
    assert '<td class="text">7</td>' in text
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    assert not re.findall(r'(?:src|href)="(?!data:)', text)
    assert "<script" not in text
    assert "{{" not in text


def test_estimates_of_log_z_are_drawn_from_two_on(tmp_path):
    entries = (entry("nrpt"), entry("oasmc", log_z=(1.1, np.nan)))
    text = write_comparison(Comparison(entries, pairs(["nrpt", "oasmc"])), "abc", tmp_path / "c.html").read_text()
    assert 'id="log-z"' in text
    assert "No sampler warned of anything." in text
    entries = (entries[0], entry("mala", log_z=None))
    text = write_comparison(Comparison(entries, pairs(["nrpt", "mala"])), "abc", tmp_path / "c.html").read_text()
    assert 'id="log-z"' not in text


@pytest.mark.parametrize(
    ("names", "differing", "words"),
    [
        (["a", "b", "c"], [], "No two of 3 samplers differ"),
        (["a", "b"], [("a", "b")], "2 groups that agree within and differ between: a; b."),
        (["a", "b", "c"], [("a", "b")], "These differ by more than chance: a and b. At least one"),
        (["a"], [], "1 sampler gave samples: there is nothing to compare"),
    ],
)
def test_the_verdict_in_words(names, differing, words):
    made = Comparison(tuple(entry(name) for name in names), pairs(names, differing))
    assert words in verdict(made)


def test_a_gap_of_log_z_counts_as_a_difference():
    gap = Pair("a", "b", 0.1, 0.5, 6.0)
    assert "differ between" in verdict(Comparison((entry("a"), entry("b")), (gap,)))


def test_without_samples_or_with_infinite_energies_there_is_a_page(tmp_path):
    refused = (Entry("a", None, "no", 0.1), Entry("b", None, "no", 0.1))
    assert "nothing to compare" in write_comparison(Comparison(refused, ()), ("x",), tmp_path / "c.html").read_text()
    lost = entry("mala")
    lost.result.log_density[:] = -np.inf
    text = write_comparison(
        Comparison((entry("a"), lost), pairs(["a", "mala"])), "abc", tmp_path / "c.html"
    ).read_text()
    assert "300 not finite" in text


def test_of_many_coordinates_those_that_differ_most_are_drawn():
    chosen = _most_different([entry("a", dim=20), entry("bb", 4.0, dim=20)], 20)
    assert len(chosen) == 7
    assert 19 in chosen
    assert chosen == sorted(chosen)


def test_the_command_writes_the_page(tmp_path, monkeypatch, capsys):
    (tmp_path / "model.py").write_text("import jax.numpy as jnp\n\ndef f(y):\n    return -0.5 * jnp.sum(y**2)\n")
    command = ["cdsampler", "compare", f"{tmp_path}/model.py:f", "--dim", "2", "--samples", "40", "--budget", "40"]
    command += ["--samplers", "mala,hmc", "--dtype", "float64", "--out", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as done:
        main()
    jax.config.update("jax_enable_x64", True)
    assert not done.value.code
    assert "comparison.html" in "".join(capsys.readouterr().out.split())
    text = (tmp_path / "out" / "comparison.html").read_text()
    assert "No two of 2 samplers differ" in text
    assert "model.py:f" in text
