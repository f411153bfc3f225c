"""Runs any sampler: chains in chunks, steps in compiled blocks of dynamic length."""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array, PRNGKey
from cdsampler.density import AbstractLogDensity, Evaluations, Point, check_bounded
from cdsampler.journal import AbstractEntry, NoEntry
from cdsampler.samplers._base import AbstractSampler, AbstractStage
from cdsampler.samplers._blocks import Pace
from cdsampler.samplers._progress import ChunkProgress, Running

# Steps of a block, at most; fewer where they are slow.
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
        One entry per stage, as the stage defines them; those of later stages are of the last draw, and averaged over
        a group's particles.
    executed : int
        Evaluations that the device made. More than those counted where vectorised chains wait for each other.
    """

    position: np.ndarray
    log_density: np.ndarray
    evaluations: Evaluations
    statistics: tuple[Any, ...]
    executed: int


def chain_keys(rng_key: PRNGKey, chains: Sequence[int] | np.ndarray) -> Array:
    """Return one key per chain; a chain's key depends on nothing but its number."""
    return jax.vmap(lambda i: jax.random.fold_in(rng_key, i))(jnp.asarray(chains, jnp.uint32))


def paces_of(sampler: AbstractSampler) -> list[Pace]:
    """Return how fast each stage goes, which isn't known yet; for all chunks of a run."""
    return [Pace(BLOCK_LENGTH) for _ in sampler.stages()]


def run_chunk(
    sampler: AbstractSampler,
    density: AbstractLogDensity,
    keys: Array,
    anchors: Array,
    on_block: Callable[[int], None] = lambda n: None,
    harvest: Harvest = Harvest(),  # noqa: B008 - immutable
    *,
    paces: Sequence[Pace] | None = None,
    keep: AbstractEntry = NoEntry(),  # noqa: B008 - it has no state
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
        Called after each compiled block with the evaluations that it made, and at first with those of an earlier
        session; may raise to interrupt.
    harvest
        By default one draw per chain. With more, the first stage goes on after each draw from where it was, and the
        later stages carry a copy of its point to the target.
    paces
        Of the stages, if other chunks have found them; see `paces_of`.
    keep
        Is told after each block how far the chunk is, and begins where it was in an earlier session.

    Returns
    -------
    ChunkOutcome

    Raises
    ------
    DensityError
        The log density was plus infinity somewhere; the message shows the point.
    """
    first, *later = sampler.stages()
    n_chains, n_stages = anchors.shape[0], 1 + len(later)
    chunk = _Chunk(density, keys, anchors, on_block, paces_of(sampler) if paces is None else paces)
    particles = chunk.of_particles(first.n_points)
    progress, kept = ChunkProgress(keep, harvest.n_draws, n_chains), []
    if progress.running:
        on_block(progress.counted())
    for draw in range(progress.n_done, harvest.n_draws):
        n_left = harvest.n_draws - 1 - draw
        until = int(first.n_steps) - n_left * harvest.thinning
        running = chunk.advance(first, progress, 0, 0, None, until)
        point, statistics = _finish(first.compiled_part(), running.state)
        point, kept = _in_a_row(point, first.n_points), [statistics]
        for number, stage in enumerate(later, start=1):
            carried = particles.advance(stage, progress, number, number + draw * n_stages, point, int(stage.n_steps))
            point, statistics = _finish(stage.compiled_part(), carried.state)
            kept.append(_mean_of_groups(statistics, n_chains))
        progress.add(point, first.n_points)
    running = progress.running[0]
    return ChunkOutcome(
        progress.draws.position,
        progress.draws.log_density,
        jax.tree.map(np.asarray, progress.spent + running.state.evaluations),
        tuple(jax.tree.map(np.asarray, statistics) for statistics in kept),
        progress.executed + running.executed,
    )


class _Chunk(NamedTuple):
    """What all stages of a chunk share."""

    density: AbstractLogDensity
    keys: Array
    anchors: Array
    on_block: Callable[[int], None]
    paces: Sequence[Pace]

    def of_particles(self, n_points: int) -> "_Chunk":
        """Return a chunk in which each particle of a group is a chain, with a key of its own."""
        if n_points == 1:
            return self
        keys = _fold_particles(self.keys, jnp.arange(n_points, dtype=jnp.uint32))
        return self._replace(keys=keys, anchors=jnp.repeat(self.anchors, n_points, axis=0))

    def advance(
        self, stage: AbstractStage, progress: ChunkProgress, number: int, stream: int, points: Point | None, until: int
    ) -> Running:
        """Start a stage if it isn't under way, and step until that many steps are done, in compiled blocks.

        `stream` tells its randomness apart from other stages' and draws'.
        """
        part, pace = stage.compiled_part(), self.paces[number]
        if len(progress.running) == number:
            progress.running += (self._start(part, stream, points),)
        state, keys, done, counted, executed = progress.running[number]
        while done < until:
            began = time.perf_counter()
            length = pace.next(until - done)
            rows = stage.rows(done, BLOCK_LENGTH)
            state, more = _advance(
                part, self.density, keys, self.anchors, state, rows, jnp.int32(done), jnp.int32(length)
            )
            _check_bounded(state)
            done += length
            pace.took(length, time.perf_counter() - began)
            made = _count(state) - counted
            counted += made
            executed += made if more is None else int(more)
            progress.note(number, Running(state, keys, done, counted, executed))
            self.on_block(made)
        return progress.running[number]

    def _start(self, part: AbstractStage, stream: int, points: Point | None) -> Running:
        # As an array: an integer would be a constant of the compiled program, and every draw would compile anew.
        keys = _fold_all(self.keys, jnp.uint32(stream))
        state = _init(part, self.density, keys, self.anchors, points)
        counted = _count(state)
        self.on_block(counted)
        _check_bounded(state)
        return Running(state, keys, 0, counted, counted)


def _count(state: Any) -> int:
    return int(state.evaluations.total().count)


def _in_a_row(points: Point, n_points: int) -> Point:
    """Join the axes of chains and of their particles."""
    return points if n_points == 1 else jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:]), points)


def _mean_of_groups(statistics: Any, n_groups: int) -> Any:
    def mean(a: Array) -> Array:
        return a if a.shape[0] == n_groups else jnp.mean(a.reshape(n_groups, -1, *a.shape[1:]), axis=1)

    return jax.tree.map(mean, statistics)


@eqx.filter_jit
def _fold_particles(keys: Array, numbers: Array) -> Array:
    # Apart from the small numbers that stages fold in.
    beyond = numbers + jnp.uint32(2**31)
    return jax.vmap(lambda key: jax.vmap(lambda i: jax.random.fold_in(key, i))(beyond))(keys).reshape(-1)


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
def _finish(stage: AbstractStage, state: Any) -> tuple[Point, Any]:
    return jax.vmap(stage.point)(state), jax.vmap(stage.statistics)(state)


def _check_bounded(state: Any) -> None:
    leaves = jax.tree.leaves(state, is_leaf=lambda x: isinstance(x, Point))
    check_bounded(state.evaluations, *(leaf for leaf in leaves if isinstance(leaf, Point)))
