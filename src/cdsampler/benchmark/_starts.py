import jax.numpy as jnp
import numpy as np

from cdsampler.errors import InvalidInputError
from cdsampler.targets import AbstractTarget, LennardJones, Molecule, icosahedron
from cdsampler.targets.molecules._alanine_dipeptide import minimum_positions_nm


def starting_point(target: AbstractTarget) -> np.ndarray | None:
    """Return a point inside the support from which a search for a mode succeeds.

    Parameters
    ----------
    target
        Of the catalog.

    Returns
    -------
    ndarray, shape (dim,), or None
        For a cluster an icosahedron, for alanine dipeptide a minimum of its energy in vacuum. None for others: the
        origin will do. For the neural network it is the mean of the prior and a stationary point, where `find_mode`
        ends at once, so that a preset's reference is the prior.

    Raises
    ------
    InvalidInputError
        A cluster of other than 13 or 55 particles, or a molecule of other than 22 atoms.
    """
    if isinstance(target, LennardJones):
        return _point(target, icosahedron(target.n_particles))
    if isinstance(target, Molecule):
        positions = minimum_positions_nm()
        n_atoms = target.force_field.n_atoms
        if n_atoms != len(positions):
            raise InvalidInputError(
                f"A start is known for alanine dipeptide only, and {target.name} has {n_atoms} atoms instead of "
                f"{len(positions)}: give one of your own."
            )
        return _point(target, positions)
    return None


def _point(target: LennardJones | Molecule, positions: np.ndarray) -> np.ndarray:
    return np.asarray(target.from_positions(jnp.asarray(positions)), dtype=np.float64)
