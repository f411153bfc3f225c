from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array


class Evaluations(eqx.Module):
    """How often a target was evaluated, and how often the outcome was not finite.

    One evaluation is one visit to the target at one point. Values alone are counted apart from values with a
    gradient. Inside compiled code the counts are 32-bit integers per chain; `total` adds chains up on the host
    in 64 bits.

    Parameters
    ----------
    value
        Evaluations of the log density alone.
    gradient
        Evaluations of the log density together with its gradient.
    neg_inf
        How many of them gave minus infinity (a point outside the support).
    nan
        How many gave NaN, or a finite value with a gradient that is not finite.
    pos_inf
        How many gave plus infinity (an error: the density is unbounded there).
    """

    value: Array
    gradient: Array
    neg_inf: Array
    nan: Array
    pos_inf: Array

    @classmethod
    def zero(cls, shape: tuple[int, ...] = ()) -> "Evaluations":
        """Return counts of nothing."""
        return cls(*(jnp.zeros(shape, jnp.int32) for _ in range(5)))

    def __add__(self, other: "Evaluations") -> "Evaluations":
        return jax.tree.map(lambda a, b: a + b, self, other)

    def sum(self) -> "Evaluations":
        """Add up over the leading axis, inside compiled code."""
        return jax.tree.map(lambda a: jnp.sum(a, axis=0, dtype=jnp.int32), self)

    def total(self) -> "Evaluations":
        """Add up over every axis on the host, in 64 bits."""
        return jax.tree.map(lambda a: np.asarray(a).sum(dtype=np.int64), self)

    @property
    def count(self) -> Any:
        """Density evaluations of either kind."""
        return self.value + self.gradient
