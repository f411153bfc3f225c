from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array
from cdsampler.benchmark._catalog import build_target
from cdsampler.benchmark.references._recipes import recipe_of
from cdsampler.targets import AbstractParticleTarget, Molecule
from cdsampler.targets.molecules import _alanine_dipeptide as dipeptide

ROWS_AT_ONCE = 1000


def energies(name: str, samples: np.ndarray) -> np.ndarray:
    """Return potential energies in kJ/mol of a molecule's configurations, else minus the log density.

    Parameters
    ----------
    name
        Of a target that has a reference.
    samples : ndarray, shape (n, dim)
        As in `Reference.samples`.

    Returns
    -------
    ndarray of float64, shape (n,)
    """
    target = build_target(recipe_of(name).name)
    density = target.density()

    def of_row(row: Array) -> Array:
        if isinstance(target, Molecule):
            return target.force_field.energy(row.reshape(-1, 3))
        if isinstance(target, AbstractParticleTarget):
            row = target.from_positions(row.reshape(-1, 3))
        return -density.value(row)[0]

    return _by_row(of_row, samples)


def length(name: str, samples: np.ndarray) -> tuple[str, float] | None:
    """Return what a target's natural length is called, and its mean in the samples; None without particles.

    Parameters
    ----------
    name
        Of a target that has a reference.
    samples : ndarray, shape (n, dim)

    Returns
    -------
    tuple of str and float, or None
        The mean bond length in nm, or the median distance of nearest neighbours in r_m.
    """
    plain = recipe_of(name).name
    if not isinstance(build_target(plain), AbstractParticleTarget):
        return None
    positions = np.asarray(samples, dtype=np.float64).reshape(len(samples), -1, 3)
    if plain.startswith("aldp"):
        first, second = np.array(dipeptide.bonds()).T
        return "mean bond length", float(np.linalg.norm(positions[:, first] - positions[:, second], axis=2).mean())
    nearest = [_nearest_neighbours(x) for x in positions[:: max(1, len(positions) // ROWS_AT_ONCE)]]
    return "median distance of nearest neighbours", float(np.median(nearest))


def _nearest_neighbours(positions: np.ndarray) -> np.ndarray:
    squared = ((positions[:, None] - positions[None, :]) ** 2).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    return np.sqrt(squared.min(axis=1))


def _by_row(function: Callable[[Array], Array], rows: np.ndarray) -> np.ndarray:
    @eqx.filter_jit
    def apply(x: Array) -> Array:
        return jax.lax.map(function, x, batch_size=ROWS_AT_ONCE)

    return np.asarray(apply(jnp.asarray(rows, jnp.zeros(()).dtype)), dtype=np.float64)
