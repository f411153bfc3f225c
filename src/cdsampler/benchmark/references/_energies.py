import numpy as np

from cdsampler.benchmark._rows import ROWS_AT_ONCE, energy_of
from cdsampler.benchmark._targets import build_target
from cdsampler.benchmark.references._recipes import recipe_of
from cdsampler.targets import AbstractParticleTarget, Molecule
from cdsampler.targets.molecules import _alanine_dipeptide as dipeptide


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
    return energy_of(build_target(recipe_of(name).name))(samples)


def is_molecule(name: str) -> bool:
    """Return whether energies of a target are in kJ/mol, and its configurations have a mirror form."""
    return isinstance(build_target(recipe_of(name).name), Molecule)


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
    target = build_target(recipe_of(name).name)
    if not isinstance(target, AbstractParticleTarget):
        return None
    positions = np.asarray(samples, dtype=np.float64).reshape(len(samples), -1, 3)
    if isinstance(target, Molecule):
        first, second = np.array(dipeptide.bonds()).T
        return "mean bond length", float(np.linalg.norm(positions[:, first] - positions[:, second], axis=2).mean())
    nearest = [_nearest_neighbours(x) for x in positions[:: max(1, len(positions) // ROWS_AT_ONCE)]]
    return "median distance of nearest neighbours", float(np.median(nearest))


def _nearest_neighbours(positions: np.ndarray) -> np.ndarray:
    squared = ((positions[:, None] - positions[None, :]) ** 2).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    return np.sqrt(squared.min(axis=1))
