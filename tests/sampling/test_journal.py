"""What is kept comes back as it was, and what was damaged doesn't come back at all."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cdsampler import MALA, CheckpointError, LogDensity
from cdsampler.density import Evaluations, fingerprint
from cdsampler.journal import Journal, digest
from cdsampler.journal._encoding import decode, encode
from cdsampler.journal._files import Damaged, Item, read_items, write_items
from cdsampler.samplers import Harvest, in_blocks

TREES = {
    "numbers": (1, 1.5, float("nan"), -float("inf"), True, None, "text", 2**70),
    "containers": {"a": [1, (2,)], "b": {}},
    "arrays": (np.arange(6.0).reshape(2, 3), np.float32(1.5), np.zeros((0, 2)), np.array(True)),
    "devices": (jnp.arange(3, dtype=jnp.int32), jnp.asarray(0.5), jnp.full((2,), 0.5)),
    "small floats": (jnp.ones(2, jnp.bfloat16), np.ones(2, np.float16)),
    "keys": jax.random.split(jax.random.key(3), 2),
    "classes": (Harvest(3, 2), Evaluations.zero((2,)), MALA(0.5)),
}


@pytest.mark.parametrize("name", TREES)
def test_trees_come_back_as_they_were(tmp_path, name):
    tree = TREES[name]
    write_items(tmp_path / "file", [Item("first", "", 1), Item("key", "digest", tree)])
    _, item = read_items(tmp_path / "file")
    assert (item.key, item.digest) == ("key", "digest")
    assert jax.tree.structure(item.value) == jax.tree.structure(tree)
    for one, other in zip(jax.tree.leaves(item.value), jax.tree.leaves(tree), strict=True):
        assert type(one) is type(other)
        if isinstance(other, jax.Array):
            assert one.aval == other.aval
            assert getattr(one, "weak_type", False) == getattr(other, "weak_type", False)
        if not jnp.issubdtype(getattr(other, "dtype", int), jax.dtypes.prng_key):
            np.testing.assert_array_equal(one, other)
    assert digest(item.value) == digest(tree)


def test_functions_and_objects_are_not_kept():
    for tree in (lambda x: x, object(), np.array([object()])):
        with pytest.raises(TypeError, match="can't keep"):
            encode(tree, [])


def test_reading_makes_nothing_but_data():
    for name in ("subprocess:Popen", "no.such.module:Thing", "builtins:dict", "cdsampler.journal._journal:Journal"):
        with pytest.raises(CheckpointError, match="no class of data"):
            decode({"kind": name, "values": []}, {})


def test_any_changed_byte_is_noticed(tmp_path):
    path = tmp_path / "file"
    write_items(path, [Item("key", "", np.arange(20.0))])
    content = path.read_bytes()
    for at in range(0, len(content), 7):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        with pytest.raises(Damaged):
            read_items(path)
    path.write_bytes(content[:-1])
    with pytest.raises(Damaged):
        read_items(path)
    path.write_bytes(content)
    assert len(read_items(path)) == 1


def test_calls_are_answered_in_order_and_other_inputs_are_refused(tmp_path):
    calls = []

    def double(x):
        calls.append(x)
        return 2 * x

    journal = Journal(tmp_path, 0)
    assert [journal.call("double", double, x) for x in (1, 2)] == [2, 4]
    again = Journal(tmp_path, 0)
    assert [again.call("double", double, x) for x in (1, 2, 3)] == [2, 4, 6]
    assert calls == [1, 2, 3]
    with pytest.raises(CheckpointError, match=r"task '1 double'"):
        Journal(tmp_path, 0).call("double", double, 7)


def test_nothing_is_written_before_it_is_due(tmp_path):
    journal = Journal(tmp_path, 1e9)
    entry = journal.entry("task")
    entry.offer(1)
    entry.finish(2)
    assert not list(tmp_path.iterdir())
    journal.write()
    assert Journal(tmp_path, 1e9).entry("task").answer() == 2


def test_a_state_outlives_a_session_that_did_not_come_to_it(tmp_path):
    first = Journal(tmp_path, 0)
    first.entry("slow").offer(7)
    second = Journal(tmp_path, 0)
    second.entry("other").finish(1)
    third = Journal(tmp_path, 0)
    assert third.entry("slow").load() == 7
    third.entry("another").finish(1)  # before a new state of the slow one
    assert Journal(tmp_path, 0).entry("slow").load() == 7


@pytest.mark.parametrize("target", [0.0, 1e-4, 1e9])
def test_blocks_make_no_difference(monkeypatch, target):
    monkeypatch.setattr("cdsampler.samplers._blocks.TARGET", target)

    @jax.jit
    def advance(x, first, last):
        return jax.lax.fori_loop(first, last, lambda i, x: jnp.sin(x + 0.1 * i), x)

    start = jnp.linspace(0, 1, 5)
    np.testing.assert_array_equal(in_blocks(advance, start, 1000), advance(start, 0, 1000))


def test_a_fingerprint_sees_programs_and_constants():
    def gaussian(centre):
        return LogDensity(jax.jit(lambda y: -jnp.sum((y - centre) ** 2)), 2)

    def host(y):
        return jax.pure_callback(lambda y: -np.sum(y**2), jax.ShapeDtypeStruct((), y.dtype), y)

    centre = np.array([1.0, 2.0])
    same, moved = fingerprint(gaussian(centre)), fingerprint(gaussian(centre + 1e-9))
    assert same == fingerprint(gaussian(centre.copy())) != moved
    assert same != fingerprint(LogDensity(lambda y: -jnp.sum(jnp.abs(y - centre)), 2))
    assert same.is_complete
    assert not fingerprint(LogDensity(host, 2, value_and_grad=lambda y: (host(y), -2 * y))).is_complete
