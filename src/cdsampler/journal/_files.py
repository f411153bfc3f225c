"""Files that are either whole or known to be damaged."""

import contextlib
import hashlib
import io
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cdsampler.journal._encoding import decode, encode

MARK = b"cdsampler checkpoint 1 sha256 "
INDEX = "index"


class Damaged(Exception):
    """A file isn't what was written."""


class Item(NamedTuple):
    """Something kept: under which name, made from which inputs, and what."""

    key: str
    digest: str
    value: Any


def write_whole(path: Path, content: bytes) -> None:
    """Write a file with its checksum; it appears only when it is complete, and outlives a loss of power."""
    draft = path.with_name(f"{path.name}.tmp")
    with draft.open("wb") as file:
        file.write(MARK + hashlib.sha256(content).hexdigest().encode() + b"\n")
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)
    # Some file systems can't do it for folders.
    with contextlib.suppress(OSError):
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def read_whole(path: Path) -> bytes:
    """Return what `write_whole` wrote; raise `Damaged` if it isn't that any more."""
    try:
        first, separator, content = path.read_bytes().partition(b"\n")
    except OSError as error:
        raise Damaged(str(error)) from error
    if not separator or first != MARK + hashlib.sha256(content).hexdigest().encode():
        raise Damaged("its checksum is wrong")
    return content


def write_items(path: Path, items: Iterable[Item]) -> None:
    """Write items as an npz file of plain arrays, one of which is an index in JSON."""
    arrays: list[np.ndarray] = []
    index = [[item.key, item.digest, encode(item.value, arrays)] for item in items]
    text = np.frombuffer(json.dumps(index).encode(), np.uint8)
    buffer = io.BytesIO()
    named: dict[str, Any] = {INDEX: text, **{str(n): array for n, array in enumerate(arrays)}}
    np.savez(buffer, **named)
    write_whole(path, buffer.getvalue())


def read_items(path: Path) -> list[Item]:
    """Return what a file has, decoded; raise `Damaged` if it isn't whole."""
    with np.load(io.BytesIO(read_whole(path)), allow_pickle=False) as arrays:
        index = json.loads(arrays[INDEX].tobytes())
        return [Item(key, digest, decode(structure, arrays)) for key, digest, structure in index]
