import importlib
import itertools
import subprocess
import sys

import pytest

from cdsampler.benchmark import sweeps
from cdsampler.errors import InvalidInputError, MissingExtraError


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("repeats = 2", "repeat = 2", r"repeat.*Did you mean 'repeats'"),
        ("[tasks.gm-2]", "[tasks.gm-3]", r"gm-3.*Did you mean 'gm-2'"),
        ("samples = 20", "sample = 20", r"\[tasks.gm-2\].*'sample'.*Did you mean 'samples'"),
        ("samples = 20", "samples = 1", r"samples of \[tasks.gm-2\].*got 1"),
        ("samples = 20", "", r"\[tasks.gm-2\] needs samples"),
        ("samples = 20", 'samples = "20"', r"samples of \[tasks.gm-2\].*got '20'"),
        ("[40, 20]", "[40, 0]", r"\[tasks.gm-2\]: budgets must be at least 1, got 0"),
        ("[40, 20]", "[40, 40]", r"budgets has 40 twice"),
        ("[samplers.mala]", "[samplers.mela]", r"\[samplers.mela\].*Did you mean 'mala'"),
        ("[samplers.mala]", '[samplers.x]\nsampler = "nutz"', r"nutz.*Did you mean 'nuts'"),
        ("[samplers.mala]", '[samplers.mala]\ntasks = ["gm-1"]', r"task of this sweep 'gm-1'"),
        ("[samplers.mala]", "[samplers.mala]\ngrids = {}", r"\[samplers.mala\].*Did you mean 'grid'"),
        ("n_leapfrog = [2", "n_leapfrogs = [2", r"\[samplers.hmc\] grid.*Did you mean 'n_leapfrog'"),
        ("n_leapfrog = [2, 3]", "n_leapfrog = []", r"n_leapfrog has no values"),
        ("n_leapfrog = [2, 3]", "n_leapfrog = [2.5]", r"n_leapfrog is a int, got 2.5"),
        ("n_leapfrog = [2, 3]", "n_leapfrog = [true]", r"n_leapfrog is a int, got True"),
        ("repeats = 2", "repeats = 2\nseeds = [1]", r"give one of them"),
        ("repeats = 2", "seeds = [-1]", r"seeds must lie in .*got -1"),
        ('"float64"', '"float16"', r"dtype 'float16'"),
        ("repeats = 2", 'preset = "papers"', r"Did you mean 'paper'"),
        ('"tiny"', '"a/b"', r"name of the file"),
        ("repeats = 2", "repeats = ", r"not TOML"),
    ],
)
def test_what_is_wrong_is_named(tiny, old, new, message):
    assert old in tiny
    with pytest.raises(InvalidInputError, match=rf"(?s)^here.*{message}"):
        sweeps.parse_config(tiny.replace(old, new), where="here")


@pytest.mark.parametrize("name", sweeps.list_presets())
def test_every_sweep_of_the_library_expands(name):
    sweep = sweeps.read_config(name)
    assert sweep.name == name
    pytest.importorskip("blackjax")
    jobs = sweeps.expand(sweep, tasks=[sweep.tasks[0].name])
    assert len({job.spec.key for job in jobs}) == len(jobs)


def test_names_and_files_that_are_not_there(tmp_path):
    with pytest.raises(InvalidInputError, match="Did you mean 'smoke'"):
        sweeps.read_config("smok")
    with pytest.raises(InvalidInputError, match="no file"):
        sweeps.read_config(tmp_path / "none.toml")


def test_a_grid_is_a_product_in_a_fixed_order_with_fixed_keys(tiny):
    jobs = sweeps.expand(sweeps.parse_config(tiny))
    runs = [(job.spec.label, job.spec.changes.get("n_leapfrog"), job.spec.budget, job.spec.seed) for job in jobs]
    expected = [("mala", None, budget, seed) for budget in (20, 40) for seed in (0, 1)]
    expected += [("hmc", n, budget, seed) for n in (2, 3) for budget in (20, 40) for seed in (0, 1)]
    assert sorted(runs, key=str) == sorted(expected, key=str)
    assert runs[:4] == expected[:4]  # cheap budgets come first, then seeds
    again = sweeps.expand(sweeps.parse_config(tiny))
    assert [job.spec.key for job in again] == [job.spec.key for job in jobs]
    assert [job.structure for job in again] == [job.structure for job in jobs]


