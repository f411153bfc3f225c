from cdsampler._typing import Position, Scalar
from cdsampler.charts import AbstractChart, TransformedLogDensity
from cdsampler.density import AbstractLogDensity
from cdsampler.interpolants._base import AbstractInterpolant


class ConditionalChart(AbstractChart):
    """The interpolant at a fixed anchor and time, as a chart: path coordinates x are its chart coordinates."""

    interpolant: AbstractInterpolant
    anchor: Position
    time: Scalar

    def to_chart(self, y: Position) -> Position:
        """Return `x = F_{t|z}(y)`."""
        return self.interpolant.forward(self.anchor, y, self.time)

    def to_target(self, q: Position) -> tuple[Position, Scalar]:
        """Return `y = F_{t|z}^{-1}(x)` and the log determinant of that inverse."""
        y = self.interpolant.inverse(self.anchor, q, self.time)
        return y, -self.interpolant.log_det(self.anchor, y, self.time)


def conditional_density(
    density: AbstractLogDensity, interpolant: AbstractInterpolant, anchor: Position, time: Scalar
) -> TransformedLogDensity:
    """Return `π_{t|z}` in path coordinates, with its score and the price of the target.

    Parameters
    ----------
    density
        The target.
    interpolant
        `F_{t|z}`.
    anchor : Array, shape (dim,)
        z.
    time : Array, shape ()
        t in (0, 1].

    Notes
    -----
    `log π_{t|z}(x) = ℓ(y) - log|det J F_{t|z}(y)|` at `y = F_{t|z}^{-1}(x)` (paper, eq. 7): the determinant is taken
    at y, not at x as the paper's lemma prints.
    """
    return TransformedLogDensity(density, ConditionalChart(interpolant, anchor, time))
