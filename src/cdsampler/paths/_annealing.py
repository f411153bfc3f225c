import abc

import equinox as eqx
import jax.numpy as jnp

from cdsampler._typing import Array, Position, PRNGKey, Scalar
from cdsampler.density import AbstractLogDensity, Component, Evaluations, Point
from cdsampler.paths._reference import AbstractReference


class AnnealingPath(eqx.Module):
    """The geometric path `log π_β = (1-β) log ref + β ℓ` of one chain (paper, eq. 3).

    Parameters
    ----------
    reference
        The distribution at β = 0, about `anchor`.
    density
        The target, at β = 1.
    anchor : Array, shape (dim,)
        Centre of the reference.
    """

    reference: AbstractReference
    density: AbstractLogDensity
    anchor: Position

    def evaluate(self, position: Position) -> tuple[Point, Evaluations]:
        """Evaluate both components with gradients; costs one value-and-gradient evaluation."""
        reference = Component(*self.reference.log_density_and_gradient(position, self.anchor))
        value, gradient, evaluations = self.density.value_and_gradient(position)
        return Point(position, reference, Component(value, gradient)), evaluations

    def evaluate_value(self, position: Position) -> tuple[Point, Evaluations]:
        """Evaluate both components without the target's gradient; costs one value evaluation."""
        reference = Component(*self.reference.log_density_and_gradient(position, self.anchor))
        value, evaluations = self.density.value(position)
        return Point(position, reference, Component(value, jnp.zeros_like(position))), evaluations

    def evaluate_available(self, position: Position) -> tuple[Point, Evaluations]:
        """Evaluate with gradients if the target has them; costs one evaluation of either kind."""
        return self.evaluate(position) if self.density.has_gradient else self.evaluate_value(position)

    def sample_reference(self, rng_key: PRNGKey) -> Position:
        """Draw a position from the reference; free."""
        return self.reference.sample(rng_key, self.anchor)

    def at(self, beta: Scalar) -> "TemperedDensity":
        """Return the density at one β."""
        return TemperedDensity(self, beta)


class AbstractPointDensity(eqx.Module):
    """What a kernel leaves invariant: a density that is arithmetic on cached points of a path."""

    path: eqx.AbstractVar[AnnealingPath]

    def evaluate(self, position: Position) -> tuple[Point, Evaluations]:
        """Evaluate with gradients; costs one value-and-gradient evaluation."""
        return self.path.evaluate(position)

    def evaluate_value(self, position: Position) -> tuple[Point, Evaluations]:
        """Evaluate without the target's gradient; costs one value evaluation."""
        return self.path.evaluate_value(position)

    @abc.abstractmethod
    def log_density(self, point: Point) -> Scalar:
        """Return the log density from cached values; free."""

    @abc.abstractmethod
    def gradient(self, point: Point) -> Position:
        """Return its gradient from cached values; free."""


class TemperedDensity(AbstractPointDensity):
    """The path at one β."""

    path: AnnealingPath
    beta: Array

    def log_density(self, point: Point) -> Scalar:
        """Return log π_β from cached values; free."""
        # At β = 0 the target has no say: 0·(−inf) must not become NaN.
        target = jnp.where(self.beta > 0, self.beta * point.target.log_density, 0)
        reference = jnp.where(self.beta < 1, (1 - self.beta) * point.reference.log_density, 0)
        return reference + target

    def gradient(self, point: Point) -> Position:
        """Return ∇ log π_β from cached values; free."""
        return (1 - self.beta) * point.reference.gradient + self.beta * point.target.gradient


class DenoisingPosterior(AbstractPointDensity):
    """The target given a noisy copy of it, `π(y) N(noisy; y, width² I)`: what denoising samplers explore.

    Parameters
    ----------
    path
        Any path to the target; its reference has no say.
    noisy : Array, shape (dim,)
        In the target's coordinates: for a copy `a y + s ξ` it is that divided by a.
    width : Array, shape ()
        s/a.
    """

    path: AnnealingPath
    noisy: Position
    width: Array

    def log_density(self, point: Point) -> Scalar:
        """Return the log density, up to a constant, from cached values; free."""
        return point.target.log_density - 0.5 * jnp.sum(((self.noisy - point.position) / self.width) ** 2)

    def gradient(self, point: Point) -> Position:
        """Return its gradient from cached values; free."""
        return point.target.gradient + (self.noisy - point.position) / self.width**2
