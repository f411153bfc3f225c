"""Compiled loops cut into blocks, short enough to be interrupted between them."""

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from cdsampler._typing import Array
from cdsampler.journal import AbstractEntry, NoEntry

# Seconds that a block should take, and by how many times the next one may have more steps.
TARGET, GROWTH = 0.7, 16


class Pace:
    """How many steps a block should have, from how long the last one took.

    Parameters
    ----------
    most
        Steps of a block, at most.
    """

    def __init__(self, most: int = 2**20):
        self._most, self._length = most, 1

    def next(self, left: int) -> int:
        """Return the steps of the next block, of so many that are left."""
        return min(self._length, left)

    def took(self, n_steps: int, seconds: float) -> None:
        """Learn from a block. One that was compiled makes the next ones short, and is soon forgotten."""
        wanted = n_steps * TARGET / max(seconds, 1e-9)
        self._length = max(1, int(min(wanted, GROWTH * n_steps, self._most)))


def in_blocks(
    advance: Callable[[Any, Array, Array], Any],
    carry: Any,
    n_steps: int,
    *,
    pace: Pace | None = None,
    keep: AbstractEntry = NoEntry(),  # noqa: B008 - it has no state
) -> Any:
    """Run a compiled loop over steps 0 to `n_steps` in blocks that take about half a second each.

    Parameters
    ----------
    advance
        Takes what is carried and the numbers of the first step and of the one after the last, as arrays, so that one
        program serves all blocks. How steps are cut into blocks must make no difference.
    carry
        Of strong types, as it comes back: another type would be compiled anew.
    n_steps
    pace
        Of loops like this one, if they are many.
    keep
        Is told what is carried after each block, and begins from what it was told in an earlier session.

    Returns
    -------
    Any
        What is carried in the end.
    """
    pace, done = pace or Pace(), 0
    left = keep.load()
    if left is not None:
        carry, done = left
    while done < n_steps:
        began = time.perf_counter()
        length = pace.next(n_steps - done)
        carry = jax.block_until_ready(advance(carry, jnp.int32(done), jnp.int32(done + length)))
        done += length
        pace.took(length, time.perf_counter() - began)
        keep.offer((carry, done))
    return carry
