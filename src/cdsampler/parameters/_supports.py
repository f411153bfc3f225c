"""What a parameter is: its shape and where its values may lie."""

import math
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from cdsampler.errors import InvalidInputError


@dataclass(frozen=True)
class Parameter:
    """One parameter of a model.

    Attributes
    ----------
    shape : tuple of int
        Of its values.
    support : str
        What they may be, for messages and plans: "real", "positive", …
    transform
        From unconstrained arrays to values, with NumPyro's interface; None for real values.
    unconstrained_shape : tuple of int
        Of its unconstrained arrays: a simplex of 3 numbers has 2 coordinates.
    """

    shape: tuple[int, ...] = ()
    support: str = "real"
    transform: Any = None
    unconstrained_shape: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """Number of unconstrained coordinates."""
        return math.prod(self.unconstrained_shape)


def real(*shape: int) -> Parameter:
    """Return a parameter of any real values."""
    return Parameter(_checked(shape), "real", None, _checked(shape))


def positive(*shape: int) -> Parameter:
    """Return a parameter of positive values."""
    return interval(0.0, None, *shape)


def interval(low: float | None, high: float | None, *shape: int) -> Parameter:
    """Return a parameter of values between two bounds, either of which may be None.

    Raises
    ------
    InvalidInputError
        No room between the bounds.
    ImportError
        NumPyro is missing.
    """
    _checked(shape)
    if low is None and high is None:
        return real(*shape)
    for name, bound in (("low", low), ("high", high)):
        if bound is not None and not np.isfinite(bound):
            raise InvalidInputError(f"{name} must be finite, or None for no bound, got {bound}.")
    if low is not None and high is not None and not low < high:
        raise InvalidInputError(f"A parameter between {low} and {high} has no room.")
    constraints = _numpyro().constraints
    if high is None:
        constraint, support = constraints.greater_than(low), f"above {low:g}"
    elif low is None:
        constraint, support = constraints.less_than(high), f"below {high:g}"
    else:
        constraint, support = constraints.interval(low, high), f"between {low:g} and {high:g}"
    return _from_constraint(constraint, support, shape)


def simplex(n: int) -> Parameter:
    """Return a parameter of n positive numbers with the sum 1."""
    return _from_constraint(_numpyro().constraints.simplex, "simplex", (_at_least(n, 2, "A simplex"),))


def ordered(n: int) -> Parameter:
    """Return a parameter of n increasing numbers."""
    return _from_constraint(_numpyro().constraints.ordered_vector, "ordered", (_at_least(n, 1, "An ordered vector"),))


def positive_definite(n: int) -> Parameter:
    """Return a parameter that is a positive definite matrix of n rows."""
    n = _at_least(n, 1, "A matrix")
    return _from_constraint(_numpyro().constraints.positive_definite, "positive definite", (n, n))


def as_parameter(name: str, given: Any) -> Parameter:
    """Return what a caller means by a parameter: one, a shape, or a value of the right shape.

    Raises
    ------
    InvalidInputError
        None of these.
    """
    if isinstance(given, Parameter):
        return given
    if isinstance(given, tuple) and all(isinstance(n, int | np.integer) for n in given):
        return real(*given)
    try:
        array = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"Parameter {name!r} must be a shape like (3,), a value, or one of real, positive, interval, simplex, "
            f"ordered, positive_definite; got {given!r}."
        ) from None
    return real(*array.shape)


def _checked(shape: tuple[int, ...]) -> tuple[int, ...]:
    for n in shape:
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise InvalidInputError(f"A shape is made of positive integers, got {shape}.")
    return tuple(int(n) for n in shape)


def _at_least(n: int, least: int, what: str) -> int:
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < least:
        raise InvalidInputError(f"{what} needs an integer of at least {least}, got {n!r}.")
    return int(n)


def _from_constraint(constraint: Any, support: str, shape: tuple[int, ...]) -> Parameter:
    transform = _numpyro().biject_to(constraint)
    return Parameter(shape, support, transform, tuple(transform.inverse_shape(shape)))


def _numpyro() -> Any:
    try:
        import numpyro.distributions as distributions
    except ImportError as error:
        raise ImportError("Bounded parameters need NumPyro: pip install 'cdsampler[bijectors]'.") from error
    return distributions


def log_jacobian(transform: Any, unconstrained: Any, value: Any) -> Any:
    """Return the log Jacobian determinant of a transform, summed over its batch."""
    return jnp.sum(transform.log_abs_det_jacobian(unconstrained, value))
