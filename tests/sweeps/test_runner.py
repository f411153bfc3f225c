import dataclasses
import json
import math
import os
import signal
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cdsampler import benchmark
from cdsampler.benchmark import sweeps
from cdsampler.benchmark.sweeps import _records, _run_one
from cdsampler.benchmark.sweeps._pace import Pace
from cdsampler.density import LogDensity
from cdsampler.errors import InvalidInputError
from cdsampler.sampling._compilation import compilation_seconds
from cdsampler.targets import AbstractTarget

FIELDS = [
    "key",
    "task",
    "label",
    "sampler",
    "changes",
    "settings",
    "preset",
    "budget",
    "n_samples",
    "seed",
    "status",
    "error",
    "evaluations_per_sample",
    "evaluations_per_returned_sample",
    "evaluations_total",
    "evaluations_tuning",
    "evaluations_executed",
    "seconds",
    "seconds_tuning",
    "seconds_compilation",
    "metrics",
    "log_z",
    "log_z_error",
    "diagnostics",
    "warnings",
    "warning_texts",
    "version",
    "commit",
    "device",
    "host_cores",
    "jax_version",
    "started",
    "samples_file",
]
# The commit is read by each process when it starts: somebody may commit meanwhile.
OF_THE_MACHINE = ("commit", "seconds", "seconds_tuning", "seconds_compilation", "started", "host_cores")

SCRIPT = """
import sys
from cdsampler.benchmark import sweeps

sweeps.run_sweep(
    sys.argv[1],
    sys.argv[2],
    on_progress=lambda progress: print(progress.done, flush=True),
    on_message=lambda text: print(text, file=sys.stderr),
)
"""


def records(folder):
    return [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]


def without_times(some):
    return {record["key"]: {k: v for k, v in record.items() if k not in OF_THE_MACHINE} for record in some}


@pytest.fixture(scope="module")
def finished(tmp_path_factory, request):
    """Return the folder of a whole sweep, and what its progress said."""
    from tests.sweeps.conftest import TINY  # the fixture is of a narrower scope

    folder = tmp_path_factory.mktemp("sweep") / "store"
    said = []
    sweeps.run_sweep(sweeps.parse_config(TINY), folder, on_progress=said.append)
    return folder, said


def test_records_have_exactly_the_fields_that_the_analysis_reads(finished):
    folder, _ = finished
    found = records(folder)
    assert len(found) == 12
    for record in found:
        assert list(record) == FIELDS
        assert record["status"] == "ok", record["error"]
        assert record["settings"] == record["settings"] | record["changes"]
        assert record["evaluations_per_sample"] <= record["budget"]
        assert record["evaluations_executed"] + record["evaluations_tuning"] >= record["evaluations_total"]
        for metric in record["metrics"].values():
            assert set(metric) == {"value", "floor", "floor_sd", "ratio"}
        w2 = record["metrics"]["wasserstein_2"]
        assert w2["ratio"] == pytest.approx(w2["value"] / w2["floor"])
    floors = {record["metrics"]["wasserstein_2"]["floor"] for record in found}
    assert len(floors) == 1  # taken once for all runs of a task


def test_samples_of_the_first_seed_and_of_the_reference_are_kept(finished):
    folder, _ = finished
    for record in records(folder):
        assert bool(record["samples_file"]) == (record["seed"] == 0)
        if record["samples_file"]:
            with np.load(folder / record["samples_file"]) as file:
                assert file["positions"].shape == (20, 2)
                assert file["energies"].dtype == file["positions"].dtype == np.float32
    with np.load(folder / "samples" / "reference-gm-2.npz") as file:
        assert file["positions"].shape == (20, 2)


def test_progress_counts_and_guesses_the_time(finished):
    _, said = finished
    assert [progress.done for progress in said] == list(range(13))
    assert [progress.left for progress in said] == list(range(12, -1, -1))
    assert said[0].seconds_left is None
    assert said[1].seconds_left > said[-1].seconds_left == 0


def test_a_finished_sweep_runs_nothing(finished, tiny, monkeypatch):
    folder, _ = finished
    monkeypatch.setattr(_run_one, "_run", lambda *args: pytest.fail("it ran"))
    progress = sweeps.run_sweep(sweeps.parse_config(tiny), folder)
    assert (progress.done, progress.left) == (12, 0)


