import abc

import equinox as eqx

from cdsampler._typing import Position, Scalar


class AbstractInterpolant(eqx.Module):
    """A conditional interpolant: for each anchor z and time t in (0, 1] a diffeomorphism `x = F_{t|z}(y)`.

    `F_{1|z}` is the identity, and `F_{t|z}` contracts to z as t goes to 0 (paper, section 3.1). "y" are target
    coordinates, "x" are path coordinates.
    """

    @abc.abstractmethod
    def forward(self, anchor: Position, y: Position, t: Scalar) -> Position:
        """Return `x = F_{t|z}(y)`."""

    @abc.abstractmethod
    def inverse(self, anchor: Position, x: Position, t: Scalar) -> Position:
        """Return `y = F_{t|z}^{-1}(x)`."""

    @abc.abstractmethod
    def log_det(self, anchor: Position, y: Position, t: Scalar) -> Scalar:
        """Return `log|det J F_{t|z}(y)|`."""

    @abc.abstractmethod
    def velocity(self, anchor: Position, x: Position, t: Scalar) -> Position:
        """Return `u_{t|z}(x) = ∂_t F_{t|z}(y)` at `y = F_{t|z}^{-1}(x)`."""
