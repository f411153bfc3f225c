"""A run that can be interrupted and gone on with."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from cdsampler.density import AbstractLogDensity, Fingerprint, coordinate_names, fingerprint
from cdsampler.errors import InvalidInputError
from cdsampler.journal import AbstractJournal, open_journal
from cdsampler.sampling._interrupts import interruptible

INTERVAL = 60.0


@contextlib.contextmanager
def recorded(
    density: AbstractLogDensity,
    arguments: Mapping[str, Any],
    checkpoint: str | Path | None,
    resume: bool,
    interval: float,
) -> Iterator[AbstractJournal]:
    """Open the journal of a run, and let it be interrupted: by `KeyboardInterrupt`, whose message says how to go on.

    Parameters
    ----------
    density
        Target.
    arguments
        All others that results depend on, by name, as JSON values.
    checkpoint, resume, interval
        As for `sample`.

    Raises
    ------
    CheckpointError
        The folder can't be used, or is of another run.
    """
    if not interval >= 0:
        raise InvalidInputError(f"checkpoint_interval must be a number of seconds of at least 0, got {interval!r}.")
    identity, found = {}, Fingerprint("", True)
    if checkpoint is not None:
        found = fingerprint(density)
        identity = {
            "dim": density.dim,
            "dtype": np.dtype(density.dtype).name,
            "names": list(coordinate_names(density)),
            "log_density": found.program,
            **arguments,
        }
    with interruptible() as interrupts, open_journal(checkpoint, identity, resume=resume, interval=interval) as journal:
        try:
            yield journal
        except KeyboardInterrupt:
            raise KeyboardInterrupt(_message(journal)) from None
        except jax.errors.JaxRuntimeError:
            # An interrupt in a density that calls back to Python comes out as an error of the compiled program.
            if not interrupts.has_come:
                raise
            raise KeyboardInterrupt(_message(journal)) from None


def plain(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments as JSON values."""
    return {name: np.asarray(value).tolist() for name, value in arguments.items()}


def _message(journal: AbstractJournal) -> str:
    return f"Interrupted before any chain was complete. {journal.advice}"
