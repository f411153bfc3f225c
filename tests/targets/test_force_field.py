import dataclasses
import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import special_ortho_group

from cdsampler.errors import InvalidInputError
from cdsampler.targets.molecules import (
    ForceField,
    ForceFieldParameters,
    GeneralisedBornParameters,
)
from cdsampler.targets.molecules import _alanine_dipeptide as packaged

ENVIRONMENTS = ["vacuum", "implicit"]
# What OpenMM's Reference platform gives at the packaged positions, in kJ/mol.
TERMS = {"bond": 0.08618335, "angle": 1.51440033, "torsion": 8.05633541, "nonbonded": -97.74550767}
TOTALS = {"vacuum": -88.08858858, "implicit": -138.96968727}
CHAIN_NM = np.array([[0.1, 0.03, 0.02], [0.0, 0.0, 0.0], [0.02, 0.15, 0.0], [0.1, 0.15, 0.11]])


@eqx.filter_jit
def terms_of(field, x):
    return field.terms(x)


@eqx.filter_jit
def energies(field, x):
    return jax.vmap(field.energy)(x)


@eqx.filter_jit
def gradients(field, x):
    return jax.vmap(jax.value_and_grad(field.energy))(x)


@pytest.fixture(scope="module")
def fields():
    return {environment: ForceField(packaged.parameters(environment)) for environment in ENVIRONMENTS}


def parameters(**changed):
    """A bent chain of four atoms, with one interaction of each kind."""
    values = {
        "n_atoms": 4,
        "bond_atoms": [[0, 1]],
        "bond_length_nm": [0.1],
        "bond_stiffness": [1e5],
        "angle_atoms": [[0, 1, 2]],
        "angle_rad": [1.9],
        "angle_stiffness": [400.0],
        "torsion_atoms": [[0, 1, 2, 3]],
        "torsion_periodicity": [2],
        "torsion_phase_rad": [0.3],
        "torsion_barrier": [5.0],
        "pair_atoms": [[0, 3]],
        "pair_charge_product": [0.1],
        "pair_sigma_nm": [0.3],
        "pair_epsilon": [0.5],
    }
    return ForceFieldParameters(**{**values, **changed})


def solvent(n_atoms=4, **changed):
    ones = np.ones(n_atoms)
    values = {"charge": ones, "offset_radius_nm": 0.1 * ones, "scaled_radius_nm": 0.08 * ones}
    return GeneralisedBornParameters(**{**values, "tanh_coefficients": (0.8, 0.0, 2.909125), **changed})


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_terms_at_the_packaged_positions(fields, environment):
    terms = terms_of(fields[environment], jnp.asarray(packaged.test_positions_nm()))
    for name, expected in TERMS.items():
        np.testing.assert_allclose(getattr(terms, name), expected, atol=1e-6, rtol=0, err_msg=name)
    np.testing.assert_allclose(terms.total(), TOTALS[environment], atol=1e-6, rtol=0)
    assert (terms.solvation == 0) == (environment == "vacuum")


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_forces_are_those_of_finite_differences(fields, environment, perturbed):
    field = fields[environment]
    x = np.asarray(perturbed(1))[0]
    step = 1e-6 * np.eye(66).reshape(66, 22, 3)
    up, down = (np.asarray(energies(field, jnp.asarray(x + sign * step))) for sign in (1, -1))
    _, gradient = gradients(field, jnp.asarray(x[None]))
    # Rounding is 1e-13 of 1e3 kJ/mol over 2e-6 nm, and the third derivative of a bond about 1e8 kJ/mol/nm³.
    np.testing.assert_allclose(gradient.reshape(-1), (up - down) / 2e-6, atol=1e-3, rtol=1e-6)
    np.testing.assert_allclose(gradient[0].sum(axis=0), 0, atol=1e-8)
    np.testing.assert_allclose(np.cross(x, gradient[0]).sum(axis=0), 0, atol=1e-8)


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_rigid_motions_and_the_mirror_leave_the_energy_alone(fields, environment, perturbed, handedness):
    field = fields[environment]
    x = np.asarray(perturbed(1))[0]
    turned = x @ special_ortho_group.rvs(3, random_state=1)
    moved = np.stack([x, x + 7.0, turned, x * [1, 1, -1], 1.01 * x])
    found = np.asarray(energies(field, jnp.asarray(moved)))
    np.testing.assert_allclose(found[:3], found[0], rtol=1e-9)
    np.testing.assert_allclose(found[3], found[0], rtol=0, atol=handedness)
    assert abs(found[4] - found[0]) > 0.1  # swelling doesn't


