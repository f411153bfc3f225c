import abc
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import DTypeLike

from cdsampler._typing import Array, Position, Scalar
from cdsampler.density._evaluations import Evaluations
from cdsampler.errors import DensityError, InvalidInputError

# What JAX raises when a function asks a traced value for its number.
_NEEDS_NUMBERS = (
    jax.errors.TracerArrayConversionError,
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerIntegerConversionError,
)


class AbstractLogDensity(eqx.Module):
    """What kernels and samplers evaluate: a log density at one point, with its price."""

    dim: eqx.AbstractVar[int]
    dtype: eqx.AbstractVar[np.dtype]

    @property
    def has_gradient(self) -> bool:
        """Whether `value_and_gradient` can be called."""
        return True

    @property
    def is_on_host(self) -> bool:
        """Whether evaluations leave the device for Python code."""
        return False

    @abc.abstractmethod
    def value(self, position: Position) -> tuple[Scalar, Evaluations]:
        """Return the log density at one point; costs one value evaluation."""

    @abc.abstractmethod
    def value_and_gradient(self, position: Position) -> tuple[Scalar, Position, Evaluations]:
        """Return log density and gradient at one point; costs one value-and-gradient evaluation."""


def guard_non_finite(value: Scalar, gradient: Position | None = None) -> tuple[Scalar, Array, Evaluations]:
    """Apply the policy for non-finite values and count them.

    Minus infinity and NaN mean "outside the support": both become minus infinity, so that every Metropolis step
    rejects them, and are counted apart. A finite value with a gradient that isn't finite counts as NaN. Plus infinity
    is passed on: it is always accepted, so the driver finds the point and raises. Gradients at non-finite points are
    zero, so that they can't poison arithmetic.

    Parameters
    ----------
    value : Array, shape ()
    gradient : Array, shape (dim,), optional

    Returns
    -------
    value : Array, shape ()
    gradient : Array, shape (dim,)
        A scalar zero if none was given.
    evaluations : Evaluations
        The counts of non-finite outcomes alone.
    """
    is_nan = jnp.isnan(value)
    if gradient is not None:
        is_nan = is_nan | (jnp.isfinite(value) & ~jnp.all(jnp.isfinite(gradient)))
    safe = jnp.where(is_nan, -jnp.inf, value)
    safe_gradient = jnp.zeros(()) if gradient is None else jnp.where(jnp.isfinite(safe), gradient, 0)
    zero = jnp.zeros((), jnp.int32)
    counts = Evaluations(
        value=zero,
        gradient=zero,
        neg_inf=(value == -jnp.inf).astype(jnp.int32),
        nan=is_nan.astype(jnp.int32),
        pos_inf=(value == jnp.inf).astype(jnp.int32),
    )
    return safe, safe_gradient, counts


