"""From an OpenMM System to parameters: only what can be converted exactly is."""

import re
from typing import Any

import numpy as np

from cdsampler.errors import InvalidInputError
from cdsampler.targets.molecules._openmm_shared import GB_PAIR, SCREENING, import_openmm
from cdsampler.targets.molecules._parameters import COULOMB_CONSTANT, ForceFieldParameters, GeneralisedBornParameters

# Forces that add no energy.
WITHOUT_ENERGY = {"CMMotionRemover"}
BORN_RADIUS = re.compile(
    r"1/\(1/or-tanh\((?P<a>[\d.]*)\*?psi(?:-(?P<b>[\d.]+)\*psi\^2)?\+(?P<c>[\d.]+)\*psi\^3\)/radius\);"
    r"psi=I\*or;radius=or\+offset;offset=(?P<offset>[\d.]+)"
)
SURFACE = re.compile(r"(?P<energy>[\d.]+)\*\(radius\+0\.14\)\^2\*\(radius/B\)\^6;")
DIELECTRIC = re.compile(r"(solvent|solute)Dielectric=([\d.]+)")
PAIR = re.compile(r"-(?P<coulomb>[\d.]+)\*\(1/soluteDielectric-1/solventDielectric\)\*(?P<rest>.*)")
SELF = re.compile(r"-0\.5\*(?P<coulomb>[\d.]+)\*\(1/soluteDielectric-1/solventDielectric\)\*charge\^2/B(;.*)?")


def parameters_from_openmm(system: Any) -> ForceFieldParameters:
    """Convert an OpenMM `System` of harmonic bonds and angles, periodic torsions, NonbondedForce and an OBC solvent.

    Parameters
    ----------
    system : openmm.System
        Built with `nonbondedMethod=NoCutoff, constraints=None, rigidWater=False`. The solvent may be a
        `GBSAOBCForce` or the `CustomGBForce` that `implicit/obc1.xml` and `implicit/obc2.xml` make.

    Returns
    -------
    ForceFieldParameters

    Raises
    ------
    InvalidInputError
        A force that isn't supported (the message names it), constraints, virtual sites, a cut-off or periodicity.
    MissingExtraError
        OpenMM isn't installed: it is in the extra `molecules`.
    """
    unit = import_openmm().unit
    n_atoms = system.getNumParticles()
    if system.getNumConstraints():
        raise InvalidInputError(
            f"The system has {system.getNumConstraints()} constraints: create it with constraints=None and "
            "rigidWater=False."
        )
    if any(system.isVirtualSite(i) for i in range(n_atoms)):
        raise InvalidInputError("The system has virtual sites, which are not supported.")
    collected: dict[str, list[Any]] = {name: [] for name in ("bonds", "angles", "torsions", "pairs", "solvent")}
    for force in system.getForces():
        kind = type(force).__name__
        if kind in WITHOUT_ENERGY:
            continue
        if kind not in READERS:
            supported = ", ".join(READERS)
            raise InvalidInputError(f"The system has a {kind}, which is not supported: only {supported} are.")
        if force.usesPeriodicBoundaryConditions():
            raise InvalidInputError(f"The {kind} uses periodic boundary conditions, which are not supported.")
        key, reader = READERS[kind]
        collected[key] += reader(force, unit)
    return _assembled(n_atoms, collected)


def _assembled(n_atoms: int, collected: dict[str, list[Any]]) -> ForceFieldParameters:
    def columns(key: str, *names: str) -> dict[str, np.ndarray]:
        return {name: np.array([row[i] for row in collected[key]]) for i, name in enumerate(names)}

    solvents = collected["solvent"]
    if len(solvents) > 1:
        raise InvalidInputError(f"The system has {len(solvents)} solvent forces: one is supported.")
    return ForceFieldParameters(
        n_atoms,
        **columns("bonds", "bond_atoms", "bond_length_nm", "bond_stiffness"),
        **columns("angles", "angle_atoms", "angle_rad", "angle_stiffness"),
        **columns("torsions", "torsion_atoms", "torsion_periodicity", "torsion_phase_rad", "torsion_barrier"),
        **columns("pairs", "pair_atoms", "pair_charge_product", "pair_sigma_nm", "pair_epsilon"),
        solvent=solvents[0] if solvents else None,
    )


def _plain(unit: Any, quantities: list[Any]) -> list[float]:
    """Return numbers in nm, kJ/mol, rad and elementary charges."""
    return [q.value_in_unit_system(unit.md_unit_system) if unit.is_quantity(q) else float(q) for q in quantities]


def _bonds(force: Any, unit: Any) -> list[Any]:
    rows = (force.getBondParameters(i) for i in range(force.getNumBonds()))
    return [(atoms[:2], *_plain(unit, atoms[2:])) for atoms in rows]


def _angles(force: Any, unit: Any) -> list[Any]:
    rows = (force.getAngleParameters(i) for i in range(force.getNumAngles()))
    return [(row[:3], *_plain(unit, row[3:])) for row in rows]


