"""A folder of checkpoints, and the run that it belongs to."""

import contextlib
import hashlib
import json
import platform
import warnings
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

import jax

from cdsampler.errors import CheckpointError, CheckpointWarning
from cdsampler.journal._files import Damaged, read_whole, write_whole
from cdsampler.journal._journal import AbstractJournal, Journal, NoJournal

# The second is a copy, for the first may be damaged.
HEADERS = ("run.txt", "run-copy.txt")
LOCK = "lock"
SETTINGS = (
    "jax_enable_x64",
    "jax_default_matmul_precision",
    "jax_default_prng_impl",
    "jax_threefry_partitionable",
)
FLAG = "jax_disable_most_optimizations"
# Folders of this package that don't take part in a run.
APART = ("benchmark", "cli", "report", "metrics", "targets")
PROCESSOR = "processor"


@contextlib.contextmanager
def open_journal(
    folder: str | Path | None, identity: Mapping[str, Any], *, resume: bool, interval: float
) -> Iterator[AbstractJournal]:
    """Open a folder for a run, and write down on leaving, however that happens, what isn't yet.

    Parameters
    ----------
    folder
        Made if need be. None: nothing is written down.
    identity
        What the run's results depend on, by name, as JSON values.
    resume
        Go on from what the folder has; where it has nothing the run begins.
    interval
        Seconds between writes, at least.

    Raises
    ------
    CheckpointError
        The folder has a checkpoint and `resume` is false, it is of another run, another process is writing to it, it
        can't be written to, or it has other files.
    """
    if folder is None:
        if resume:
            raise CheckpointError("resume=True needs the folder of a checkpoint: give it as checkpoint.")
        yield NoJournal()
        return
    path = Path(folder)
    with _locked(path):
        _check(path, json.loads(json.dumps({**identity, **environment()})), resume)
        journal = Journal(path, interval)
        try:
            yield journal
        finally:
            journal.write()


def environment() -> dict[str, Any]:
    """Return what the bits of a result depend on, beside the run itself."""
    device = jax.devices()[0]
    return {
        "cdsampler": version("cdsampler"),
        "cdsampler's source": _source(),
        "jax": jax.__version__,
        "jaxlib": version("jaxlib"),
        "numpy": version("numpy"),
        "scipy": version("scipy"),
        "device": f"{device.platform} {device.device_kind}",
        **{name: str(getattr(jax.config, name)) for name in SETTINGS},
        FLAG: str(jax.config.read(FLAG)),
        PROCESSOR: _processor(),
    }


def _source() -> str:
    root = Path(__file__).parents[1]
    total = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] not in APART:
            total.update(path.read_bytes())
    return total.hexdigest()[:16]


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / LOCK).open("w")
    except OSError as error:
        raise CheckpointError(
            f"The checkpoint {folder} can't be written to ({error.strerror}): give another folder."
        ) from error
    with file:
        if not _is_alone(file):
            raise CheckpointError(
                f"Another process is writing to the checkpoint {folder}: wait for it, or give another folder."
            )
        yield


def _is_alone(file: IO[str]) -> bool:
    try:
        import fcntl
    except ImportError:  # not on Windows
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _check(folder: Path, identity: dict[str, Any], resume: bool) -> None:
    present = [name for name in HEADERS if (folder / name).exists()]
    if not present:
        others = sorted(entry.name for entry in folder.iterdir() if entry.name not in (LOCK, f"{HEADERS[0]}.tmp"))
        if others:
            raise CheckpointError(f"{folder} holds {others[0]} and no checkpoint: give an empty folder.")
        for name in HEADERS:
            write_whole(folder / name, json.dumps(identity, indent=1).encode())
        return
    if not resume:
        raise CheckpointError(
            f"{folder} has a checkpoint already: give resume=True to go on with it, or another folder, or delete it."
        )
    written = _header(folder)
    if (was := written.get(PROCESSOR)) != identity[PROCESSOR]:
        warnings.warn(
            f"The checkpoint {folder} was begun on another processor ({was}; this is {identity[PROCESSOR]}): what "
            "follows is as good, but need not be what that one would have computed, bit for bit.",
            CheckpointWarning,
            stacklevel=2,
        )
    differences = [
        f"{name} was {_short(written.get(name))} and is {_short(identity.get(name))}"
        for name in sorted({*written, *identity} - {PROCESSOR})
        if written.get(name) != identity.get(name)
    ]
    if differences:
        raise CheckpointError(
            f"The checkpoint {folder} is of another run: {'; '.join(differences)}. Call with what it was begun with, "
            "or give another folder."
        )


def _header(folder: Path) -> dict[str, Any]:
    """Return the identity in the folder, from whichever copy is whole, and mend the other."""
    found: dict[str, bytes] = {}
    for name in HEADERS:
        with contextlib.suppress(Damaged):
            found[name] = read_whole(folder / name)
    if not found:
        raise CheckpointError(
            f"{folder / HEADERS[0]} and its copy are damaged, so which run this was isn't known: give another folder."
        )
    content = next(iter(found.values()))
    for name in HEADERS:
        if name not in found:
            warnings.warn(
                f"{folder / name} is damaged or missing: its copy takes its place.", CheckpointWarning, stacklevel=2
            )
            write_whole(folder / name, content)
    header: dict[str, Any] = json.loads(content)
    return header


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
