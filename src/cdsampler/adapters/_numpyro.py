from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from cdsampler._typing import Array, Position, PRNGKey
from cdsampler.density import LogDensity
from cdsampler.errors import InvalidInputError
from cdsampler.parameters import Model
from cdsampler.paths import PriorReference


def from_numpyro(model: Callable[..., Any], *args: Any, seed: int = 0, **kwargs: Any) -> Model:
    """Return a NumPyro model as a target.

    Parameters
    ----------
    model
        NumPyro model with continuous latent variables.
    *args, **kwargs
        Its arguments: data, with which observed sites are conditioned.
    seed
        Of the draw that tells the sites' shapes.

    Returns
    -------
    Model
        Variables are the sample and deterministic sites. Its prior is a reference if all latent sites can be sampled;
        log Z is then, with any reference, the log evidence.

    Raises
    ------
    ImportError
        NumPyro is missing.
    InvalidInputError
        The model has no latent variable.
    RuntimeError
        NumPyro finds no valid point.
    """
    try:
        from numpyro.infer import util
    except ImportError as error:
        raise ImportError("from_numpyro needs NumPyro: pip install 'cdsampler[numpyro]'.") from error
    info = util.initialize_model(jax.random.PRNGKey(seed), model, model_args=args, model_kwargs=kwargs)
    example = info.param_info.z
    flat, unravel = ravel_pytree(example)
    if flat.size == 0:
        raise InvalidInputError("The model has no latent variable: there is nothing to sample.")

    def log_density(position: Position) -> Array:
        return -info.potential_fn(unravel(position))

    @jax.jit
    def constrained(positions: Array) -> Any:
        return jax.vmap(lambda q: info.postprocess_fn(unravel(q)))(positions)

    def variables(positions: np.ndarray) -> dict[str, np.ndarray]:
        found = constrained(jnp.asarray(positions, flat.dtype))
        return {name: np.asarray(values) for name, values in found.items()}

    def unconstrain(values: Mapping[str, Any]) -> np.ndarray:
        missing = sorted(set(example) - set(values))
        if missing:
            raise InvalidInputError(f"The values lack {', '.join(missing)} (the model has {', '.join(example)}).")
        chosen = {name: jnp.asarray(values[name]) for name in example}
        return np.asarray(ravel_pytree(util.unconstrain_fn(model, args, kwargs, chosen))[0], dtype=np.float64)

    density = LogDensity(log_density, flat.size, names=_names(example))
    return Model(density, variables, unconstrain, _prior(model, args, kwargs, info.model_trace, example, unravel))


def _names(example: Mapping[str, Any]) -> tuple[str, ...]:
    # In the order of ravel_pytree, which sorts the keys of a dict.
    names: list[str] = []
    for site in sorted(example):
        shape = np.shape(example[site])
        names += [f"{site}[{','.join(map(str, index))}]" if shape else site for index in np.ndindex(*shape)]
    return tuple(names)


def _prior(
    model: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    trace: Mapping[str, Any],
    example: Mapping[str, Any],
    unravel: Callable[[Array], Any],
) -> PriorReference | None:
    """Return the prior in unconstrained coordinates; None if some site can't be sampled."""
    from numpyro import handlers
    from numpyro.distributions import biject_to
    from numpyro.infer import util

    # Without the observed sites, factors among them, what is left of the joint density is the prior. By name, since
    # NumPyro adds Jacobians as factors of its own.
    observed = [name for name, site in trace.items() if site["type"] == "sample" and site["is_observed"]]
    latent = handlers.block(model, hide=observed)

    def log_density(position: Position) -> Array:
        return -util.potential_energy(latent, args, kwargs, unravel(position))

    def draw(rng_key: PRNGKey) -> Array:
        drawn = handlers.trace(handlers.seed(latent, rng_key)).get_trace(*args, **kwargs)
        values = {
            name: biject_to(drawn[name]["fn"].support).inv(drawn[name]["value"]).reshape(np.shape(example[name]))
            for name in example
        }
        return ravel_pytree(values)[0]

    try:
        shapes = jax.eval_shape(draw, jax.random.key(0)), jax.eval_shape(log_density, ravel_pytree(dict(example))[0])
    except NotImplementedError:  # an improper prior
        return None
    assert shapes[1].shape == ()
    return PriorReference(log_density, draw)
