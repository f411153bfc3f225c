import abc
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import DTypeLike

from cdsampler._typing import Array, Float, Position, Scalar
from cdsampler.density import LogDensity
from cdsampler.errors import InvalidInputError
from cdsampler.targets._base import AbstractParticleTarget
from cdsampler.targets._internal_coordinates import InternalCoordinates, winding_log_window
from cdsampler.targets._z_matrix import ZMatrix
from cdsampler.targets._zero_centroid import from_free, to_free
from cdsampler.targets.molecules._force_field import ForceField

GAS_CONSTANT = 0.008314462618  # kJ/mol/K
# Standard deviation in rad of the window that makes torsions, which are periodic, coordinates on the real line.
WINDOW_SPREAD = 1.5
# Concentration of the window that tells a rotor's equivalent orientations apart: e⁹ to 1 where the atoms are at rest.
ROTOR_CONCENTRATION = 6.0
# The penalty of a wrong handedness, in units of kT, for a centre that is as far from flat as an sp³ carbon.
CHIRALITY_PENALTY, CHIRAL_VOLUME_NM3 = 100.0, 2.5e-3


class AbstractCoordinates(eqx.Module):
    """Coordinates of a molecule's configurations, rigid translations apart.

    Attributes
    ----------
    rotors : tuple of tuple of int
        Triples of equivalent atoms of which the coordinates keep one of three orientations.
    """

    rotors: eqx.AbstractVar[tuple[tuple[int, ...], ...]]

    @property
    @abc.abstractmethod
    def dim(self) -> int:
        """Number of coordinates."""

    @abc.abstractmethod
    def to_positions(self, q: Position) -> tuple[Float[Array, "atoms 3"], Scalar]:
        """Return positions in nm, and the log volume element that the density gains."""

    @abc.abstractmethod
    def from_positions(self, positions: Float[Array, "atoms 3"]) -> Position:
        """Return the coordinates of a configuration."""


class CartesianCoordinates(AbstractCoordinates):
    """Isometric coordinates of the configurations with centroid zero: 3 (N-1) of them; rotations remain.

    Parameters
    ----------
    n_atoms
    """

    n_atoms: int = eqx.field(static=True)
    rotors: tuple[tuple[int, ...], ...] = eqx.field(static=True)

    def __init__(self, n_atoms: int):
        self.n_atoms = n_atoms
        self.rotors = ()

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return 3 * (self.n_atoms - 1)

    def to_positions(self, q: Position) -> tuple[Float[Array, "atoms 3"], Scalar]:
        """Return positions in nm with centroid zero, and 0."""
        return from_free(q.reshape(self.n_atoms - 1, 3)), jnp.zeros((), q.dtype)

    def from_positions(self, positions: Float[Array, "atoms 3"]) -> Position:
        """Return the coordinates of a configuration, whatever its centroid."""
        return to_free(positions).reshape(self.dim)


class TorsionalCoordinates(AbstractCoordinates):
    """Internal coordinates, with windows on torsions that keep their density exact, normalisable and simple.

    Parameters
    ----------
    internal : InternalCoordinates
        3N - 6 real numbers; torsions are periodic.
    rotors
        Triples of equivalent atoms on one parent, such as a methyl group's hydrogens. Their three orientations are one
        state with other labels; only one of them is kept, and `random_labels` brings the others back.
    spread
        Of the window on every torsion, in rad.

    Raises
    ------
    InvalidInputError
        The atoms of a rotor aren't the only ones on their parent beyond a bond.

    Notes
    -----
    A density that is periodic in a torsion τ has no normalising constant on the real line. It is multiplied by
    `w(τ) = N(τ; 0, s²) / Σ_k N(τ + 2πk; 0, s²)`, whose sum over all windings is 1: each configuration keeps its total
    weight, shared out between its windings, and log Z is that of the torsions on the circle. Likewise the weight
    `g(τ1) / (g(τ1) + g(τ2) + g(τ3))`, `g = exp(κ cos)`, of a rotor's torsions sums to 1 over its cyclic permutations:
    the density of configurations without labels is unchanged, and log Z is less by log 3 for each rotor.
    """

    internal: InternalCoordinates
    spread: float = eqx.field(static=True)
    rotors: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    columns: tuple[tuple[int, ...], ...] = eqx.field(static=True)

    def __init__(
        self, internal: InternalCoordinates, rotors: Sequence[Sequence[int]] = (), spread: float = WINDOW_SPREAD
    ):
        self.internal = internal
        self.spread = spread
        self.columns = tuple(_rotor_columns(internal.zmatrix, rotor) for rotor in rotors)
        # In the order of the coordinates, which is the order of their cyclic permutations.
        self.rotors = tuple(tuple(internal.zmatrix.order[c + 3] for c in columns) for columns in self.columns)

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return self.internal.dim

    def to_positions(self, q: Position) -> tuple[Float[Array, "atoms 3"], Scalar]:
        """Return positions in nm with centroid zero, and the log volume element with the windows."""
        positions, log_volume = self.internal.to_positions(q)
        torsions = self.internal.split(q)[2]
        return positions, log_volume + winding_log_window(torsions, self.spread) + self._rotor_log_window(torsions)

    def from_positions(self, positions: Float[Array, "atoms 3"]) -> Position:
        """Return the coordinates of a configuration, torsions in (-π, π]."""
        return self.internal.from_positions(positions)

    def _rotor_log_window(self, torsions: Array) -> Scalar:
        total = jnp.zeros((), torsions.dtype)
        rest = self.internal.torsions.astype(torsions.dtype)
        for first, *others in self.columns:
            turns = [torsions[first], *(torsions[first] + rest[i] + torsions[i] for i in others)]
            concentrations = ROTOR_CONCENTRATION * jnp.cos(jnp.stack(turns))
            total = total + concentrations[0] - jax.nn.logsumexp(concentrations)
        return total


