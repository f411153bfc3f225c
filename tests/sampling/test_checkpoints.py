"""A run that was ended at any moment and gone on with equals the run that wasn't, bit for bit."""

import dataclasses
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cdsampler
from cdsampler import (
    CDS,
    MALA,
    NRPT,
    CheckpointError,
    CheckpointWarning,
    GaussianReference,
    LogDensity,
    SamplingWarning,
    geometric_times,
    noise_variances,
)
from cdsampler.journal import Journal, digest
from cdsampler.samplers import Harvest, _blocks

CENTRES = jnp.array([[-4.0, 0.0], [4.0, 0.0]])
TIMES = geometric_times(0.1, 6)
SAMPLER = CDS(NRPT(GaussianReference(1.0), [0.0, 0.3, 1.0], MALA(0.5), 30), TIMES, noise_variances(TIMES, 0.1))
# One object, so that all runs share their compiled programs.
DENSITY = LogDensity(lambda y: jax.nn.logsumexp(-0.5 * jnp.sum((y[None] - CENTRES) ** 2, axis=1)), 2)


def produce(n_samples=70, density=DENSITY, **settings):
    """Run 3 groups of 3 draws each."""
    harvest = Harvest(3, 8)
    return cdsampler.run(SAMPLER, density, n_samples, anchor=np.zeros(2), harvest=harvest, seed=5, **settings)


def tune_and_produce(n_samples=64, **settings):
    """Run the whole of `sample`, as cheaply as it will."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)
        return cdsampler.sample(DENSITY, n_samples=n_samples, **{"seed": 3, "max_evaluations": 12_000} | settings)


def assert_same(result, whole):
    """Compare all that a result has, timing apart, bit for bit."""
    for field in dataclasses.fields(whole):
        if field.name != "timing":
            one, other = getattr(result, field.name), getattr(whole, field.name)
            assert digest(one) == digest(other), field.name
    np.testing.assert_array_equal(result.samples, whole.samples)
    assert result.total_evaluations == whole.total_evaluations
    assert result.warnings == whole.warnings


class Killed(BaseException):
    """What is left of a process after it was killed: nothing runs any more, and nothing is written."""


class Killer:
    """Ends runs at chosen notes in their journals.

    Parameters
    ----------
    monkeypatch
    error
        `KeyboardInterrupt` lets the run end in order; `Killed` lets nothing more be written.
    """

    def __init__(self, monkeypatch, error):
        self.n_notes, self.at = 0, None
        self._error, self._is_dead = error, False
        note, write = Journal.note, Journal.write

        def counted(journal, *args, **kwargs):
            if self.n_notes == self.at:
                self._is_dead = self._error is Killed
                raise self._error
            self.n_notes += 1
            note(journal, *args, **kwargs)

        def alive(journal):
            if not self._is_dead:
                write(journal)

        monkeypatch.setattr(Journal, "note", counted)
        monkeypatch.setattr(Journal, "write", alive)

    def arm(self, at):
        """End the next run at that note; None: don't."""
        self.n_notes, self.at, self._is_dead = 0, at, False


@pytest.fixture
def short_blocks(monkeypatch):
    """Blocks of one step each, so that a run can be ended after any of them."""
    monkeypatch.setattr(_blocks, "TARGET", 0.0)


@pytest.fixture(scope="module")
def produced():
    return produce()


@pytest.fixture(scope="module")
def sampled():
    return tune_and_produce()


@pytest.mark.parametrize("error", [KeyboardInterrupt, Killed])
def test_production_goes_on_from_any_block(produced, narrow_groups, short_blocks, monkeypatch, tmp_path, error):
    killer = Killer(monkeypatch, error)
    assert_same(produce(checkpoint=tmp_path / "whole", checkpoint_interval=0), produced)
    n_notes = killer.n_notes
    assert n_notes > 100
    for at in np.linspace(0, n_notes - 1, 12).astype(int):
        folder = tmp_path / f"{at}"
        killer.arm(at)
        with pytest.raises(error):
            produce(checkpoint=folder, checkpoint_interval=0)
        killer.arm(None)
        assert_same(produce(checkpoint=folder, resume=True), produced)
        assert killer.n_notes < n_notes - at + 20  # what was done isn't done again


def test_a_run_that_is_ended_every_few_blocks_comes_to_its_end(
    produced, narrow_groups, short_blocks, monkeypatch, tmp_path
):
    killer, n_sessions, result = Killer(monkeypatch, Killed), 0, None
    while result is None:
        killer.arm(30)
        n_sessions += 1
        try:
            result = produce(checkpoint=tmp_path, resume=True, checkpoint_interval=0)
        except Killed:
            continue
    assert n_sessions > 4
    assert_same(result, produced)


def test_an_interrupt_in_production_returns_what_is_finished_and_keeps_the_rest(narrow_groups, tmp_path):
    def interrupt(progress):
        if progress.finished > 0:
            raise KeyboardInterrupt

    settings = {"n_samples": 320, "checkpoint": tmp_path}
    partial = produce(on_progress=interrupt, **settings)
    assert partial.is_partial
    assert "resume=True" in str(partial.warnings[-1])
    whole = produce(n_samples=320)
    np.testing.assert_array_equal(partial.samples, whole.samples[: len(partial.samples)])
    assert_same(produce(resume=True, **settings), whole)


