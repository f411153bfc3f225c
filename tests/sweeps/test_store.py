import dataclasses
import errno
import fcntl
import json
import os
import tempfile

import numpy as np
import pytest

from cdsampler.benchmark import sweeps
from cdsampler.benchmark.sweeps._store import Store
from cdsampler.errors import InvalidInputError


@pytest.fixture
def sweep(tiny):
    return sweeps.parse_config(tiny)


def record(key, status="ok", **more):
    return {"key": key, "status": status, "value": [1.5, None], **more}


def statuses(store):
    return {key: run.status for key, run in store.runs.items()}


def test_what_is_appended_is_found_again(sweep, tmp_path):
    with Store(tmp_path / "s", sweep) as store:
        assert statuses(store) == {}
        store.append(record("a"))
        store.append(record("b", "failed"))
    with Store(tmp_path / "s", sweep) as store:
        assert statuses(store) == {"a": "ok", "b": "failed"}
    lines = (tmp_path / "s" / "records.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [record("a"), record("b", "failed")]


@pytest.mark.parametrize("torn", ['{"key": "b", "sta', json.dumps(record("b")), "\0\0\0\n"])
def test_a_torn_last_line_is_cut_off(sweep, tmp_path, torn):
    with Store(tmp_path, sweep) as store:
        store.append(record("a"))
    whole = (tmp_path / "records.jsonl").read_bytes()
    (tmp_path / "records.jsonl").write_bytes(whole + torn.encode())
    messages = []
    with Store(tmp_path, sweep, messages.append) as store:
        assert statuses(store) == {"a": "ok"}
        assert (tmp_path / "records.jsonl").read_bytes() == whole
        store.append(record("b"))
    assert len(messages) == 1
    assert "torn" in messages[0]
    with Store(tmp_path, sweep, messages.append) as store:
        assert list(store.runs) == ["a", "b"]
    assert len(messages) == 1


def test_a_damaged_line_in_the_middle_is_refused(sweep, tmp_path):
    with Store(tmp_path, sweep) as store:
        store.append(record("a"))
    path = tmp_path / "records.jsonl"
    path.write_text("{\n" + path.read_text())
    with pytest.raises(InvalidInputError, match=r"Line 1 of .*records.jsonl is damaged"):
        Store(tmp_path, sweep)


def test_another_format_is_refused(sweep, tmp_path):
    Store(tmp_path, sweep).__exit__(None, None, None)
    path = tmp_path / "store.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 2, "version": "9.9"}))
    with pytest.raises(InvalidInputError, match=r"format 2, and this version writes format 1: .*9\.9"):
        Store(tmp_path, sweep)
    path.write_text("{")
    with pytest.raises(InvalidInputError, match=r"store.json is damaged"):
        Store(tmp_path, sweep)


def test_another_version_of_the_library_is_mentioned(sweep, tmp_path):
    Store(tmp_path, sweep).__exit__(None, None, None)
    path = tmp_path / "store.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": "0.0.1"}))
    messages = []
    Store(tmp_path, sweep, messages.append).__exit__(None, None, None)
    assert "0.0.1" in messages[0]


def test_a_header_that_was_being_written_is_written_again(sweep, tmp_path):
    (tmp_path / "store.json.tmp").write_text("{")
    with Store(tmp_path, sweep):
        assert json.loads((tmp_path / "store.json").read_text())["name"] == "tiny"


def test_what_makes_runs_less_comparable_is_said_once(sweep, tmp_path):
    messages = []
    with Store(tmp_path, sweep, messages.append) as store:
        store.append(record("a", device="cpu", commit="1", jax_version="0.9"))
        store.append(record("b", device="", commit="1", jax_version="0.9"))
    assert messages == []
    with Store(tmp_path, sweep, messages.append) as store:
        store.append(record("c", device="TPU v5", commit="1", jax_version="0.9"))
        store.append(record("d", device="TPU v5", commit="2", jax_version="0.9"))
    assert len(messages) == 2
    assert "several devices (cpu, TPU v5)" in messages[0]
    assert "several commits of cdsampler (1, 2)" in messages[1]
    Store(tmp_path, sweep, messages.append).__exit__(None, None, None)
    assert len(messages) == 2


def test_runs_that_are_set_aside_are_not_lost(sweep, tmp_path):
    with Store(tmp_path, sweep) as store:
        for key in "abc":
            store.append(record(key))
        store.write_samples("reference-t", {"energies": np.zeros(3)})
        store.set_aside("t", {"a", "c"})
        assert not store.has_samples("reference-t")
        store.append(record("d"))
        assert list(store.runs) == ["b", "d"]
    with Store(tmp_path, sweep) as store:
        assert list(store.runs) == ["b", "d"]
    lines = (tmp_path / "records-set-aside.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [record("a"), record("c")]


def test_another_configuration_is_refused_by_what_differs(sweep, tmp_path):
    Store(tmp_path, sweep).__exit__(None, None, None)
    with pytest.raises(InvalidInputError, match=r"its seeds was \[0, 1\], now \[0, 1, 2\]"):
        Store(tmp_path, dataclasses.replace(sweep, seeds=(0, 1, 2)))
    with pytest.raises(InvalidInputError, match=r"it had samplers.hmc, too"):
        Store(tmp_path, dataclasses.replace(sweep, entries=sweep.entries[:1]))


def test_folders_that_will_not_do_are_refused(sweep, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InvalidInputError, match=r"file is a file"):
        Store(tmp_path / "file", sweep)
    with pytest.raises(InvalidInputError, match=r"holds file and is no store"):
        Store(tmp_path, sweep)
    with pytest.raises(InvalidInputError, match=r"file/store can't be written to \(.*\): choose another one"):
        Store(tmp_path / "file" / "store", sweep)
    (tmp_path / "store" / "lock").mkdir(parents=True)
    with pytest.raises(InvalidInputError, match=r"store/lock can't be written to"):
        Store(tmp_path / "store", sweep)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_refused(sweep, tmp_path):
    tmp_path.chmod(0o555)
    with pytest.raises(InvalidInputError, match=r"can't be written to \(Permission denied\)"):
        Store(tmp_path, sweep)


@pytest.mark.parametrize(("error", "message"), [(errno.EACCES, "can't be written to"), (errno.EROFS, "Read-only")])
def test_a_folder_that_takes_no_files_is_refused(sweep, tmp_path, monkeypatch, error, message):
    def refuse(**kwargs):
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    with pytest.raises(InvalidInputError, match=message):
        Store(tmp_path, sweep)


def test_a_file_system_without_locks_is_told_from_another_sweep(sweep, tmp_path, monkeypatch):
    def refuse(*args):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(InvalidInputError, match=r"lock can't be locked \(No locks available\)"):
        Store(tmp_path, sweep)


def test_two_sweeps_do_not_write_to_one_store(sweep, tmp_path):
    with Store(tmp_path, sweep), pytest.raises(InvalidInputError, match="Another sweep is writing"):
        Store(tmp_path, sweep)
    with Store(tmp_path, sweep):
        pass


def test_samples_are_whole_or_not_there(sweep, tmp_path):
    with Store(tmp_path, sweep) as store:
        assert not store.has_samples("a")
        path = store.write_samples("a", {"energies": np.arange(3.0)})
        assert store.has_samples("a")
        with np.load(tmp_path / path) as file:
            np.testing.assert_array_equal(file["energies"], np.arange(3.0))
        assert [entry.name for entry in (tmp_path / "samples").iterdir()] == ["a.npz"]
