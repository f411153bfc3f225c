import abc
import math
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Position, Scalar
from cdsampler.interpolants._base import AbstractInterpolant


class AbstractAffineInterpolant(AbstractInterpolant):
    """An interpolant `x = a(t) z + b(t) y`.

    For fixed z its SDE, written in y, is Langevin dynamics on the target itself, run for the time `∫ σ²/(2b²) dt`.
    Samplers use that form: it keeps the precision that x loses at small t. Functions of time alone accept NumPy
    arrays (the schedules are made on the host in float64) and JAX arrays.
    """

    @abc.abstractmethod
    def coefficients(self, t: Any) -> tuple[Any, Any]:
        """Return `a(t)` and `b(t)`."""

    @abc.abstractmethod
    def rates(self, t: Any) -> tuple[Any, Any]:
        """Return the time derivatives of `a(t)` and `b(t)`."""

    @abc.abstractmethod
    def inverse_square_integral(self, t0: Any, t1: Any) -> Any:
        """Return `∫ dt / b(t)²` from t0 to t1: Langevin time is σ²/2 times this."""

    def forward(self, anchor: Position, y: Position, t: Scalar) -> Position:
        """Return `x = a z + b y`."""
        a, b = self.coefficients(t)
        return a * anchor + b * y

    def inverse(self, anchor: Position, x: Position, t: Scalar) -> Position:
        """Return `y = (x - a z) / b`."""
        a, b = self.coefficients(t)
        return (x - a * anchor) / b

    def log_det(self, anchor: Position, y: Position, t: Scalar) -> Scalar:
        """Return `dim log b`."""
        _, b = self.coefficients(t)
        return y.shape[0] * jnp.log(b)

    def velocity(self, anchor: Position, x: Position, t: Scalar) -> Position:
        """Return `a' z + b' y`."""
        a_rate, b_rate = self.rates(t)
        return a_rate * anchor + b_rate * self.inverse(anchor, x, t)


class Linear(AbstractAffineInterpolant):
    """`x = (1-t) z + t y` (paper, eq. 5)."""

    def coefficients(self, t: Any) -> tuple[Any, Any]:
        """Return `1-t` and `t`."""
        return 1 - t, t

    def rates(self, t: Any) -> tuple[Any, Any]:
        """Return -1 and 1."""
        return -_ones_like(t), _ones_like(t)

    def inverse_square_integral(self, t0: Any, t1: Any) -> Any:
        """Return `1/t0 - 1/t1`."""
        return (t1 - t0) / (t0 * t1)


class Trigonometric(AbstractAffineInterpolant):
    """`x = cos(πt/2) z + sin(πt/2) y` (Albergo et al. 2025)."""

    def coefficients(self, t: Any) -> tuple[Any, Any]:
        """Return `cos(πt/2)` and `sin(πt/2)`."""
        xp = _namespace(t)
        return xp.cos(0.5 * math.pi * t), xp.sin(0.5 * math.pi * t)

    def rates(self, t: Any) -> tuple[Any, Any]:
        """Return `-π/2 sin(πt/2)` and `π/2 cos(πt/2)`."""
        a, b = self.coefficients(t)
        return -0.5 * math.pi * b, 0.5 * math.pi * a

    def inverse_square_integral(self, t0: Any, t1: Any) -> Any:
        """Return `(2/π)(cot(πt0/2) - cot(πt1/2))`, in the form without cancellation."""
        xp = _namespace(t0)
        b0, b1 = self.coefficients(t0)[1], self.coefficients(t1)[1]
        return 2 / math.pi * xp.sin(0.5 * math.pi * (t1 - t0)) / (b0 * b1)


def _namespace(t: Any) -> ModuleType:
    return jnp if isinstance(t, jax.Array) else np


def _ones_like(t: Any) -> Any:
    return _namespace(t).ones_like(t)
