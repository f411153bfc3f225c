from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import jax
import numpy as np

from cdsampler.benchmark._targets import build_target
from cdsampler.benchmark.references._recipe import AbstractRecipe, Block, Draws
from cdsampler.targets import AbstractExactTarget


@dataclass(frozen=True)
class ExactSampling(AbstractRecipe):
    """Independent draws of a target that can be sampled exactly.

    Parameters
    ----------
    name
    n
    """

    method: ClassVar[str] = "exact sampling"
    minutes: ClassVar[float] = 0.1

    @property
    def dim(self) -> int:
        """Dimension of the mixture."""
        return build_target(self.name).dim

    @property
    def n_blocks(self) -> int:
        """One: it takes no time."""
        return 1

    def block(self, seed: int, index: int, previous: Block | None) -> Block:
        """Draw all samples."""
        target = build_target(self.name)
        assert isinstance(target, AbstractExactTarget)
        key = jax.random.fold_in(jax.random.key(seed), index)
        return {"samples": np.asarray(target.sample(key, self.n), dtype=np.float32)}

    def assemble(self, blocks: Sequence[Block]) -> Draws:
        """Return the only block."""
        return Draws(blocks[0]["samples"], is_independent=True, autocorrelation=1.0, facts={"evaluations": 0})
