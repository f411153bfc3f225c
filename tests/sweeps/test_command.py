"""The command `sweep`: what is wrong is one line, before anything is run."""

import json
import sys

import pytest

from cdsampler.cli import main


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run the command on the tiny sweep with some text of its file replaced."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["cdsampler", "sweep", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        out, err = capsys.readouterr()
        return stopped.value.code or 0, " ".join(out.split()), " ".join(err.split())

    return run


@pytest.fixture
def write(tmp_path, tiny):
    def write(old="", new=""):
        assert old in tiny
        path = tmp_path / "tiny.toml"
        path.write_text(tiny.replace(old, new) if old else tiny)
        return path

    return write


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("repeats = 2", "repeat = 2", ["'repeat'", "Did you mean 'repeats'"]),
        ("[tasks.gm-2]", "[tasks.gm2]", ["'gm2'", "Did you mean 'gm-2'"]),
        ("[40, 20]", "[2, 1]", ["[samplers.hmc] on gm-2 with n_leapfrog=2", "budgets 1, 2", "needs at least"]),
    ],
)
def test_a_wrong_file_is_named_and_nothing_is_written(run, write, tmp_path, old, new, words):
    code, _, err = run(write(old, new))
    assert code == 2
    assert err.startswith("Error: ")
    for word in words:
        assert word in err
    assert not (tmp_path / "sweep-tiny").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--executor", "rays"], "--executor must be one of in-process, processes, ray, got 'rays'"),
        (["--workers", "2"], "--workers belongs to other processes"),
        (["--address", "auto"], "--address is that of a Ray cluster"),
        (["--gpus-per-worker", "1"], "--gpus-per-worker is of a Ray cluster's GPUs"),
        (["--executor", "processes", "--workers", "0"], "workers must be at least 1, got 0"),
        (["--tasks", "gm-16"], "task of this sweep 'gm-16'"),
        (["--samplers", "hmcc"], "Did you mean 'hmc'"),
        (["--out", "file"], "The store must be a folder, and file is a file"),
        (["--out", "file/store"], "The folder file/store can't be written to (Not a directory): choose another one"),
        (["--out", "full"], "full holds something and is no store of a sweep"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_option_is_named(run, write, tmp_path, arguments, words):
    (tmp_path / "file").write_text("x")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "something").write_text("x")
    code, _, err = run(write(), *arguments)
    assert (code, words in err) == (2, True), err


def test_a_store_of_another_version_is_refused_or_said(run, mine, tmp_path):
    path, header = mine("broken"), tmp_path / "sweep-mine" / "store.json"
    code, out, _ = run(path)
    assert code == 0
    assert "Failed: mala on mine" in out
    assert "1 runs in sweep-mine, of them 1 failed and 0 infeasible" in out
    written = json.loads(header.read_text())
    header.write_text(json.dumps(written | {"version": "0.0.1"}))
    code, out, _ = run(path)
    assert code == 0
    assert "sweep-mine was started by version 0.0.1" in out
    header.write_text(json.dumps(written | {"format": 7, "version": "9.9"}))
    code, _, err = run(path)
    assert code == 2
    assert "store.json says format 7" in err
    assert "version 9.9" in err


def test_a_changed_file_is_refused_and_made_anew_on_demand(run, mine):
    path = mine("broken")
    run(path)
    file = path.parent / "mine.py"
    file.write_text(file.read_text() + "\n# changed\n")
    code, _, err = run(path)
    assert code == 2
    assert "mine.py was changed: 1 runs of mine in sweep-mine" in err
    code, out, _ = run(path, "--redo-changed")
    assert code == 0
    assert "made anew" in out


def test_a_dry_run_counts_and_writes_nothing(run, write, tmp_path):
    code, out, _ = run(write("[2, 3]", "[30]"), "--dry-run")
    assert code == 0
    assert "gm-2 6 2 " in out
    assert not (tmp_path / "sweep-tiny").exists()
