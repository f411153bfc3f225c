"""Who takes part in a run: devices of this process and, with `jax.distributed`, other processes and theirs."""

from collections.abc import Sequence
from typing import NamedTuple

import jax

from cdsampler.errors import InvalidInputError
from cdsampler.samplers import Devices


class Team(NamedTuple):
    """Devices of a run, as seen from this process.

    Attributes
    ----------
    owners : tuple of int
        The process of each device.
    own : tuple of jax.Device
        This process's devices.
    here : int
        This process.
    """

    owners: tuple[int, ...]
    own: tuple[jax.Device, ...]
    here: int

    @property
    def is_several(self) -> bool:
        """Whether other processes take part."""
        return len(set(self.owners)) > 1

    @property
    def is_first(self) -> bool:
        """Whether this process is the one that tunes and reports."""
        return self.here == min(self.owners)

    def rows(self, n_groups: int, n_at_once: int) -> list[tuple[int, ...]]:
        """Return the numbers of this process's groups in rows, which its devices run side by side.

        Parameters
        ----------
        n_groups
            Of the whole run. They are dealt out to the devices in turn.
        n_at_once
            Longest row that is allowed.
        """
        n_devices = len(self.owners)
        share = [number for number in range(n_groups) if self.owners[number % n_devices] == self.here]
        if not share:
            return []
        n_rows = -(-len(share) // min(len(self.own), n_at_once))
        # As few devices as give that number of rows: the last row leaves fewer of them idle.
        length = -(-len(share) // n_rows)
        return [tuple(share[i : i + length]) for i in range(0, len(share), length)]

    def devices_for(self, rows: Sequence[tuple[int, ...]], row: tuple[int, ...]) -> Devices | None:
        """Return the devices of a row, as many as the first row needs; None where that is the default device alone."""
        used = self.own[: len(rows[0])]
        return None if used == (_default_device(),) else Devices.of(used, len(row))


def team_of(devices: Sequence[jax.Device] | None) -> Team:
    """Return the team of these devices, by default all (or the one that `jax.default_device` names).

    Raises
    ------
    InvalidInputError
        No devices, one of them twice, of several kinds, or of other processes but none of this one's.
    """
    here = jax.process_index()
    if devices is None:
        chosen = jax.config.jax_default_device  # type: ignore[attr-defined]
        if isinstance(chosen, jax.Device):
            return Team(tuple(range(jax.process_count())), (chosen,), here)
        devices = jax.devices(chosen)
    devices = tuple(devices)
    wrong = [device for device in devices if not isinstance(device, jax.Device)]
    if not devices or wrong:
        raise InvalidInputError(f"devices must be devices of JAX, e.g. jax.devices()[:2], got {devices!r}.")
    if len(set(devices)) < len(devices) or len({device.platform for device in devices}) > 1:
        raise InvalidInputError(f"devices must be different ones of one kind, got {devices}: leave some out.")
    owners = tuple(device.process_index for device in devices)
    if set(owners) not in ({here}, set(range(jax.process_count()))):
        raise InvalidInputError(
            f"devices has those of processes {sorted(set(owners))}, and there are {jax.process_count()} processes: "
            f"give devices of each, or only those of this process, {here}, for a run of its own."
        )
    return Team(owners, tuple(device for device in devices if device.process_index == here), here)


def _default_device() -> jax.Device:
    # Of this thread: `with jax.default_device(...)` is for the thread that says it.
    chosen = jax.config.jax_default_device  # type: ignore[attr-defined]
    return chosen if isinstance(chosen, jax.Device) else jax.local_devices(backend=chosen)[0]
