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


def test_mixed_machines_and_versions_are_noted_by_name(fake, tmp_path):
    records = [fake.record(), fake.record(label="mala", device="gpu", version="0.2.0", commit="a" * 40)]
    records += [fake.record("lj-13", jax_version="0.11")]
    notes = read_store(fake.write_store(tmp_path, records, with_samples=False)).notes
    assert len(notes) == 4
    assert "Runs of 2 devices are compared on gm-2: cpu (2 runs of nrpt); gpu (1 run of mala)." in notes[0]
    assert "2 versions of cdsampler" in notes[1]
    assert "0ebdd66 (2 runs of nrpt); aaaaaaaaaa (1 run of mala)" in notes[2]
    assert "2 versions of JAX, but never on one task: 0.10.2 (2 runs of gm-2); 0.11 (1 run of lj-13)" in notes[3]


def test_many_samplers_of_a_mixture_are_counted(fake, tmp_path):
    records = [fake.record(label=f"s{i}", device="gpu" if i else "cpu") for i in range(10)]
    (note,) = read_store(fake.write_store(tmp_path, records, with_samples=False)).notes
    assert "gpu (9 runs of s1, s2, s3, s4, s5, s6 and 3 more)" in note


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
