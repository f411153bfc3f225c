"""Runs any sampler: chains in chunks, steps in compiled blocks of dynamic length."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array, PRNGKey
from cdsampler.density import AbstractLogDensity, Evaluations, Point, check_bounded
from cdsampler.samplers._base import AbstractSampler, AbstractStage
from cdsampler.samplers._devices import Devices
from cdsampler.samplers._programs import advance, finish, fold_all, fold_particles, init

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
    return run_groups(sampler, density, keys, anchors, on_block, harvest)[0]


def run_groups(
    sampler: AbstractSampler,
    density: AbstractLogDensity,
    keys: Array,
    anchors: Array,
    on_block: Callable[[int], None],
    harvest: Harvest,
    devices: Devices | None = None,
) -> list[ChunkOutcome]:
    """Run a group of chains on each device, as `run_chunk` does on one; return the groups' outcomes.

    Parameters
    ----------
    sampler, density, on_block, harvest
        See `run_chunk`.
    keys : Array of keys, shape (n_devices * width,)
        Of the groups, one after the other; those of idle devices are not used.
    anchors : Array, shape (n_devices * width, dim)
    devices
        Default one, the default device.
    """
    n_groups = 1 if devices is None else len(devices.is_busy)
    if devices is not None:
        sampler, density = devices.copied((sampler, density))
        keys, anchors = devices.split((keys, anchors))
    first, *later = sampler.stages()
    n_chains, n_stages = anchors.shape[0], 1 + len(later)
    chunk = _Chunk(density, keys, anchors, on_block, devices)
    particles = chunk.of_particles(first.n_points)
    running = chunk.start(first, 0, None)
    spent, executed, kept, draws = Evaluations.zero((n_chains,)), np.zeros(n_groups, np.int64), [], []
    for draw in range(harvest.n_draws):
        n_left = harvest.n_draws - 1 - draw
        running = chunk.advance(first, running, int(first.n_steps) - n_left * harvest.thinning)
        point, statistics = finish(first.compiled_part(), running.state, devices)
        point, kept = _in_a_row(point, first.n_points), [statistics]
        for number, stage in enumerate(later, start=1):
            carried = particles.start(stage, number + draw * n_stages, point)
            carried = particles.advance(stage, carried, int(stage.n_steps))
            point, statistics = finish(stage.compiled_part(), carried.state, devices)
            spent = spent + _sum_of_groups(carried.state.evaluations, n_chains)
            executed = executed + carried.executed
            kept.append(_mean_of_groups(statistics, n_chains))
        position, log_density = np.asarray(point.position), np.asarray(point.target.log_density)
        draws.append((position.reshape(n_chains, first.n_points, -1), log_density.reshape(n_chains, first.n_points)))
    whole = ChunkOutcome(
        np.concatenate([position for position, _ in draws], axis=1),
        np.concatenate([log_density for _, log_density in draws], axis=1),
        jax.tree.map(np.asarray, spent + running.state.evaluations),
        tuple(jax.tree.map(np.asarray, statistics) for statistics in kept),
        0,
    )
    width, executed = n_chains // n_groups, executed + running.executed
    parts = [slice(i * width, (i + 1) * width) for i in range(n_groups)]
    return [_part(whole, part)._replace(executed=int(n)) for part, n in zip(parts, executed, strict=True)]


def _part(outcome: ChunkOutcome, part: slice) -> ChunkOutcome:
    arrays: ChunkOutcome = jax.tree.map(lambda a: a[part], outcome._replace(executed=None))  # type: ignore[arg-type]
    return arrays


class _Running(NamedTuple):
    """A stage under way: what each group counted so far and what its device executed for it."""

    state: Any
    keys: Array
    done: int
    counted: np.ndarray
    executed: np.ndarray


class _Chunk(NamedTuple):
    """What all stages of a chunk share."""

    density: AbstractLogDensity
    keys: Array
    anchors: Array
    on_block: Callable[[int], None]
    devices: Devices | None

    def of_particles(self, n_points: int) -> "_Chunk":
        """Return a chunk in which each particle of a group is a chain, with a key of its own."""
        if n_points == 1:
            return self
        keys = fold_particles(self.keys, jnp.arange(n_points, dtype=jnp.uint32))
        return self._replace(keys=keys, anchors=jnp.repeat(self.anchors, n_points, axis=0))

    def start(self, stage: AbstractStage, number: int, points: Point | None) -> _Running:
        """Return a stage's first state; `number` tells its randomness apart from other stages' and draws'."""
        # As an array: an integer would be a constant of the compiled program, and every draw would compile anew.
        keys = fold_all(self.keys, jnp.uint32(number))
        state = init(stage.compiled_part(), self.density, keys, self.anchors, points, self.devices)
        counted = self._count(state)
        self.on_block(int(counted.sum()))
        _check_bounded(state)
        return _Running(state, keys, 0, counted, counted)

    def advance(self, stage: AbstractStage, running: _Running, until: int) -> _Running:
        """Step until that many steps are done, in compiled blocks."""
        part = stage.compiled_part()
        state, keys, done, counted, executed = running
        while done < until:
            length = min(BLOCK_LENGTH, until - done)
            rows = stage.rows(done, BLOCK_LENGTH)
            start, n = jnp.int32(done), jnp.int32(length)
            state, more = advance(part, self.density, keys, self.anchors, state, rows, start, n, self.devices)
            _check_bounded(state)
            done += length
            made = self._count(state) - counted
            self.on_block(int(made.sum()))
            counted = counted + made
            executed = executed + (made if more is None else np.asarray(more))
        return _Running(state, keys, done, counted, executed)

    def _count(self, state: Any) -> np.ndarray:
        """Return the evaluations of each group, in 64 bits."""
        n_groups = 1 if self.devices is None else len(self.devices.is_busy)
        kinds = (state.evaluations.value, state.evaluations.gradient)
        return sum(np.asarray(kind).reshape(n_groups, -1).sum(axis=1, dtype=np.int64) for kind in kinds)


def _in_a_row(points: Point, n_points: int) -> Point:
    """Join the axes of chains and of their particles."""
    return points if n_points == 1 else jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:]), points)


def _sum_of_groups(evaluations: Evaluations, n_groups: int) -> Evaluations:
    return jax.tree.map(lambda a: jnp.sum(a.reshape(n_groups, -1), axis=1, dtype=a.dtype), evaluations)


def _mean_of_groups(statistics: Any, n_groups: int) -> Any:
    def mean(a: Array) -> Array:
        return a if a.shape[0] == n_groups else jnp.mean(a.reshape(n_groups, -1, *a.shape[1:]), axis=1)

    return jax.tree.map(mean, statistics)


def _check_bounded(state: Any) -> None:
    leaves = jax.tree.leaves(state, is_leaf=lambda x: isinstance(x, Point))
    check_bounded(state.evaluations, *(leaf for leaf in leaves if isinstance(leaf, Point)))
