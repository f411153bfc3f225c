"""Two processes on one machine: the same bits as one, and no waiting for ever for one that is gone."""

import time

import pytest


@pytest.fixture(scope="module")
def two_processes(apart):
    return apart("processes", n_processes=2, n_devices=2).whole()


@pytest.mark.slow
@pytest.mark.parametrize("case", ["tempering", "trajectories", "front door"])
def test_two_processes_give_what_one_gives(differing, one_device, two_processes, case):
    first, second = two_processes
    assert set(differing(one_device[case], first[case])) <= {"last"}
    assert set(differing(one_device[case], second[case])) <= {"n_rounds", "last"}


@pytest.mark.slow
def test_the_first_process_tunes_and_reports(one_device, two_processes):
    first, second = (made["front door"] for made in two_processes)
    assert first["n_rounds"] == one_device["front door"]["n_rounds"] > 0
    evaluations, total, finished = first["last"]
    assert evaluations == total == first["total"] - first["tuning"]
    assert finished == len(first["samples"].reshape(-1, 2))
    assert second["n_rounds"] == 0
    assert second["last"] is None


@pytest.mark.slow
def test_a_fault_in_one_process_ends_the_other(differing, apart):
    first, second = apart("faults", n_processes=2).whole()
    assert "Process 1 has seed=1, and process 0 has seed=0" in first["seeds"]
    assert "ProcessError: Process 0 has seed=0" in second["seeds"]
    assert first["failure"] == "RuntimeError: no space left"
    assert second["failure"] == "ProcessError: Process 0 of 2 failed with RuntimeError: no space left"
    assert first["interrupt"]["is_partial"]
    assert 0 < len(first["interrupt"]["samples"]) < 1000
    for name in ("interrupt", "alone", "after"):
        assert differing(first[name], second[name]) == []
    assert differing(first["alone"], first["after"]) == []


def test_nobody_waits_for_ever(apart):
    """Interrupts, absence, disagreement and a kill, in the same two processes one after the other."""
    began = time.perf_counter()
    processes = apart("meetings", n_processes=2)
    first, second = processes.end()
    assert second is None
    assert first["well"] == [3_000_000] * 2
    assert first["interrupt"] == "KeyboardInterrupt: "
    assert first["again"] == [0, 1]
    assert "ProcessError: Process 1 of 2 hasn't begun within 4 s" in first["absent"]
    assert "Process 1 has seed=1, and process 0 has seed=0" in first["about"]
    assert "ProcessError: Process 1 of 2 hasn't been heard of for" in first["killed"]
    assert time.perf_counter() - began < 300
