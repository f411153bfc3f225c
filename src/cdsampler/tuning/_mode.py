import contextlib
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

from cdsampler._typing import Array, Scalar
from cdsampler.density import AbstractLogDensity, Evaluations, check_position
from cdsampler.errors import DensityError
from cdsampler.host import original_errors
from cdsampler.journal import AbstractEntry, NoEntry

# An anchor need not be a mode to the last digit.
COARSE = {"xtol": 1e-2, "ftol": 1e-4}


class Mode(NamedTuple):
    """A local maximum of the density.

    Attributes
    ----------
    position : ndarray, shape (dim,)
    log_density : float
    evaluations
        What the search cost.
    """

    position: np.ndarray
    log_density: float
    evaluations: Evaluations


@original_errors
def find_mode(
    density: AbstractLogDensity,
    start: np.ndarray | None = None,
    *,
    max_evaluations: int = 1000,
    keep: AbstractEntry = NoEntry(),  # noqa: B008 - it has no state
) -> Mode:
    """Climb to a mode by L-BFGS; each step is one value-and-gradient evaluation.

    Without a gradient it is Powell's method, from value evaluations.

    Parameters
    ----------
    density
        Target.
    start : array_like, shape (dim,), optional
        Default the origin.
    max_evaluations
        Limit of the search. Without convergence the best point so far is returned: an anchor need not be a mode.
    keep
        Is told of every evaluation; those of an earlier session, which took the same way, are not made again.

    Raises
    ------
    InvalidInputError
        The start has another shape than (dim,) or isn't finite.
    DensityError
        The log density is not finite at the start.
    """
    x0 = np.zeros(density.dim) if start is None else check_position(density, "start", start)
    total = Evaluations.zero()
    best = (-np.inf, x0)
    known: list[tuple[Any, Any, Any]] = keep.load() or []
    n_asked = 0
    first: float | None = None  # tolerances are relative, so a large constant in the density must not matter

    def negative(x: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal total, best, first, n_asked
        if int(total.count) >= max_evaluations:
            raise _LimitReached  # SciPy looks at its own limit only between line searches
        if n_asked == len(known):
            known.append(_on_host(_evaluate(density, jnp.asarray(x, density.dtype))))
            keep.offer(known)
        value, gradient, cost = known[n_asked]
        n_asked += 1
        total = total + cost
        if float(value) > best[0]:
            best = (float(value), x.copy())
        if first is None:
            first = float(value) if np.isfinite(value) else 0.0
        # A wall of a finite height, so that the line search steps back from the edge of the support.
        height = first - float(value) if np.isfinite(value) else 1e10 + abs(first - best[0])
        return height, -np.asarray(gradient, dtype=np.float64)

    def height_alone(x: np.ndarray) -> float:
        return negative(x)[0]

    if not np.isfinite(negative(x0)[0]) or best[0] == -np.inf or best[0] == np.inf:
        raise DensityError(
            f"The log density is {'+inf' if best[0] == np.inf else 'not finite (or its gradient is not)'} at the "
            f"start {np.array2string(x0, threshold=20)}: give a start inside the support."
        )
    with contextlib.suppress(_LimitReached):
        if not density.has_gradient:
            minimize(height_alone, x0, method="Powell", options={"maxfev": max_evaluations, **COARSE})
            return Mode(best[1], best[0], total)
        minimize(negative, x0, jac=True, method="L-BFGS-B", options={"maxfun": max_evaluations})
    return Mode(best[1], best[0], total)


def _on_host(evaluated: Any) -> Any:
    return jax.tree.map(lambda a: np.asarray(a)[()], evaluated)


class _LimitReached(Exception):
    """Ends the search."""


@eqx.filter_jit
def _evaluate(density: AbstractLogDensity, x: Array) -> tuple[Scalar, Array, Evaluations]:
    if density.has_gradient:
        return density.value_and_gradient(x)
    value, cost = density.value(x)
    return value, jnp.zeros_like(x), cost
