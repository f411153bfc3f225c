"""A target seen through a diffeomorphism: the one mechanism behind charts and conditional densities.

Bijectors come from well-kept libraries; `NumpyroChart` takes any transform of NumPyro.
"""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

from cdsampler._typing import Array, Position, Scalar
from cdsampler.density import AbstractLogDensity, Evaluations, guard_non_finite
from cdsampler.errors import InvalidInputError


class AbstractChart(eqx.Module):
    """A diffeomorphism between target coordinates y and chart coordinates q."""

    @abc.abstractmethod
    def to_chart(self, y: Position) -> Position:
        """Map target coordinates to chart coordinates."""

    @abc.abstractmethod
    def to_target(self, q: Position) -> tuple[Position, Scalar]:
        """Map chart coordinates to target coordinates, with `log|det ∂y/∂q|`."""


class AffineChart(AbstractChart):
    """Whitening: `y = shift + scale_tril q`, i.e. a preconditioner for every kernel at once.

    Parameters
    ----------
    shift : array_like, shape (dim,)
    scale_tril : array_like, shape (dim, dim)
        Lower triangular with a positive diagonal; a diagonal matrix scales each coordinate.

    Raises
    ------
    InvalidInputError
        Shapes don't fit, or the matrix isn't finite with a positive diagonal.
    """

    shift: Array
    scale_tril: Array

    def __init__(self, shift: np.ndarray, scale_tril: np.ndarray):
        centre, tril = np.asarray(shift, dtype=np.float64), np.asarray(scale_tril, dtype=np.float64)
        if centre.ndim != 1 or tril.shape != (len(centre), len(centre)):
            raise InvalidInputError(f"Give a vector and a square matrix, got shapes {centre.shape} and {tril.shape}.")
        if not (np.all(np.isfinite(centre)) and np.all(np.isfinite(tril)) and np.all(np.diagonal(tril) > 0)):
            raise InvalidInputError("An affine chart needs finite numbers and a positive diagonal.")
        dtype = jnp.zeros(()).dtype
        self.shift = jnp.asarray(centre, dtype)
        self.scale_tril = jnp.asarray(np.tril(tril), dtype)

    def to_chart(self, y: Position) -> Position:
        """Return `scale_tril⁻¹ (y - shift)`."""
        return solve_triangular(self.scale_tril.astype(y.dtype), y - self.shift.astype(y.dtype), lower=True)

    def to_target(self, q: Position) -> tuple[Position, Scalar]:
        """Return `shift + scale_tril q` and the log determinant."""
        y = self.shift.astype(q.dtype) + self.scale_tril.astype(q.dtype) @ q
        return y, jnp.sum(jnp.log(jnp.diagonal(self.scale_tril))).astype(q.dtype)


class NumpyroChart(AbstractChart):
    """A chart whose chart coordinates are the unconstrained side of a NumPyro transform.

    Parameters
    ----------
    transform
        A `numpyro.distributions.transforms.Transform` from unconstrained vectors (or each scalar of them) to the
        support of the target, of the same dimension.

    Raises
    ------
    InvalidInputError
        The object lacks the interface of a NumPyro transform.
    """

    transform: Any

    def __check_init__(self) -> None:
        """Check that the object is a transform."""
        for name in ("__call__", "_inverse", "log_abs_det_jacobian"):
            if isinstance(self.transform, type) or not hasattr(self.transform, name):
                raise InvalidInputError(f"Not a NumPyro transform (it needs {name}): {self.transform!r}.")

    def to_chart(self, y: Position) -> Position:
        """Map constrained to unconstrained coordinates."""
        return self.transform._inverse(y)

    def to_target(self, q: Position) -> tuple[Position, Scalar]:
        """Map unconstrained to constrained coordinates, with `log|det ∂y/∂q|`."""
        y = self.transform(q)
        return y, jnp.sum(self.transform.log_abs_det_jacobian(q, y))


class TransformedLogDensity(AbstractLogDensity):
    """The density of q when `y = chart.to_target(q)` has the given density.

    `log density(q) = ℓ(y(q)) + log|det ∂y/∂q|`; the normalising constant is unchanged. Values and gradients cost what
    the inner density costs: the gradient is pulled back, so a target's own gradient is used.

    Parameters
    ----------
    density
        The target in y.
    chart
        The diffeomorphism.
    """

    density: AbstractLogDensity
    chart: AbstractChart
    dim: int = eqx.field(static=True)
    dtype: np.dtype = eqx.field(static=True)

    def __init__(self, density: AbstractLogDensity, chart: AbstractChart):
        point = jax.ShapeDtypeStruct((density.dim,), density.dtype)
        image, _ = eqx.filter_eval_shape(chart.to_target, point)
        if image.shape != (density.dim,):
            raise InvalidInputError(
                f"A chart keeps the dimension, and this one maps shape ({density.dim},) to {image.shape}."
            )
        self.density = density
        self.chart = chart
        self.dim = density.dim
        self.dtype = density.dtype

    @property
    def has_gradient(self) -> bool:
        """As of the inner density."""
        return self.density.has_gradient

    @property
    def is_on_host(self) -> bool:
        """As of the inner density."""
        return self.density.is_on_host

    def value(self, position: Position) -> tuple[Scalar, Evaluations]:
        """Return the log density at q; costs one value evaluation."""
        y, log_det = self._to_target(position)
        value, evaluations = self.density.value(y)
        safe, _, counts = guard_non_finite(value + log_det)
        return safe, _charge(value, evaluations, counts)

    def value_and_gradient(self, position: Position) -> tuple[Scalar, Position, Evaluations]:
        """Return log density and gradient at q; costs one value-and-gradient evaluation."""
        (y, log_det), pull_back = jax.vjp(self._to_target, position)
        value, gradient, evaluations = self.density.value_and_gradient(y)
        (pulled,) = pull_back((gradient, jnp.ones_like(log_det)))
        safe, safe_gradient, counts = guard_non_finite(value + log_det, pulled)
        return safe, safe_gradient, _charge(value, evaluations, counts)

    def _to_target(self, position: Position) -> tuple[Position, Scalar]:
        # A transform may hold parameters of a higher precision than the target is computed in.
        y, log_det = self.chart.to_target(position)
        return y.astype(self.dtype), log_det.astype(self.dtype)


def _charge(inner_value: Scalar, inner: Evaluations, outer: Evaluations) -> Evaluations:
    """Add non-finite outcomes that the chart caused to the inner counts, none of them twice."""
    is_new = jnp.isfinite(inner_value).astype(jnp.int32)
    return inner + jax.tree.map(lambda count: count * is_new, outer)
