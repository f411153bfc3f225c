"""Annealed particles: weights, whole-point resampling, log Z, schedules along a curve, and groups."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cdsampler.density import LogDensity
from cdsampler.errors import InvalidInputError
from cdsampler.kernels import MALA, RandomWalk
from cdsampler.paths import FlatReference, PriorReference, geometric_schedule, linear_schedule
from cdsampler.samplers import SMC, SMCStatistics, _smc, annealing_diagnostics
from cdsampler.samplers._resampling import RESAMPLING, select, systematic_on_host
from cdsampler.sampling import run
from cdsampler.sampling._warnings import annealing_warnings
from cdsampler.tuning import adapt, tune_smc

BETAS = linear_schedule(9)


@pytest.fixture(scope="module")
def target(gaussian_path):
    """Reference N(0, 4 I), target N((1.5, -1), .36 I) with log Z known."""
    return gaussian_path(scale=2.0, mean=[1.5, -1.0], sd=0.6, constant=0.7)


def smc(target, betas=BETAS, **settings):
    return SMC(target.reference(), betas, MALA(0.2), **{"n_particles": 20, "n_moves": 2, **settings})


@pytest.mark.parametrize("name", RESAMPLING)
def test_resampling_gives_every_particle_its_share(name):
    weights = np.array([0.0, 0.1, 0.45, 0.05, 0.4, 0.0])
    with np.errstate(divide="ignore"):
        log_weights = jnp.asarray(np.log(weights)) + 3
    keys = jax.random.split(jax.random.key(0), 4000)
    chosen = np.asarray(jax.vmap(lambda key: RESAMPLING[name](key, log_weights))(keys))
    counts = np.stack([(chosen == i).sum(axis=1) for i in range(6)], axis=1)
    assert counts[:, [0, 5]].max() == 0
    error = counts.std(axis=0)[1:5] / np.sqrt(4000) + 1e-9
    assert np.all(np.abs(counts.mean(axis=0) - 6 * weights)[1:5] < 5 * error)
    if name == "systematic":
        assert np.all(np.abs(counts - 6 * weights) < 1)


def test_no_rounding_selects_a_particle_of_weight_zero():
    log_weights = jnp.log(jnp.asarray([0.0, 1.0, 1e-30, 0.0], jnp.float32))
    edges = jnp.asarray([0.0, 0.5, np.nextafter(np.float32(1), np.float32(0))], jnp.float32)
    assert set(np.asarray(select(edges, log_weights))) == {1}
    assert list(np.asarray(select(edges, jnp.full(3, -jnp.inf)))) == [0, 1, 2]  # none is better than another
    rng = np.random.default_rng(0)
    assert set(systematic_on_host(rng, np.array([-np.inf, 0.0, -np.inf]), 50)) == {1}
    assert sorted(systematic_on_host(rng, np.zeros(7), 7)) == list(range(7))


def log_z_and_error(sampler, target, n=4000, seed=0):
    result = run(sampler, target.density(), n, anchor=target.anchor, seed=seed)
    return result, result.annealing


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"ess_threshold": 1.0},
        {"resampling": "multinomial", "ess_threshold": 1.0},
        {"ess_threshold": 0.0},
        {"n_particles": 1},
    ],
    ids=str,
)
def test_log_z_and_moments_are_the_targets(target, settings):
    result, annealing = log_z_and_error(smc(target, **settings), target)
    assert annealing.log_z == pytest.approx(target.log_z, abs=4 * annealing.standard_error)
    assert annealing.standard_error < 0.05
    # Groups are independent, so that the error of a weighted mean is known from them.
    n_groups = annealing.n_groups
    groups = result.weighted.positions.reshape(n_groups, -1, 2)
    z = np.exp(result.weighted.log_weights.reshape(n_groups, -1)[:, 0] - annealing.log_z)
    resampled = 0.6 / np.sqrt(4000)
    for moment, truth in ((groups, target.mean), ((groups - target.mean) ** 2, [0.36, 0.36])):
        deviation = (moment.mean(axis=1) - np.asarray(truth)) * z[:, None]
        error = deviation.std(axis=0) / np.sqrt(n_groups)
        assert np.all(np.abs(deviation.mean(axis=0)) < 4 * error)
    mean_error = np.abs(result.positions.mean(axis=0) - target.mean)
    assert np.all(mean_error < 5 * np.hypot(resampled, 0.6 / np.sqrt(annealing.effective_groups)))


def test_a_cache_left_behind_is_seen(target, monkeypatch):
    """The control: with stale log densities, weights and moves belong to other particles."""
    true_map = _smc.jax.tree.map

    def stale(f, tree, *rest):
        if isinstance(tree, tuple) and len(tree) == 2 and not rest and hasattr(tree[0], "log_ratio"):
            moved = true_map(f, tree)
            return tree[0]._replace(position=moved[0].position), moved[1]
        return true_map(f, tree, *rest)

    # A number of particles of its own, so that the broken program isn't served to other tests, nor theirs here.
    sampler = smc(target, betas=linear_schedule(4), ess_threshold=1.0, n_moves=1, n_particles=21)

    def off(seed):
        result = run(sampler, target.density(), 8001, anchor=target.anchor, seed=seed)
        return abs(result.annealing.log_z - target.log_z) / result.annealing.standard_error

    monkeypatch.setattr(_smc.jax.tree, "map", stale)
    broken = off(0)
    monkeypatch.undo()
    jax.clear_caches()
    assert off(0) < 4
    assert broken > 8


def test_final_points_carry_their_own_densities(target):
    result = run(smc(target), target.density(), 200, anchor=target.anchor)
    fresh = [float(target.density().value(jnp.asarray(y))[0]) for y in result.positions[:20]]
    np.testing.assert_allclose(result.log_density[0, :20], fresh, rtol=1e-12)


def test_one_particle_of_each_group_is_returned_with_its_groups_cost(target):
    sampler = smc(target, returns="one")
    result = run(sampler, target.density(), 300, anchor=target.anchor)
    assert result.samples.shape == (300, 1, 2)
    assert result.weighted is None
    assert result.evaluations_per_sample == sampler.cost() == 20 + 8 * 2 * 20
    assert result.annealing.log_z == pytest.approx(target.log_z, abs=4 * result.annealing.standard_error)
    particles = run(smc(target), target.density(), 300, anchor=target.anchor)
    assert particles.evaluations_per_sample == sampler.cost()
    assert particles.evaluations_per_returned_sample == pytest.approx(sampler.cost() / 20)


def test_any_number_of_samples_is_returned_exactly(target):
    result = run(smc(target), target.density(), 47, anchor=target.anchor)
    assert result.samples.shape == (1, 47, 2)
    assert result.evaluations.count.shape == (3,)
    assert result.to_inference_data().posterior["x"].shape == (1, 47, 2)
    with pytest.raises(InvalidInputError, match="n_samples is 19, and SMC makes 20 particles at once"):
        run(smc(target), target.density(), 19, anchor=target.anchor)


def test_a_budget_sets_the_number_of_temperatures_along_the_curve(target):
    sampler = smc(target, betas=geometric_schedule(40, 1e-3))
    shorter = sampler.with_budget(20 + 5 * 40)
    assert int(shorter.n_steps) == 5
    betas, _ = shorter.schedule()
    assert len(betas) == 6
    assert betas[0] == 0
    assert betas[-1] == 1
    assert np.all(np.diff(betas) > 0)
    np.testing.assert_allclose(sampler.schedule()[0], sampler.betas)
    with pytest.raises(InvalidInputError, match="needs at least 60"):
        sampler.with_budget(59)


def test_tuning_makes_divergences_equal_and_counts_what_it_costs(target):
    untuned = smc(target, betas=geometric_schedule(40, 1e-6))
    tuned, cost = tune_smc(untuned, untuned, target.density(), target.anchor, jax.random.key(0), n_rounds=3)
    assert cost.count == 3 * 256 + (16 + 32 + 64) * 2 * 256
    assert tuned.n_particles == untuned.n_particles
    again, more = adapt(untuned, target.density(), target.anchor, jax.random.key(1))
    assert more.count > cost.count

    def spread(sampler):
        """Standard error of log Z of short ladders along the sampler's curve."""
        result = run(sampler.with_steps(6), target.density(), 4000, anchor=target.anchor, seed=3)
        return result.annealing.standard_error, result.annealing.acceptance

    before, (after, acceptance) = spread(untuned)[0], spread(tuned)
    assert after < 0.6 * before
    assert 0.4 < acceptance < 0.75
    np.testing.assert_allclose(again.schedule()[0][3], tuned.schedule()[0][3], rtol=0.3)


