import sys
import warnings
from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cdsampler.errors import InvalidInputError, MissingExtraError
from cdsampler.targets.molecules import EnergyTerms, ForceField, InternalCoordinates, parameters_from_openmm
from cdsampler.targets.molecules import _alanine_dipeptide as packaged
from cdsampler.targets.molecules._to_openmm import alanine_dipeptide_topology

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of its own making, if any
    openmm = pytest.importorskip("openmm")
    app = pytest.importorskip("openmm.app")
    customgbforces = pytest.importorskip("openmm.app.internal.customgbforces")

SOLVENTS = {"vacuum": [], "obc1": ["implicit/obc1.xml"], "obc2": ["implicit/obc2.xml"]}
TERMS = {
    "HarmonicBondForce": "bond",
    "HarmonicAngleForce": "angle",
    "PeriodicTorsionForce": "torsion",
    "NonbondedForce": "nonbonded",
    "CustomGBForce": "solvation",
    "GBSAOBCForce": "solvation",
}


def system_of(*files, **options):
    settings = {"nonbondedMethod": app.NoCutoff, "constraints": None, "rigidWater": False, **options}
    return app.ForceField("amber96.xml", *files).createSystem(alanine_dipeptide_topology(), **settings)


@cache
def configurations(n=50):
    """Configurations with all φ, ψ and some of everything else, in nm; moderate clashes are welcome."""
    coordinates = InternalCoordinates(packaged.bonds(), packaged.test_positions_nm())
    rng = np.random.default_rng(0)
    q = rng.normal(scale=[0.02] * 21 + [0.1] * 20 + [0.5] * 19, size=(n, 60))
    return np.asarray(jax.jit(jax.vmap(lambda q: coordinates.to_positions(q)[0]))(jnp.asarray(q)))


@eqx.filter_jit
def ours(field, x):
    return jax.vmap(field.terms)(x), jax.vmap(jax.value_and_grad(field.energy))(x)


def reference(system, positions):
    """Energies by term, shape (n,), and forces, shape (n, n_atoms, 3), on the Reference platform."""
    names = []
    for group, force in enumerate(system.getForces()):
        force.setForceGroup(group)
        names.append(TERMS.get(type(force).__name__))
    platform = openmm.Platform.getPlatformByName("Reference")
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), platform)
    energies = {name: np.zeros(len(positions)) for name in [*EnergyTerms._fields, "total"]}
    forces = np.zeros_like(positions)
    for k, x in enumerate(positions):
        context.setPositions(x)
        for group, name in enumerate(names):
            energy = context.getState(getEnergy=True, groups={group}).getPotentialEnergy()
            if name is None:
                assert energy._value == 0
            else:
                energies[name][k] += energy._value
        state = context.getState(getEnergy=True, getForces=True)
        energies["total"][k] = state.getPotentialEnergy()._value
        forces[k] = state.getForces(asNumpy=True)._value
    return energies, forces


def assert_same(system):
    x = configurations()
    terms, (total, gradient) = ours(ForceField(parameters_from_openmm(system)), jnp.asarray(x))
    energies, forces = reference(system, x)
    for name in EnergyTerms._fields:
        expected = energies[name]
        np.testing.assert_allclose(getattr(terms, name), expected, rtol=0, atol=1e-3, err_msg=name)
    np.testing.assert_allclose(total, energies["total"], rtol=0, atol=1e-3)
    np.testing.assert_allclose(-gradient, forces, rtol=0, atol=0.02)
    return terms, energies


@pytest.mark.parametrize("solvent", SOLVENTS)
def test_converted_systems_have_openmm_energies_and_forces(solvent):
    terms, energies = assert_same(system_of(*SOLVENTS[solvent]))
    for name in ("bond", "angle", "torsion", "nonbonded"):
        assert np.ptp(energies[name]) > 10  # kJ/mol: configurations differ in all terms
    assert np.all((terms.solvation == 0) == (solvent == "vacuum"))


