import dataclasses
import json

import numpy as np
import pytest

from cdsampler.benchmark import sweeps
from cdsampler.benchmark.sweeps._store import Store
from cdsampler.errors import InvalidInputError


@pytest.fixture
def sweep(tiny):
    return sweeps.parse_config(tiny)


def record(key, status="ok"):
    return {"key": key, "status": status, "value": [1.5, None]}


def test_what_is_appended_is_found_again(sweep, tmp_path):
    with Store(tmp_path / "s", sweep) as store:
        assert store.statuses == {}
        store.append(record("a"))
        store.append(record("b", "failed"))
    with Store(tmp_path / "s", sweep) as store:
        assert store.statuses == {"a": "ok", "b": "failed"}
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
        assert store.statuses == {"a": "ok"}
        assert (tmp_path / "records.jsonl").read_bytes() == whole
        store.append(record("b"))
    assert len(messages) == 1
    assert "torn" in messages[0]
    with Store(tmp_path, sweep, messages.append) as store:
        assert list(store.statuses) == ["a", "b"]
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
    with pytest.raises(InvalidInputError, match=r"can't be written to"):
        Store(tmp_path / "file" / "store", sweep)


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
