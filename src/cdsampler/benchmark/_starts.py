import jax.numpy as jnp
import numpy as np

from cdsampler.errors import InvalidInputError
from cdsampler.targets import AbstractTarget, LennardJones, Molecule
from cdsampler.targets.molecules._alanine_dipeptide import minimum_positions_nm

_SPACING = 0.95  # of the shells of a cluster, in r_m: neighbours in a shell are 5 % further apart


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
        A cluster of more than 55 particles, or a molecule of other than 22 atoms.
    """
    if isinstance(target, LennardJones):
        return _point(target, _icosahedron(target.n_particles))
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


def _icosahedron(n: int) -> np.ndarray:
    """Return the centre, the 12 particles of the first shell and the 42 of the second, as far as n goes."""
    golden = (1 + np.sqrt(5)) / 2
    pairs = np.array([(a, golden * b) for a in (-1, 1) for b in (-1, 1)])
    vertices = np.concatenate([np.roll(np.insert(pairs, 0, 0, axis=1), k, axis=1) for k in range(3)])
    vertices /= np.linalg.norm(vertices[0])
    first, second = np.triu_indices(12, 1)
    # Neighbouring vertices are those with a positive product; the particle between them is in the second shell.
    is_edge = np.sum(vertices[first] * vertices[second], axis=1) > 0
    edges = vertices[first[is_edge]] + vertices[second[is_edge]]
    everything = _SPACING * np.concatenate([np.zeros((1, 3)), vertices, 2 * vertices, edges])
    if n > len(everything):
        raise InvalidInputError(f"A start is known for up to {len(everything)} particles, got {n}: give one.")
    return everything[:n]
