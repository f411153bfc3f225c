"""Trees of arrays and numbers as plain arrays and JSON, and back; nothing that is read is ever executed."""

import dataclasses
import hashlib
import json
import re
import sys
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler.errors import CheckpointError

# Types that NumPy's files don't know are kept as the integers of their bits.
BITS: dict[int, Any] = {1: np.uint8, 2: np.uint16, 4: np.uint32}
ADDRESS = re.compile(r"0x[0-9a-fA-F]+")


def encode(tree: Any, arrays: list[np.ndarray]) -> Any:
    """Return a tree's structure as JSON values, and append its arrays.

    Parameters
    ----------
    tree
        Nested tuples, lists, dictionaries, named tuples, data classes and modules of arrays (typed PRNG keys
        included), numbers, strings and None.
    arrays
        Appended to; the structure refers to them by number.

    Raises
    ------
    TypeError
        Something else is in the tree.
    """
    if tree is None or (isinstance(tree, bool | int | str | float) and not isinstance(tree, np.generic)):
        return tree
    if isinstance(tree, jax.Array | np.ndarray | np.generic):
        return _encode_array(tree, arrays)
    if isinstance(tree, np.dtype):
        return {"kind": "dtype", "name": tree.name}
    if isinstance(tree, Mapping):
        return {"kind": "dict", "values": [[str(key), encode(value, arrays)] for key, value in tree.items()]}
    if isinstance(tree, tuple | list):
        values = [encode(value, arrays) for value in tree]
        kind = type(tree).__name__ if type(tree) in (tuple, list) else _name_of(type(tree))
        return {"kind": kind, "values": values}
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        names = [field.name for field in dataclasses.fields(tree)]
        values = [[name, encode(getattr(tree, name), arrays)] for name in names]
        return {"kind": _name_of(type(tree)), "values": values}
    raise TypeError(f"A checkpoint can't keep a {type(tree).__name__}: {tree!r}.")


def decode(structure: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """Return the tree that `encode` described.

    Raises
    ------
    CheckpointError
        A class is not known in this process.
    """
    if not isinstance(structure, dict):
        return structure
    kind = structure["kind"]
    if kind in ("ndarray", "number", "array", "key"):
        return _decode_array(structure, arrays)
    if kind == "dtype":
        return np.dtype(structure["name"])
    if kind in ("tuple", "list"):
        values = [decode(value, arrays) for value in structure["values"]]
        return tuple(values) if kind == "tuple" else values
    if kind == "dict":
        return {key: decode(value, arrays) for key, value in structure["values"]}
    found = _class_named(kind)
    # Neither constructor runs: these are values that objects had, not arguments.
    if issubclass(found, tuple):
        return tuple.__new__(found, [decode(value, arrays) for value in structure["values"]])
    made = object.__new__(found)
    for name, value in structure["values"]:
        object.__setattr__(made, name, decode(value, arrays))
    return made


def digest(*trees: Any) -> str:
    """Return a hash of trees; targets are left out, and functions are known by their names alone."""
    total = hashlib.sha256()
    for tree in trees:
        arrays: list[np.ndarray] = []
        total.update(json.dumps(encode(_known_by_name(tree), arrays)).encode())
        for array in arrays:
            total.update(f"{array.dtype}{array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


def _known_by_name(tree: Any) -> Any:
    def is_opaque(x: Any) -> bool:
        return _is_target(x) or (callable(x) and not isinstance(x, eqx.Module))

    def name(x: Any) -> Any:
        if _is_target(x):
            return "target"
        return getattr(x, "__qualname__", type(x).__name__) if is_opaque(x) else x

    leaves, structure = jax.tree.flatten(tree, is_leaf=is_opaque)
    # Static fields are in the structure's text, functions with their addresses.
    return [[name(leaf) for leaf in leaves], ADDRESS.sub("", str(structure))]


def _is_target(x: Any) -> bool:
    return isinstance(x, eqx.Module) and hasattr(x, "value_and_gradient")


def _encode_array(array: Any, arrays: list[np.ndarray]) -> dict[str, Any]:
    structure: dict[str, Any] = {"kind": "ndarray", "at": len(arrays)}
    if isinstance(array, np.generic):
        structure["kind"] = "number"
    elif isinstance(array, jax.Array) and jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        structure |= {"kind": "key", "name": str(jax.random.key_impl(array))}
        array = jax.random.key_data(array)
    elif isinstance(array, jax.Array):
        structure["kind"] = "array"
        if array.weak_type:
            structure["weak"] = True
    plain = np.asarray(array)
    if plain.dtype.hasobject:
        raise TypeError(f"A checkpoint can't keep an array of objects: {plain!r}.")
    if plain.dtype.kind == "V":
        structure["dtype"] = plain.dtype.name
        plain = plain.view(BITS[plain.dtype.itemsize])
    arrays.append(plain)
    return structure


def _decode_array(structure: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Any:
    plain = arrays[str(structure["at"])]
    if "dtype" in structure:
        plain = plain.view(jnp.dtype(structure["dtype"]))
    match structure["kind"]:
        case "ndarray":
            return plain
        case "number":
            return plain[()]
        case "key":
            return jax.random.wrap_key_data(jnp.asarray(plain), impl=structure["name"])
    if structure.get("weak"):
        # Weak types take part in promotion, so they decide what is compiled.
        return jnp.broadcast_to(jnp.asarray(plain.dtype.type(0).item()), plain.shape).at[...].set(plain)
    return jnp.asarray(plain)


def _name_of(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def _class_named(name: str) -> type:
    """Return a class of data that this process has imported already: reading a file imports nothing."""
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    is_data = isinstance(found, type) and (issubclass(found, tuple) or dataclasses.is_dataclass(found))
    if not is_data:
        raise CheckpointError(f"A checkpoint names the class {name}, which is no class of data here: start anew.")
    return found
