import itertools
import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cdsampler.errors import InvalidInputError
from cdsampler.targets import alanine_dipeptide
from cdsampler.targets._internal_coordinates import winding_log_window
from cdsampler.targets.molecules import (
    CartesianCoordinates,
    Molecule,
    TorsionalCoordinates,
    random_labels,
)
from cdsampler.targets.molecules import _alanine_dipeptide as packaged
from cdsampler.targets.molecules._molecule import chiral_volume

ENVIRONMENTS = ["vacuum", "implicit"]
KT = 0.008314462618 * 300
VACUUM_KJ_PER_MOL = -88.08858858  # at the packaged positions


@eqx.filter_jit
def energies(field, x):
    return jax.vmap(field.energy)(x)


@eqx.filter_jit
def coordinates_of(target, x):
    return jax.vmap(target.from_positions)(x)


@eqx.filter_jit
def log_densities(target, q):
    return jax.vmap(target.log_density)(q)


@pytest.fixture(scope="module")
def molecules():
    return {(e, c): alanine_dipeptide(e, c) for e in ENVIRONMENTS for c in ("internal", "cartesian")}


def test_both_coordinates_agree_on_energies(molecules, perturbed):
    x = perturbed(8)
    found = []
    for coordinates, dim in (("internal", 60), ("cartesian", 63)):
        target = molecules["vacuum", coordinates]
        assert target.dim == target.density().dim == dim
        q = coordinates_of(target, x)
        placed = jax.jit(jax.vmap(target.to_positions))(q)
        np.testing.assert_allclose(placed.mean(axis=1), 0, atol=1e-14)
        np.testing.assert_allclose(
            eqx.filter_jit(target.potential_energy)(q[0]), energies(target.force_field, placed)[0], rtol=1e-9
        )
        found.append(energies(target.force_field, placed))
    np.testing.assert_allclose(found[0], energies(target.force_field, x), rtol=1e-9)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9)


def test_names_say_environment_and_coordinates(molecules):
    assert [molecules[key].name for key in sorted(molecules)] == [
        "aldp-implicit-cartesian",
        "aldp-implicit",
        "aldp-cartesian",
        "aldp",
    ]


def test_log_density_in_cartesian_coordinates_is_minus_beta_u(molecules, perturbed):
    target, x = molecules["vacuum", "cartesian"], perturbed(8)
    q = coordinates_of(target, x)
    np.testing.assert_allclose(log_densities(target, q), -energies(target.force_field, x) / KT, rtol=1e-9)
    np.testing.assert_allclose(target.temperature_kelvin, 300, rtol=1e-12)


def test_log_density_in_internal_coordinates_adds_the_log_volume_and_the_window(molecules, perturbed):
    x, internal = perturbed(8), molecules["vacuum", "internal"].coordinates.internal
    target = Molecule("free", molecules["vacuum", "internal"].force_field, TorsionalCoordinates(internal))
    q = coordinates_of(target, x)
    q = q.at[:, -1].add(2 * jnp.pi * jnp.arange(8))  # the window says which winding
    log_volume = jax.jit(jax.vmap(lambda q: internal.to_positions(q)[1]))(q)
    window = jax.jit(jax.vmap(lambda q: winding_log_window(internal.split(q)[2], 1.5)))(q)
    added = log_densities(target, q) + energies(target.force_field, x) / KT
    np.testing.assert_allclose(added, log_volume + window, rtol=1e-9)
    assert np.ptp(log_volume) > 0.1
    assert np.ptp(window) > 10


def relabelled(x):
    """All 27 configurations that differ by cyclic permutations of each methyl group's hydrogens."""
    found = []
    for shifts in itertools.product(range(3), repeat=3):
        order = np.arange(22)
        for methyl, shift in zip(packaged.METHYLS, shifts, strict=True):
            order[list(methyl)] = np.roll(methyl, shift)
        found.append(np.asarray(x)[order])
    return jnp.asarray(np.stack(found))


@pytest.mark.parametrize("seed", [1, 2])
def test_weights_of_a_molecules_labels_sum_to_one(molecules, seed):
    target = molecules["vacuum", "internal"]
    free = Molecule("free", target.force_field, TorsionalCoordinates(target.coordinates.internal))
    noise = np.random.default_rng(seed).normal(scale=0.003, size=(22, 3))
    x = relabelled(packaged.minimum_positions_nm() + noise)
    q = coordinates_of(target, x)
    np.testing.assert_allclose(energies(target.force_field, x), energies(target.force_field, x[:1])[0], atol=1e-3)
    weight = np.exp(log_densities(target, q) - log_densities(free, q))
    np.testing.assert_allclose(weight.sum(), 1, rtol=1e-9)
    assert weight.max() > 0.9  # one of them has nearly all
    # Without the window on windings, all have the same density: volume elements agree, too.
    volumes = jax.jit(jax.vmap(lambda q: target.coordinates.internal.to_positions(q)[1]))(q)
    np.testing.assert_allclose(volumes, volumes[0], rtol=1e-9)