def custom_solvent(kind, **options):
    """The molecule with the solvent force that OpenMM makes for Amber's own files."""
    solvent = packaged.parameters("implicit").solvent
    force = getattr(customgbforces, kind)(**options)
    for charge, offset, scaled in zip(solvent.charge, solvent.offset_radius_nm, solvent.scaled_radius_nm, strict=True):
        force.addParticle([charge, offset + 0.009, scaled / offset])
    force.finalize()
    system = system_of()
    system.addForce(force)
    return system


@pytest.mark.parametrize("kind", ["GBSAOBC1Force", "GBSAOBC2Force"])
@pytest.mark.parametrize("surface", [None, "ACE"])
def test_solvents_of_amber_files_are_converted(kind, surface):
    system = custom_solvent(kind, SA=surface, solventDielectric=40.0, soluteDielectric=2.0)
    assert (parameters_from_openmm(system).solvent.surface_energy == 0) == (surface is None)
    assert_same(system)


def test_solvents_with_another_term_or_self_energy_are_refused():
    system = custom_solvent("GBSAOBC2Force", SA="ACE")
    force = system.getForce(system.getNumForces() - 1)
    force.addEnergyTerm("B", force.SingleParticle)
    with pytest.raises(InvalidInputError, match="CustomGBForce that is not an OBC model"):
        parameters_from_openmm(system)
    system = custom_solvent("GBSAOBC2Force", SA="ACE")
    force = system.getForce(system.getNumForces() - 1)
    expression, kind = force.getEnergyTermParameters(0)
    force.setEnergyTermParameters(0, expression.replace("charge^2", "charge^4"), kind)
    with pytest.raises(InvalidInputError, match="CustomGBForce that is not an OBC model"):
        parameters_from_openmm(system)


def test_obc1_and_obc2_are_told_apart():
    x = jnp.asarray(packaged.test_positions_nm())
    one, two = (
        ForceField(parameters_from_openmm(system_of(*SOLVENTS[name]))).terms(x).solvation for name in ("obc1", "obc2")
    )
    assert abs(one - two) > 1


@pytest.mark.parametrize("solvent", ["vacuum", "obc1"])
def test_packaged_parameters_are_those_of_amber96(solvent):
    system = system_of(*SOLVENTS[solvent])
    packaged_field = ForceField(packaged.parameters("vacuum" if solvent == "vacuum" else "implicit"))
    x = configurations()
    x = np.concatenate([packaged.test_positions_nm()[None], x[1:]])
    energies, _ = reference(system, x)
    terms, (total, _) = ours(packaged_field, jnp.asarray(x))
    # Files round differently.
    # Files round differently: at the packaged positions by so much, elsewhere in proportion to the energies.
    np.testing.assert_allclose(total[0], energies["total"][0], rtol=0, atol=2e-4)
    for name in EnergyTerms._fields:
        np.testing.assert_allclose(getattr(terms, name), energies[name], rtol=1e-5, atol=1e-2, err_msg=name)


@pytest.mark.parametrize("surface", [0.0, 2.25936])
def test_native_solvent_is_converted(surface):
    system = system_of()
    charges = packaged.parameters("implicit").solvent
    force = openmm.GBSAOBCForce()
    force.setSolventDielectric(60.0)
    force.setSoluteDielectric(1.5)
    force.setSurfaceAreaEnergy(surface)
    for charge, offset, scaled in zip(charges.charge, charges.offset_radius_nm, charges.scaled_radius_nm, strict=True):
        force.addParticle(charge, offset + 0.009, scaled / offset)
    system.addForce(force)
    terms, _ = assert_same(system)
    assert np.all(np.abs(terms.solvation) > 10)


def test_forces_without_a_term_and_empty_systems_are_fine():
    system = openmm.System()
    for _ in range(2):
        system.addParticle(1.0)
    field = ForceField(parameters_from_openmm(system))
    assert field.energy(jnp.zeros((2, 3)) + jnp.asarray([[0.0], [1.0]])) == 0
    system.addForce(openmm.CMMotionRemover())
    parameters_from_openmm(system)