def _torsions(force: Any, unit: Any) -> list[Any]:
    rows = (force.getTorsionParameters(i) for i in range(force.getNumTorsions()))
    return [(row[:4], row[4], *_plain(unit, row[5:])) for row in rows]


def _nonbonded(force: Any, unit: Any) -> list[Any]:
    if force.getNonbondedMethod() != force.NoCutoff:
        raise InvalidInputError("The NonbondedForce has a cut-off: create the system with nonbondedMethod=NoCutoff.")
    if force.getNumParticleParameterOffsets() or force.getNumExceptionParameterOffsets():
        raise InvalidInputError("The NonbondedForce has parameter offsets, which are not supported.")
    n = force.getNumParticles()
    charge, sigma, epsilon = np.array([_plain(unit, force.getParticleParameters(i)) for i in range(n)]).T
    pairs: dict[tuple[int, int], tuple[float, ...]] = {
        (i, j): (charge[i] * charge[j], 0.5 * (sigma[i] + sigma[j]), np.sqrt(epsilon[i] * epsilon[j]))
        for i in range(n)
        for j in range(i + 1, n)
    }
    for index in range(force.getNumExceptions()):
        i, j, *values = force.getExceptionParameters(index)
        pairs[min(i, j), max(i, j)] = tuple(_plain(unit, values))
    return [(atoms, *values) for atoms, values in pairs.items() if values[0] != 0 or values[2] != 0]


def _native_solvent(force: Any, unit: Any) -> list[GeneralisedBornParameters]:
    if force.getNonbondedMethod() != force.NoCutoff:
        raise InvalidInputError("The GBSAOBCForce has a cut-off: create the system with nonbondedMethod=NoCutoff.")
    rows = [_plain(unit, force.getParticleParameters(i)) for i in range(force.getNumParticles())]
    charge, radius, screening = np.array(rows).T
    (surface,) = _plain(unit, [force.getSurfaceAreaEnergy()])
    offset = radius - 0.009
    return [
        GeneralisedBornParameters(
            charge,
            offset,
            screening * offset,
            (1.0, 0.8, 4.85),
            force.getSolventDielectric(),
            force.getSoluteDielectric(),
            4 * np.pi * surface,
            coulomb_constant=COULOMB_CONSTANT,
        )
    ]


def _custom_solvent(force: Any, unit: Any) -> list[GeneralisedBornParameters]:
    """Recognise OBC in the expressions that OpenMM's force-field files write."""
    values = [_squeezed(force.getComputedValueParameters(i)[1]) for i in range(force.getNumComputedValues())]
    terms = [_squeezed(force.getEnergyTermParameters(i)[0]) for i in range(force.getNumEnergyTerms())]
    born = BORN_RADIUS.fullmatch(values[1]) if len(values) == 2 and values[0] == SCREENING else None
    if any("exp(-kappa*" in term for term in terms):
        raise InvalidInputError(
            "The CustomGBForce has a salt concentration (kappa), which is not supported: set it to 0."
        )
    own = [match for match in map(SELF.fullmatch, terms) if match]
    surface = [match for match in map(SURFACE.match, terms) if match]
    pair = [match for match in map(PAIR.match, terms) if match and match["rest"].startswith(GB_PAIR)]
    is_known = born is not None and len(own) == len(pair) == 1 and len(terms) == 2 + len(surface) <= 3
    if not is_known or force.getNonbondedMethod() != force.NoCutoff or force.getNumExclusions():
        raise InvalidInputError(
            "The system has a CustomGBForce that is not an OBC model without cut-off: use implicit/obc1.xml or "
            "implicit/obc2.xml."
        )
    assert born is not None
    dielectric = {name: float(value) for name, value in DIELECTRIC.findall(terms[0])}
    rows = [force.getParticleParameters(i) for i in range(force.getNumParticles())]
    charge, offset_radius, scaled_radius = np.array(rows).T
    return [
        GeneralisedBornParameters(
            charge,
            offset_radius,
            scaled_radius,
            (float(born["a"] or 1), float(born["b"] or 0), float(born["c"])),
            dielectric["solvent"],
            dielectric["solute"],
            float(surface[0]["energy"]) if surface else 0.0,
            float(born["offset"]),
            float(pair[0]["coulomb"]),
        )
    ]


def _squeezed(expression: str) -> str:
    return expression.replace(" ", "")


READERS: dict[str, tuple[str, Any]] = {
    "HarmonicBondForce": ("bonds", _bonds),
    "HarmonicAngleForce": ("angles", _angles),
    "PeriodicTorsionForce": ("torsions", _torsions),
    "NonbondedForce": ("pairs", _nonbonded),
    "GBSAOBCForce": ("solvent", _native_solvent),
    "CustomGBForce": ("solvent", _custom_solvent),
}