class LogDensity(AbstractLogDensity):
    """An unnormalised log density given by a JAX function of one point.

    Parameters
    ----------
    log_density
        Maps a position of shape (dim,) to a scalar. It may return shape (1,), and may itself be an `equinox.Module`,
        whose arrays are then data: changing them compiles nothing anew.
    dim
        Number of coordinates.
    value_and_grad
        Optionally, maps a position to the pair (log density, gradient), where that is cheaper than automatic
        differentiation.
    dtype
        Floating type in which everything is computed; default JAX's own (float32 unless x64 is enabled).
    names
        Names of the coordinates.

    Raises
    ------
    InvalidInputError
        Something isn't callable, `dim` isn't a positive integer, the dtype isn't an enabled floating type, or the
        number of names is wrong.
    DensityError
        The function doesn't return a real scalar, or the gradient doesn't have the position's shape.
    """

    log_density: Callable[[Position], Array]
    value_and_grad: Callable[[Position], tuple[Array, Array]] | None
    dim: int = eqx.field(static=True)
    dtype: np.dtype = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)

    def __init__(
        self,
        log_density: Callable[[Position], Array],
        dim: int,
        *,
        value_and_grad: Callable[[Position], tuple[Array, Array]] | None = None,
        dtype: DTypeLike | None = None,
        names: tuple[str, ...] | None = None,
    ):
        if not callable(log_density):
            raise InvalidInputError(f"log_density must be callable, got {log_density!r}.")
        if value_and_grad is not None and not callable(value_and_grad):
            raise InvalidInputError(f"value_and_grad must be callable or None, got {value_and_grad!r}.")
        self.log_density = log_density
        self.value_and_grad = value_and_grad
        self.dim, self.dtype, self.names = check_layout(dim, dtype, names)
        self._check_outputs()

    def _check_outputs(self) -> None:
        point = jax.ShapeDtypeStruct((self.dim,), self.dtype)
        try:
            out = jax.eval_shape(lambda y: jax.tree.map(jnp.asarray, self.log_density(y)), point)
            pair = None if self.value_and_grad is None else jax.eval_shape(self.value_and_grad, point)
        except Exception as error:
            error.add_note(f"Raised while calling the log density on an abstract input of shape ({self.dim},).")
            if isinstance(error, _NEEDS_NUMBERS):
                error.add_note(
                    "It needs actual numbers, so JAX can't trace it: give cdsampler.HostLogDensity(log_density, dim)."
                )
            raise
        _check_scalar("log_density", out)
        if pair is not None:
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise DensityError(f"value_and_grad must return (log density, gradient), got {pair!r}.")
            _check_scalar("value_and_grad", pair[0])
            if getattr(pair[1], "shape", None) != (self.dim,):
                raise DensityError(f"value_and_grad returned a gradient {pair[1]!r}; its shape must be ({self.dim},).")

    def value(self, position: Position) -> tuple[Scalar, Evaluations]:
        """Return the log density at one point; costs one value evaluation."""
        value, _, counts = guard_non_finite(self._raw_value(position).astype(self.dtype))
        return value, eqx.tree_at(lambda c: c.value, counts, jnp.ones((), jnp.int32))

    def _raw_value(self, position: Position) -> Scalar:
        return jnp.reshape(jnp.asarray(self.log_density(position)), ())

    def value_and_gradient(self, position: Position) -> tuple[Scalar, Position, Evaluations]:
        """Return log density and gradient at one point; costs one value-and-gradient evaluation."""
        if self.value_and_grad is None:
            raw, raw_gradient = jax.value_and_grad(self._raw_value)(position)
        else:
            raw, raw_gradient = self.value_and_grad(position)
        value, gradient, counts = guard_non_finite(
            jnp.reshape(raw, ()).astype(self.dtype), raw_gradient.astype(self.dtype)
        )
        return value, gradient, eqx.tree_at(lambda c: c.gradient, counts, jnp.ones((), jnp.int32))


def check_layout(
    dim: int, dtype: DTypeLike | None, names: tuple[str, ...] | None
) -> tuple[int, np.dtype, tuple[str, ...]]:
    """Return number, type and names of coordinates, by default JAX's own type and x0, x1, x2.

    Raises
    ------
    InvalidInputError
        `dim` isn't a positive integer, the dtype isn't an enabled floating type, or the number of names is wrong.
    """
    if isinstance(dim, bool) or not isinstance(dim, int | np.integer) or dim < 1:
        raise InvalidInputError(f"dim must be a positive integer, got {dim!r}.")
    labels = tuple(names) if names is not None else tuple(f"x{i}" for i in range(dim))
    if len(labels) != dim:
        raise InvalidInputError(f"names has {len(labels)} entries for dim={dim}: give one per coordinate.")
    return int(dim), _checked_dtype(dtype), labels


def _checked_dtype(dtype: DTypeLike | None) -> np.dtype:
    default = jnp.zeros(()).dtype
    wanted = np.dtype(default if dtype is None else dtype)
    if not jnp.issubdtype(wanted, jnp.floating):
        raise InvalidInputError(f"dtype must be a floating type, got {wanted}.")
    if wanted == np.dtype("float64") and default != wanted:
        raise InvalidInputError("dtype=float64 needs jax.config.update('jax_enable_x64', True) before anything else.")
    return wanted


def _check_scalar(what: str, out: object) -> None:
    shape, dtype = getattr(out, "shape", None), getattr(out, "dtype", None)
    if shape not in ((), (1,)):
        raise DensityError(f"{what} must return a scalar for one point, got {out!r}: sum over its output's axes.")
    if dtype is None or not jnp.issubdtype(dtype, jnp.floating):
        raise DensityError(f"{what} must return a real floating number, got dtype {dtype}.")