def test_torsions_are_those_of_a_direct_formula():
    rng = np.random.default_rng(6)
    n = 40
    periods, phases = rng.integers(1, 7, n), rng.uniform(-np.pi, np.pi, n)
    barriers = rng.normal(scale=10, size=n)
    # Several terms share their atoms, and some name them backwards.
    choices = np.array([[0, 1, 2, 3], [3, 2, 1, 0], [1, 4, 2, 0], [5, 3, 1, 4]])
    atoms = choices[rng.integers(0, 4, n)]
    field = ForceField(
        parameters(
            n_atoms=6,
            torsion_atoms=atoms,
            torsion_periodicity=periods,
            torsion_phase_rad=phases,
            torsion_barrier=barriers,
        )
    )
    for _ in range(5):
        x = rng.normal(scale=0.15, size=(6, 3))
        a, b, c = (x[atoms[:, k + 1]] - x[atoms[:, k]] for k in range(3))
        m, k = np.cross(a, b), np.cross(b, c)
        sine = np.linalg.norm(b, axis=1) * np.sum(a * k, axis=1)
        angle = np.arctan2(sine, np.sum(m * k, axis=1))
        expected = np.sum(barriers * (1 + np.cos(periods * angle - phases)))
        np.testing.assert_allclose(terms_of(field, jnp.asarray(x)).torsion, expected, rtol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("first", [[-0.1, 0.0, 0.0], [0.25, 0.0, 0.0]])
def test_collinear_atoms_give_a_finite_energy_and_gradient(dtype, first):
    whole, plain = (
        jax.tree.map(lambda a: a.astype(dtype), ForceField(parameters(**changed)))
        for changed in ({}, {"angle_stiffness": [0.0], "torsion_barrier": [0.0]})
    )
    # Atoms 0, 1 and 2 on a line, stretched (an angle of π) or folded (0): the torsion is undefined.
    x = jnp.asarray([first, [0, 0, 0], [0.15, 0, 0], [0.15, 0.15, 0.02]], dtype)
    energy, gradient = jax.value_and_grad(whole.energy)(x)
    assert np.isfinite(energy)
    # A force without a direction is none.
    np.testing.assert_allclose(gradient, jax.grad(plain.energy)(x), rtol=1e-5, atol=1e-9)
    angle = np.pi if first[0] < 0 else 0.0
    np.testing.assert_allclose(whole.terms(x).angle, 0.5 * 400 * (angle - 1.9) ** 2, rtol=1e-5)


def test_bent_chain_has_the_energies_of_plain_formulas():
    x = CHAIN_NM
    terms = terms_of(ForceField(parameters()), jnp.asarray(x))
    length = np.linalg.norm(x[0] - x[1])
    np.testing.assert_allclose(terms.bond, 0.5e5 * (length - 0.1) ** 2, rtol=1e-10)
    cosine = (x[0] - x[1]) @ (x[2] - x[1]) / length / np.linalg.norm(x[2] - x[1])
    np.testing.assert_allclose(terms.angle, 200 * (np.arccos(cosine) - 1.9) ** 2, rtol=1e-10)
    r = np.linalg.norm(x[0] - x[3])
    expected = 138.93545764438198 * 0.1 / r + 2.0 * ((0.3 / r) ** 12 - (0.3 / r) ** 6)
    np.testing.assert_allclose(terms.nonbonded, expected, rtol=1e-10)


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_parameters_survive_a_file(environment, tmp_path):
    written = packaged.parameters(environment)
    path = tmp_path / "field.json"
    path.write_text(json.dumps(written.to_json()))
    read = ForceFieldParameters.load(path)
    pairs = [(written, read)] + ([(written.solvent, read.solvent)] if environment == "implicit" else [])
    for before, after in pairs:
        for field in dataclasses.fields(before):
            if field.name != "solvent":
                np.testing.assert_array_equal(getattr(before, field.name), getattr(after, field.name))
    assert (read.solvent is None) == (environment == "vacuum")
    assert read.pair_atoms.dtype == np.int64


@pytest.mark.parametrize("content", ["{", "[]", "3", '{"n_atoms": 2}', '{"colour": 1}'])
def test_files_of_something_else_are_refused(content, tmp_path):
    path = tmp_path / "field.json"
    path.write_text(content)
    with pytest.raises(InvalidInputError, match=r"Can't read force-field parameters from .*field\.json"):
        ForceFieldParameters.load(path)
    with pytest.raises(InvalidInputError, match=r"Can't read .*missing"):
        ForceFieldParameters.load(tmp_path / "missing")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"bond_atoms": [[0, 4]]}, "bond_atoms names atom 4: atoms are 0 to 3"),
        ({"pair_atoms": [[-1, 2]]}, "pair_atoms names atom -1: atoms are 0 to 3"),
        ({"angle_atoms": [[0, 1, 0]]}, r"angle_atoms names an atom twice in \[0, 1, 0\]"),
        ({"angle_atoms": [[0, 1]]}, r"angle_atoms must have shape \(n, 3\), got \(1, 2\)"),
        ({"bond_atoms": [[0, 1.5]]}, r"bond_atoms holds 1\.5: give whole numbers"),
        ({"torsion_periodicity": [1.5]}, r"torsion_periodicity holds 1\.5: give whole numbers"),
        ({"torsion_periodicity": [np.nan]}, "torsion_periodicity holds nan: give finite numbers"),
        ({"bond_stiffness": [np.inf]}, "bond_stiffness holds inf: give finite numbers"),
        ({"bond_length_nm": ["long"]}, "bond_length_nm must be an array of numbers"),
        (
            {"pair_epsilon": [0.1, 0.2]},
            r"pair_epsilon must have 1 entries, one for each of pair_atoms, got shape \(2,\)",
        ),
        ({"torsion_barrier": []}, "torsion_barrier must have 1 entries, one for each of torsion_atoms"),
        ({"angle_rad": [[1.9]]}, r"angle_rad must have 1 entries, one for each of angle_atoms, got shape \(1, 1\)"),
        ({"solvent": solvent(3)}, "The solvent has 3 atoms and the molecule 4"),
    ],
)
def test_bad_parameters_are_refused(changed, message):
    with pytest.raises(InvalidInputError, match=message):
        parameters(**changed)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"charge": [np.nan] * 4}, "charge holds nan"),
        (
            {"scaled_radius_nm": np.ones(3)},
            r"scaled_radius_nm must have one entry per charge, shape \(4,\), got \(3,\)",
        ),
        ({"offset_radius_nm": np.zeros(4)}, r"offset_radius_nm must be positive, got 0\.0"),
    ],
)
def test_bad_solvents_are_refused(changed, message):
    with pytest.raises(InvalidInputError, match=message):
        solvent(**changed)


@pytest.mark.parametrize("periodicity", [0, 7])
def test_other_periodicities_are_refused(periodicity):
    with pytest.raises(InvalidInputError, match=f"periodicity from 1 to 6, got {periodicity} to {periodicity}"):
        ForceField(parameters(torsion_periodicity=[periodicity]))
    # Without a barrier there is nothing to compute.
    ForceField(parameters(torsion_periodicity=[periodicity], torsion_barrier=[0.0]))
