import abc
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, NamedTuple, TypeVar

import jax
import numpy as np

from cdsampler.errors import InvalidInputError

Block = dict[str, np.ndarray]
RecipeT = TypeVar("RecipeT", bound="AbstractRecipe")


class Draws(NamedTuple):
    """What a recipe's blocks amount to.

    Attributes
    ----------
    samples : ndarray of float32, shape (n, dim)
    is_independent : bool
    autocorrelation : float
        Of the energy, in samples.
    facts : dict
        What the run cost and what its checks found: plain values for the provenance.
    """

    samples: np.ndarray
    is_independent: bool
    autocorrelation: float
    facts: dict[str, Any]


@dataclass(frozen=True)
class AbstractRecipe(abc.ABC):
    """How to make the reference of one target, in blocks that an interruption can't change.

    A block depends on the recipe, the seed and its index alone, or on the block before it, too (`is_sequential`): so
    finished blocks can be kept and an interrupted run ends in the same samples.

    Attributes
    ----------
    name
        Of the target.
    n
        Samples to make.
    """

    name: str
    n: int
    is_sequential: ClassVar[bool] = False
    method: ClassVar[str]
    # About how long it takes on two cores.
    minutes: ClassVar[float]

    @property
    @abc.abstractmethod
    def dim(self) -> int:
        """Numbers in a sample."""

    @property
    @abc.abstractmethod
    def n_blocks(self) -> int:
        """Number of blocks."""

    @abc.abstractmethod
    def block(self, seed: int, index: int, previous: Block | None) -> Block:
        """Do one piece of the work.

        Parameters
        ----------
        seed
        index
            From 0 to `n_blocks - 1`.
        previous
            The block before, if the recipe is sequential and there is one.
        """

    @abc.abstractmethod
    def assemble(self, blocks: Sequence[Block]) -> Draws:
        """Join the blocks."""

    def settings(self) -> dict[str, Any]:
        """Return the recipe's settings as plain values."""
        return asdict(self)

    def versions(self) -> dict[str, str]:
        """Return the versions of the libraries that make the numbers, this one apart; raise if one is missing."""
        return {"jax": jax.__version__}

    def with_n(self: RecipeT, n: int | None) -> RecipeT:
        """Return the recipe for another number of samples; None changes nothing.

        Raises
        ------
        InvalidInputError
            `n` isn't a positive integer.
        """
        if n is None:
            return self
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise InvalidInputError(f"n must be a positive integer, got {n!r}.")
        return replace(self, n=int(n))
