import contextlib
import shlex
import subprocess
import threading
import weakref
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from cdsampler.errors import InvalidInputError
from cdsampler.host import HostLogDensity


class Program:
    """A program that runs all the while and answers batches of points on its standard input and output.

    A batch is a line with the number of points, and a line of numbers for each. The answer is a line for each point:
    its log density and, with gradients, the gradient's numbers after it. `nan` and `-inf` are numbers, too.

    Parameters
    ----------
    command
        Program and arguments; a string is split as a shell would.
    has_gradient
        Whether lines have a gradient.
    """

    def __init__(self, command: str | Sequence[str], *, has_gradient: bool):
        self._command = shlex.split(command) if isinstance(command, str) else [str(part) for part in command]
        self._has_gradient = has_gradient
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def __call__(self, positions: np.ndarray) -> Any:
        """Return values, shape (n,), and with gradients those, shape (n, dim), at positions, shape (n, dim).

        Raises
        ------
        RuntimeError
            The program ended, or answered something else; the message has its last words.
        """
        with self._lock:
            process = self._running()
            assert process.stdin is not None
            rows = "".join(" ".join(map(repr, row)) + "\n" for row in positions.tolist())
            try:
                process.stdin.write(f"{len(positions)}\n{rows}")
                process.stdin.flush()
            except OSError:
                raise self._ended(process) from None
            found = np.array([self._answer(process, positions.shape[1]) for _ in positions])
        return (found[:, 0], found[:, 1:]) if self._has_gradient else found[:, 0]

    def stop(self) -> None:
        """End the program; the next call starts it again."""
        if self._process is not None:
            _end(self._process)
            self._process = None

    def _running(self) -> "subprocess.Popen[str]":
        if self._process is None or self._process.poll() is not None:
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(self._command, stdin=pipe, stdout=pipe, text=True, bufsize=1)
            weakref.finalize(self, _end, self._process)
        return self._process

    def _answer(self, process: "subprocess.Popen[str]", dim: int) -> list[float]:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise self._ended(process)
        wanted = 1 + dim if self._has_gradient else 1
        try:
            numbers = [float(word) for word in line.split()]
        except ValueError:
            numbers = []
        if len(numbers) != wanted:
            self.stop()  # what it says from here on belongs to no question
            raise RuntimeError(f"{self._command[0]} must answer {wanted} numbers for a point, got {line.strip()!r}.")
        return numbers

    def _ended(self, process: "subprocess.Popen[str]") -> RuntimeError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=5)
        return RuntimeError(f"{shlex.join(self._command)} ended with exit code {process.returncode}.")


def from_program(
    command: str | Sequence[str],
    dim: int,
    *,
    has_gradient: bool = False,
    on_error: Literal["raise", "reject"] = "raise",
    timeout: float | None = None,
    names: Sequence[str] | None = None,
) -> HostLogDensity:
    """Return a program that computes log densities in batches as a target.

    Parameters
    ----------
    command, has_gradient
        See `Program`.
    dim
        Number of coordinates.
    on_error, timeout
        As of `HostLogDensity`; the timeout is for a batch.
    names
        Of the coordinates.

    Raises
    ------
    InvalidInputError
        The program isn't there.
    """
    program = Program(command, has_gradient=has_gradient)
    try:
        program._running()
    except OSError as error:
        raise InvalidInputError(f"Can't start the program {command!r}: {error}.") from error
    labels = None if names is None else tuple(names)
    common: dict[str, Any] = {"batched": True, "on_error": on_error, "timeout": timeout, "names": labels}
    if has_gradient:
        return HostLogDensity(None, dim, value_and_grad=program, **common)
    return HostLogDensity(program, dim, **common)


def _end(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