def test_a_sweep_that_is_killed_goes_on_and_ends_in_the_same_records(tiny, tmp_path):
    # All in processes of their own: in this one, other tests may have compiled the same programs without optimisation.
    config, folder, whole = tmp_path / "tiny.toml", tmp_path / "store", tmp_path / "whole"
    config.write_text(tiny)
    command = [sys.executable, "-c", SCRIPT, str(config)]
    with subprocess.Popen([*command, str(folder)], stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if int(line) == 3:
                process.kill()
    n_before = len((folder / "records.jsonl").read_text().splitlines())
    assert 3 <= n_before < 12
    with (folder / "records.jsonl").open("a") as file:
        file.write('{"key": "torn')
    resumed = subprocess.run([*command, str(folder)], capture_output=True, text=True, check=True)
    assert resumed.stdout.split()[-1] == "12"
    assert "torn" in resumed.stderr
    subprocess.run([*command, str(whole)], capture_output=True, check=True)
    assert len(records(folder)) == 12
    assert without_times(records(folder)) == without_times(records(whole))


def test_an_interrupt_ends_after_the_run_and_keeps_it(tiny, tmp_path):
    def interrupt(progress):
        if progress.done == 1:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    progress = sweeps.run_sweep(sweeps.parse_config(tiny), tmp_path, samplers=["mala"], on_progress=interrupt)
    assert signal.getsignal(signal.SIGINT) is before
    assert (progress.done, progress.left) == (1, 3)
    assert len(records(tmp_path)) == 1


def test_a_run_that_fails_is_recorded_and_may_be_tried_again(mine, tmp_path):
    path, folder = mine("broken"), tmp_path / "store"
    progress = sweeps.run_sweep(path, folder)
    assert (progress.done, progress.failed) == (1, 1)
    (record,) = records(folder)
    assert list(record) == [*FIELDS, "target_sha256"]
    assert record["status"] == "failed"
    assert record["device"] == jax.devices()[0].device_kind
    assert record["error"].startswith("RuntimeError: no such luck (mine.py:")
    assert record["metrics"] == {}
    assert sweeps.run_sweep(path, folder).done == 1
    assert len(records(folder)) == 1
    sweeps.run_sweep(path, folder, retry_failed=True)
    assert len(records(folder)) == 2


def test_an_infeasible_run_is_recorded(tiny, tmp_path):
    text = tiny.replace("[2, 3]", "[30]").replace("repeats = 2", "repeats = 1")
    progress = sweeps.run_sweep(sweeps.parse_config(text), tmp_path, samplers=["hmc"])
    assert (progress.done, progress.infeasible, progress.failed) == (2, 1, 0)
    by_budget = {record["budget"]: record for record in records(tmp_path)}
    assert list(by_budget[20]) == FIELDS
    assert by_budget[20]["status"] == "infeasible"
    for field in ("version", "commit", "device", "host_cores", "jax_version"):
        assert by_budget[20][field] == by_budget[40][field]
    assert by_budget[20]["device"]
    assert "too small" in by_budget[20]["error"]
    assert by_budget[40]["status"] == "ok"


def test_numbers_alone_compile_nothing_anew(tiny, tmp_path):
    text = tiny.replace("[samplers.mala]", "[samplers.mala]\ngrid = { step_size = [0.5, 1.0, 2.0] }")
    jax.clear_caches()  # other tests have run the same program
    said = []
    sweeps.run_sweep(
        sweeps.parse_config(text), tmp_path, samplers=["mala"], on_progress=lambda p: said.append(compilation_seconds())
    )
    after = [record["seconds_compilation"] for record in records(tmp_path)]
    assert max(after[1:]) < 0.2 * after[0]


def test_a_target_of_ones_own(mine, tmp_path):
    folder = tmp_path / "store"
    progress = sweeps.run_sweep(mine(), folder)
    (record,) = records(folder)
    assert (progress.failed, record["status"], record["task"]) == (0, "ok", "mine")
    assert record["metrics"] == {}  # it has no exact sampler
    with np.load(folder / record["samples_file"]) as file:
        np.testing.assert_allclose(file["energies"], 0.5 * np.sum(file["positions"] ** 2, axis=1), rtol=1e-5)


class Registered(AbstractTarget):
    name: str = "registered"
    dim: int = 2

    def density(self, dtype=None):
        return LogDensity(lambda y: -0.5 * jnp.sum(y**2), 2, dtype=dtype)


class Elsewhere(AbstractTarget):
    name: str = "registered"
    dim: int = 2

    def density(self, dtype=None):
        return LogDensity(lambda y: -0.5 * jnp.sum((y - 50) ** 2), 2, dtype=dtype)


def test_a_registered_target_stays_in_its_process(mine, tmp_path):
    sweeps.register_target("registered", Registered, benchmark.Preset(n_replicas=3, reference_scale=2.0))
    with pytest.raises(InvalidInputError, match="another name"):
        sweeps.register_target("gm-2", Registered, benchmark.Preset(n_replicas=3, reference_scale=2.0))
    text = '[tasks.registered]\nsamples = 10\nbudgets = [20]\n[samplers.mala]\nname = "x"'
    text = 'name = "x"\n' + text.replace('name = "x"', "")
    sweep = sweeps.parse_config(text)
    with pytest.raises(InvalidInputError, match="registered was registered in this process"):
        sweeps.run_sweep(sweep, tmp_path / "a", executor=sweeps.Processes(1))
    assert not (tmp_path / "a").exists()
    assert sweeps.run_sweep(sweep, tmp_path / "b").failed == 0
    # Another one by the same name, in the same process.
    sweeps.register_target("registered", Elsewhere, benchmark.Preset(n_replicas=3, reference_scale=2.0))
    assert sweeps.run_sweep(sweep, tmp_path / "c").failed == 0
    (record,) = records(tmp_path / "c")
    with np.load(tmp_path / "c" / record["samples_file"]) as file:
        assert file["positions"].mean() == pytest.approx(50, abs=5)


def test_names_that_no_file_can_have_are_refused():
    with pytest.raises(InvalidInputError, match=r"got 'a/b': choose another name"):
        sweeps.register_target("a/b", Registered, benchmark.Preset(n_replicas=3, reference_scale=2.0))


def test_a_sweep_that_was_built_by_hand_is_checked(tiny):
    sweep = sweeps.parse_config(tiny)
    with pytest.raises(InvalidInputError, match=r"Unknown dtype 'float46'.*Did you mean 'float64'"):
        sweeps.expand(dataclasses.replace(sweep, dtype="float46"))
    with pytest.raises(InvalidInputError, match="Unknown preset 'papers'"):
        sweeps.expand(dataclasses.replace(sweep, preset="papers"))


def test_going_on_with_another_device_is_said_by_its_name(tiny, tmp_path, monkeypatch):
    said = []
    sweep = sweeps.parse_config(tiny.replace("repeats = 2", "repeats = 1"))
    sweeps.run_sweep(sweep, tmp_path, tasks=["gm-2"], samplers=["mala"], on_message=said.append)
    assert said == []
    before = _records.machine()
    monkeypatch.setattr(_records, "machine", lambda: before | {"device": "NVIDIA H200"})
    monkeypatch.setattr(_run_one, "_run", lambda *args: 1 / 0)  # what fails has a device, too
    for _ in range(2):
        sweeps.run_sweep(sweep, tmp_path, on_message=said.append)
    (text,) = said
    assert f"several devices ({before['device']}, NVIDIA H200)" in text
    assert str(tmp_path) in text


def test_the_time_left_counts_evaluations_tunings_and_programs(tiny):
    jobs = sweeps.expand(sweeps.parse_config(tiny))
    pace = Pace(jobs)
    pace._began = time.perf_counter() - 13.0  # as if all the time since were the run's
    spec = jobs[0].spec
    times = {"seconds": 2.0, "seconds_tuning": 1.0, "seconds_compilation": 10.0}
    pace.add({"task": "gm-2", "label": "mala", "status": "ok", "budget": spec.budget, "n_samples": 20, **times})
    # Left: 320 evaluations in units of 20 at 2 s, less the one made; 11 tunings; one more program.
    runs = 4 * 20 + 4 * 40 + 2 * 20 + 2 * 40 - spec.budget
    assert pace.seconds_left() == pytest.approx(runs / spec.budget * 2.0 + 11 * 1.0 + 10.0, rel=0.05)


def test_json_has_no_infinity(finished):
    folder, _ = finished
    from cdsampler.benchmark.sweeps._records import as_json

    assert as_json({"a": [math.inf, np.float32("nan"), np.int64(3)], "b": (1.5,)}) == {"a": [None, None, 3], "b": [1.5]}
    assert "NaN" not in (folder / "records.jsonl").read_text()
