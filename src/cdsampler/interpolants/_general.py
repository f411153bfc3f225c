from collections.abc import Callable

import jax
import jax.numpy as jnp

from cdsampler._typing import Position, Scalar
from cdsampler.charts import AbstractChart
from cdsampler.interpolants._base import AbstractInterpolant


class AutodiffInterpolant(AbstractInterpolant):
    """An interpolant given by its two maps alone; the rest comes from automatic differentiation.

    Parameters
    ----------
    forward_map, inverse_map
        `F(z, y, t) -> x` and `F⁻¹(z, x, t) -> y` for one point, differentiable in all arguments.

    Notes
    -----
    `log_det` builds the full Jacobian: dim derivatives and dim³ operations a point, but no target evaluation.
    """

    forward_map: Callable[[Position, Position, Scalar], Position]
    inverse_map: Callable[[Position, Position, Scalar], Position]

    def forward(self, anchor: Position, y: Position, t: Scalar) -> Position:
        """Return `x = F_{t|z}(y)`."""
        return self.forward_map(anchor, y, t)

    def inverse(self, anchor: Position, x: Position, t: Scalar) -> Position:
        """Return `y = F_{t|z}^{-1}(x)`."""
        return self.inverse_map(anchor, x, t)

    def log_det(self, anchor: Position, y: Position, t: Scalar) -> Scalar:
        """Return `log|det J F_{t|z}(y)|` from the Jacobian."""
        jacobian = jax.jacfwd(lambda v: self.forward_map(anchor, v, t))(y)
        return jnp.linalg.slogdet(jacobian)[1]

    def velocity(self, anchor: Position, x: Position, t: Scalar) -> Position:
        """Return `∂_t F_{t|z}(y)` at the image of x."""
        y = self.inverse_map(anchor, x, t)
        return jax.jvp(lambda s: self.forward_map(anchor, y, s), (t,), (jnp.ones_like(t),))[1]


class ChartedInterpolant(AbstractInterpolant):
    """`F_{t|z}(y) = T⁻¹(F'_{t|T(z)}(T(y)))`: an interpolant in the chart coordinates `q = T(y)`.

    Its Jacobian determinant and velocity follow from those of the inner interpolant and of the chart, in closed form
    up to the chart's own derivative.

    Parameters
    ----------
    inner
        Interpolant in q, e.g. `Linear()`.
    chart
        The diffeomorphism T.
    """

    inner: AbstractInterpolant
    chart: AbstractChart

    def forward(self, anchor: Position, y: Position, t: Scalar) -> Position:
        """Return `x = F_{t|z}(y)`."""
        q = self.inner.forward(self.chart.to_chart(anchor), self.chart.to_chart(y), t)
        return self.chart.to_target(q)[0]

    def inverse(self, anchor: Position, x: Position, t: Scalar) -> Position:
        """Return `y = F_{t|z}^{-1}(x)`."""
        q = self.inner.inverse(self.chart.to_chart(anchor), self.chart.to_chart(x), t)
        return self.chart.to_target(q)[0]

    def log_det(self, anchor: Position, y: Position, t: Scalar) -> Scalar:
        """Return `log|det J F_{t|z}(y)|` by the chain rule."""
        q_anchor, q_start = self.chart.to_chart(anchor), self.chart.to_chart(y)
        q_end = self.inner.forward(q_anchor, q_start, t)
        _, start_log_det = self.chart.to_target(q_start)
        _, end_log_det = self.chart.to_target(q_end)
        return end_log_det + self.inner.log_det(q_anchor, q_start, t) - start_log_det

    def velocity(self, anchor: Position, x: Position, t: Scalar) -> Position:
        """Return the inner velocity, pushed through the chart."""
        q = self.chart.to_chart(x)
        inner_velocity = self.inner.velocity(self.chart.to_chart(anchor), q, t)
        return jax.jvp(lambda v: self.chart.to_target(v)[0], (q,), (inner_velocity,))[1]
