import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array, Position, Scalar
from cdsampler.errors import InvalidInputError
from cdsampler.parameters._supports import Parameter, as_parameter, log_jacobian


class ParameterSpace:
    """A structure of named parameters and the vector of unconstrained coordinates that samplers move.

    Parameters
    ----------
    structure
        A dict, or any pytree, of parameters: `real(3)`, `positive()`, `interval(0, 1)`, `simplex(4)`, `ordered(2)`,
        `positive_definite(3)`; a shape, or a value, stands for real numbers of that shape.

    Raises
    ------
    InvalidInputError
        No parameters, or something that isn't one; the message has its name.

    Examples
    --------
    >>> space = ParameterSpace({"loc": (), "w": (3,)})
    >>> space.dim
    4
    """

    def __init__(self, structure: Any):
        leaves, self._tree = jax.tree.flatten_with_path(structure, is_leaf=_is_leaf)
        self.labels = tuple(_label(path) for path, _ in leaves)
        self.parameters: tuple[Parameter, ...] = tuple(
            as_parameter(label, given) for label, (_, given) in zip(self.labels, leaves, strict=True)
        )
        if not leaves:
            raise InvalidInputError("There are no parameters: give a dict like {'loc': (), 'scale': positive()}.")

    @property
    def dim(self) -> int:
        """Number of unconstrained coordinates."""
        return sum(parameter.size for parameter in self.parameters)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the unconstrained coordinates."""
        names: list[str] = []
        for label, parameter in zip(self.labels, self.parameters, strict=True):
            shape = parameter.unconstrained_shape
            names += [label + _index(index, shape) for index in np.ndindex(*shape)]
        return tuple(names)

    def constrain(self, position: Position) -> tuple[Any, Scalar]:
        """Return the structure of values at unconstrained coordinates, shape (dim,), and the log Jacobian."""
        values, log_det, start = [], jnp.zeros((), position.dtype), 0
        for parameter in self.parameters:
            part = position[start : start + parameter.size].reshape(parameter.unconstrained_shape)
            start += parameter.size
            if parameter.transform is None:
                values.append(part)
                continue
            value = parameter.transform(part)
            log_det = log_det + log_jacobian(parameter.transform, part, value)
            values.append(value)
        return jax.tree.unflatten(self._tree, values), log_det

    def unconstrain(self, structure: Any) -> np.ndarray:
        """Return the coordinates, shape (dim,), of a structure of values.

        Raises
        ------
        InvalidInputError
            Another structure or shape, or a value outside its support; the message has its name.
        """
        leaves, tree = jax.tree.flatten_with_path(structure, is_leaf=_is_array_like)
        given = {_label(path): value for path, value in leaves}
        if str(tree) != str(self._tree):
            missing = [name for name in self.labels if name not in given]
            unknown = [name for name in given if name not in self.labels]
            raise InvalidInputError(
                f"The values must have the parameters {', '.join(self.labels)}"
                + (f"; missing: {', '.join(missing)}" if missing else "")
                + (f"; unknown: {', '.join(unknown)}" if unknown else "")
                + "."
            )
        parts = [
            _unconstrained(label, parameter, given[label])
            for label, parameter in zip(self.labels, self.parameters, strict=True)
        ]
        return np.concatenate(parts)

    def log_density(self, function: Callable[[Any], Array]) -> Callable[[Position], Array]:
        """Return the log density in unconstrained coordinates of one given in terms of the structure."""

        def unconstrained(position: Position) -> Array:
            values, log_det = self.constrain(position)
            return jnp.reshape(jnp.asarray(function(values)), ()) + log_det

        return unconstrained

    def variables(self, positions: np.ndarray) -> dict[str, np.ndarray]:
        """Return values by name, each of shape `(n, *shape)`, of coordinates of shape (n, dim)."""
        structures = _constrain_all(self, jnp.asarray(positions))
        leaves = jax.tree.leaves(structures)
        return {label: np.asarray(leaf) for label, leaf in zip(self.labels, leaves, strict=True)}

    def flat(self, variables: Mapping[str, np.ndarray]) -> Any:
        """Return the structure whose leaves are the given variables."""
        return jax.tree.unflatten(self._tree, [variables[label] for label in self.labels])


def _constrain_all(space: ParameterSpace, positions: Array) -> Any:
    return jax.jit(jax.vmap(lambda q: space.constrain(q)[0]))(positions)


def _unconstrained(label: str, parameter: Parameter, given: Any) -> np.ndarray:
    try:
        value = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        value = np.full(parameter.shape, np.nan)
    if value.shape != parameter.shape or not np.all(np.isfinite(value)):
        raise InvalidInputError(
            f"{label} must be {math.prod(parameter.shape)} finite numbers of shape {parameter.shape}, got {given!r}."
        )
    if parameter.transform is None:
        return value.ravel()
    if not bool(np.all(np.asarray(parameter.transform.codomain(jnp.asarray(value))))):
        raise InvalidInputError(f"{label} must be {parameter.support}, got {given!r}.")
    found = np.asarray(parameter.transform._inverse(jnp.asarray(value)), dtype=np.float64)
    if not np.all(np.isfinite(found)):
        raise InvalidInputError(f"{label} lies on the edge of its support ({parameter.support}): {given!r}.")
    return found.ravel()


def _is_leaf(given: Any) -> bool:
    return isinstance(given, Parameter) or _is_array_like(given)


def _is_array_like(given: Any) -> bool:
    """Whether a list or tuple is an array of numbers rather than part of a structure."""
    if not isinstance(given, list | tuple) or hasattr(given, "_fields"):
        return False
    return all(isinstance(n, int | float | np.number) or _is_array_like(n) for n in given)


def _label(path: Any) -> str:
    parts = [str(getattr(key, "key", getattr(key, "idx", getattr(key, "name", key)))) for key in path]
    return ".".join(parts) or "x"


def _index(index: tuple[int, ...], shape: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, index))}]" if shape else ""
