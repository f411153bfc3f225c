"""Error of an expectation, and the quadratic observable whose expectation the benchmark estimates.

Source: Castro-Macías et al. 2026, 'Conditional Diffusion Sampling', appendix 'Evaluation Metrics'; the
observable is that of Midgley et al. 2023.
"""

from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cdsampler.errors import InvalidInputError
from cdsampler.metrics._validate import FloatArray, as_finite_rows, as_vector

PUBLISHED_DIMS = (2, 16)


class QuadraticConstants(NamedTuple):
    """Constants of ``f(x) = (x + shift)ᵀ matrix (x + shift) + linearᵀ (x + shift)``.

    Shapes: ``shift`` [dim], ``matrix`` [dim, dim], ``linear`` [dim].
    """

    shift: FloatArray
    matrix: FloatArray
    linear: FloatArray


def relative_mae(f_values: ArrayLike, reference_value: float) -> float:
    """Relative error of the mean of an observable.

    Parameters
    ----------
    f_values : array_like, [n]
        The observable at each sample.
    reference_value : float
        Its exact expectation.

    Returns
    -------
    float
        ``|mean(f_values) − reference_value| / |reference_value|``.

    Raises
    ------
    InvalidInputError
        If a value is not finite, there is none, or the reference is 0 or not finite.
    """
    values = as_finite_rows("f_values", as_vector("f_values", f_values))
    if not np.isfinite(reference_value) or reference_value == 0:
        raise InvalidInputError(
            f"reference_value is {reference_value}; a relative error needs a finite non-zero expectation: "
            "report the absolute error, or choose another observable."
        )
    return float(abs(values.mean() - reference_value) / abs(reference_value))


def quadratic_observable(x: ArrayLike) -> FloatArray:
    """Evaluate the benchmark's quadratic observable ``f(x) = (x + s)ᵀ A (x + s) + bᵀ (x + s)``.

    Parameters
    ----------
    x : array_like, [n, dim]
        The samples.

    Returns
    -------
    ndarray, [n]
        The observable at each sample.

    Raises
    ------
    InvalidInputError
        If ``x`` has no row or holds a non-finite number.

    Notes
    -----
    For dim 2 and 16 the constants are those of the published benchmark; for every other dimension they are
    this library's own, drawn from the same laws by ``numpy.random.default_rng(0)`` (see
    `quadratic_constants`).
    """
    rows = as_finite_rows("x", x)
    shift, matrix, linear = quadratic_constants(rows.shape[1])
    shifted = rows + shift
    return ((shifted @ matrix) * shifted).sum(axis=1) + shifted @ linear


@cache
def quadratic_constants(dim: int) -> QuadraticConstants:
    """Return the constants of `quadratic_observable` in ``dim`` dimensions.

    Parameters
    ----------
    dim : int
        The dimension: 2 and 16 give the published constants, any other the library's own.

    Returns
    -------
    QuadraticConstants
        Read-only arrays.

    Raises
    ------
    InvalidInputError
        If ``dim < 1``.
    """
    if dim < 1:
        raise InvalidInputError(f"dim is {dim}; it must be at least 1.")
    constants = _published_constants(dim) if dim in PUBLISHED_DIMS else _own_constants(dim)
    for array in constants:
        array.flags.writeable = False
    return constants


def _published_constants(dim: int) -> QuadraticConstants:
    path = files("cdsampler.metrics") / "data" / "quadratic_observable.npz"
    with path.open("rb") as file, np.load(file) as arrays:
        return QuadraticConstants(
            *(arrays[f"{field}_{dim}"].astype(np.float64) for field in QuadraticConstants._fields)
        )


def _own_constants(dim: int) -> QuadraticConstants:
    rng = np.random.default_rng(0)
    shift = 2 * rng.standard_normal(dim)
    matrix = 2 * rng.random((dim, dim))
    return QuadraticConstants(shift, matrix, rng.random(dim))