def _rotor_columns(zmatrix: ZMatrix, rotor: Sequence[int]) -> tuple[int, ...]:
    """Return the torsions of a rotor's atoms: first the one that turns all, then those relative to it."""
    rows = sorted(zmatrix.order.index(atom) for atom in rotor if atom in zmatrix.order)
    columns = tuple(row - 3 for row in rows)
    parents = {zmatrix.parent[row - 1] for row in rows}
    is_rotor = len(rows) == 3 and rows[0] >= 3 and len(parents) == 1 and zmatrix.parent.count(*parents) == 3
    if not is_rotor or [zmatrix.is_proper[c] for c in columns] != [True, False, False]:
        raise InvalidInputError(f"Atoms {tuple(rotor)} are not three that turn together on one parent.")
    return columns


def random_labels(positions: np.ndarray, rotors: Sequence[Sequence[int]], rng: np.random.Generator) -> np.ndarray:
    """Permute each rotor's equivalent atoms cyclically at random: an exact symmetry of the density.

    Parameters
    ----------
    positions : ndarray, shape (n_samples, n_atoms, 3)
    rotors
        Triples of atoms.
    rng

    Returns
    -------
    ndarray, shape (n_samples, n_atoms, 3)
    """
    relabelled = np.array(positions)
    rows = np.arange(len(relabelled))[:, None]
    for rotor in rotors:
        shift = rng.integers(3, size=(len(relabelled), 1))
        source = np.asarray(rotor)[(np.arange(3)[None, :] + shift) % 3]
        relabelled[:, list(rotor)] = positions[rows, source]
    return relabelled


class Molecule(AbstractParticleTarget):
    """The Boltzmann density of a molecule, `ℓ = -U/(k_B T)`, in coordinates without translations.

    Parameters
    ----------
    name
    force_field : ForceField
        kJ/mol of positions in nm.
    coordinates : AbstractCoordinates
        `TorsionalCoordinates`, in which the density is well conditioned, or `CartesianCoordinates`.
    temperature_kelvin
    chiral_centres
        For each centre the atoms (a, b, c, d) with a positive volume `(a - b)·[(c - b) × (d - b)]` in the right form.
        Configurations of the mirror form have the same energy and would be half of the molecule's mass; the penalty
        `½ κ min(Ω/Ω0, 0)²` forbids them.

    Raises
    ------
    InvalidInputError
        The temperature isn't positive.
    """

    name: str = eqx.field(static=True)
    dim: int = eqx.field(static=True)
    force_field: ForceField
    coordinates: AbstractCoordinates
    beta: Array
    chiral_centres: tuple[tuple[int, ...], ...] = eqx.field(static=True)

    def __init__(
        self,
        name: str,
        force_field: ForceField,
        coordinates: AbstractCoordinates,
        *,
        temperature_kelvin: float = 300.0,
        chiral_centres: Sequence[Sequence[int]] = (),
    ):
        if not (np.isfinite(temperature_kelvin) and temperature_kelvin > 0):
            raise InvalidInputError(f"temperature_kelvin must be positive, got {temperature_kelvin!r}.")
        self.name = name
        self.dim = coordinates.dim
        self.force_field = force_field
        self.coordinates = coordinates
        self.beta = jnp.asarray(1 / (GAS_CONSTANT * temperature_kelvin))
        self.chiral_centres = tuple(tuple(int(i) for i in centre) for centre in chiral_centres)

    @property
    def temperature_kelvin(self) -> float:
        """Temperature in K."""
        return 1 / (GAS_CONSTANT * float(self.beta))

    def density(self, dtype: DTypeLike | None = None) -> LogDensity:
        """Return the log density."""
        wanted = np.dtype(jnp.zeros(()).dtype if dtype is None else dtype)
        cast = jax.tree.map(lambda a: a.astype(wanted), self)
        return LogDensity(cast.log_density, self.dim, dtype=wanted)

    def log_density(self, q: Position) -> Scalar:
        """Return the log density at one point."""
        positions, log_volume = self.coordinates.to_positions(q)
        return log_volume - self.beta * self.force_field.energy(positions) - self._penalty(positions)

    def potential_energy(self, q: Position) -> Scalar:
        """Return the potential energy in kJ/mol at one point, without penalty or volume element."""
        return self.force_field.energy(self.to_positions(q))

    def to_positions(self, q: Position) -> Float[Array, "atoms 3"]:
        """Return the atoms' positions in nm, of zero centroid."""
        return self.coordinates.to_positions(q)[0]

    def from_positions(self, positions: Float[Array, "atoms 3"]) -> Position:
        """Return the point of a configuration in nm."""
        return self.coordinates.from_positions(positions)

    def _penalty(self, positions: Array) -> Scalar:
        total = jnp.zeros((), positions.dtype)
        for centre in self.chiral_centres:
            wrong = jnp.minimum(chiral_volume(positions, centre) / CHIRAL_VOLUME_NM3, 0)
            total = total + 0.5 * CHIRALITY_PENALTY * wrong * wrong
        return total


def chiral_volume(positions: Float[Array, "atoms 3"], centre: Sequence[int]) -> Scalar:
    """Return `Ω = (a - b)·[(c - b) × (d - b)]` in nm³ of the four atoms of a centre.

    Parameters
    ----------
    positions : Array, shape (n_atoms, 3)
    centre
        Indices (a, b, c, d).
    """
    a, b, c, d = (positions[i] for i in centre)
    return jnp.dot(a - b, jnp.cross(c - b, d - b))
