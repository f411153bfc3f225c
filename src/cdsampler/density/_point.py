from typing import NamedTuple

from cdsampler._typing import Array


class Component(NamedTuple):
    """One component of a path at a point.

    Attributes
    ----------
    log_density : Array, shape ()
    gradient : Array, shape (dim,)
        Zeros when the kernel in use needs no gradient.
    """

    log_density: Array
    gradient: Array


class Point(NamedTuple):
    """A position with everything that was evaluated there.

    Tempered densities, swaps and weights are arithmetic on points and cost no evaluation. Swaps move whole points,
    so a cached density can't belong to another position.

    Attributes
    ----------
    position : Array, shape (dim,)
    reference : Component
    target : Component
    """

    position: Array
    reference: Component
    target: Component

    @property
    def log_ratio(self) -> Array:
        """Log density of the target minus that of the reference."""
        return self.target.log_density - self.reference.log_density
