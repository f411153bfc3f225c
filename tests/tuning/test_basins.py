"""Climbs from beyond the reach of annealing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cdsampler import LogDensity
from cdsampler.tuning import _basins as basins
from cdsampler.tuning._account import Account
from cdsampler.tuning._basins import find_basins
from cdsampler.tuning._draws import Draws
from cdsampler.tuning._freezing import LONGEST_FILLING, basin_wait
from cdsampler.tuning._survey import Survey

AWAY = np.array([9.0, 0.0, 0.0])


def wells(x):
    """Two wells of depth 0 and -3, and one that is too shallow to matter."""
    depths = jnp.array([0.0, -3.0, -30.0])
    centres = jnp.array([[0.0, 0.0, 0.0], AWAY, [0.0, -9.0, 0.0]])
    return jax.scipy.special.logsumexp(depths - 0.5 * jnp.sum((x[None] - centres) ** 2, axis=1))


DENSITY = LogDensity(wells, 3)


@pytest.fixture(scope="module")
def found():
    account = Account()
    return find_basins(DENSITY, 3.0, jax.random.key(0), account, 1.0), account


def test_climbs_find_the_other_well_once_and_leave_the_shallow_one_out(found):
    modes, account = found
    assert modes.shape == (1, 3)
    np.testing.assert_allclose(modes[0], AWAY, atol=0.01)
    assert account.spent.count > basins.N_CLIMBS


def test_nothing_is_done_where_annealing_reaches_everything():
    account = Account()
    assert find_basins(DENSITY, np.inf, jax.random.key(0), account, 1.0).shape == (0, 3)
    assert account.spent.count == 0


def test_climbs_stay_within_the_account():
    for limit in (100, 30_000, 60_000):
        account = Account(limit)
        find_basins(DENSITY, 3.0, jax.random.key(0), account, 1.0)
        assert account.spent.count <= limit


def test_starts_outside_the_support_are_left_out():
    inside = LogDensity(lambda x: jnp.where(x[0] < 0, -jnp.inf, wells(x)), 3)
    modes = find_basins(inside, 3.0, jax.random.key(0), Account(), 1.0)
    np.testing.assert_allclose(modes[0], AWAY, atol=0.01)


class _Fit:
    """A reference that is e⁴ times too thin in the second basin."""

    @staticmethod
    def log_density(positions):
        return np.where(positions[:, 0] > 5, -4.0, 0.0)


def test_the_burn_in_lasts_until_the_thinnest_basin_is_filled(found):
    draws = Draws.none(3)
    for group, centre in enumerate((np.zeros(3), AWAY)):
        draws = draws.joined(np.tile(centre, (10, 1)), np.zeros(10), np.arange(10), group)
    survey = Survey(None, None, np.zeros(3), 1.0, None, draws, None, 0.0, True, n_basins=1)
    assert basin_wait(survey, _Fit(), 0.0) == pytest.approx(np.exp(4.0))
    assert basin_wait(survey, _Fit(), -50.0) == LONGEST_FILLING
    assert basin_wait(survey._replace(n_basins=0), _Fit(), 0.0) == 0
    assert basin_wait(survey, None, 0.0) == 0
