import hashlib
import multiprocessing
import os
import pickle
import subprocess
import sys

import pytest

from cdsampler._user_code import file_hash, load_object, located
from cdsampler.errors import InvalidInputError

TARGET = """
import neighbour_{name}

class Thing:
    value = neighbour_{name}.VALUE

def build():
    return Thing()
"""


@pytest.fixture
def two(tmp_path, monkeypatch):
    """Two files called target.py, in folders with a dot, a space and an underscore in their names."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    files = []
    for name, folder in (("a", "one.py 1"), ("b", "two_2f")):
        place = tmp_path / folder
        place.mkdir()
        (place / "target.py").write_text(TARGET.format(name=name))
        (place / f"neighbour_{name}.py").write_text(f"VALUE = {name!r}")
        files.append(place / "target.py")
    return files


def test_two_files_of_one_name_are_two_modules_and_find_their_neighbours(two):
    first, second = (load_object(f"{path}:Thing") for path in two)
    assert (first.value, second.value) == ("a", "b")
    assert first.__module__ != second.__module__
    assert load_object(f"{two[0]}:Thing") is first
    assert sys.modules[first.__module__].__file__ == str(two[0])


def test_what_a_file_defines_is_unpickled_in_other_processes(two):
    things = [load_object(f"{path}:build")() for path in two]
    code = "import pickle, sys; print([thing.value for thing in pickle.loads(sys.stdin.buffer.read())])"
    ran = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(things), capture_output=True, check=True)
    assert ran.stdout.strip() == b"['a', 'b']"
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(load_object(f"{two[1]}:build")).value == "b"


def test_a_file_is_run_again_only_when_it_has_changed(tmp_path):
    path = tmp_path / "model.py"
    path.write_text("def f():\n    return 1\n")
    before, spec = os.stat(path), located(str(path) + ":f")
    first = load_object(spec)
    assert load_object(spec) is first
    path.write_text("def f():\n    return 2\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # as if in the same instant, and it is as long
    assert load_object(spec)() == 2


def test_other_contents_than_expected_are_refused(tmp_path):
    path = tmp_path / "model.py"
    path.write_text("def f():\n    return 1\n")
    spec = located(f"{path}:f")
    sha256 = file_hash(spec)
    assert sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    path.write_text("def f():\n    return 2\n")
    with pytest.raises(InvalidInputError, match=r"model.py was changed since"):
        load_object(spec, sha256)
    path.write_text("def f():\n    return 1\n")
    first = load_object(spec, sha256)
    path.unlink()
    assert load_object(spec, sha256) is first  # it was run with these contents already


def test_half_a_module_does_not_stay(tmp_path):
    path = tmp_path / "model.py"
    path.write_text("f = 1\nraise RuntimeError('no such luck')\n")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no such luck"):
            load_object(f"{path}:f")


def test_modules_are_named_too():
    assert load_object("os.path:join") is os.path.join
    assert located("os.path:join") == "os.path:join"
    assert file_hash("os.path:join") is None


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("model.py", r"FILE.py:NAME or MODULE:NAME.*got 'model.py'"),
        (":f", r"got ':f'"),
        ("model.py:1", r"got 'model.py:1'"),
        ("none.py:f", r"no file .*none.py"),
        ("model.py:function", r"model.py has no function: did you mean functoin\?"),
        ("broken.py:f", r"broken.py is not Python: .*line 2"),
        ("nul.py:f", r"nul.py is not Python"),
        ("no_such_module:f", r"no module 'no_such_module' \(looked for f"),
        ("os.no_such:f", r"no module 'os.no_such'"),
        (".relative:f", r"no module '.relative'"),
    ],
)
def test_what_is_not_there_is_named(tmp_path, spec, message):
    (tmp_path / "model.py").write_text("def functoin():\n    pass\n")
    (tmp_path / "broken.py").write_text("x = 1\ndef f(:\n")
    (tmp_path / "nul.py").write_text("x = 1\0")
    with pytest.raises(InvalidInputError, match=message):
        located(spec, tmp_path)


def test_a_name_that_only_running_shows_is_looked_for_then(tmp_path):
    path = tmp_path / "model.py"
    path.write_text("from os.path import *\n")
    assert load_object(f"{path}:join") is os.path.join
    with pytest.raises(InvalidInputError, match=r"model.py has no jion: did you mean join\?"):
        load_object(f"{path}:jion")
    with pytest.raises(InvalidInputError, match=r"os.path has no jion: did you mean join\?"):
        load_object("os.path:jion")
