"""The compiled programs of the driver: a batch of chains begins, takes a block of steps, and is read off."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from cdsampler._typing import Array, BoolScalar, PRNGKey
from cdsampler.density import AbstractLogDensity, Point
from cdsampler.samplers._base import AbstractStage
from cdsampler.samplers._devices import Devices, on_each


@eqx.filter_jit
def fold_particles(keys: Array, numbers: Array) -> Array:
    # Apart from the small numbers that stages fold in.
    beyond = numbers + jnp.uint32(2**31)
    return jax.vmap(lambda key: jax.vmap(lambda i: jax.random.fold_in(key, i))(beyond))(keys).reshape(-1)


@eqx.filter_jit
def fold_all(keys: Array, number: Array) -> Array:
    return jax.vmap(lambda key: jax.random.fold_in(key, number))(keys)


@eqx.filter_jit
def init(
    stage: AbstractStage,
    density: AbstractLogDensity,
    keys: Array,
    anchors: Array,
    points: Point | None,
    devices: Devices | None = None,
) -> Any:
    def local(of_chains: Any, shared: Any, is_busy: BoolScalar | None) -> Any:
        stage, density = shared

        def start(key: PRNGKey, anchor: Array, point: Point | None) -> Any:
            return stage.init(jax.random.fold_in(key, 0), stage.path(density, anchor), point)

        def begin() -> Any:
            return jax.vmap(start)(*of_chains)

        if is_busy is None:
            return begin()
        # Nothing is evaluated on a device without chains.
        empty = eqx.filter_eval_shape(begin)
        return jax.lax.cond(is_busy, begin, lambda: jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), empty))

    return on_each(local, devices, (keys, anchors, points), (stage, density))


@eqx.filter_jit
def advance(
    stage: AbstractStage,
    density: AbstractLogDensity,
    keys: Array,
    anchors: Array,
    state: Any,
    rows: Any,
    start: Array,
    length: Array,
    devices: Devices | None = None,
) -> tuple[Any, Array | None]:
    """Return the state after a block of steps, and what each device executed if that isn't what was counted."""

    def local(of_chains: Any, shared: Any, is_busy: BoolScalar | None) -> tuple[Any, Array | None]:
        keys, anchors, state = of_chains
        stage, density, rows, start, length = shared
        length = length if is_busy is None else jnp.where(is_busy, length, 0)
        state, executed = _steps(stage, density, keys, anchors, state, rows, start, length)
        return state, None if executed is None else executed[None]

    return on_each(local, devices, (keys, anchors, state), (stage, density, rows, start, length))


def _steps(
    stage: AbstractStage,
    density: AbstractLogDensity,
    keys: Array,
    anchors: Array,
    state: Any,
    rows: Any,
    start: Array,
    length: Array,
) -> tuple[Any, Array | None]:
    def body(carry: tuple[Array, Any, Array | None]) -> tuple[Array, Any, Array | None]:
        i, states, executed = carry
        index = start + i
        row = jax.tree.map(lambda a: a[i], rows)

        def step(key: PRNGKey, one: Any, anchor: Array) -> Any:
            # Key 0 belongs to init.
            return stage.step(jax.random.fold_in(key, index + 1), one, index, row, stage.path(density, anchor))

        states = jax.vmap(step)(keys, states, anchors)
        more = stage.executed(states)
        return i + 1, states, None if executed is None or more is None else executed + more

    def is_running(carry: tuple[Array, Any, Array | None]) -> Array:
        i, states, _ = carry
        return (i < length) & ~jnp.any(states.evaluations.pos_inf > 0)

    zero = jnp.zeros((), jnp.int32)
    executed = None if stage.executed(state) is None else zero
    return jax.lax.while_loop(is_running, body, (zero, state, executed))[1:]


@eqx.filter_jit
def finish(stage: AbstractStage, state: Any, devices: Devices | None = None) -> tuple[Point, Any]:
    def local(state: Any, stage: Any, is_busy: BoolScalar | None) -> tuple[Point, Any]:
        return jax.vmap(stage.point)(state), jax.vmap(stage.statistics)(state)

    return on_each(local, devices, state, stage)
