import json
import os
import threading

import pytest

from cdsampler.benchmark import sweeps
from cdsampler.benchmark.sweeps import _executors
from cdsampler.benchmark.sweeps._dispatch import Dispatch
from cdsampler.benchmark.sweeps._run_one import Outcome
from cdsampler.errors import InvalidInputError

# The commit is read by each process when it starts: somebody may commit meanwhile.
OF_THE_MACHINE = ("commit", "seconds", "seconds_tuning", "seconds_compilation", "started", "host_cores", "samples_file")


def jobs_of(n_tasks, n_runs):
    return [
        sweeps.Job(sweeps.RunSpec(f"t{task}", "a", "mala", {}, {}, 20, 10, seed, "recommended"), f"t{task}")
        for task in range(n_tasks)
        for seed in range(n_runs)
    ]


def measured(folder):
    found = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    return {record["key"]: {k: v for k, v in record.items() if k not in OF_THE_MACHINE} for record in found}


def test_every_run_is_given_out_once_and_workers_keep_to_a_program():
    jobs = jobs_of(4, 3)
    dispatch = Dispatch(jobs, 2)
    given = {0: [], 1: []}
    for turn in range(100):
        job = dispatch.next_for(turn % 2)
        if job is not None:
            given[turn % 2].append(job)
    assert sorted(job.spec.key for some in given.values() for job in some) == sorted(job.spec.key for job in jobs)
    assert min(map(len, given.values())) == 6


def test_an_idle_worker_takes_half_of_what_another_has_left():
    dispatch = Dispatch(jobs_of(1, 40), 1)
    first = [dispatch.next_for(0)]
    while len(dispatch._batches):
        dispatch._batches.pop()
    left = len(dispatch._own[0])
    taken = [dispatch.next_for(1)]
    assert len(dispatch._own[1]) + 1 == (left + 1) // 2
    assert first != taken
    while (job := dispatch.next_for(1)) is not None:
        taken.append(job)
    assert len(taken) == left


def test_counts_out_of_range_are_refused():
    with pytest.raises(InvalidInputError, match="workers must be at least 1, got 0"):
        sweeps.Processes(0)


def test_cores_are_shared_out(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2}, raising=False)
    assert _executors._shares(2) == [[0, 2], [1]]
    assert _executors._shares(5) == [[0], [1], [2], [0], [1]]


@pytest.mark.slow
def test_processes_find_what_one_process_finds(tiny, tmp_path):
    sweep = sweeps.parse_config(tiny)
    one = sweeps.run_sweep(sweep, tmp_path / "one")
    two = sweeps.run_sweep(sweep, tmp_path / "two", executor=sweeps.Processes(2))
    assert one.done == two.done == 12
    assert measured(tmp_path / "one") == measured(tmp_path / "two")


DEADLY = """
import os, signal
def build():
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_worker_that_dies_twice_fails_its_run_and_no_other(mine, tmp_path):
    path = mine()
    (path.parent / "deadly.py").write_text(DEADLY)
    text = path.read_text()
    task = text[text.index("[tasks.mine]") : text.index("[samplers")]
    path.write_text(
        text.replace(
            "[samplers", task.replace("[tasks.mine]", "[tasks.deadly]").replace("mine.py", "deadly.py") + "[samplers"
        )
    )
    progress = sweeps.run_sweep(path, tmp_path / "store", executor=sweeps.Processes(1))
    assert (progress.done, progress.failed) == (2, 1)
    lines = (tmp_path / "store" / "records.jsonl").read_text().splitlines()
    by_task = {record["task"]: record for record in map(json.loads, lines)}
    assert by_task["mine"]["status"] == "ok"
    assert "died twice in this run, with exit code -9" in by_task["deadly"]["error"]
    for field in ("version", "device", "jax_version"):
        assert by_task["deadly"][field] == by_task["mine"][field] != ""
    assert bool(by_task["deadly"]["commit"]) == bool(by_task["mine"]["commit"])


def test_once_stopped_nothing_new_begins(monkeypatch):
    stop = threading.Event()
    monkeypatch.setattr(_executors, "run_one", lambda job: Outcome({"key": job.spec.key}))
    outcomes = sweeps.InProcess().execute(jobs_of(1, 3), stop)
    next(outcomes)
    stop.set()
    assert list(outcomes) == []
