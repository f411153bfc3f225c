"""How far a chunk of chains is: all that an interrupted one needs to go on."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array
from cdsampler.density import Evaluations, Point
from cdsampler.journal import AbstractEntry


class Running(NamedTuple):
    """A stage under way: what it counted so far and what the device executed for it."""

    state: Any
    keys: Array
    done: int
    counted: int
    executed: int


class _Draws(NamedTuple):
    """Draws of all chains; those not made yet are undefined."""

    position: np.ndarray
    log_density: np.ndarray


class ChunkProgress:
    """How far a chunk is, which its entry is told of after each block.

    `running` has the first stage and those of the later ones that have begun to carry the next draw; `spent` and
    `executed` are what the later ones cost for the draws that are done.
    """

    def __init__(self, keep: AbstractEntry, n_draws: int, n_chains: int):
        self._keep, self._n_draws, self._n_chains = keep, n_draws, n_chains
        self.n_done, self.executed, self.spent = 0, 0, Evaluations.zero((n_chains,))
        self.running: tuple[Running, ...] = ()
        left = keep.load()
        if left is not None:
            self.running, self.n_done, self.executed, self.spent, made = left
            if self.n_done > 0:
                self._add_arrays(0, *made)

    def note(self, number: int, running: Running) -> None:
        """Take note of a stage's state."""
        self.running = (*self.running[:number], running)
        n_points = self.draws.log_density.shape[1] // self._n_draws if self.n_done > 0 else 0
        made = tuple(a[:, : self.n_done * n_points] for a in self.draws) if self.n_done > 0 else ()
        self._keep.offer((self.running, self.n_done, self.executed, self.spent, made))

    def add(self, point: Point, n_points: int) -> None:
        """Add a draw of each chain, or of each of its particles, and what carrying it has cost."""
        for carried in self.running[1:]:
            self.spent = self.spent + _sum_of_groups(carried.state.evaluations, self._n_chains)
            self.executed += carried.executed
        self.running = self.running[:1]
        position, log_density = np.asarray(point.position), np.asarray(point.target.log_density)
        row = (self._n_chains, n_points)
        self._add_arrays(self.n_done * n_points, position.reshape(*row, -1), log_density.reshape(row))
        self.n_done += 1

    def _add_arrays(self, at: int, position: np.ndarray, log_density: np.ndarray) -> None:
        if at == 0:
            length = self._n_draws * (log_density.shape[1] // max(self.n_done, 1))
            shapes = (self._n_chains, length, position.shape[2]), (self._n_chains, length)
            self.draws = _Draws(np.empty(shapes[0], position.dtype), np.empty(shapes[1], log_density.dtype))
        self.draws.position[:, at : at + position.shape[1]] = position
        self.draws.log_density[:, at : at + log_density.shape[1]] = log_density

    def counted(self) -> int:
        """Return the evaluations made so far."""
        return sum(running.counted for running in self.running) + int(self.spent.total().count)


def _sum_of_groups(evaluations: Evaluations, n_groups: int) -> Evaluations:
    return jax.tree.map(lambda a: jnp.sum(a.reshape(n_groups, -1), axis=1, dtype=a.dtype), evaluations)
