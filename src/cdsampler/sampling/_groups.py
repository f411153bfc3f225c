from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array
from cdsampler.density import AbstractLogDensity
from cdsampler.samplers import AbstractSampler, ChunkOutcome, Devices, Harvest, chain_keys, run_groups
from cdsampler.sampling._assembly import over_arrays
from cdsampler.sampling._pool import Ledger


class Groups(NamedTuple):
    """Chains in groups of one width; what a group gives depends on nothing but its number.

    Attributes
    ----------
    sampler : AbstractSampler
    density : AbstractLogDensity
    keys : tuple of two keys
        Of the chains, and of their anchors.
    centres : Array, shape (n_anchors, dim)
    anchor_scale : float
    width : int
    n_chains : int
        The last group's further chains are spare.
    harvest : Harvest
    """

    sampler: AbstractSampler
    density: AbstractLogDensity
    keys: tuple[Array, Array]
    centres: Array
    anchor_scale: float
    width: int
    n_chains: int
    harvest: Harvest

    def run(self, numbers: Sequence[int], devices: Devices | None, ledger: Ledger) -> dict[int, ChunkOutcome]:
        """Run one group per device; fewer numbers than devices leave the last ones idle. Return outcomes by number."""
        n_idle = 0 if devices is None else len(devices.is_busy) - len(numbers)
        # Group by group: one program for all of them could round differently.
        starts = [self._starts(number) for number in (*numbers, *[numbers[-1]] * n_idle)]
        keys, anchors = (jnp.concatenate(parts) for parts in zip(*starts, strict=True))
        outcomes = run_groups(self.sampler, self.density, keys, anchors, ledger.add, self.harvest, devices)
        busy = zip(numbers, outcomes[: len(numbers)], strict=True)
        return {number: self._without_spare(number, outcome) for number, outcome in busy}

    def _without_spare(self, number: int, outcome: ChunkOutcome) -> ChunkOutcome:
        n_real = min(self.width, self.n_chains - number * self.width)
        return over_arrays(lambda a: a[:n_real], outcome)

    def _starts(self, number: int) -> tuple[Array, Array]:
        chains = np.arange(number * self.width, (number + 1) * self.width)
        of_chains, of_anchors = self.keys
        own = self.centres[chains % len(self.centres)]
        scale = jnp.asarray(self.anchor_scale, self.density.dtype)
        return chain_keys(of_chains, chains), _anchors(chain_keys(of_anchors, chains), own, scale)


@eqx.filter_jit
def _anchors(keys: Array, centres: Array, scale: Array) -> Array:
    return jax.vmap(lambda key, z: z + scale * jax.random.normal(key, z.shape, z.dtype))(keys, centres)