def test_keys_are_the_same_on_every_machine():
    spec = sweeps.RunSpec("gm-2", "a", "mala", {"step_size": 1.0}, {}, 20, 10, 0, "recommended")
    assert spec.key == "ebdc05a75327aca2"


def test_runs_of_one_program_are_neighbours():
    text = """
    name = "neighbours"
    [tasks.gm-2]
    samples = 10
    budgets = [2000, 1000]
    [samplers.cds]
    grid = { tau = [1.0, 2.0], kernel = ["mala", "hmc"] }
    """
    structures = [job.structure for job in sweeps.expand(sweeps.parse_config(text))]
    assert len(set(structures)) == 2
    assert structures == sorted(structures, key=structures.index)
    assert sum(a != b for a, b in itertools.pairwise(structures)) == 1


def test_only_some_tasks_and_samplers(tiny):
    sweep = sweeps.parse_config(tiny)
    assert {job.spec.label for job in sweeps.expand(sweep, samplers=["hmc"])} == {"hmc"}
    with pytest.raises(InvalidInputError, match="sampler of this sweep 'hmcc'"):
        sweeps.expand(sweep, samplers=["hmcc"])
    with pytest.raises(InvalidInputError, match="task of this sweep 'gm-16'"):
        sweeps.expand(sweep, tasks=["gm-16"])


def test_a_budget_that_is_too_small_is_infeasible_unless_all_are(tiny):
    text = tiny.replace("[2, 3]", "[2, 30]")
    problems = {
        (job.spec.changes["n_leapfrog"], job.spec.budget): job.problem
        for job in sweeps.expand(sweeps.parse_config(text), samplers=["hmc"])
    }
    assert [key for key, problem in problems.items() if problem] == [(30, 20)]
    assert "20 evaluations per sample is too small" in problems[30, 20]
    with pytest.raises(
        InvalidInputError, match=r"\[samplers.hmc\] on gm-2 with n_leapfrog=90 can't .* 20, 40: .*least 91"
    ):
        sweeps.expand(sweeps.parse_config(tiny.replace("[2, 3]", "[2, 90]")))


def test_more_particles_than_samples_are_refused(tiny):
    text = tiny + "\n[samplers.oasmc]\ngrid = { n_particles = [21] }\n"
    with pytest.raises(InvalidInputError, match="makes 21 particles at once"):
        sweeps.expand(sweeps.parse_config(text))


def test_settings_that_do_not_go_together_are_named(tiny):
    text = tiny + "\n[samplers.digs]\ngrid = { alpha_min = [0.95] }\n"
    with pytest.raises(InvalidInputError, match=r"\[samplers.digs\] on gm-2: alpha_min and alpha_max"):
        sweeps.expand(sweeps.parse_config(text))


def test_pydantic_is_needed_for_reading_only():
    code = "import sys, cdsampler, cdsampler.benchmark.sweeps; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_pydantic_the_extra_is_named(tiny, monkeypatch):
    def missing(name):
        raise ModuleNotFoundError("No module named 'pydantic'", name="pydantic")

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(MissingExtraError, match=r"cdsampler\[benchmark\]"):
        sweeps.parse_config(tiny)


def test_a_target_of_ones_own_needs_a_file_a_function_and_settings(mine):
    text = mine().read_text()
    folder = mine().parent
    for old, new, message in (
        ("mine.py:build", "none.py:build", "no file .*none.py"),
        ("mine.py:build", "build", r"\[tasks.mine\] target: .*FILE.py:NAME.*got 'build'"),
        ("mine.py:build", "mine.py:biuld", r"mine.py has no biuld: did you mean build\?"),
        ("mine.py:build", "no_such.module:build", "no module 'no_such.module'"),
        ("[tasks.mine]", '[tasks."a/b"]', "letters, digits .* got 'a/b'"),
        ("n_replicas = 3, ", "", r"\[tasks.mine\].*give n_replicas"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            sweeps.parse_config(text.replace(old, new), folder=folder)
