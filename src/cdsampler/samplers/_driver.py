"""Runs any sampler: chains in chunks, steps in compiled blocks of dynamic length."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array, PRNGKey
from cdsampler.density import AbstractLogDensity, Evaluations, Point, check_bounded
from cdsampler.samplers._base import AbstractSampler, AbstractStage

BLOCK_LENGTH = 128


class Harvest(NamedTuple):
    """How many draws each chain gives, and how far apart.

    Attributes
    ----------
    n_draws : int
    thinning : int
        Steps of the first stage between draws. The steps before the first draw are what is left of the stage's.
    """

    n_draws: int = 1
    thinning: int = 0


class ChunkOutcome(NamedTuple):
    """What a chunk of chains leaves on the host; every array has the chains along the first axis.

    Attributes
    ----------
    position : ndarray, shape (n_chains, n_draws, dim)
    log_density : ndarray, shape (n_chains, n_draws)
    evaluations : Evaluations
        Shape (n_chains,).
    statistics : tuple
        One entry per stage, as the stage defines them; those of later stages are of the last draw.
    """

    position: np.ndarray
    log_density: np.ndarray
    evaluations: Evaluations
    statistics: tuple[Any, ...]


def chain_keys(rng_key: PRNGKey, chains: Sequence[int] | np.ndarray) -> Array:
    """Return one key per chain; a chain's key depends on nothing but its number."""
    return jax.vmap(lambda i: jax.random.fold_in(rng_key, i))(jnp.asarray(chains, jnp.uint32))


def run_chunk(
    sampler: AbstractSampler,
    density: AbstractLogDensity,
    keys: Array,
    anchors: Array,
    on_block: Callable[[int], None] = lambda n: None,
    harvest: Harvest = Harvest(),  # noqa: B008 - immutable
) -> ChunkOutcome:
    """Run a chunk of independent chains from beginning to end.

    Parameters
    ----------
    sampler
        Frozen description.
    density
        Target.
    keys : Array of keys, shape (n_chains,)
    anchors : Array, shape (n_chains, dim)
    on_block
        Called after each compiled block with the evaluations that it made; may raise to interrupt.
    harvest
        By default one draw per chain. With more, the first stage goes on after each draw from where it was, and the
        later stages carry a copy of its point to the target.

    Returns
    -------
    ChunkOutcome

    Raises
    ------
    DensityError
        The log density was plus infinity somewhere; the message shows the point.
    """
    first, *later = sampler.stages()
    chunk = _Chunk(density, keys, anchors, on_block)
    running = chunk.start(first, 0, None)
    n_stages = 1 + len(later)
    spent, kept, points = Evaluations.zero((anchors.shape[0],)), [], []
    for draw in range(harvest.n_draws):
        n_left = harvest.n_draws - 1 - draw
        running = chunk.advance(first, running, int(first.n_steps) - n_left * harvest.thinning)
        point, statistics = _finish(first.compiled_part(), running.state)
        kept = [statistics]
        for number, stage in enumerate(later, start=1):
            carried = chunk.start(stage, number + draw * n_stages, point)
            carried = chunk.advance(stage, carried, int(stage.n_steps))
            point, statistics = _finish(stage.compiled_part(), carried.state)
            spent = spent + carried.state.evaluations
            kept.append(statistics)
        points.append((point.position, point.target.log_density))
    return ChunkOutcome(
        np.stack([np.asarray(position) for position, _ in points], axis=1),
        np.stack([np.asarray(log_density) for _, log_density in points], axis=1),
        jax.tree.map(np.asarray, spent + running.state.evaluations),
        tuple(jax.tree.map(np.asarray, statistics) for statistics in kept),
    )


class _Running(NamedTuple):
    state: Any
    keys: Array
    done: int


class _Chunk(NamedTuple):
    """What all stages of a chunk share."""

    density: AbstractLogDensity
    keys: Array
    anchors: Array
    on_block: Callable[[int], None]

    def start(self, stage: AbstractStage, number: int, points: Point | None) -> _Running:
        """Return a stage's first state; `number` tells its randomness apart from other stages' and draws'."""
        # As an array: an integer would be a constant of the compiled program, and every draw would compile anew.
        keys = _fold_all(self.keys, jnp.uint32(number))
        state = _init(stage.compiled_part(), self.density, keys, self.anchors, points)
        self.on_block(stage.cost_init() * self.anchors.shape[0])
        _check_bounded(state)
        return _Running(state, keys, 0)

    def advance(self, stage: AbstractStage, running: _Running, until: int) -> _Running:
        """Step until that many steps are done, in compiled blocks."""
        part = stage.compiled_part()
        state, keys, done = running
        while done < until:
            length = min(BLOCK_LENGTH, until - done)
            rows = stage.rows(done, BLOCK_LENGTH)
            state = _advance(part, self.density, keys, self.anchors, state, rows, jnp.int32(done), jnp.int32(length))
            _check_bounded(state)
            done += length
            self.on_block(length * stage.cost_step() * self.anchors.shape[0])
        return _Running(state, keys, done)


@eqx.filter_jit
def _fold_all(keys: Array, number: Array) -> Array:
    return jax.vmap(lambda key: jax.random.fold_in(key, number))(keys)


@eqx.filter_jit
def _init(stage: AbstractStage, density: AbstractLogDensity, keys: Array, anchors: Array, points: Point | None) -> Any:
    def start(key: PRNGKey, anchor: Array, point: Point | None) -> Any:
        return stage.init(jax.random.fold_in(key, 0), stage.path(density, anchor), point)

    return jax.vmap(start)(keys, anchors, points)


@eqx.filter_jit
def _advance(
    stage: AbstractStage,
    density: AbstractLogDensity,
    keys: Array,
    anchors: Array,
    state: Any,
    rows: Any,
    start: Array,
    length: Array,
) -> Any:
    def body(carry: tuple[Array, Any]) -> tuple[Array, Any]:
        i, states = carry
        index = start + i
        row = jax.tree.map(lambda a: a[i], rows)

        def step(key: PRNGKey, one: Any, anchor: Array) -> Any:
            # Key 0 belongs to init.
            return stage.step(jax.random.fold_in(key, index + 1), one, index, row, stage.path(density, anchor))

        return i + 1, jax.vmap(step)(keys, states, anchors)

    def is_running(carry: tuple[Array, Any]) -> Array:
        i, states = carry
        return (i < length) & ~jnp.any(states.evaluations.pos_inf > 0)

    return jax.lax.while_loop(is_running, body, (jnp.zeros((), jnp.int32), state))[1]


@eqx.filter_jit
def _finish(stage: AbstractStage, state: Any) -> tuple[Point, Any]:
    return jax.vmap(stage.point)(state), jax.vmap(stage.statistics)(state)


def _check_bounded(state: Any) -> None:
    leaves = jax.tree.leaves(state, is_leaf=lambda x: isinstance(x, Point))
    check_bounded(state.evaluations, *(leaf for leaf in leaves if isinstance(leaf, Point)))
