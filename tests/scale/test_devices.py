"""One device, several devices: the same bits, the same accounts, the same order."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdsampler.density import LogDensity
from cdsampler.errors import InvalidInputError
from cdsampler.kernels import MALA
from cdsampler.paths import GaussianReference
from cdsampler.samplers import NRPT
from cdsampler.sampling import run
from cdsampler.sampling._team import Team, team_of

CASES = ("tempering", "transport", "trajectories", "particles")


@pytest.fixture(scope="module")
def quick(apart):
    """A quick case on one device and on four."""
    both = [apart("quick", n_devices=n_devices) for n_devices in (1, 4)]
    return [processes.whole()[0] for processes in both]


@pytest.fixture(scope="module")
def four_devices(apart):
    return apart("devices", n_devices=4).whole()[0]


def test_four_devices_give_the_bits_of_one(differing, quick):
    one, four = quick
    assert differing(one["tempering"], four["tempering"]) == []
    assert len(np.unique(four["tempering"]["samples"][:, -1, 0])) == len(four["tempering"]["samples"])


def test_keys_that_depend_on_the_device_are_found(differing, quick):
    one, four = quick
    assert {"samples", "log_density"} <= set(differing(one["tempering"], four["faulty"]))


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_four_devices_give_what_one_gives(differing, one_device, four_devices, case):
    assert differing(one_device[case], four_devices[case]) == []
    assert 0 < one_device[case]["spare"] < one_device[case]["total"] / 40
    assert (case == "trajectories") == (one_device[case]["executed"] > one_device[case]["total"])


@settings(derandomize=True, deadline=None, max_examples=300, database=None)
@given(
    owners=st.lists(st.integers(0, 2), min_size=1, max_size=7).filter(lambda owners: 0 in owners),
    n_groups=st.integers(1, 40),
    n_at_once=st.integers(1, 50),
)
def test_every_group_has_one_place(owners, n_groups, n_at_once):
    rows = {}
    for process in set(owners):
        own = tuple(device for device, owner in enumerate(owners) if owner == process)
        rows[process] = Team(tuple(owners), own, process).rows(n_groups, n_at_once)
        lengths = [len(row) for row in rows[process]]
        assert all(length <= min(len(own), n_at_once) for length in lengths)
        assert len(set(lengths[:-1])) <= 1
        assert not lengths or lengths[-1] <= lengths[0]
    assert sorted(number for made in rows.values() for row in made for number in row) == list(range(n_groups))


def test_the_default_is_every_device_or_the_chosen_one():
    everything = tuple(jax.devices())
    assert team_of(None).own == everything
    with jax.default_device(everything[-1]):
        assert team_of(None).own == everything[-1:]
    assert not team_of(None).is_several


@pytest.mark.parametrize("devices", [[], [0], [jax.devices()[0]] * 2])
def test_wrong_devices_are_refused(devices):
    density = LogDensity(lambda y: -0.5 * (y @ y), 2)
    sampler = NRPT(GaussianReference(2.0), [0.0, 1.0], MALA(0.5), 2**30)
    with pytest.raises(InvalidInputError, match="devices must be"):
        run(sampler, density, 4, anchor=np.zeros(2), devices=devices)
