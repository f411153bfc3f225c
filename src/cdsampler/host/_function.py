"""A Python function as JAX's callbacks need it: batches in, arrays out, errors kept."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from cdsampler.errors import DensityError, InvalidInputError
from cdsampler.host._errors import HostError
from cdsampler.host._workers import Done, Workers


class Rejection(NamedTuple):
    """A point that was rejected because the function raised there."""

    position: np.ndarray
    error: BaseException


class HostFunction:
    """Calls a Python function on batches of points, from within compiled code.

    Parameters
    ----------
    function
        Takes a float64 array of shape (dim,), or (n, dim) if batched, and returns the log density, or with
        `has_gradient` a pair of it and its gradient.
    dim
    has_gradient
        Whether the function returns gradients.
    is_batched
        Whether it takes many points at once.
    on_error
        "raise", or "reject": a point where the function raises has a log density of NaN, which is rejected and counted.
    n_workers
        Points computed side by side.
    is_process
        In processes instead of threads.
    timeout
        Seconds for one call.

    Attributes
    ----------
    n_calls : int
        Points computed.
    rejections : list of Rejection
        The first few that `on_error="reject"` took.
    n_rejected : int
    """

    KEPT = 10

    def __init__(
        self,
        function: Callable[..., Any],
        dim: int,
        *,
        has_gradient: bool,
        is_batched: bool,
        on_error: Literal["raise", "reject"],
        n_workers: int,
        is_process: bool,
        timeout: float | None,
    ):
        self._dim = dim
        self._has_gradient = has_gradient
        self._is_batched = is_batched
        self._rejects = on_error == "reject"
        self._workers = Workers(function, n_workers, is_process=is_process, timeout=timeout)
        self.n_calls = 0
        self.n_rejected = 0
        self.rejections: list[Rejection] = []

    def __call__(self, positions: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return values and gradients (zeros if there are none) of points of shape (..., dim)."""
        given = np.asarray(positions)
        points = given.reshape(-1, self._dim).astype(np.float64)
        values, gradients = self.evaluate(points)
        shape = given.shape[:-1]
        return values.reshape(shape).astype(given.dtype), gradients.reshape(given.shape).astype(given.dtype)

    def values(self, positions: Any) -> np.ndarray:
        """Return the values alone."""
        return self(positions)[0]

    def evaluate(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return values, shape (n,), and gradients, shape (n, dim), of float64 points, shape (n, dim).

        Raises
        ------
        HostError
            Stands for what the function raised; see `original_errors`.
        """
        self.n_calls += len(points)
        if self._is_batched:
            (done,) = self._workers.map([points.copy()])
            if done.raised is None:
                return self._checked(done.returned, points)
            if not self._rejects:
                raise HostError(_with_note(done.raised, points))
            # One point at a time, to find those that it is about.
            self.n_calls += len(points)
            each = self._workers.map([point[None].copy() for point in points])
        else:
            each = self._workers.map([point.copy() for point in points])
        return self._gathered(points, each)

    def _gathered(self, points: np.ndarray, each: Sequence[Done]) -> tuple[np.ndarray, np.ndarray]:
        values, gradients = np.full(len(points), np.nan), np.zeros_like(points)
        for number, (point, done) in enumerate(zip(points, each, strict=True)):
            if done.raised is None:
                value, gradient = self._checked(done.returned, point[None])
                values[number], gradients[number] = value[0], gradient[0]
            elif self._rejects:
                self.n_rejected += 1
                if len(self.rejections) < self.KEPT:
                    self.rejections.append(Rejection(point, done.raised))
            else:
                raise HostError(_with_note(done.raised, point))
        return values, gradients

    def _checked(self, returned: Any, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return value and gradient as arrays of the right shapes; what the function returns is somebody's."""
        value, gradient = returned, np.zeros_like(points)
        n = len(points)
        if self._has_gradient:
            if not isinstance(returned, tuple) or len(returned) != 2:
                raise HostError(
                    DensityError(f"The function must return (log density, gradient), got {_shown(returned)}.")
                )
            value = returned[0]
            gradient = self._array("gradient", returned[1], points.shape)
        return self._array("log density", value, (n,)), gradient

    def _array(self, what: str, given: Any, shape: tuple[int, ...]) -> np.ndarray:
        try:
            # NumPy makes NaN of None, which a function without a return statement returns.
            array = np.asarray("nothing" if given is None else given, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise HostError(DensityError(f"The {what} must be a real number, got {_shown(given)}.")) from error
        if array.size != np.prod(shape):
            per = f"{shape}" if self._is_batched else f"{shape[1:]}"
            raise HostError(DensityError(f"The {what} must have shape {per}, got {array.shape}: {_shown(given)}."))
        return array.reshape(shape)


def _with_note(error: BaseException, where: np.ndarray) -> BaseException:
    what = "at the parameters" if where.ndim == 1 else f"in a batch of {len(where)} points, the first of which is"
    first = where if where.ndim == 1 else where[0]
    error.add_note(f"Raised by the log density {what} {np.array2string(first, threshold=50)}.")
    return error


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + "…"


def check_options(on_error: str, executor: str, workers: int, timeout: float | None) -> None:
    """Raise `InvalidInputError` for an option that isn't one."""
    for name, value, choices in (
        ("on_error", on_error, ("raise", "reject")),
        ("executor", executor, ("threads", "processes")),
    ):
        if value not in choices:
            raise InvalidInputError(f"{name} must be {' or '.join(map(repr, choices))}, got {value!r}.")
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise InvalidInputError(f"workers must be a positive integer, got {workers!r}.")
    if timeout is not None and not timeout > 0:
        raise InvalidInputError(f"timeout must be positive, in seconds, got {timeout!r}.")
