from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax

from cdsampler._typing import Position, PRNGKey, Scalar
from cdsampler.charts import AbstractChart
from cdsampler.errors import InvalidInputError
from cdsampler.paths._reference import AbstractReference


class PriorReference(AbstractReference):
    """A distribution given by two functions, such as the prior of a Bayesian model; the anchor has no say in it.

    With a prior as the reference, `π_β ∝ prior · likelihood^β`, and log Z is the log evidence.

    Parameters
    ----------
    log_density
        Maps a position, shape (dim,), to the *normalised* log density: an unnormalised one shifts log Z.
    sample
        Maps a typed PRNG key to one independent draw, shape (dim,).

    Raises
    ------
    InvalidInputError
        Something isn't callable.
    """

    log_density: Callable[[Position], Scalar]
    draw: Callable[[PRNGKey], Position]
    is_proper: ClassVar[bool] = True

    def __init__(self, log_density: Callable[[Position], Scalar], sample: Callable[[PRNGKey], Position]):
        for name, given in (("log_density", log_density), ("sample", sample)):
            if not callable(given):
                raise InvalidInputError(f"{name} of a PriorReference must be callable, got {given!r}.")
        self.log_density = log_density
        self.draw = sample

    def log_density_and_gradient(self, position: Position, anchor: Position) -> tuple[Scalar, Position]:
        """Return the normalised log density and its gradient."""
        value, gradient = jax.value_and_grad(self.log_density)(position)
        return value.astype(position.dtype), gradient

    def sample(self, rng_key: PRNGKey, anchor: Position) -> Position:
        """Draw one independent sample."""
        return self.draw(rng_key).astype(anchor.dtype)

    def seen_through(self, chart: AbstractChart) -> "PriorReference":
        """Return the same distribution in a chart's coordinates."""
        return PriorReference(_LogDensityInChart(self.log_density, chart), _DrawInChart(self.draw, chart))


class _LogDensityInChart(eqx.Module):
    # Modules rather than closures, so that equal charts share compiled programs.
    log_density: Callable[[Position], Scalar]
    chart: AbstractChart

    def __call__(self, position: Position) -> Scalar:
        y, log_det = self.chart.to_target(position)
        return self.log_density(y) + log_det


class _DrawInChart(eqx.Module):
    draw: Callable[[PRNGKey], Position]
    chart: AbstractChart

    def __call__(self, rng_key: PRNGKey) -> Position:
        return self.chart.to_chart(self.draw(rng_key))
