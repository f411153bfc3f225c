"""Every name in the catalog can be built, tuned, fitted to a budget and run."""

import jax
import numpy as np
import pytest
from scipy.special import logsumexp

from cdsampler.benchmark import (
    PRESET_KINDS,
    PRESETS,
    SAMPLERS,
    TARGETS,
    Preset,
    _protocol,
    build_sampler,
    build_target,
    exact_reference,
    parse_setting,
    prepare,
    preset_of,
    produce,
    starting_point,
    tune_sampler,
    with_overrides,
)
from cdsampler.density import Evaluations
from cdsampler.errors import InvalidInputError
from cdsampler.interpolants import Linear
from cdsampler.kernels import HMC
from cdsampler.samplers import CDS, NRPT, langevin_steps
from cdsampler.sampling import run
from cdsampler.targets import AbstractExactTarget, LennardJones
from cdsampler.tuning import Tuned, find_mode

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


UNTUNED = ("svgd",)
STARTS_APART = {"recommended": {"mala", "hmc", "nuts", "mams", "digs"}, "paper": set()}
# The paper's presets differ most from what the contract tests run; of the recommended ones two show the protocol.
QUICK_KINDS = {"recommended": ("mala", "nrpt"), "paper": tuple(SAMPLERS)}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        pytest.param(kind, name, marks=() if name in QUICK_KINDS[kind] else pytest.mark.slow)
        for kind in PRESET_KINDS
        for name in SAMPLERS
    ],
)
def test_every_sampler_is_prepared_at_either_preset_and_runs_within_its_budget(target, name, kind):
    settings = {"n_replicas": 3, "integration_steps": 5, "n_particles": 4, "n_inner": 3}
    preset = with_overrides(preset_of("gm-2", kind), **settings)
    ready = prepare(name, target, 8, BUDGET, preset=preset, seed=0)
    n_points = ready.sampler.stages()[0].n_points
    assert ready.sampler.cost() <= BUDGET * n_points
    assert ready.anchor_scale == (50.0 if name in STARTS_APART[kind] else 0)
    n = n_points if kind == "paper" else 8  # one chain alone, too
    result = produce(ready, n, seed=1)
    assert result.positions.shape == (n, 2)
    assert len(result.evaluations.count) == n // n_points
    assert np.all(np.isfinite(result.positions))
    assert np.all(np.isfinite(result.log_density))
    assert int(np.max(result.evaluations.count)) <= ready.sampler.cost()
    # Mode search alone is a few dozen.
    assert (result.tuning_evaluations.count > 500) == (name not in UNTUNED)
    assert (result.tempering is not None) == (name in ("cds", "cds-inverse-map", "nrpt", "pt"))
    assert (result.annealing is not None) == (name in ("oasmc", "smc", "ais", "cds-oasmc"))
    assert (result.transport is not None) == (name.startswith("cds") and name != "cds-inverse-map")


@pytest.mark.parametrize("kind", PRESET_KINDS)
def test_only_local_chains_of_the_recommended_presets_start_apart(target, kind, monkeypatch):
    monkeypatch.setattr(_protocol, "tune_sampler", lambda untuned, *a, **k: Tuned(untuned, Evaluations.zero().total()))
    preset = with_overrides(preset_of("gm-2", kind), n_particles=4)
    scales = {name: prepare(name, target, 8, BUDGET, preset=preset).anchor_scale for name in SAMPLERS}
    assert {name for name, scale in scales.items() if scale == 50} == STARTS_APART[kind]
    assert set(scales.values()) <= {0, 50}


def test_the_papers_preset_is_the_papers():
    preset = preset_of("gm-2", "paper")
    assert (preset.step_size, preset.t0, preset.tau, preset.beta_min) == (0.1, 0.01, 1.0, 0.01)
    assert preset.noise_variance == pytest.approx(0.1**2)
    nrpt = build_sampler("nrpt", preset)
    assert not nrpt.reference.is_proper
    assert nrpt.start == "anchor"
    assert float(nrpt.betas[0]) == pytest.approx(0.01)
    assert isinstance(build_sampler("nrpt", preset_of("aldp", "paper")).kernel, HMC)
    assert build_sampler("nrpt", preset_of("bnn", "paper")).reference.is_proper  # the prior
    for step, task in ((1e-4, "lj-13"), (1e-6, "aldp"), (1e-5, "bnn")):
        assert preset_of(task, "paper").step_size == step


def test_rho_shares_the_budget_out():
    preset = with_overrides(TINY, rho=0.25)
    sampler = build_sampler("cds", preset, 200).with_budget(200)
    assert len(sampler.variances) == 150
    assert sampler.cost() <= 200
    alone = build_sampler("cds-sde-only", TINY, 200).with_budget(200)
    assert len(alone.variances) == 199
    assert alone.cost() == 200
    with pytest.raises(InvalidInputError, match=r"rho is 0.25, and shares out a budget: give one"):
        build_sampler("cds", preset)


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("n_particles=10", ("n_particles", 10)),
        ("rho=0.5", ("rho", 0.5)),
        ("is_schedule_adapted=False", ("is_schedule_adapted", False)),
        ("kernel=hmc", ("kernel", "hmc")),
        ("n_particle=10", "Unknown setting 'n_particle'.*Did you mean 'n_particles'"),
        ("n_particles=ten", "n_particles is a int: got 'n_particles=ten'"),
        ("n_particles", "given as NAME=VALUE"),
    ],
)
def test_settings_are_read_from_text(text, outcome):
    if isinstance(outcome, tuple):
        assert parse_setting(text) == outcome
        return
    with pytest.raises(InvalidInputError, match=outcome):
        parse_setting(text)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kernel": "mall"}, "Unknown value of kernel 'mall'.*Did you mean 'mala'"),
        ({"n_leapfrog": 0}, "n_leapfrog must be at least 1, got 0"),
        ({"rho": 1.0}, "rho must be at least 0 and below 1, got 1.0"),
        ({"alpha_min": 0.95}, "alpha_min and alpha_max must grow within"),
        ({"n_particles": 0}, "n_particles must be at least 1, got 0"),
    ],
    ids=str,
)
def test_impossible_settings_are_refused(changes, message):
    with pytest.raises(InvalidInputError, match=message):
        with_overrides(TINY, **changes)


def test_an_unknown_preset_is_refused():
    with pytest.raises(InvalidInputError, match=r"Unknown preset 'papre'.*Did you mean 'paper'"):
        preset_of("gm-2", "papre")


def test_nothing_is_evaluated_before_settings_are_found_impossible(target, monkeypatch):
    monkeypatch.setattr(_protocol, "find_mode", lambda *a: pytest.fail("evaluated"))
    with pytest.raises(InvalidInputError, match="100 particles at once"):
        prepare("oasmc", target, 50, 500)
    with pytest.raises(InvalidInputError, match="too small"):
        prepare("nuts", target, 50, 5)


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
        # The smaller cluster shows what there is to see of the larger.
        pytest.param(name, marks=pytest.mark.slow if name.startswith(("aldp", "lj-55")) else ())
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
        (lambda name: build_sampler(name, TINY), "cds-inverse-mp", "cds-inverse-map"),
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
