import abc

import equinox as eqx
from numpy.typing import DTypeLike

from cdsampler._typing import Array, Float, Position, PRNGKey
from cdsampler.density import LogDensity


class AbstractTarget(eqx.Module):
    """A benchmark target: a density with what is known about it.

    Attributes
    ----------
    name
        As on the command line.
    dim
        Number of coordinates.
    """

    name: eqx.AbstractVar[str]
    dim: eqx.AbstractVar[int]

    @abc.abstractmethod
    def density(self, dtype: DTypeLike | None = None) -> LogDensity:
        """Return the log density that samplers see."""


class AbstractExactTarget(AbstractTarget):
    """A target that can be sampled exactly."""

    @abc.abstractmethod
    def sample(self, rng_key: PRNGKey, n_samples: int) -> Float[Array, "n dim"]:
        """Draw independent samples."""

    @abc.abstractmethod
    def responsibilities(self, positions: Float[Array, "n dim"]) -> Float[Array, "n modes"]:
        """Return the posterior probability of each mode at each position."""

    @property
    @abc.abstractmethod
    def mode_weights(self) -> Float[Array, " modes"]:
        """Weight of each mode."""


class AbstractParticleTarget(AbstractTarget):
    """A target whose points are configurations of particles in three dimensions, up to rigid motions."""

    @abc.abstractmethod
    def to_positions(self, q: Position) -> Float[Array, "particles 3"]:
        """Return the particles' positions at one point."""

    @abc.abstractmethod
    def from_positions(self, positions: Float[Array, "particles 3"]) -> Position:
        """Return the point of a configuration."""