def test_diagnostics_tell_degenerate_weights_and_lost_ancestors():
    z = np.zeros(100)
    z[0] = 50.0
    ones = np.ones(100)
    bad = annealing_diagnostics(SMCStatistics(z, ones, ones, ones, ones), 10)
    assert bad.effective_groups == pytest.approx(1, rel=1e-6)
    assert bad.log_z == pytest.approx(50 - np.log(100))
    assert {w.code for w in annealing_warnings(bad)} == {"weights-degenerate", "few-ancestors"}
    good = annealing_diagnostics(SMCStatistics(np.zeros(100), ones, ones, 5 * ones, ones), 10)
    assert annealing_warnings(good) == []
    assert good.standard_error == 0
    assert np.isnan(annealing_diagnostics(SMCStatistics(*(np.ones(1),) * 5), 10).standard_error)


def test_a_group_that_never_finds_the_support_says_so(target):
    nowhere = LogDensity(lambda y: jnp.where(y[0] > 1e6, 0.0, -jnp.inf), 2)
    result = run(smc(target), nowhere, 40, anchor=np.zeros(2))
    assert result.annealing.log_z == -np.inf
    assert "outside-support" in {w.code for w in result.warnings}


def test_a_prior_is_a_reference_and_log_z_the_evidence():
    """y ~ N(0, 1), datum 1 ~ N(y, 1): the evidence is N(1; 0, 2)."""
    log_norm = 0.5 * np.log(2 * np.pi)
    prior = PriorReference(
        lambda y: -0.5 * jnp.sum(y**2) - log_norm, lambda key: jax.random.normal(key, (1,), jnp.float64)
    )
    posterior = LogDensity(lambda y: -0.5 * jnp.sum(y**2) - 0.5 * jnp.sum((1 - y) ** 2) - 2 * log_norm, 1)
    sampler = SMC(prior, BETAS, RandomWalk(1.0), n_particles=20)
    result = run(sampler, posterior, 4000, anchor=np.full(1, 17.0))
    assert int(result.evaluations.total().gradient) == 0
    evidence = -0.25 - 0.5 * np.log(4 * np.pi)
    assert result.annealing.log_z == pytest.approx(evidence, abs=4 * result.annealing.standard_error)
    assert result.positions.mean() == pytest.approx(0.5, abs=5 * np.sqrt(0.5 / 1000))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reference": FlatReference(), "betas": [0.1, 1.0]}, "A flat reference can't be drawn from"),
        ({"n_particles": 0}, "at least 1 particle and 1 move, got 0 and 2"),
        ({"n_moves": 0}, "at least 1 particle and 1 move, got 20 and 0"),
        ({"ess_threshold": 1.5}, r"ess_threshold must lie in \[0, 1\], got 1.5"),
        ({"resampling": "stratified"}, "resampling must be one of 'systematic', 'multinomial', got 'stratified'"),
        ({"returns": "one", "n_particles": 1}, "returns='one' leaves out the groups' weights"),
        ({"kernel": MALA([0.1, 0.2])}, "step sizes of shape"),
        ({"betas": [0.0, 0.5]}, "end at 1"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_does_not_go_together_is_refused(target, settings, message):
    arguments = {"reference": target.reference(), "betas": BETAS, "kernel": MALA(0.2), "n_particles": 20, "n_moves": 2}
    arguments = {**arguments, **settings}
    with pytest.raises(InvalidInputError, match=message):
        SMC(arguments.pop("reference"), arguments.pop("betas"), arguments.pop("kernel"), **arguments)


def test_a_flat_reference_starts_at_the_anchor():
    sampler = SMC(FlatReference(), [0.1, 0.3, 1.0], MALA(0.2), n_particles=5, start="anchor")
    assert sampler.cost_init() == 1


def test_a_prior_must_be_callable():
    with pytest.raises(InvalidInputError, match="sample of a PriorReference must be callable, got 3"):
        PriorReference(lambda y: 0.0, 3)
