"""Sweeps on a real Ray cluster on this machine: two nodes of one core each."""

import json
import socket
import threading
import time

import pytest

from cdsampler.benchmark import sweeps
from cdsampler.benchmark.sweeps import _ray
from cdsampler.errors import CdsamplerError, InvalidInputError

ray = pytest.importorskip("ray")
cluster_utils = pytest.importorskip("ray.cluster_utils")

# Ray starts its processes by a fork that becomes another program at once.
pytestmark = pytest.mark.filterwarnings(r"ignore:os\.fork\(\) was called:RuntimeWarning")

# The commit is read by each process when it starts: somebody may commit meanwhile.
OF_THE_MACHINE = ("commit", "seconds", "seconds_tuning", "seconds_compilation", "started", "host_cores")

DEADLY = """
import os, signal
def build():
    os.kill(os.getpid(), signal.SIGKILL)
"""

PATIENT = """
import time
from pathlib import Path

import ray
from mine import build as mine

HERE = Path(__file__).parent

def build():
    (HERE / f"node-{ray.get_runtime_context().get_node_id()}").touch()
    while not (HERE / "go").exists():
        time.sleep(0.05)
    return mine()
"""


def measured(folder):
    found = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    return {record["key"]: {k: v for k, v in record.items() if k not in OF_THE_MACHINE} for record in found}


def started(start, times=4):
    """Start a node; Ray gives it 30 seconds, which a busy machine may exceed."""
    for _ in range(times - 1):
        try:
            return start()
        except Exception as error:
            if "timed out during startup" not in str(error):
                raise
    return start()


@pytest.fixture(scope="module")
def cluster():
    """A cluster whose first node makes no runs."""
    made = cluster_utils.Cluster()
    started(lambda: made.add_node(num_cpus=0, include_dashboard=False))
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.fixture
def nodes(cluster):
    """Two nodes of one core each."""
    made = [started(lambda: cluster.add_node(num_cpus=1)) for _ in range(2)]
    yield made
    ray.shutdown()
    for node in set(made) & cluster.worker_nodes:
        cluster.remove_node(node)


@pytest.mark.slow
def test_a_cluster_of_two_nodes_finds_what_one_process_finds(cluster, nodes, tiny, tmp_path):
    executor = sweeps.Ray(cluster.address)
    assert executor.n_workers == 2
    sweep = sweeps.parse_config(tiny.replace("[2, 3]", "[2, 30]"))
    two = sweeps.run_sweep(sweep, tmp_path / "two", executor=executor)
    assert (two.done, two.failed, two.infeasible) == (12, 0, 2)
    executor.close()
    assert not ray.is_initialized()
    assert sweeps.run_sweep(sweep, tmp_path / "one").done == 12
    assert measured(tmp_path / "one") == measured(tmp_path / "two")


@pytest.mark.slow
def test_runs_that_fail_or_kill_their_worker_are_recorded_and_no_others(cluster, nodes, mine, tmp_path):
    path = mine()
    (tmp_path / "deadly.py").write_text(DEADLY)
    text = path.read_text()
    task = text[text.index("[tasks.mine]") : text.index("[samplers")]
    others = task.replace("[tasks.mine]", "[tasks.deadly]").replace("mine.py", "deadly.py")
    others += task.replace("[tasks.mine]", "[tasks.broken]").replace(":build", ":broken")
    path.write_text(text.replace("[samplers", others + "[samplers"))
    progress = sweeps.run_sweep(path, tmp_path / "store", executor=sweeps.Ray(cluster.address, workers=1))
    assert (progress.done, progress.failed) == (3, 2)
    by_task = {record["task"]: record for record in measured(tmp_path / "store").values()}
    assert by_task["mine"]["status"] == "ok"
    assert by_task["broken"]["error"].startswith("RuntimeError: no such luck (mine.py:")
    assert by_task["deadly"]["error"].startswith("Its worker was lost twice in this run: ActorDiedError: ")
    assert "\n" not in by_task["deadly"]["error"]
    for record in by_task.values():
        assert record["device"] == by_task["mine"]["device"] != ""


@pytest.mark.slow
def test_the_other_node_makes_the_runs_of_one_that_is_lost(cluster, nodes, mine, tmp_path):
    path = mine()
    (tmp_path / "patient.py").write_text(PATIENT)
    path.write_text(path.read_text().replace("mine.py", "patient.py").replace("[tasks", "repeats = 4\n[tasks"))

    def lose_one():
        while len(list(tmp_path.glob("node-*"))) < 2:
            time.sleep(0.05)
        cluster.remove_node(nodes[0])
        (tmp_path / "go").touch()

    thread = threading.Thread(target=lose_one, daemon=True)
    thread.start()
    progress = sweeps.run_sweep(path, tmp_path / "store", executor=sweeps.Ray(cluster.address))
    thread.join()
    assert len(list(tmp_path.glob("node-*"))) == 2
    assert (progress.done, progress.failed, progress.left) == (4, 0, 0)


@pytest.mark.slow
def test_once_stopped_only_runs_under_way_are_ended(cluster, nodes, tiny):
    stop = threading.Event()
    jobs = sweeps.expand(sweeps.parse_config(tiny), samplers=["mala"])
    # Two more than there is room for: they wait, and nobody for them.
    outcomes = sweeps.Ray(cluster.address, workers=4).execute(jobs, stop)
    assert next(outcomes).record["status"] == "ok"
    stop.set()
    assert len(list(outcomes)) <= 1


@pytest.mark.slow
def test_a_cluster_without_room_is_refused_or_given_up(cluster, tiny, monkeypatch):
    with pytest.raises(InvalidInputError, match=r"no room for one worker of .*num_cpus"):
        sweeps.Ray(cluster.address)
    jobs = sweeps.expand(sweeps.parse_config(tiny), samplers=["mala"])
    monkeypatch.setattr(_ray, "PATIENCE_SECONDS", 2.0)
    with pytest.raises(CdsamplerError, match=r"No worker has come up on the Ray cluster for 2 s"):
        list(sweeps.Ray(cluster.address, workers=1).execute(jobs, threading.Event()))
    ray.shutdown()


@pytest.mark.slow
def test_workers_that_fail_to_start_are_not_tried_for_ever(cluster, nodes, tiny, monkeypatch):
    class Broken:
        def machine(self):
            raise RuntimeError("no such luck")

    monkeypatch.setattr(_ray, "_RemoteWorker", Broken)
    jobs = sweeps.expand(sweeps.parse_config(tiny), samplers=["mala"])
    with pytest.raises(CdsamplerError, match=r"fail to start on the Ray cluster \(RuntimeError: no such luck\)"):
        list(sweeps.Ray(cluster.address).execute(jobs, threading.Event()))


def test_counts_out_of_range_are_refused():
    with pytest.raises(InvalidInputError, match="workers must be at least 1, got 0"):
        sweeps.Ray(workers=0)
    with pytest.raises(InvalidInputError, match="cpus_per_worker must be at least 1, got 0"):
        sweeps.Ray(cpus_per_worker=0)
    with pytest.raises(InvalidInputError, match="gpus_per_worker must not be negative, got -1"):
        sweeps.Ray(gpus_per_worker=-1)
    assert not ray.is_initialized()


def test_an_address_where_nobody_listens_is_refused():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and doesn't listen
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(InvalidInputError, match=rf"Nothing answers at '{address}'.*start a Ray cluster"):
            sweeps.Ray(address)
