"""From parameters to an OpenMM System, for simulations that need OpenMM's integrators."""

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from cdsampler.errors import InvalidInputError
from cdsampler.targets.molecules._alanine_dipeptide import atom_names, bonds
from cdsampler.targets.molecules._openmm_shared import GB_PAIR, SCREENING, import_openmm
from cdsampler.targets.molecules._parameters import ForceFieldParameters, GeneralisedBornParameters

RESIDUES = {"ACE": range(6), "ALA": range(6, 16), "NME": range(16, 22)}


def openmm_system(parameters: ForceFieldParameters, masses_dalton: Sequence[float] | np.ndarray) -> Any:
    """Return an `openmm.System` with the energies of the force field: no cut-off, constraints or mass motion remover.

    Parameters
    ----------
    parameters : ForceFieldParameters
    masses_dalton : array_like, shape (n_atoms,)

    Returns
    -------
    openmm.System
        Every pair of the NonbondedForce is an exception: those that `parameters` lists, and zeros for the others.

    Raises
    ------
    InvalidInputError
        Not one positive mass for each atom.
    MissingExtraError
        OpenMM isn't installed.
    """
    masses = np.asarray(masses_dalton, dtype=np.float64)
    if masses.shape != (parameters.n_atoms,) or not np.all(np.isfinite(masses) & (masses > 0)):
        raise InvalidInputError(
            f"masses_dalton must be {parameters.n_atoms} positive numbers, one for each atom, got {masses_dalton!r}."
        )
    openmm = import_openmm()
    system = openmm.System()
    for mass in masses:
        system.addParticle(float(mass))
    for force in (*_bonded(openmm, parameters), _nonbonded(openmm, parameters)):
        system.addForce(force)
    if parameters.solvent is not None:
        system.addForce(_solvent(openmm, parameters.solvent))
    return system


def _bonded(openmm: Any, p: ForceFieldParameters) -> list[Any]:
    bonds, angles, torsions = openmm.HarmonicBondForce(), openmm.HarmonicAngleForce(), openmm.PeriodicTorsionForce()
    for atoms, *values in _rows(p.bond_atoms, p.bond_length_nm, p.bond_stiffness):
        bonds.addBond(*atoms, *values)
    for atoms, *values in _rows(p.angle_atoms, p.angle_rad, p.angle_stiffness):
        angles.addAngle(*atoms, *values)
    for atoms, *values in _rows(p.torsion_atoms, p.torsion_periodicity, p.torsion_phase_rad, p.torsion_barrier):
        torsions.addTorsion(*atoms, *values)
    return [bonds, angles, torsions]


def _nonbonded(openmm: Any, p: ForceFieldParameters) -> Any:
    force = openmm.NonbondedForce()
    force.setNonbondedMethod(openmm.NonbondedForce.NoCutoff)
    for _ in range(p.n_atoms):
        force.addParticle(0.0, 1.0, 0.0)
    listed = {
        (min(atoms), max(atoms)): values
        for atoms, *values in _rows(p.pair_atoms, p.pair_charge_product, p.pair_sigma_nm, p.pair_epsilon)
    }
    for i in range(p.n_atoms):
        for j in range(i + 1, p.n_atoms):
            force.addException(i, j, *listed.get((i, j), (0.0, 1.0, 0.0)))
    return force


def _solvent(openmm: Any, p: GeneralisedBornParameters) -> Any:
    force = openmm.CustomGBForce()
    for name in ("charge", "or", "sr"):
        force.addPerParticleParameter(name)
    for _, *values in _rows(p.charge, p.charge, p.offset_radius_nm, p.scaled_radius_nm):
        force.addParticle(values)
    alpha, beta, gamma = map(_number, p.tanh_coefficients)
    second = "" if float(beta) == 0 else f"-{beta}*psi^2"
    force.addComputedValue("I", SCREENING, force.ParticlePairNoExclusions)
    force.addComputedValue(
        "B",
        f"1/(1/or-tanh({alpha}*psi{second}+{gamma}*psi^3)/radius);"
        f"psi=I*or; radius=or+offset; offset={_number(p.offset_nm)}",
        force.SingleParticle,
    )
    constants = (
        f"; solventDielectric={_number(p.solvent_dielectric)}; soluteDielectric={_number(p.solute_dielectric)}; "
        f"kappa=0; offset={_number(p.offset_nm)}"
    )
    factor = f"{_number(p.coulomb_constant)}*(1/soluteDielectric-1/solventDielectric)"
    force.addEnergyTerm(f"-0.5*{factor}*charge^2/B{constants}", force.SingleParticle)
    if p.surface_energy:
        surface = f"{_number(p.surface_energy)}*(radius+0.14)^2*(radius/B)^6; radius=or+offset"
        force.addEnergyTerm(surface + constants, force.SingleParticle)
    force.addEnergyTerm(
        f"-{factor}*{GB_PAIR}{constants}",
        force.ParticlePairNoExclusions,
    )
    return force


def alanine_dipeptide_topology() -> Any:
    """Return an `openmm.app.Topology` of alanine dipeptide, in the packaged order of atoms.

    Raises
    ------
    MissingExtraError
        OpenMM isn't installed.
    """
    import_openmm()
    app = importlib.import_module("openmm.app")
    topology = app.Topology()
    chain = topology.addChain()
    atoms: list[Any] = []
    for residue, members in RESIDUES.items():
        added = topology.addResidue(residue, chain)
        for name in (atom_names()[i] for i in members):
            atoms.append(topology.addAtom(name, app.Element.getBySymbol(name[0]), added))
    for i, j in bonds():
        topology.addBond(atoms[i], atoms[j])
    return topology


def _rows(*columns: np.ndarray) -> Any:
    """Return the rows of several arrays as plain Python numbers, which is all that OpenMM takes."""
    return zip(*(column.tolist() for column in columns), strict=True)


def _number(value: float) -> str:
    """Return a number for OpenMM's expressions, never with an exponent, which they would read as a product."""
    return np.format_float_positional(value, trim="0")
