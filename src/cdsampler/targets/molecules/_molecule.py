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
from cdsampler.targets._zero_centroid import from_free, to_free
from cdsampler.targets.molecules._force_field import ForceField

GAS_CONSTANT = 0.008314462618  # kJ/mol/K
# Standard deviation in rad of the window that makes torsions, which are periodic, coordinates on the real line.
WINDOW_SPREAD = 1.5
# The penalty of a wrong handedness, in units of kT, for a centre that is as far from flat as an sp³ carbon.
CHIRALITY_PENALTY, CHIRAL_VOLUME_NM3 = 100.0, 2.5e-3


class AbstractCoordinates(eqx.Module):
    """Coordinates of a molecule's configurations, rigid translations apart."""

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
    """Internal coordinates, with a window on torsions that keeps their density both exact and normalisable.

    Parameters
    ----------
    internal : InternalCoordinates
        3N - 6 real numbers; torsions are periodic.
    spread
        Of the window, in rad.

    Notes
    -----
    A density that is periodic in a torsion τ has no normalising constant on the real line. It is multiplied by
    `w(τ) = N(τ; 0, s²) / Σ_k N(τ + 2πk; 0, s²)`, whose sum over all windings is 1: each configuration keeps its total
    weight, shared out between its windings, and log Z is that of the torsions on the circle.
    """

    internal: InternalCoordinates
    spread: float = eqx.field(static=True, default=WINDOW_SPREAD)

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return self.internal.dim

    def to_positions(self, q: Position) -> tuple[Float[Array, "atoms 3"], Scalar]:
        """Return positions in nm with centroid zero, and the log volume element with the window."""
        positions, log_volume = self.internal.to_positions(q)
        return positions, log_volume + winding_log_window(self.internal.split(q)[2], self.spread)

    def from_positions(self, positions: Float[Array, "atoms 3"]) -> Position:
        """Return the coordinates of a configuration, torsions in (-π, π]."""
        return self.internal.from_positions(positions)


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
