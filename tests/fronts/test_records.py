import json

import pytest

from cdsampler.benchmark.fronts import read_records, read_store
from cdsampler.errors import InvalidInputError


def test_a_store_is_read_back(fake, tmp_path):
    records = fake.grid(n_seeds=1)
    store = read_store(fake.write_store(tmp_path / "s", records, with_samples=False))
    assert store.records == records
    assert store.name == "made-up"
    assert store.version == "0.1.0"
    assert not store.notes


def test_a_torn_last_line_is_left_out_and_said(fake, tmp_path):
    folder = fake.write_store(tmp_path, [fake.record()], torn='{"key": "half', with_samples=False)
    with pytest.warns(UserWarning, match="torn"):
        assert len(read_records(folder)) == 1


def test_a_damaged_line_before_the_last_is_refused_by_number(fake, tmp_path):
    folder = fake.write_store(tmp_path, [fake.record()], torn=f"{{half\n{json.dumps(fake.record())}\n")
    with pytest.raises(InvalidInputError, match=r"Line 2 of .*records\.jsonl is not JSON"):
        read_store(folder)


def test_of_a_repeated_run_the_last_counts(fake, tmp_path):
    folder = fake.write_store(tmp_path, [fake.record(status="failed"), fake.record()], with_samples=False)
    assert [record["status"] for record in read_store(folder).records] == ["ok"]


def test_mixed_machines_and_versions_are_noted(fake, tmp_path):
    records = [fake.record(), fake.record(seed=1, device="gpu", version="0.2.0")]
    notes = " ".join(read_store(fake.write_store(tmp_path, records, with_samples=False)).notes)
    assert "2 devices (cpu, gpu)" in notes
    assert "2 versions of cdsampler (0.1.0, 0.2.0)" in notes


@pytest.mark.parametrize("header", ['{"format": 2}', "[]", "half"])
def test_other_formats_are_refused(fake, tmp_path, header):
    folder = fake.write_store(tmp_path, [fake.record()], with_samples=False)
    (folder / "store.json").write_text(header)
    with pytest.raises(InvalidInputError, match=r"store\.json"):
        read_store(folder)


def test_what_is_no_store_is_refused(fake, tmp_path):
    with pytest.raises(InvalidInputError, match="no store of a sweep"):
        read_store(tmp_path)
    folder = fake.write_store(tmp_path, [], with_samples=False)
    with pytest.raises(InvalidInputError, match="holds no records"):
        read_store(folder)
    (folder / "records.jsonl").unlink()
    with pytest.raises(InvalidInputError, match=r"has no records\.jsonl"):
        read_store(folder)


@pytest.mark.parametrize(("line", "why"), [({"key": "a"}, "lacks task"), (["a"], "must be an object")])
def test_lines_that_are_no_records_are_refused(fake, tmp_path, line, why):
    folder = fake.write_store(tmp_path, [], with_samples=False)
    (folder / "records.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(InvalidInputError, match=why):
        read_store(folder)
