from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cdsampler.density import AbstractLogDensity, LogDensity
from cdsampler.parameters._space import ParameterSpace
from cdsampler.paths import PriorReference


@dataclass(frozen=True)
class Model:
    """A target in unconstrained coordinates, and how to read them: what adapters make of a program of other libraries.

    Attributes
    ----------
    density
        Log density of the unconstrained coordinates, Jacobian included.
    variables
        Maps coordinates, shape (n, dim), to values by name, each of shape `(n, *shape)`.
    unconstrain
        Maps values by name to coordinates, shape (dim,), for starts; None if that isn't known.
    prior
        The model's prior in unconstrained coordinates, where it can be sampled: a reference to temper from, with which
        log Z is the log evidence.
    dims, coords
        Labels of the variables' axes, for ArviZ.
    """

    density: AbstractLogDensity
    variables: Callable[[np.ndarray], dict[str, np.ndarray]]
    unconstrain: Callable[[Mapping[str, Any]], np.ndarray] | None = None
    prior: PriorReference | None = None
    dims: Mapping[str, Sequence[str]] = field(default_factory=dict)
    coords: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    @property
    def dim(self) -> int:
        """Number of unconstrained coordinates."""
        return self.density.dim

    @classmethod
    def from_structure(cls, log_density: Callable[[Any], Any], structure: Any, *, dtype: Any = None) -> "Model":
        """Return the model of a JAX log density of named parameters.

        Parameters
        ----------
        log_density
            Maps the structure of values to a scalar.
        structure
            See `ParameterSpace`.
        dtype
            As of `LogDensity`.

        Raises
        ------
        InvalidInputError
            As of `ParameterSpace`.
        DensityError
            The function doesn't return a real scalar.
        """
        space = ParameterSpace(structure)
        density = LogDensity(space.log_density(log_density), space.dim, dtype=dtype, names=space.names)
        return cls(density, space.variables, space.unconstrain)
