"""Step sizes of samplers whose kernels act on the target, from a pilot group of chains."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array, PRNGKey
from cdsampler.density import AbstractLogDensity, Evaluations, check_bounded
from cdsampler.errors import InvalidInputError
from cdsampler.kernels import adapt_step_size
from cdsampler.samplers import AbstractStage, DiGS, LocalChain, chain_keys


class Adapted(NamedTuple):
    """A stage with tuned numbers, and what that cost."""

    stage: Any
    evaluations: Evaluations


def adapt_steps(
    stage: LocalChain | DiGS,
    path_of: AbstractStage,
    density: AbstractLogDensity,
    anchors: np.ndarray,
    rng_key: PRNGKey,
    *,
    n_steps: int = 200,
) -> Adapted:
    """Tune step sizes to the kernel's optimal acceptance, pooled over a pilot group of chains.

    Parameters
    ----------
    stage
        Its kernel's step sizes are where tuning starts.
    path_of
        The stage that defines the path: `stage` itself or what wraps it.
    density
        Target.
    anchors : array_like, shape (n_chains, dim)
        Where the pilot's chains start.
    rng_key
        Typed PRNG key; the pilot's chains are none of the production's.
    n_steps
        Steps for each step size. They are averaged, in logs, over the second half. The cost is this times the number
        of step sizes, times the number of chains and the cost of a step.

    Returns
    -------
    Adapted
    """
    anchors = np.asarray(anchors)
    if anchors.ndim != 2 or len(anchors) < 1 or n_steps < 2:
        raise InvalidInputError(f"A pilot needs a chain and 2 steps, got anchors {anchors.shape} and {n_steps} steps.")
    n_steps *= max(stage.kernel.step_size.size, 1)
    pilot = stage.with_steps(n_steps)
    keys = chain_keys(rng_key, np.arange(len(anchors)))
    step_sizes, evaluations, points = _adapt(pilot, path_of, density, keys, jnp.asarray(anchors, density.dtype))
    check_bounded(evaluations, points)
    return Adapted(eqx.tree_at(lambda s: s.kernel.step_size, stage, step_sizes), evaluations.total())


@eqx.filter_jit
def _adapt(
    stage: LocalChain | DiGS, path_of: AbstractStage, density: AbstractLogDensity, keys: Array, anchors: Array
) -> Any:
    def start(key: PRNGKey, anchor: Array) -> Any:
        return stage.init(jax.random.fold_in(key, 0), path_of.path(density, anchor), None)

    def body(i: Array, carry: tuple[Any, Array, Array]) -> tuple[Any, Array, Array]:
        states, step_sizes, total = carry
        tuned = eqx.tree_at(lambda s: s.kernel.step_size, stage, step_sizes)

        def step(key: PRNGKey, one: Any, anchor: Array) -> Any:
            key = jax.random.fold_in(key, i + 1)
            return tuned.step_with_acceptance(key, one, i, path_of.path(density, anchor))

        states, acceptance = jax.vmap(step)(keys, states, anchors)
        pooled = jnp.mean(acceptance, axis=0)
        adapted = adapt_step_size(tuned.kernel, pooled, i, delay=stage.n_steps // 4)
        # A step size that was not in use has no acceptance.
        step_sizes = jnp.where(jnp.isnan(pooled), step_sizes, adapted)
        is_kept = i >= stage.n_steps // 2
        return states, step_sizes, total + jnp.where(is_kept, jnp.log(step_sizes), 0)

    states = jax.vmap(start)(keys, anchors)
    first = stage.kernel.step_size
    states, _, total = jax.lax.fori_loop(0, stage.n_steps, body, (states, first, jnp.zeros_like(first)))
    n_kept = stage.n_steps - stage.n_steps // 2
    return jnp.exp(total / n_kept), states.evaluations, states.current
