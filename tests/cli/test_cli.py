import json
import os
import subprocess
import sys

import jax
import pytest

from cdsampler.cli import main
from cdsampler.sampling import read_netcdf


def cdsampler(*arguments):
    """Run the command in a process of its own, as a user does; x64 is off there."""
    environment = {**os.environ, "COLUMNS": "200", "JAX_ENABLE_X64": "0"}
    command = [sys.executable, "-c", "from cdsampler.cli import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)


@pytest.fixture
def run_main(monkeypatch, capsys):
    """Run the command in this process, and leave JAX's configuration as it was."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["cdsampler", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        return stopped.value.code, *capsys.readouterr()

    yield run
    jax.config.update("jax_enable_x64", True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sample", "gm-3"], ["Unknown target 'gm-3'", "gm-2, gmnu-2, gm-16, gmnu-16"]),
        (["sample", "gm-2", "--sampler", "nprt"], ["Unknown sampler 'nprt'", "Did you mean 'nrpt'"]),
        (["sample", "gm-2", "--sampler", "cds", "--budget", "109"], ["budget of 109", "needs at least 110"]),
        (["sample", "gm-16", "--sampler", "nrpt", "--budget", "5"], ["budget of 5", "needs at least 24"]),
        (["sample", "gm-2", "--samples", "0"], ["--samples must be at least 1, got 0"]),
        (["sample", "gm-2", "--seed", "-1"], ["--seed must be at least 0, got -1"]),
        (["sample", "gm-2", "--dtype", "float16"], ["--dtype must be float32 or float64", "float16"]),
        (["sample", "gm-2", "--replicas", "1"], ["at least 2 replicas, got 1"]),
        (["sample", "gm-2", "--sampler", "cds", "--reference-scale", "0.5"], ["t0 must lie in (0, 1)", "2.0"]),
        (["sample", "gm-2", "--sampler", "cds", "--set", "integration_steps=0"], ["integration_steps", "got 0"]),
        (["sample", "gm-2", "--sampler", "cds", "--set", "noise_variance=-1"], ["noise variance", "-1"]),
        (["sample", "gm-2", "--set", "noise_variance=1"], ["--set belongs to a preset"]),
        (["sample", "gm-2", "--sampler", "cds", "--preset", "papre"], ["Unknown preset", "paper"]),
        (["sample", "gm-2", "--sampler", "oasmc", "--samples", "50"], ["n_samples is 50", "100 particles"]),
        (
            ["sample", "gm-2", "--sampler", "cds", "--max-evaluations", "9"],
            ["--max-evaluations", "leave out --sampler"],
        ),
        (["sample", "gm-2", "--budget", "9"], ["budget", "independent=True"]),
        (["sample", "gm-2", "--max-evaluations", "9"], ["max_evaluations=9", "at least 4000"]),
        (["sample", "gm-2", "--plan", "/nowhere.json"], ["/nowhere.json"]),
        (["sample", "gm-2", "--out", __file__], ["--out must be a folder"]),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(arguments, words, run_main):
    code, out, err = run_main(*arguments)
    assert code == 2
    assert out == ""
    assert len(err.strip().splitlines()) == 1, err
    for word in words:
        assert word in err


@pytest.mark.parametrize("arguments", [["sample"], ["sample", "gm-2", "--budget", "many"], ["smaple"]])
def test_bad_usage_is_exit_code_2_without_a_traceback(arguments, run_main):
    code, _, err = run_main(*arguments)
    assert code == 2
    assert "Traceback" not in err


def test_an_error_reaches_the_shell_as_one_line():
    done = cdsampler("sample", "gm-2", "--sampler", "cds", "--budget", "7")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "needs at least 110" in done.stderr


def test_list_names_targets_samplers_and_metrics():
    done = cdsampler("list")
    assert done.returncode == 0
    for name in ("gm-2", "gmnu-16", "cds", "cds-inverse-map", "nrpt", "wasserstein_2"):
        assert name in done.stdout


def test_sample_writes_readable_results_and_says_what_they_cost(tmp_path):
    preset = ("--sampler", "cds", "--budget", "300")
    done = cdsampler("sample", "gm-2", "--samples", "300", *preset, "--seed", "3", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    for word in ("Wasserstein-2", "evaluations per independent sample", "evaluations per returned sample", "barrier"):
        assert word in done.stdout
    summary = json.loads((tmp_path / "summary.json").read_text())
    data = read_netcdf(tmp_path / "samples.nc")
    assert data["posterior"]["x"].shape == (300, 1, 2)
    assert summary["evaluations_per_sample"] <= 300
    assert summary["evaluations_per_returned_sample"] > summary["evaluations_per_sample"]
    assert float(data["posterior"].attrs["evaluations_per_sample"]) == summary["evaluations_per_sample"]
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_the_default_needs_no_option_and_its_plan_can_be_reused(tmp_path):
    kept = tmp_path / "plan.json"
    done = cdsampler("sample", "gm-2", "--save-plan", str(kept))
    assert done.returncode == 0, done.stderr
    for word in ("restarts", "barrier", "t0", "Wrote"):
        assert word in done.stdout
    again = cdsampler("sample", "gm-2", "--samples", "640", "--plan", str(kept), "--out", str(tmp_path / "out"))
    assert again.returncode == 0, again.stderr
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["tuning_evaluations"] == 0
    assert summary["n_samples"] == 640
