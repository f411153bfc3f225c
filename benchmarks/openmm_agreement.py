"""How far energies and forces of alanine dipeptide are from OpenMM's, term by term.

Configurations have uniform φ and ψ and Gaussian noise on every atom, so that every term is visited away from its
minimum; those with clashes, whose errors are those of huge numbers, are left out.

    pip install openmm
    python benchmarks/openmm_agreement.py

OpenMM's Reference platform computes in double precision. Its System is that of openmmtools, if that is installed, or
else is built from amber96.xml, whose numbers are rounded a little differently.
"""

import csv
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cdsampler.targets import alanine_dipeptide
from cdsampler.targets.molecules import EnergyTerms, InternalCoordinates
from cdsampler.targets.molecules import _alanine_dipeptide as packaged
from cdsampler.targets.molecules._to_openmm import alanine_dipeptide_topology

RESULTS = Path(__file__).parent.parent / "docs/results/openmm_agreement.csv"
SOLVENT_FILES = {"vacuum": (), "implicit": ("implicit/obc1.xml",)}
FORCES = {
    "HarmonicBondForce": "bond",
    "HarmonicAngleForce": "angle",
    "PeriodicTorsionForce": "torsion",
    "NonbondedForce": "nonbonded",
    "GBSAOBCForce": "solvation",
    "CustomGBForce": "solvation",
}
NOISE_NM, MAX_ENERGY = 0.005, 1000.0


def openmm_modules() -> tuple[Any, Any]:
    """Return openmm and openmm.app, or leave with what to install."""
    try:
        import openmm
        import openmm.app
    except ImportError:
        sys.exit("This comparison needs OpenMM: pip install openmm (and openmmtools for the original test system).")
    return openmm, openmm.app


def openmm_system(environment: str) -> tuple[Any, str]:
    """Return the molecule's System without constraints or cut-off, and where it is from."""
    _, app = openmm_modules()
    try:
        from openmmtools import testsystems
    except ImportError:
        files = ("amber96.xml", *SOLVENT_FILES[environment])
        system = app.ForceField(*files).createSystem(
            alanine_dipeptide_topology(),
            nonbondedMethod=app.NoCutoff,
            constraints=None,
            rigidWater=False,
            removeCMMotion=False,
        )
        return system, "+".join(files)
    name = "AlanineDipeptideVacuum" if environment == "vacuum" else "AlanineDipeptideImplicit"
    return getattr(testsystems, name)(constraints=None).system, f"openmmtools {name}"


class Reference:
    """Energies in kJ/mol and forces in kJ/mol/nm on OpenMM's Reference platform; positions are in nm."""

    def __init__(self, system: Any):
        openmm, _ = openmm_modules()
        self.terms = [FORCES.get(type(force).__name__) for force in system.getForces()]
        for group, force in enumerate(system.getForces()):
            force.setForceGroup(group)
        platform = openmm.Platform.getPlatformByName("Reference")
        self.context = openmm.Context(system, openmm.VerletIntegrator(0.001), platform)

    def energy_and_forces(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the total energy and the forces, shape (n_atoms, 3)."""
        self.context.setPositions(x)
        state = self.context.getState(getEnergy=True, getForces=True)
        return state.getPotentialEnergy()._value, state.getForces(asNumpy=True)._value

    def energies(self, x: np.ndarray) -> dict[str, float]:
        """Return the energy of each term."""
        self.context.setPositions(x)
        found = dict.fromkeys(EnergyTerms._fields, 0.0)
        for group, term in enumerate(self.terms):
            if term is not None:
                found[term] += self.context.getState(getEnergy=True, groups={group}).getPotentialEnergy()._value
        return found


def configurations(n: int, seed: int = 0) -> np.ndarray:
    """Return perturbed configurations without clashes, shape (n, 22, 3), in nm."""
    coordinates = InternalCoordinates(packaged.bonds(), packaged.test_positions_nm())
    energy = alanine_dipeptide("vacuum").force_field.energy
    rows = coordinates.zmatrix.order
    turned = [2 * len(rows) - 3 + rows.index(atom) - 3 for atom in _torsion_atoms(coordinates)]
    rng = np.random.default_rng(seed)
    q = np.zeros((20 * n, coordinates.dim))
    q[:, turned] = rng.uniform(-np.pi, np.pi, (len(q), len(turned)))
    x = np.array(jax.jit(jax.vmap(lambda q: coordinates.to_positions(q)[0]))(jnp.asarray(q)))
    x += NOISE_NM * rng.normal(size=x.shape)
    good = np.asarray(jax.jit(jax.vmap(energy))(jnp.asarray(x))) < MAX_ENERGY
    if good.sum() < n:
        raise RuntimeError(f"Only {good.sum()} of {len(x)} configurations are below {MAX_ENERGY} kJ/mol.")
    return x[good][:n]


def _torsion_atoms(coordinates: InternalCoordinates) -> list[int]:
    """Return the atoms whose proper torsions are about the axes of φ and ψ."""
    z = coordinates.zmatrix
    axes = [set(packaged.PHI[1:3]), set(packaged.PSI[1:3])]
    return [
        atom
        for atom, parent, axis, is_proper in zip(z.order[3:], z.parent[2:], z.axis[1:], z.is_proper, strict=True)
        if is_proper and {parent, axis} in axes
    ]


def errors(environment: str, dtype: str, x: np.ndarray, reference: Reference) -> dict[str, float]:
    """Return the largest absolute error of each term, the total and the forces."""
    field = jax.tree.map(lambda a: a.astype(dtype), alanine_dipeptide(environment).force_field)
    positions = jnp.asarray(x, dtype)
    terms = jax.jit(lambda x: jax.vmap(field.terms)(x))(positions)
    forces = -np.asarray(jax.jit(lambda x: jax.vmap(jax.grad(field.energy))(x))(positions), np.float64)
    x = np.asarray(positions, np.float64)  # rounding positions is no error of ours
    expected = [reference.energies(one) for one in x]
    found = {
        name: float(np.abs(np.asarray(getattr(terms, name), np.float64) - [e[name] for e in expected]).max())
        for name in EnergyTerms._fields
    }
    totals, expected_forces = zip(*map(reference.energy_and_forces, x), strict=True)
    found["total"] = float(np.abs(np.asarray(terms.total(), np.float64) - totals).max())
    found["force"] = float(np.abs(forces - np.array(expected_forces)).max())
    found["largest_force"] = float(np.abs(np.array(expected_forces)).max())
    return found


def main() -> None:
    """Print the table and write it."""
    jax.config.update("jax_enable_x64", True)
    x = configurations(200)
    rows = []
    for environment in SOLVENT_FILES:
        system, source = openmm_system(environment)
        reference = Reference(system)
        for dtype in ("float64", "float32"):
            found = errors(environment, dtype, x, reference)
            rows.append({"environment": environment, "dtype": dtype, **found, "system": source})
    print("Largest absolute error over 200 configurations; energies in kJ/mol, forces in kJ/mol/nm.")
    for row in rows:
        print("  ".join(f"{k} {v:.1e}" if isinstance(v, float) else str(v) for k, v in row.items()))
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: f"{v:.3g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows)


if __name__ == "__main__":
    main()
