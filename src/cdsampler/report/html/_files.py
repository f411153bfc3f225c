"""Files that appear under their names only when they are complete."""

import os
import uuid
from pathlib import Path


def write_whole(path: Path, content: bytes) -> Path:
    """Write a file, missing folders made, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return path