@pytest.mark.parametrize("kind", ["CustomBondForce", "CMAPTorsionForce", "RBTorsionForce", "CustomExternalForce"])
def test_unsupported_forces_are_named(kind):
    system = system_of()
    expression = {"CustomBondForce": ["r^2"], "CustomExternalForce": ["x^2"]}.get(kind, [])
    system.addForce(getattr(openmm, kind)(*expression))
    with pytest.raises(InvalidInputError, match=f"a {kind}, which is not supported: only HarmonicBondForce"):
        parameters_from_openmm(system)


def test_constraints_are_refused():
    with pytest.raises(InvalidInputError, match="has 12 constraints: create it with constraints=None"):
        parameters_from_openmm(system_of(constraints=app.HBonds))


def test_virtual_sites_are_refused():
    system = openmm.System()
    for mass in (1.0, 1.0, 0.0):
        system.addParticle(mass)
    system.setVirtualSite(2, openmm.TwoParticleAverageSite(0, 1, 0.5, 0.5))
    with pytest.raises(InvalidInputError, match="virtual sites"):
        parameters_from_openmm(system)


def test_cutoffs_and_periodic_boxes_are_refused():
    with pytest.raises(InvalidInputError, match="NonbondedForce has a cut-off: create the system with nonbondedMethod"):
        parameters_from_openmm(system_of(nonbondedMethod=app.CutoffNonPeriodic))
    system = system_of()
    for force in system.getForces():
        if isinstance(force, openmm.NonbondedForce):
            force.setNonbondedMethod(force.CutoffPeriodic)
    with pytest.raises(InvalidInputError, match="NonbondedForce uses periodic boundary conditions"):
        parameters_from_openmm(system)
    system = system_of()
    system.getForces()[0].setUsesPeriodicBoundaryConditions(True)
    with pytest.raises(InvalidInputError, match="uses periodic boundary conditions"):
        parameters_from_openmm(system)


def test_native_solvent_with_a_cutoff_is_refused():
    system = system_of()
    force = openmm.GBSAOBCForce()
    for _ in range(22):
        force.addParticle(0.0, 0.15, 0.8)
    force.setNonbondedMethod(force.CutoffNonPeriodic)
    system.addForce(force)
    with pytest.raises(InvalidInputError, match="GBSAOBCForce has a cut-off"):
        parameters_from_openmm(system)


@pytest.mark.parametrize("model", ["gbn", "gbn2", "hct"])
def test_other_solvents_are_refused(model):
    system = system_of(f"implicit/{model}.xml")
    with pytest.raises(InvalidInputError, match=r"CustomGBForce that is not an OBC model .* implicit/obc1\.xml"):
        parameters_from_openmm(system)


def test_salt_is_refused():
    system = system_of("implicit/obc2.xml", implicitSolventKappa=1.0)
    with pytest.raises(InvalidInputError, match="has a salt concentration"):
        parameters_from_openmm(system)


def test_two_solvents_are_refused():
    system = system_of("implicit/obc1.xml")
    force = openmm.GBSAOBCForce()
    for _ in range(22):
        force.addParticle(0.0, 0.15, 0.8)
    system.addForce(force)
    with pytest.raises(InvalidInputError, match="has 2 solvent forces: one is supported"):
        parameters_from_openmm(system)


def test_parameter_offsets_are_refused():
    system = system_of()
    (force,) = (force for force in system.getForces() if isinstance(force, openmm.NonbondedForce))
    force.addGlobalParameter("scale", 1.0)
    force.addParticleParameterOffset("scale", 0, 0.1, 0.0, 0.0)
    with pytest.raises(InvalidInputError, match="parameter offsets"):
        parameters_from_openmm(system)


@pytest.mark.parametrize("module", ["openmm", "openmm.unit"])
def test_missing_openmm_names_the_extra(monkeypatch, module):
    system = openmm.System()
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'cdsampler\[molecules\]'"):
        parameters_from_openmm(system)
