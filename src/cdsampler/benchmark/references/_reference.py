import contextlib
import hashlib
import json
import os
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Reference:
    """Samples of a target that this library made itself, and how.

    Attributes
    ----------
    name
        Of the target; Cartesian and internal coordinates share one.
    samples : ndarray of float32, shape (n, dim)
        Particle positions one after another with centroid zero, in r_m (Lennard-Jones) or nm (molecules); parameters
        (neural network); positions (mixtures). Samples of one chain follow one another.
    log_weights : ndarray, shape (n,), or None
        None if all weigh the same.
    is_independent
        Whether samples can be taken for independent ones.
    autocorrelation
        Integrated autocorrelation of the energy, in samples; 1 for independent ones.
    provenance
        Method, settings, seed, versions, date, cost, and what checks found. Plain values.
    """

    name: str
    samples: np.ndarray
    log_weights: np.ndarray | None
    is_independent: bool
    autocorrelation: float
    provenance: dict[str, Any]

    @property
    def checksum(self) -> str:
        """SHA-256 of samples and weights: the same samples, the same checksum."""
        return checksum(self.samples, self.log_weights)


def checksum(samples: np.ndarray, log_weights: np.ndarray | None) -> str:
    """Return the SHA-256 of shape, samples and weights, in hexadecimal digits."""
    digest = hashlib.sha256(str(samples.shape).encode())
    digest.update(np.ascontiguousarray(samples, dtype="<f4").tobytes())
    if log_weights is not None:
        digest.update(np.ascontiguousarray(log_weights, dtype="<f8").tobytes())
    return digest.hexdigest()


def write_reference(reference: Reference, path: Path) -> Path:
    """Write a reference as one file, which appears under its name only when it is complete."""
    about = {
        "name": reference.name,
        "is_independent": reference.is_independent,
        "autocorrelation": reference.autocorrelation,
        "checksum": reference.checksum,
        "provenance": reference.provenance,
    }
    arrays = {"samples": reference.samples, "about": np.array(json.dumps(about, ensure_ascii=False))}
    if reference.log_weights is not None:
        arrays["log_weights"] = reference.log_weights
    return write_arrays(path, arrays)


def write_arrays(path: Path, arrays: dict[str, np.ndarray]) -> Path:
    """Write arrays to a compressed npz file, in one step as far as readers can tell."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # In a folder of its own, since a temporary file would keep its private permissions.
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".writing-") as folder:
        temporary = Path(folder) / path.name
        with temporary.open("wb") as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    return path


class CorruptFileError(Exception):
    """A file of ours holds something else than what was written."""


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Read what `write_arrays` wrote.

    Raises
    ------
    CorruptFileError
        It can't be read.
    """
    with _as_corrupt(), path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
        return {key: file[key] for key in file.files}


def read_reference(path: Path, name: str, dim: int) -> Reference:
    """Read what `write_reference` wrote, and check it.

    Parameters
    ----------
    path
    name
        Of the target.
    dim
        Numbers in a sample.

    Raises
    ------
    CorruptFileError
        The file can't be read, belongs to another target, has a wrong shape or numbers that aren't finite, or doesn't
        have its own checksum.
    """
    arrays = read_arrays(path)
    with _as_corrupt():
        about, samples = json.loads(str(arrays["about"])), arrays["samples"]
        stored, written_for = about["checksum"], about["name"]
        reference = Reference(
            name,
            samples,
            arrays.get("log_weights"),
            about["is_independent"],
            about["autocorrelation"],
            about["provenance"],
        )
    if written_for != name:
        raise CorruptFileError(f"it holds samples of {written_for!r}")
    if samples.ndim != 2 or samples.shape[1] != dim or not len(samples) or samples.dtype != np.float32:
        raise CorruptFileError(f"samples are {samples.dtype} of shape {samples.shape} instead of float32 (n, {dim})")
    weights = reference.log_weights
    if weights is not None and weights.shape != samples.shape[:1]:
        raise CorruptFileError(f"log weights have shape {weights.shape} for {len(samples)} samples")
    if not np.all(np.isfinite(samples)):
        raise CorruptFileError("samples hold numbers that aren't finite")
    if stored != reference.checksum:
        raise CorruptFileError("its checksum (SHA-256) doesn't match its samples")
    return reference


@contextlib.contextmanager
def _as_corrupt() -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise CorruptFileError(f"it can't be read ({error})") from error
    except Exception as error:  # zlib.error has no common base with the others
        if type(error).__module__ == "zlib":
            raise CorruptFileError(f"it can't be read ({error})") from error
        raise
