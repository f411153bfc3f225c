"""Checks that the metrics share: every array enters a metric through one of these."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cdsampler.errors import InvalidInputError

FloatArray = NDArray[np.float64]


def as_rows(name: str, values: ArrayLike) -> FloatArray:
    """Return ``values`` as a float64 array [n, dim]; an array [n] becomes [n, 1].

    Raises
    ------
    InvalidInputError
        If there is no row, or the array has neither one nor two axes.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.size == 0:
        raise InvalidInputError(
            f"{name} has shape {np.shape(values)}; pass a non-empty array of shape [n, dim] or [n]."
        )
    return array


def as_finite_rows(name: str, values: ArrayLike) -> FloatArray:
    """Return ``values`` as a float64 array [n, dim] of finite numbers.

    Raises
    ------
    InvalidInputError
        If the shape is wrong, or any row holds a non-finite number.
    """
    array = as_rows(name, values)
    bad = int(np.count_nonzero(~np.isfinite(array).all(axis=1)))
    if bad:
        raise InvalidInputError(
            f"{name}: {bad} of {len(array)} rows are not finite; find out why the sampler diverged, "
            "or drop those rows and say so beside the result."
        )
    return array


def as_vector(name: str, values: ArrayLike) -> FloatArray:
    """Return ``values`` as a float64 array [n]; one column [n, 1] is accepted too.

    Raises
    ------
    InvalidInputError
        If there is no value, or the array is not one-dimensional.
    """
    array = as_rows(name, values)
    if array.shape[1] != 1:
        raise InvalidInputError(f"{name} has shape {array.shape}; pass one number per sample, shape [n].")
    return array[:, 0]


def require_same_dim(x: FloatArray, y: FloatArray) -> None:
    """Raise `InvalidInputError` unless the rows of ``x`` and ``y`` have the same length."""
    if x.shape[1] != y.shape[1]:
        raise InvalidInputError(
            f"The samples have {x.shape[1]} and {y.shape[1]} dimensions; both must come from one space."
        )


def require_at_least(name: str, value: int, minimum: int) -> None:
    """Raise `InvalidInputError` if the whole number ``value`` is below ``minimum``."""
    if value < minimum:
        raise InvalidInputError(f"{name} is {value}; it must be at least {minimum}.")
