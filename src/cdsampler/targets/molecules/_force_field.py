"""A force field as a JAX function of positions, for molecules of up to some hundreds of atoms.

Differences of positions enter every term. Those of all terms are one matrix product with a constant matrix of 0 and
±1, which a batch of configurations turns into one large product, forwards and backwards; gathering atoms by index
would scatter the forces one number at a time. Each term then works along its interactions, component by component.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array, Float, Scalar
from cdsampler.errors import InvalidInputError
from cdsampler.targets.molecules._generalised_born import GeneralisedBorn
from cdsampler.targets.molecules._parameters import COULOMB_CONSTANT, ForceFieldParameters
from cdsampler.targets.molecules._vectors import cross, dot

MAX_PERIODICITY = 6
# Of an angle's area (nm⁴) and a torsion's product of areas (nm⁸), both squared: smaller ones have no direction, and the
# force is zero.
TINY = 1e-30
# Pairs are held apart by hundreds of thousands of kT long before they are this close.
NEAREST_NM = 0.01
# The default of some accelerators, products of ten bits, would round positions.
PRECISION = jax.lax.Precision.HIGHEST


class EnergyTerms(NamedTuple):
    """Energies in kJ/mol, term by term.

    Attributes
    ----------
    bond, angle, torsion, nonbonded, solvation : Array, shape ()
    """

    bond: Scalar
    angle: Scalar
    torsion: Scalar
    nonbonded: Scalar
    solvation: Scalar

    def total(self) -> Scalar:
        """Return the sum."""
        return self.bond + self.angle + self.torsion + self.nonbonded + self.solvation


class ForceField(eqx.Module):
    """Potential energy of a molecule without cut-off, in kJ/mol, of positions in nm.

    Parameters
    ----------
    parameters : ForceFieldParameters

    Raises
    ------
    InvalidInputError
        A torsion's periodicity isn't between 1 and 6.
    """

    n_atoms: int = eqx.field(static=True)
    sizes: tuple[int, ...] = eqx.field(static=True)
    incidence: Array
    bond: tuple[Array, Array]
    angle: tuple[Array, Array]
    torsion: tuple[Array, Array, Array]
    pair: tuple[Array, Array, Array]
    solvent: GeneralisedBorn | None

    def __init__(self, parameters: ForceFieldParameters):
        p = parameters
        torsion_atoms, *torsion = _merged_torsions(p)
        pairs = [
            p.bond_atoms,
            p.angle_atoms[:, [0, 1]],
            p.angle_atoms[:, [2, 1]],
            torsion_atoms[:, [1, 0]],
            torsion_atoms[:, [2, 1]],
            torsion_atoms[:, [3, 2]],
            p.pair_atoms,
        ]
        sixth = p.pair_sigma_nm**6
        self.n_atoms = p.n_atoms
        self.solvent = None if p.solvent is None else GeneralisedBorn(p.solvent)
        if self.solvent is not None:
            pairs.append(self.solvent.pairs())
        self.sizes = tuple(len(part) for part in pairs)
        self.incidence = jnp.asarray(_incidence(np.concatenate(pairs), p.n_atoms))
        self.bond = (jnp.asarray(p.bond_length_nm), jnp.asarray(p.bond_stiffness))
        self.angle = (jnp.asarray(p.angle_rad), jnp.asarray(p.angle_stiffness))
        self.torsion = tuple(map(jnp.asarray, torsion))  # type: ignore[assignment]
        self.pair = (
            jnp.asarray(COULOMB_CONSTANT * p.pair_charge_product),
            jnp.asarray(4 * p.pair_epsilon * sixth * sixth),
            jnp.asarray(4 * p.pair_epsilon * sixth),
        )

    def energy(self, positions: Float[Array, "atoms 3"]) -> Scalar:
        """Return the potential energy in kJ/mol."""
        return self.terms(positions).total()

    def terms(self, positions: Float[Array, "atoms 3"]) -> EnergyTerms:
        """Return the potential energy term by term, in kJ/mol."""
        # The centroid says nothing and would cost precision.
        centred = positions - jnp.mean(positions, axis=0, keepdims=True)
        differences = jnp.split(
            jnp.matmul(centred.T, self.incidence, precision=PRECISION), np.cumsum(self.sizes)[:-1], axis=1
        )
        bond, left, right, *torsion = differences[:6]
        solvation = jnp.zeros((), positions.dtype)
        if self.solvent is not None:
            solvation = self.solvent.energy(differences[7])
        return EnergyTerms(
            self._bonds(bond),
            self._angles(left, right),
            self._torsions(*torsion),
            self._pairs(differences[6]),
            solvation,
        )

    def _bonds(self, difference: Array) -> Scalar:
        length, stiffness = self.bond
        stretch = jnp.sqrt(dot(difference, difference)) - length
        return 0.5 * jnp.sum(stiffness * stretch * stretch)

    def _angles(self, left: Array, right: Array) -> Scalar:
        rest, stiffness = self.angle
        normal = cross(left, right)
        bend = jnp.arctan2(jnp.sqrt(jnp.maximum(dot(normal, normal), TINY)), dot(left, right)) - rest
        return 0.5 * jnp.sum(stiffness * bend * bend)

    def _torsions(self, first: Array, second: Array, third: Array) -> Scalar:
        """Return `Σ c + Σ_n (a_n cos nφ + b_n sin nφ)`, without ever computing φ."""
        cosines, sines, constant = self.torsion
        m, n = cross(first, second), cross(second, third)
        x, y = dot(m, n), jnp.sqrt(dot(second, second)) * dot(first, n)
        squared = x * x + y * y
        is_defined = squared > TINY
        scale = jnp.where(is_defined, jax.lax.rsqrt(jnp.where(is_defined, squared, 1)), 0)
        cos, sin = x * scale, y * scale
        cos_n, sin_n = cos, sin
        total = jnp.sum(constant)
        for n_fold in range(MAX_PERIODICITY):
            if n_fold >= cosines.shape[0]:
                break
            if n_fold:
                cos_n, sin_n = cos_n * cos - sin_n * sin, sin_n * cos + cos_n * sin
            total = total + jnp.sum(cosines[n_fold] * cos_n) + jnp.sum(sines[n_fold] * sin_n)
        return total

    def _pairs(self, difference: Array) -> Scalar:
        coulomb, repulsion, attraction = self.pair
        # Closer than this, single precision would take the difference of two infinities.
        inverse = jax.lax.rsqrt(jnp.maximum(dot(difference, difference), NEAREST_NM**2))
        sixth = (inverse * inverse) ** 3
        return jnp.sum(coulomb * inverse + (repulsion * sixth - attraction) * sixth)


def _merged_torsions(p: ForceFieldParameters) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return different torsions with their Fourier coefficients, shape (n_folds, n_torsions), and constant."""
    active = p.torsion_barrier != 0
    periods = p.torsion_periodicity[active]
    if len(periods) and not 1 <= periods.min() <= periods.max() <= MAX_PERIODICITY:
        raise InvalidInputError(
            f"Torsions must have a periodicity from 1 to {MAX_PERIODICITY}, got {periods.min()} to {periods.max()}."
        )
    atoms, index = np.unique(p.torsion_atoms[active], axis=0, return_inverse=True)
    index = index.reshape(-1)
    cosines, sines = np.zeros((2, periods.max(initial=1), len(atoms)))
    np.add.at(cosines, (periods - 1, index), p.torsion_barrier[active] * np.cos(p.torsion_phase_rad[active]))
    np.add.at(sines, (periods - 1, index), p.torsion_barrier[active] * np.sin(p.torsion_phase_rad[active]))
    return atoms, cosines, sines, np.array([p.torsion_barrier.sum()])


def _incidence(pairs: np.ndarray, n_atoms: int) -> np.ndarray:
    matrix = np.zeros((n_atoms, len(pairs)))
    columns = np.arange(len(pairs))
    matrix[pairs[:, 0], columns] = 1
    matrix[pairs[:, 1], columns] -= 1
    return matrix
