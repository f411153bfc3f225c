"""What metrics get of targets that can't be sampled exactly: pools of rows, their symmetries and their metrics."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cdsampler.benchmark import _symmetries as symmetries
from cdsampler.benchmark import backbone_angles, build_target, exact_reference, metric_rows, starting_point
from cdsampler.benchmark.references import Reference, load_reference
from cdsampler.errors import InvalidInputError
from cdsampler.metrics import FloorRepeats, evaluate, kabsch_distances, negative_log_likelihoods
from cdsampler.targets import AbstractTarget, bayesian_neural_network
from cdsampler.targets.molecules._alanine_dipeptide import METHYLS

QUICK = FloorRepeats(transport=2, cheap=4)
ENERGIES = {"mmd_squared_energy", "energy_total_variation", "energy_wasserstein_1", "relative_mae"}
KABSCH = {"kabsch_wasserstein_2", "kabsch_wasserstein_1"}


def pool_of(name, samples, log_weights=None):
    return Reference(name, np.asarray(samples, np.float32), log_weights, True, 1.0, {"method": "made up"})


def by_name(rows, reference, seed=0):
    return {value.name: value for value in evaluate(rows, reference, floor_repeats=QUICK, seed=seed)}


def log_densities(target, points):
    density = target.density()
    return np.asarray(jax.jit(jax.vmap(lambda y: density.value(y)[0]))(jnp.asarray(points)))


@pytest.fixture(scope="module")
def cluster():
    return build_target("lj-13")


@pytest.fixture(scope="module")
def clusters(cluster):
    return starting_point(cluster) + 0.05 * np.random.default_rng(1).standard_normal((400, cluster.dim))


@pytest.fixture(scope="module")
def cluster_reference(cluster, clusters):
    return exact_reference(cluster, pool_of("lj-13", metric_rows(cluster, clusters[:300])))


class TestCluster:
    def test_draws_are_copies_of_different_rows_by_symmetries(self, cluster, clusters, cluster_reference):
        expected = log_densities(cluster, clusters[:300])
        rows = cluster_reference.draw(3, 300)
        assert cluster_reference.size == 300
        np.testing.assert_allclose(np.sort(-cluster_reference.energies(rows)), np.sort(expected), atol=1e-3)
        np.testing.assert_array_equal(rows, cluster_reference.draw(3, 300))
        half = np.sort(cluster_reference.energies(cluster_reference.draw(4, 150)))
        assert np.diff(half).min() > 1e-6  # no row twice
        np.testing.assert_allclose(rows.reshape(300, 13, 3).mean(axis=1), 0, atol=1e-6)
        # Labels and orientations are lost: the pool's rows are near each other, those of a draw aren't.
        assert kabsch_distances(metric_rows(cluster, clusters[:20]), metric_rows(cluster, clusters[20:40])).max() < 0.2
        assert np.median(kabsch_distances(rows[:20], rows[20:40])) > 0.8

    def test_metrics_are_those_of_identical_particles(self, cluster, clusters, cluster_reference):
        rows = symmetries.of_cluster(np.random.default_rng(5), metric_rows(cluster, clusters[300:]))
        values = by_name(rows, cluster_reference)
        own = {"sorted_radius_wasserstein_2", "pair_distance_total_variation"}
        assert set(values) == ENERGIES | KABSCH | own
        for name in own | {"energy_wasserstein_1", "kabsch_wasserstein_2"}:
            assert values[name].ratio < 2.5, name
        swollen = by_name(1.1 * rows, cluster_reference)
        for name in own | {"energy_wasserstein_1"}:
            assert swollen[name].ratio > 3, name


@pytest.fixture(scope="module")
def pool():
    return load_reference("aldp")


@pytest.fixture(scope="module")
def internal(pool):
    return exact_reference(build_target("aldp"), pool)


def fixed_atoms(rows):
    """Rows without the hydrogens whose labels are random."""
    moving = [atom for methyl in METHYLS for atom in methyl]
    return np.delete(np.asarray(rows).reshape(len(rows), 22, 3), moving, axis=1).reshape(len(rows), -1)


class TestMolecule:
    def test_internal_coordinates_have_one_orientation_for_each_shape(self, pool, internal):
        target = build_target("aldp")
        rows = internal.draw(1, 200)
        q = jax.vmap(lambda row: target.from_positions(row.reshape(-1, 3)))(jnp.asarray(rows))
        np.testing.assert_allclose(fixed_atoms(metric_rows(target, np.asarray(q))), fixed_atoms(rows), atol=1e-6)
        every = internal.draw(0, len(pool.samples))
        distances = kabsch_distances(fixed_atoms(every[:5]), fixed_atoms(pool.samples))
        np.testing.assert_allclose(distances.min(axis=1), 0, atol=1e-5)  # the same shapes, and the same hand
        assert internal.energies(every).mean() == pytest.approx(pool.provenance["energy_mean"], abs=0.02)
        log_density = internal.log_density(every[:10])
        np.testing.assert_allclose(log_density, -internal.energies(every[:10]) / (0.008314462618 * 300))

    def test_cartesian_coordinates_are_turned_at_random(self, pool, internal):
        cartesian = exact_reference(build_target("aldp-cartesian"), pool)
        rows, others = cartesian.draw(2, 500), internal.draw(2, 500)
        np.testing.assert_allclose(cartesian.energies(rows), internal.energies(others), atol=1e-2)
        np.testing.assert_allclose(
            np.diag(kabsch_distances(fixed_atoms(rows[:50]), fixed_atoms(others[:50]))), 0, atol=1e-5
        )
        bond = rows.reshape(500, 22, 3)[:, 8] - rows.reshape(500, 22, 3)[:, 6]
        directions = bond / np.linalg.norm(bond, axis=1, keepdims=True)
        # Each component of a uniform direction has variance 1/3.
        assert np.abs(directions.mean(axis=0)).max() < 4 / np.sqrt(3 * 500)

    def test_metrics_are_those_of_molecules(self, pool, internal):
        values = by_name(internal.draw(7, 400), internal)
        own = {"ramachandran_kl", "ramachandran_kl_published", "free_energy_rmse"}
        assert set(values) == ENERGIES | KABSCH | own | {"c7ax_weight"}
        for name in own | KABSCH | {"energy_wasserstein_1"}:
            assert values[name].ratio < 2.5, name
        weight = values["c7ax_weight"]
        assert weight.ratio is None
        exact = pool.provenance["weight_of_positive_phi"]
        assert weight.floor.mean == pytest.approx(exact, abs=4 * np.sqrt(exact / (400 * 8)))

    def test_the_other_basin_alone_is_seen_by_every_metric(self, internal):
        every = internal.draw(0, internal.size)
        basin = every[backbone_angles(every)[:, 0] > 0]
        values = by_name(basin[np.arange(300) % len(basin)], internal)
        assert values["c7ax_weight"].value == 1
        for name in ("kabsch_wasserstein_2", "ramachandran_kl", "ramachandran_kl_published", "free_energy_rmse"):
            assert values[name].value > values[name].floor.mean + 3 * values[name].floor.std, name
        assert values["ramachandran_kl"].ratio > 4


@pytest.fixture(scope="module")
def network():
    return bayesian_neural_network()


@pytest.fixture(scope="module")
def parameters(network):
    noise = np.random.default_rng(2).standard_normal((240, network.dim))
    return np.asarray(network.true_parameters) + 0.01 * noise


class TestNetwork:
    def test_hidden_units_are_relabelled_without_a_change(self, network, parameters):
        turned = symmetries.of_network(np.random.default_rng(1), parameters)
        np.testing.assert_allclose(log_densities(network, turned), log_densities(network, parameters), rtol=1e-9)
        assert np.linalg.norm(turned - parameters, axis=1).min() > 10

    def test_likelihoods_stand_beside_those_of_the_reference(self, network, parameters):
        reference = exact_reference(network, pool_of("bnn", parameters[:160]))
        values = by_name(parameters[160:], reference)
        assert set(values) == ENERGIES | {"wasserstein_2", "wasserstein_1", "mean_nll", "predictive_nll"}
        direct = negative_log_likelihoods(network.test_log_likelihood(jnp.asarray(parameters[160:])))
        for name in ("mean_nll", "predictive_nll"):
            value = values[name]
            assert value.value == pytest.approx(getattr(direct, name), rel=1e-9)
            assert abs(value.value - value.floor.mean) < 6 * value.floor.std
            assert (value.ratio, value.is_error) == (None, False)
        prior = by_name(np.random.default_rng(3).standard_normal((80, network.dim)), reference)
        assert prior["mean_nll"].value > 10 * abs(prior["mean_nll"].floor.mean)


def test_rows_of_other_targets_are_their_positions():
    x = np.random.default_rng(1).standard_normal((5, 2)).astype(np.float32)
    rows = metric_rows(build_target("gm-2"), x)
    assert rows.dtype == np.float64
    np.testing.assert_array_equal(rows, x)


def test_what_has_no_reference_says_so():
    class Other(AbstractTarget):
        name: str = "other"
        dim: int = 2

        def density(self, dtype=None):
            raise NotImplementedError

    with pytest.raises(InvalidInputError, match="no reference for other"):
        exact_reference(Other())
    pool = dataclasses.replace(pool_of("bnn", np.zeros((8, 550))), log_weights=np.zeros(8))
    with pytest.raises(InvalidInputError, match="bnn has weights"):
        exact_reference(bayesian_neural_network(), pool)
