"""A target's file that is edited between, or during, the runs of a sweep."""

import json
import multiprocessing

import numpy as np
import pytest

from cdsampler.benchmark import sweeps
from cdsampler.errors import InvalidInputError

EXACT = """
import jax
import jax.numpy as jnp

from cdsampler.density import LogDensity
from cdsampler.targets import AbstractExactTarget

WHERE = 0.0

class Mine(AbstractExactTarget):
    name: str = "lj-13"  # of the catalog, which must not matter
    dim: int = 2

    def density(self, dtype=None):
        return LogDensity(lambda y: -0.5 * jnp.sum((y - WHERE)**2), 2, dtype=dtype)

    def sample(self, key, n):
        return WHERE + jax.random.normal(key, (n, 2))

    def responsibilities(self, positions):
        return jnp.ones((len(positions), 1))

    mode_weights = jnp.ones(1)
    modes = jnp.zeros((1, 2))

def build():
    return Mine()
"""


@pytest.fixture
def exact(mine):
    path = mine()
    (path.parent / "mine.py").write_text(EXACT)
    return path


def records(folder, name="records.jsonl"):
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def edit(path, old, new):
    file = path.parent / "mine.py"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


def mean(folder, name):
    with np.load(folder / name) as file:
        return file["positions"].mean()


def test_a_changed_file_is_refused_by_name_until_its_runs_may_be_made_anew(exact, tmp_path):
    folder, said = tmp_path / "store", []
    sweeps.run_sweep(exact, folder)
    (before,) = records(folder)
    assert before["status"] == "ok", before["error"]
    assert "wasserstein_2" in before["metrics"]
    edit(exact, "WHERE = 0.0", "WHERE = 50.0")
    with pytest.raises(InvalidInputError, match=r"mine\.py was changed: 1 runs of mine .*--redo-changed"):
        sweeps.run_sweep(exact, folder)
    with pytest.raises(InvalidInputError, match="was changed"):
        sweeps.run_sweep(exact, folder, retry_failed=True)  # it did not fail
    assert records(folder) == [before]
    progress = sweeps.run_sweep(exact, folder, redo_changed=True, on_message=said.append)
    assert (progress.done, progress.failed) == (1, 0)
    (after,) = records(folder)
    assert after["key"] != before["key"]
    assert after["target_sha256"] != before["target_sha256"]
    assert "mine.py was changed" in said[0]
    assert "records-set-aside.jsonl" in said[0]
    assert records(folder, "records-set-aside.jsonl") == [before]
    # The page shows samples beside those of the target as it is now.
    assert mean(folder, after["samples_file"]) == pytest.approx(50, abs=5)
    assert mean(folder, "samples/reference-mine.npz") == pytest.approx(50, abs=2)
    assert sweeps.run_sweep(exact, folder).done == 1
    assert records(folder) == [after]


def test_a_file_that_is_restored_goes_on(exact, tmp_path):
    folder = tmp_path / "store"
    sweeps.run_sweep(exact, folder)
    edit(exact, "WHERE = 0.0", "WHERE = 1.0")
    edit(exact, "WHERE = 1.0", "WHERE = 0.0")
    assert sweeps.run_sweep(exact, folder).done == 1
    assert len(records(folder)) == 1


def test_runs_that_failed_are_tried_again_with_the_mended_file(mine, tmp_path):
    path, folder, said = mine("broken"), tmp_path / "store", []
    sweeps.run_sweep(path, folder)
    edit(path, 'raise RuntimeError("no such luck")', "return Mine()")
    with pytest.raises(InvalidInputError, match="was changed"):
        sweeps.run_sweep(path, folder)
    progress = sweeps.run_sweep(path, folder, retry_failed=True, on_message=said.append)
    assert (progress.done, progress.failed) == (1, 0)
    assert [record["status"] for record in records(folder)] == ["ok"]
    assert len(said) == 1


def test_records_without_the_contents_of_their_file_are_refused(mine, tmp_path):
    path, folder = mine("broken"), tmp_path / "store"
    sweeps.run_sweep(path, folder)
    (record,) = records(folder)
    del record["target_sha256"]
    (folder / "records.jsonl").write_text(json.dumps(record) + "\n")
    with pytest.raises(InvalidInputError, match="another version"):
        sweeps.run_sweep(path, folder)


def test_a_file_that_is_edited_during_a_sweep_fails_the_runs_that_come_after(mine):
    path = mine()
    (job,) = sweeps.expand(sweeps.read_config(path))
    edit(path, "-0.5", "-0.6")
    # In a process of its own: in this one an earlier run may have loaded the file.
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        record = pool.apply(sweeps.run_one, (job,)).record
    assert record["status"] == "failed"
    assert "mine.py was changed since" in record["error"]
    assert record["key"] == job.spec.key


def test_only_targets_of_files_have_their_contents_in_their_keys(tiny, mine):
    assert {job.spec.target_sha256 for job in sweeps.expand(sweeps.parse_config(tiny))} == {None}
    path = mine()
    (before,) = sweeps.expand(sweeps.read_config(path))
    edit(path, "-0.5", "-0.6")
    (after,) = sweeps.expand(sweeps.read_config(path))
    assert before.spec.key != after.spec.key