def test_random_labels_are_uniform_over_cyclic_permutations():
    methyl, n = packaged.METHYLS[0], 3000
    x = np.tile(packaged.test_positions_nm(), (n, 1, 1))
    permuted = random_labels(x, [methyl], np.random.default_rng(7))
    others = [i for i in range(22) if i not in methyl]
    np.testing.assert_array_equal(permuted[:, others], x[:, others])
    counts = [
        np.all(permuted[:, list(methyl)] == x[:, list(np.roll(methyl, shift))], axis=(1, 2)).sum() for shift in range(3)
    ]
    assert sum(counts) == n
    assert np.all(np.abs(np.array(counts) - n / 3) < 5 * np.sqrt(n * 2 / 9))


@pytest.mark.parametrize("rotor", [(0, 2), (0, 2, 5), (9, 10, 14), (6, 8, 10), (0, 2, 99)])
def test_atoms_that_are_no_rotor_are_refused(molecules, rotor):
    internal = molecules["vacuum", "internal"].coordinates.internal
    with pytest.raises(InvalidInputError, match="are not three that turn together on one parent"):
        TorsionalCoordinates(internal, [rotor])


def test_mirror_image_has_the_same_energy_and_a_penalty(molecules, perturbed, handedness):
    target = molecules["vacuum", "cartesian"]
    x = np.concatenate([packaged.minimum_positions_nm()[None], perturbed(7)])
    found = []
    for positions in (jnp.asarray(x), jnp.asarray(x * [1, 1, -1])):
        volume = jax.vmap(lambda x: chiral_volume(x, packaged.CHIRAL_CENTRE))(positions)
        energy = energies(target.force_field, positions)
        log_density = log_densities(target, coordinates_of(target, positions))
        found.append((volume, energy, -log_density - energy / KT))
    (volume, energy, penalty), (mirror_volume, mirror_energy, mirror_penalty) = found
    assert np.all(volume > 0)
    np.testing.assert_allclose(mirror_volume, -volume, rtol=1e-12)
    np.testing.assert_allclose(mirror_energy, energy, rtol=0, atol=handedness)
    np.testing.assert_allclose(penalty, 0, atol=1e-9)
    assert np.all(mirror_penalty > 30)


def test_no_chiral_centre_means_no_penalty(molecules):
    field = molecules["vacuum", "cartesian"].force_field
    target = Molecule("free", field, CartesianCoordinates(22))
    x = packaged.test_positions_nm() * [1, 1, -1]
    q = target.from_positions(jnp.asarray(x))
    np.testing.assert_allclose(target.log_density(q), -VACUUM_KJ_PER_MOL / KT, rtol=1e-7)


@pytest.mark.parametrize("coordinates", ["internal", "cartesian"])
def test_single_precision_is_near_double_and_stays_single(molecules, coordinates, perturbed):
    # One of each suffices: coordinates and solvent have nothing to do with each other.
    target = molecules["vacuum" if coordinates == "internal" else "implicit", coordinates]
    q = coordinates_of(target, perturbed(8)).astype("float32")
    single, double = target.density("float32"), target.density("float64")
    low = jax.jit(jax.vmap(single.value_and_gradient))(q)
    high = jax.jit(jax.vmap(double.value_and_gradient))(q.astype("float64"))
    # Bonds are stiffest: 5e5 kJ/mol/nm² · 0.01 nm (a stretch) · 6e-8 · 0.5 nm · some roundings · 21 bonds, over kT.
    np.testing.assert_allclose(low[0], high[0], rtol=0, atol=2e-2)
    np.testing.assert_allclose(low[1], high[1], rtol=0, atol=1e-4 * np.abs(high[1]).max())
    assert low[1].dtype == jnp.float32
    # Arrays of double precision inside would cost the speed; scalar constants don't.
    assert re.search(r"f64\[\d", str(jax.make_jaxpr(single.value_and_gradient)(q[0]))) is None


@pytest.mark.parametrize("temperature", [0.0, -300.0, np.nan, np.inf])
def test_temperatures_that_are_not_positive_are_refused(molecules, temperature):
    field = molecules["vacuum", "cartesian"].force_field
    with pytest.raises(InvalidInputError, match=f"temperature_kelvin must be positive, got {temperature}"):
        Molecule("bad", field, CartesianCoordinates(22), temperature_kelvin=temperature)


def test_unknown_environments_and_coordinates_are_refused():
    with pytest.raises(InvalidInputError, match=r"environment must be one of vacuum, implicit, got 'water'"):
        alanine_dipeptide("water")
    with pytest.raises(InvalidInputError, match=r"coordinates must be one of internal, cartesian, got 'polar'"):
        alanine_dipeptide(coordinates="polar")
