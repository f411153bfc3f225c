"""Every name in the catalog can be built, tuned, fitted to a budget and run."""

import jax
import numpy as np
import pytest
from scipy.special import logsumexp

from cdsampler.benchmark import (
    PRESETS,
    SAMPLERS,
    TARGETS,
    Preset,
    build_sampler,
    build_target,
    exact_reference,
    starting_point,
    tune_sampler,
    with_overrides,
)
from cdsampler.errors import InvalidInputError
from cdsampler.interpolants import Linear
from cdsampler.samplers import CDS, NRPT, langevin_steps
from cdsampler.sampling import run
from cdsampler.targets import AbstractExactTarget, LennardJones
from cdsampler.tuning import find_mode

BUDGET = 130
MIXTURES = ("gm-2", "gmnu-2", "gm-16", "gmnu-16")
TINY = Preset(n_replicas=3, reference_scale=50.0, integration_steps=5)


@pytest.fixture(scope="module", autouse=True)
def _quick_compilation():
    """Compile without optimisation: these programs run for milliseconds."""
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


@pytest.fixture(scope="module")
def target():
    return build_target("gm-2")


@pytest.fixture(scope="module")
def density(target):
    return target.density()


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_sampler_is_tuned_fits_a_budget_and_runs(density, name):
    tuned = tune_sampler(build_sampler(name, TINY), density, np.zeros(2), seed=0, n_rounds=1)
    sampler = tuned.sampler.with_budget(BUDGET)
    assert BUDGET - sampler.stages()[0].cost_step() < sampler.cost() <= BUDGET
    result = run(sampler, density, 8, anchor=np.zeros(2), seed=1, tuning_evaluations=tuned.evaluations)
    assert result.samples.shape == (8, 1, 2)
    assert np.all(np.isfinite(result.samples))
    assert np.all(np.isfinite(result.log_density))
    assert result.evaluations_per_sample == sampler.cost()
    assert (result.tuning_evaluations.count > 0) == (name not in ("mala", "hmc"))
    assert (result.tempering is None) == (name in ("mala", "hmc"))
    assert (result.transport is None) == (name != "cds")


def test_the_tuned_mala_step_limits_the_langevin_steps(density):
    tuned = tune_sampler(build_sampler("cds", TINY), density, np.zeros(2), seed=0, n_rounds=1).sampler
    limit = float(tuned.stage1.kernel.step_size[-1])
    assert float(tuned.max_langevin_step) == pytest.approx(limit, rel=1e-6)
    transport = tuned.stages()[1]
    taken = langevin_steps(Linear(), transport.times, transport.variances)
    wanted = langevin_steps(Linear(), tuned.times, tuned.variances)
    np.testing.assert_allclose(taken, np.minimum(wanted, limit), rtol=1e-6)
    assert wanted.max() > limit


@pytest.mark.parametrize("name", TARGETS)
def test_every_target_has_a_preset_and_the_same_samplers_agree_on_its_reference(name):
    target, preset = build_target(name), PRESETS[name]
    assert target.name == name
    assert (name in MIXTURES) == isinstance(target, AbstractExactTarget)
    if isinstance(target, AbstractExactTarget):
        assert float(target.mode_weights.sum()) == pytest.approx(1, rel=1e-12)
    nrpt, cds = build_sampler("nrpt", preset), build_sampler("cds", preset)
    assert isinstance(nrpt, NRPT)
    assert isinstance(cds, CDS)
    assert cds.t0 == pytest.approx(preset.t0)
    assert float(cds.stages()[0].reference.scale) == pytest.approx(preset.reference_scale)
    assert float(nrpt.reference.scale) == preset.reference_scale
    assert len(cds.variances) == preset.integration_steps


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name.startswith("aldp") else ())
        for name in TARGETS
        if name not in MIXTURES
    ],
)
def test_the_start_leads_to_a_mode_about_which_a_preset_is_tuned_and_runs(name):
    target = build_target(name)
    density, start = target.density(np.float32), starting_point(target)
    mode = find_mode(density, start)
    assert np.isfinite(mode.log_density)
    if name == "bnn":
        np.testing.assert_array_equal(mode.position, 0)  # the reference about it is the prior
    else:
        assert mode.evaluations.total().count < 200
        assert np.abs(mode.position - start).max() < 0.1
    preset = with_overrides(PRESETS[name], n_replicas=3)
    tuned = tune_sampler(build_sampler("nrpt", preset), density, mode.position, seed=0, n_rounds=1)
    result = run(tuned.sampler.with_budget(BUDGET), density, 2, anchor=mode.position, seed=1)
    assert result.samples.shape == (2, 1, target.dim)
    assert np.all(np.isfinite(result.samples))


def test_the_start_of_a_cluster_is_an_icosahedron_of_known_neighbours():
    for n, n_contacts in ((13, 42), (55, 234)):
        target = build_target(f"lj-{n}")
        x = np.asarray(target.to_positions(starting_point(target)))
        distances = np.linalg.norm(x[:, None] - x[None], axis=2)[np.triu_indices(n, 1)]
        assert distances.min() > 0.9
        assert np.sum(distances < 1.2) == n_contacts
    with pytest.raises(InvalidInputError, match="13 or 55 particles, got 57"):
        starting_point(LennardJones(57))


@pytest.mark.parametrize(
    ("build", "name", "near"),
    [
        (build_target, "gm2", "gm-2"),
        (build_target, "gmnu16", "gmnu-16"),
        (lambda name: build_sampler(name, TINY), "nrtp", "nrpt"),
        (lambda name: build_sampler(name, TINY), "cds-inverse", "cds-inverse-map"),
    ],
)
def test_a_misspelt_name_is_put_right(build, name, near):
    with pytest.raises(InvalidInputError, match=f"Did you mean '{near}'"):
        build(name)


def test_a_name_like_no_other_lists_what_there_is():
    with pytest.raises(InvalidInputError, match="choose from gm-2, gmnu-2, gm-16, gmnu-16") as caught:
        build_target("xyzzy")
    assert "mean" not in str(caught.value)
    with pytest.raises(InvalidInputError, match=r"choose from cds, .*hmc"):
        build_sampler("xyzzy", TINY)


def test_overrides_replace_what_is_given():
    changed = with_overrides(TINY, n_replicas=7, beta_min=None, reference_scale=25.0)
    assert changed == Preset(n_replicas=7, reference_scale=25.0, integration_steps=5)
    assert changed.t0 == pytest.approx(0.04)
    assert with_overrides(TINY) == TINY


def test_the_exact_reference_is_the_target(target):
    reference = exact_reference(target)
    x = reference.sample(0, 4000)
    assert x.dtype == np.float64
    assert x.shape == (4000, 2)
    np.testing.assert_array_equal(x, reference.sample(0, 4000))
    assert not np.array_equal(x, reference.sample(1, 4000))
    squares = ((x[:, None, :] - np.asarray(target.means)[None]) ** 2).sum(axis=-1)
    v = float(target.variance)
    expected = logsumexp(-0.5 * squares / v, axis=1) - np.log(40) - np.log(2 * np.pi * v)
    np.testing.assert_allclose(reference.log_density(x), expected, rtol=1e-9)
    responsibilities = reference.responsibilities(x)
    np.testing.assert_allclose(responsibilities.sum(axis=1), 1, rtol=1e-12)
    counts = responsibilities.mean(axis=0)
    error = np.sqrt(reference.weights * (1 - reference.weights) / 4000)
    assert np.all(np.abs(counts - reference.weights) < 5 * error)
