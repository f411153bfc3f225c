import abc
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array, Position, PRNGKey, Scalar
from cdsampler.errors import InvalidInputError


class AbstractReference(eqx.Module):
    """A distribution about an anchor that costs no target evaluation."""

    is_proper: eqx.AbstractClassVar[bool]

    @abc.abstractmethod
    def log_density_and_gradient(self, position: Position, anchor: Position) -> tuple[Scalar, Position]:
        """Return the normalised log density (0 if improper) and its gradient."""

    @abc.abstractmethod
    def sample(self, rng_key: PRNGKey, anchor: Position) -> Position:
        """Draw one independent sample."""


class GaussianReference(AbstractReference):
    """The isotropic Gaussian N(anchor, scale² I).

    Parameters
    ----------
    scale
        Standard deviation in every direction, in the units of the coordinates that it is used in. A positive number.

    Raises
    ------
    InvalidInputError
        `scale` is not a positive finite number.
    """

    scale: Array
    is_proper: ClassVar[bool] = True

    def __init__(self, scale: float | Array):
        if not isinstance(scale, jax.core.Tracer) and not (np.isfinite(scale) and np.asarray(scale) > 0):
            raise InvalidInputError(f"The reference scale must be positive and finite, got {scale}.")
        self.scale = jnp.asarray(scale, dtype=jnp.zeros(()).dtype)

    def log_density_and_gradient(self, position: Position, anchor: Position) -> tuple[Scalar, Position]:
        """Return the normalised log density and its gradient."""
        scale = self.scale.astype(position.dtype)
        standard = (position - anchor) / scale
        dim = position.shape[0]
        log_norm = dim * (jnp.log(scale) + 0.5 * jnp.log(2 * jnp.pi).astype(position.dtype))
        return -0.5 * jnp.sum(standard**2) - log_norm, -standard / scale

    def sample(self, rng_key: PRNGKey, anchor: Position) -> Position:
        """Draw one independent sample."""
        noise = jax.random.normal(rng_key, anchor.shape, anchor.dtype)
        return anchor + self.scale.astype(anchor.dtype) * noise


class FlatReference(AbstractReference):
    """The improper flat density: the path is then `π^β`, from a smallest β above zero.

    There is nothing to draw from: the hottest replica moves locally and no restarts exist.
    """

    is_proper: ClassVar[bool] = False

    def log_density_and_gradient(self, position: Position, anchor: Position) -> tuple[Scalar, Position]:
        """Return zero and a zero gradient."""
        return jnp.zeros((), position.dtype), jnp.zeros_like(position)

    def sample(self, rng_key: PRNGKey, anchor: Position) -> Position:
        """Raise: a flat density can't be sampled."""
        raise InvalidInputError(
            "A flat reference can't be sampled: start at the anchor with a smallest beta above 0, "
            "or use a GaussianReference."
        )
