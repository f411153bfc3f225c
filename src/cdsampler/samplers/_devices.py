"""One compiled program on several devices: each runs the same code on a group of chains of its own."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from cdsampler._typing import Array, BoolScalar

AXIS = "chains"


class Devices(NamedTuple):
    """Devices that run a group of chains each, in step.

    A program for a mesh is compiled once and runs on every device of it as it would on one, so the bits of a group
    don't depend on where it runs. (Programs for one device at a time would be compiled for every device anew.)

    Attributes
    ----------
    mesh : jax.sharding.Mesh
        Devices of this process, along one axis.
    is_busy : Array, shape (n_devices,)
        False where a device has no group: it evaluates nothing.
    """

    mesh: Mesh
    is_busy: Array

    @classmethod
    def of(cls, devices: Sequence[jax.Device], n_busy: int) -> "Devices":
        """Return these devices, of which the first `n_busy` have a group."""
        mesh = Mesh(np.array(devices), (AXIS,))
        is_busy = np.arange(len(devices)) < n_busy
        return cls(mesh, jax.device_put(is_busy, NamedSharding(mesh, P(AXIS))))

    def split(self, tree: Any) -> Any:
        """Place arrays so that each device has its part along the first axis."""
        return jax.device_put(tree, NamedSharding(self.mesh, P(AXIS)))

    def copied(self, tree: Any) -> Any:
        """Place a copy of a tree's arrays on each device; what isn't an array stays as it is."""
        arrays, rest = eqx.partition(tree, eqx.is_array)
        return eqx.combine(jax.device_put(arrays, NamedSharding(self.mesh, P())), rest)


def on_each(
    f: Callable[[Any, Any, BoolScalar | None], Any], devices: Devices | None, of_chains: Any, shared: Any
) -> Any:
    """Call a function on each device with its own chains, inside compiled code.

    Parameters
    ----------
    f
        Called with a device's part of `of_chains`, with `shared`, and with whether the device has chains at all. Its
        arrays have a first axis that is joined over devices.
    devices
        None for one device, the default one: then `f` is called as it is, with None as the last argument.
    of_chains
        Tree of arrays with the chains of all devices along the first axis.
    shared
        Tree that is the same on all devices.
    """
    if devices is None:
        return f(of_chains, shared, None)
    arrays, rest = eqx.partition((of_chains, shared), eqx.is_array)

    def local(is_busy: Array, arrays: Any) -> Any:
        own, same = eqx.combine(arrays, rest)
        return f(own, same, is_busy[0])

    in_specs = (P(AXIS), (P(AXIS), P()))
    # Carries of loops begin as constants, which the check of what varies between devices doesn't take.
    spread = jax.shard_map(local, mesh=devices.mesh, in_specs=in_specs, out_specs=P(AXIS), check_vma=False)
    return spread(devices.is_busy, arrays)
