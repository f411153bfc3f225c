from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array, Position
from cdsampler.density import LogDensity
from cdsampler.errors import InvalidInputError
from cdsampler.parameters import Model


def from_pymc(model: Any) -> Model:
    """Return a PyMC model as a target, compiled by JAX.

    PyMC turns on JAX's double precision when it is imported, and models are computed in it. Its prior can't be sampled
    in JAX, so it isn't the reference; log Z is the log evidence all the same.

    Parameters
    ----------
    model
        A `pymc.Model` with continuous free variables.

    Returns
    -------
    Model
        Variables are the free and deterministic variables; dims and coords are the model's.

    Raises
    ------
    ImportError
        PyMC is missing.
    InvalidInputError
        A free variable is discrete, or there is none.
    """
    try:
        from pymc.sampling.jax import get_jaxified_graph
        from pymc.util import get_default_varnames
    except ImportError as error:
        raise ImportError("from_pymc needs PyMC: pip install 'cdsampler[pymc]'.") from error
    discrete = [variable.name for variable in model.value_vars if variable.dtype[:3] in ("int", "uin", "boo")]
    if discrete:
        raise InvalidInputError(f"Discrete variables can't be sampled: {', '.join(discrete)}. Sum them out.")
    if not model.value_vars:
        raise InvalidInputError("The model has no free variable: there is nothing to sample.")
    point = model.initial_point()
    names = [variable.name for variable in model.value_vars]
    shapes = [np.shape(point[name]) for name in names]
    start = np.concatenate([np.ravel(np.asarray(point[name], np.float64)) for name in names])
    logp = get_jaxified_graph(inputs=model.value_vars, outputs=[model.logp()])
    wanted = get_default_varnames(model.unobserved_value_vars, include_transformed=False)
    constrain = get_jaxified_graph(inputs=model.value_vars, outputs=wanted)

    def parts(position: Array) -> list[Array]:
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
        return [part.reshape(shape) for part, shape in zip(jnp.split(position, ends[:-1]), shapes, strict=True)]

    def log_density(position: Position) -> Array:
        return jnp.reshape(logp(*parts(position))[0], ())

    @jax.jit
    def constrained(positions: Array) -> Any:
        return jax.vmap(lambda q: constrain(*parts(q)))(positions)

    def variables(positions: np.ndarray) -> dict[str, np.ndarray]:
        found = constrained(jnp.asarray(positions))
        return {variable.name: np.asarray(values) for variable, values in zip(wanted, found, strict=True)}

    def unconstrain(values: Mapping[str, Any]) -> np.ndarray:
        return _unconstrained(model, values, names)

    dims = {name: [str(d) for d in axes] for name, axes in model.named_vars_to_dims.items() if None not in axes}
    coords = {name: list(labels) for name, labels in model.coords.items() if labels is not None}
    density = LogDensity(log_density, len(start), names=_names(names, shapes))
    return Model(density, variables, unconstrain, dims=dims, coords=coords)


def _unconstrained(model: Any, values: Mapping[str, Any], names: list[str]) -> np.ndarray:
    """Return the coordinates of values by the variables' own names."""
    missing = [variable.name for variable in model.free_RVs if variable.name not in values]
    if missing:
        raise InvalidInputError(f"The values lack {', '.join(missing)}.")
    parts = []
    for variable in model.free_RVs:
        value = np.asarray(values[variable.name], dtype=np.float64)
        transform = model.rvs_to_transforms[variable]
        if transform is not None:
            value = transform.forward(value, *variable.owner.inputs).eval()
        parts.append(np.ravel(value))
    return np.concatenate(parts)


def _names(names: list[str], shapes: list[tuple[int, ...]]) -> tuple[str, ...]:
    found: list[str] = []
    for name, shape in zip(names, shapes, strict=True):
        found += [f"{name}[{','.join(map(str, index))}]" if shape else name for index in np.ndindex(*shape)]
    return tuple(found)