def test_tuning_goes_on_from_any_call(sampled, monkeypatch, tmp_path):
    killer = Killer(monkeypatch, Killed)
    assert_same(tune_and_produce(checkpoint=tmp_path / "whole", checkpoint_interval=0), sampled)
    n_notes = killer.n_notes
    for at in np.linspace(0, n_notes - 1, 8).astype(int):
        folder = tmp_path / f"{at}"
        killer.arm(at)
        with pytest.raises(Killed):
            tune_and_produce(checkpoint=folder, checkpoint_interval=0)
        killer.arm(None)
        assert_same(tune_and_produce(checkpoint=folder, resume=True), sampled)
        assert killer.n_notes <= n_notes - at + 5


def test_an_interrupt_in_tuning_says_how_to_go_on(tmp_path):
    def interrupt(summary):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="resume=True"):
        tune_and_produce(checkpoint=tmp_path, on_round=interrupt)
    with pytest.raises(KeyboardInterrupt, match="give a folder"):
        tune_and_produce(on_round=interrupt)


def test_a_finished_run_is_only_read(sampled, tmp_path):
    rounds, again = [], []
    tune_and_produce(checkpoint=tmp_path, on_round=rounds.append)
    files = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.bin")}
    assert_same(tune_and_produce(checkpoint=tmp_path, resume=True, on_round=again.append), sampled)
    assert files == {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.bin")}
    assert rounds == again == list(sampled.plan.rounds)


def test_a_broken_resume_is_noticed(produced, narrow_groups, short_blocks, monkeypatch, tmp_path):
    """Negative control: states that come back with one bit changed give other samples."""
    killer, found = Killer(monkeypatch, Killed), Journal.found

    def broken(journal, key, digest, *, is_finished):
        state = found(journal, key, digest, is_finished=is_finished)
        if is_finished or state is None:
            return state
        return jax.tree.map(lambda a: a + 1e-6 if getattr(a, "dtype", None) == np.float64 else a, state)

    killer.arm(60)
    with pytest.raises(Killed):
        produce(checkpoint=tmp_path, checkpoint_interval=0)
    killer.arm(None)
    monkeypatch.setattr(Journal, "found", broken)
    with pytest.raises(AssertionError):
        assert_same(produce(checkpoint=tmp_path, resume=True), produced)


@pytest.mark.parametrize("damage", [lambda content: content[:-10], lambda content: b"", lambda content: content[1:]])
def test_a_damaged_file_costs_what_was_in_it_and_nothing_else(
    produced, narrow_groups, short_blocks, monkeypatch, tmp_path, damage
):
    killer = Killer(monkeypatch, Killed)
    killer.arm(90)
    with pytest.raises(Killed):
        produce(checkpoint=tmp_path, checkpoint_interval=0)
    killer.arm(None)
    newest = max(tmp_path.glob("running-*.bin"), key=lambda path: path.stat().st_mtime_ns)
    spoiled = [newest, next(iter(tmp_path.glob("finished-*.bin"))), tmp_path / "run.txt"]
    for path in spoiled:
        path.write_bytes(damage(path.read_bytes()))
    with pytest.warns(CheckpointWarning) as caught:
        result = produce(checkpoint=tmp_path, resume=True)
    assert_same(result, produced)
    for path in spoiled:
        assert any(str(path) in str(warning.message) for warning in caught)
    assert killer.n_notes < 200  # the other generation of states was used


def test_a_disk_that_is_full_costs_the_checkpoint_and_not_the_run(produced, narrow_groups, monkeypatch, tmp_path):
    def full(path, items):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cdsampler.journal._journal.write_items", full)
    with pytest.warns(CheckpointWarning, match="make room"):
        assert_same(produce(checkpoint=tmp_path), produced)


def test_a_checkpoint_is_of_one_run(tmp_path):
    produce(checkpoint=tmp_path)
    for settings, words in (
        ({}, "resume=True"),
        ({"resume": True, "n_samples": 71}, "n_samples was 70 and is 71"),
        ({"resume": True, "density": LogDensity(lambda y: -jnp.sum(y**2), 2)}, "log_density was"),
        ({"resume": True, "density": LogDensity(DENSITY.log_density, 2, names=("a", "b"))}, "names was"),
        ({"resume": True, "density": LogDensity(DENSITY.log_density, 2, dtype=np.float32)}, "dtype was"),
    ):
        with pytest.raises(CheckpointError, match=words):
            produce(checkpoint=tmp_path, **settings)


def test_folders_that_cannot_be_used_are_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(CheckpointError, match=r"holds thesis\.tex"):
        produce(checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match="can't be written to"):
        produce(checkpoint=tmp_path / "thesis.tex")
    with pytest.raises(CheckpointError, match="give it as checkpoint"):
        produce(resume=True)


def test_a_checkpoint_in_use_is_refused(tmp_path):
    def again(progress):
        produce(checkpoint=tmp_path, resume=True)

    with pytest.raises(CheckpointError, match="Another process"):
        produce(checkpoint=tmp_path, on_progress=again)
