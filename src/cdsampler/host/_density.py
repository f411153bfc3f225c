import pickle
from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import DTypeLike

from cdsampler._typing import Array, Position, Scalar
from cdsampler.density import AbstractLogDensity, Evaluations, check_layout, guard_non_finite
from cdsampler.errors import InvalidInputError
from cdsampler.host._function import HostFunction, Rejection, check_options


class HostLogDensity(AbstractLogDensity):
    """An unnormalised log density computed by Python code that JAX can't trace: NumPy, SciPy, a simulator.

    Compiled code calls back with all points of a step at once. Without gradients only kernels that need none run, and
    evaluations are charged as value-only.

    Parameters
    ----------
    log_density
        Maps a float64 array of shape (dim,) to a number; with `batched`, of shape (n, dim) to shape (n,).
    dim
        Number of coordinates.
    gradient
        Optionally, maps the same to the gradient, shape (dim,) or (n, dim).
    value_and_grad
        Optionally, and instead of both: maps the same to the pair (log density, gradient).
    batched
        The functions take many points at once.
    on_error
        "raise" ends the run with the exception as it was raised, and a note of the parameters. "reject" counts the
        point as outside the support (`result.evaluations.nan`; the first few are in `rejections`).
    workers
        Points computed side by side; for functions that take long.
    executor
        "threads", or "processes" for functions that hold Python's lock or call JAX themselves; they must then be
        importable: defined in a module, not in a notebook.
    timeout
        Seconds for one call; a call that takes longer raises `TimeoutError`, under `on_error`. The thread that is in
        it can't be ended, and goes on in the background; a process is killed.
    dtype
        As of `LogDensity`. The functions get float64 in any case.
    names
        Of the coordinates.

    Raises
    ------
    InvalidInputError
        Something isn't callable, an option isn't one, or a function can't be sent to a process.
    """

    function: HostFunction = eqx.field(static=True)
    gradient_function: HostFunction | None = eqx.field(static=True)
    dim: int = eqx.field(static=True)
    dtype: np.dtype = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)

    def __init__(
        self,
        log_density: Callable[..., Any] | None,
        dim: int,
        *,
        gradient: Callable[..., Any] | None = None,
        value_and_grad: Callable[..., Any] | None = None,
        batched: bool = False,
        on_error: Literal["raise", "reject"] = "raise",
        workers: int = 1,
        executor: Literal["threads", "processes"] = "threads",
        timeout: float | None = None,
        dtype: DTypeLike | None = None,
        names: tuple[str, ...] | None = None,
    ):
        check_options(on_error, executor, workers, timeout)
        given = {"log_density": log_density, "gradient": gradient, "value_and_grad": value_and_grad}
        for name, function in given.items():
            if function is not None and not callable(function):
                raise InvalidInputError(f"{name} must be callable, got {function!r}.")
            if function is not None and executor == "processes":
                _check_picklable(name, function)
        if value_and_grad is None and log_density is None:
            raise InvalidInputError("Give log_density, or value_and_grad.")
        if value_and_grad is not None and gradient is not None:
            raise InvalidInputError("Give gradient or value_and_grad, not both.")
        self.dim, self.dtype, self.names = check_layout(dim, dtype, names)

        def host(function: Callable[..., Any], has_gradient: bool) -> HostFunction:
            return HostFunction(
                function,
                self.dim,
                has_gradient=has_gradient,
                is_batched=batched,
                on_error=on_error,
                n_workers=workers,
                is_process=executor == "processes",
                timeout=timeout,
            )

        both = value_and_grad
        if gradient is not None:
            assert log_density is not None
            both = Both(log_density, gradient)
        self.gradient_function = None if both is None else host(both, True)
        self.function = host(First(both) if log_density is None and both is not None else log_density, False)  # type: ignore[arg-type]

    @property
    def has_gradient(self) -> bool:
        """Whether there are gradients."""
        return self.gradient_function is not None

    @property
    def is_on_host(self) -> bool:
        """Yes."""
        return True

    @property
    def n_calls(self) -> int:
        """Points that the functions were called with, so far."""
        return self.function.n_calls + (self.gradient_function.n_calls if self.gradient_function else 0)

    @property
    def rejections(self) -> list[Rejection]:
        """The first points at which a function raised, with what it raised, under `on_error="reject"`."""
        return self.function.rejections + (self.gradient_function.rejections if self.gradient_function else [])

    def value(self, position: Position) -> tuple[Scalar, Evaluations]:
        """Return the log density at one point; costs one value evaluation."""
        raw = self._call(self.function.values, position, jax.ShapeDtypeStruct((), self.dtype))
        value, _, counts = guard_non_finite(raw)
        return value, eqx.tree_at(lambda c: c.value, counts, jnp.ones((), jnp.int32))

    def value_and_gradient(self, position: Position) -> tuple[Scalar, Position, Evaluations]:
        """Return log density and gradient at one point; costs one value-and-gradient evaluation.

        Raises
        ------
        InvalidInputError
            There are no gradients.
        """
        if self.gradient_function is None:
            raise InvalidInputError(
                "This density has no gradient: give gradient or value_and_grad, or use a kernel without (RandomWalk)."
            )
        shapes = (jax.ShapeDtypeStruct((), self.dtype), jax.ShapeDtypeStruct((self.dim,), self.dtype))
        raw, raw_gradient = self._call(self.gradient_function, position, shapes)
        value, gradient, counts = guard_non_finite(raw, raw_gradient)
        return value, gradient, eqx.tree_at(lambda c: c.gradient, counts, jnp.ones((), jnp.int32))

    def _call(self, function: Callable[..., Any], position: Position, shapes: Any) -> Any:
        # Batches of all chains and replicas arrive as one call.
        return jax.pure_callback(function, shapes, position.astype(self.dtype), vmap_method="broadcast_all")


class Both:
    """Value and gradient of two functions; a class, so that it can be pickled."""

    def __init__(self, value: Callable[..., Any], gradient: Callable[..., Any]):
        self._value, self._gradient = value, gradient

    def __call__(self, position: Array) -> tuple[Any, Any]:
        return self._value(position), self._gradient(position)


class First:
    """The value of a function that returns value and gradient."""

    def __init__(self, both: Callable[..., Any]):
        self._both = both

    def __call__(self, position: Array) -> Any:
        return self._both(position)[0]


def _check_picklable(name: str, function: Callable[..., Any]) -> None:
    try:
        pickle.dumps(function)
    except Exception as error:
        raise InvalidInputError(
            f"{name} can't be sent to another process ({error}): define it in a module, or use executor='threads'."
        ) from error
