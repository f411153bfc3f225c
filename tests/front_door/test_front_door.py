import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cdsampler
from cdsampler import DensityError, InvalidInputError, LogDensity, Plan, benchmark
from cdsampler.sampling import Progress, _production, read_netcdf
from cdsampler.sampling._run import run_recorded
from cdsampler.tuning import make_plan
from cdsampler.tuning._plan import FORMAT

WEIGHTS = np.array([0.2, 0.3, 0.5])
CENTRES = jnp.array([[-20.0, 0.0], [20.0, 0.0], [0.0, 30.0]])


def three(x):
    return jnp.log(jnp.sum(WEIGHTS * jnp.exp(-0.5 * jnp.sum((x[None] - CENTRES) ** 2, axis=1) - jnp.log(2 * jnp.pi))))


@pytest.fixture(scope="module")
def result():
    return cdsampler.sample(three, 2, 2000, seed=1)


def test_weights_and_evidence_are_right_and_nothing_is_warned_of(result):
    nearest = np.argmin(np.linalg.norm(result.positions[:, None] - np.asarray(CENTRES), axis=2), axis=1)
    shares = np.bincount(nearest, minlength=3) / len(nearest)
    assert np.all(np.abs(shares - WEIGHTS) < 4 * np.sqrt(WEIGHTS * (1 - WEIGHTS) / 1000))
    evidence = result.tempering.evidence
    assert abs(evidence.log_z) < 4 * evidence.standard_error
    assert not result.warnings
    assert result.ess.min() > 1000
    assert result.total_evaluations < 100_000


def test_the_test_of_weights_notices_a_reference_that_misses_modes(draw, codes):
    """Negative control: about one mode, a narrow forced reference reaches nothing else."""
    narrow = draw(three, 2, n_samples=500, anchor=[-20.0, 0.0], reference_scale=2.0, max_evaluations=60_000)
    assert np.mean(narrow.positions[:, 0] > 10) < 0.3 - 4 * np.sqrt(0.3 * 0.7 / 250)
    assert "reference-too-narrow" in codes(narrow)
    wide = draw(three, 2, n_samples=500, anchor=[-20.0, 0.0], reference_scale=40.0)
    assert "reference-too-narrow" not in codes(wide)


def test_the_plan_survives_json_and_gives_the_same_samples(result, tmp_path):
    loaded = Plan.load(result.plan.save(tmp_path / "plan.json"))
    again = cdsampler.sample(three, 2, 2000, seed=1, plan=loaded)
    np.testing.assert_array_equal(again.samples, result.samples)
    assert int(again.tuning_evaluations.count) == 0
    assert str(loaded) == str(result.plan)


@pytest.mark.parametrize("chunk_size", [64, 100])
def test_same_bits_whatever_the_chunks(result, chunk_size):
    again = cdsampler.sample(three, 2, 2000, seed=1, plan=result.plan, chunk_size=chunk_size)
    np.testing.assert_array_equal(again.samples, result.samples)


def test_independent_mode_has_one_draw_per_chain_within_its_budget(result):
    drawn = cdsampler.sample(three, 2, 100, plan=result.plan, independent=True, budget=200)
    assert drawn.samples.shape == (100, 1, 2)
    assert np.all(drawn.evaluations.count <= 200)


@pytest.mark.parametrize(("limit", "is_short"), [(9_000, True), (60_000, False)])
def test_the_limit_is_never_exceeded_and_too_small_a_one_warns(draw, codes, limit, is_short):
    drawn = draw(three, 2, n_samples=640, max_evaluations=limit)
    assert drawn.total_evaluations <= limit
    assert ("budget-too-small" in codes(drawn)) == is_short


def test_every_evaluation_is_counted(result):
    plan = result.plan
    n_chains, n_draws, _ = result.samples.shape
    steps = plan.burn_in + (n_draws - 1) * plan.thinning
    per_chain = len(plan.betas) * (1 + steps) + n_draws * plan.n_transport
    np.testing.assert_array_equal(result.evaluations.count, per_chain)
    assert result.total_evaluations == n_chains * per_chain + plan.tuning_evaluations + result.spare_evaluations


def test_inference_data_and_summary(result, tmp_path):
    data = read_netcdf(result.save(tmp_path / "samples.nc"))
    assert data["posterior"]["x"].shape == result.samples.shape
    assert "t0" in data["posterior"].attrs
    for word in ("ess", "r_hat", "log Z", "evaluations", "no warnings"):
        assert word in result.summary()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_samples": 0}, "n_samples"),
        ({"dim": 0}, "dim"),
        ({"dim": None}, "dim is missing"),
        ({"scale": -1.0}, "scale"),
        ({"start": [1.0]}, "start must be 2"),
        ({"anchor": [1.0, np.nan]}, "anchor must be 2"),
        ({"budget": 100}, "independent=True"),
        ({"max_evaluations": 100}, "at least"),
        ({"reference_scale": 0.0}, "reference_scale"),
        ({"seed": -1}, "seed"),
        ({"chunk_size": 0}, "chunk_size"),
        ({"replicas": 1}, "at least 2 replicas"),
    ],
)
def test_bad_input_is_named(settings, words):
    with pytest.raises(InvalidInputError, match=words):
        cdsampler.sample(three, **{"dim": 2, **settings})


def test_a_plan_is_for_its_dimension_and_its_tuning(result):
    with pytest.raises(InvalidInputError, match="for 2 dimensions"):
        cdsampler.sample(lambda x: -jnp.sum(x**2), 3, plan=result.plan)
    with pytest.raises(InvalidInputError, match="belong to tuning"):
        cdsampler.sample(three, 2, plan=result.plan, start=[0.0, 0.0])


def test_draws_that_prove_correlated_are_drawn_again_farther_apart(result, draw):
    """One step apart, most draws of a chain repeat; with a limit on the total nothing is repeated."""
    hasty = dataclasses.replace(result.plan, thinning=1, restart_rate=0.1 * result.plan.restart_rate)
    again = draw(three, 2, 2000, seed=1, plan=hasty)
    once = draw(three, 2, 2000, seed=1, plan=hasty, max_evaluations=10**7)
    assert once.ess.min() < 1000 < again.ess.min()
    assert again.plan.thinning > once.plan.thinning == 1
    assert again.spare_evaluations >= int(once.evaluations.total().count)
    assert again.seed == 1
    narrow = dataclasses.replace(hasty, checks=dataclasses.replace(hasty.checks, cover=9.0))
    assert draw(three, 2, 2000, seed=1, plan=narrow).plan.thinning == 1, "longer chains don't mend a narrow reference"


def test_an_interrupt_of_the_second_production_leaves_the_first(result, draw, codes, monkeypatch):
    calls = []

    def run_once(*arguments, **settings):
        calls.append(settings["seed"])
        if len(calls) == 2:
            settings["on_progress"](Progress(evaluations=123, total=1000, finished=0))
            raise KeyboardInterrupt
        return run_recorded(*arguments, **settings)

    monkeypatch.setattr(_production, "run_recorded", run_once)
    hasty = dataclasses.replace(result.plan, thinning=1, restart_rate=0.1 * result.plan.restart_rate)
    kept = draw(three, 2, 2000, seed=1, plan=hasty)
    assert kept.is_partial
    assert "partial" in codes(kept)
    assert kept.positions.shape[0] >= 2000
    assert kept.spare_evaluations >= 123
    assert len(set(calls)) == 2


def test_the_walk_of_replicas_moves_by_neighbour_swaps(result):
    walk = result.plan.walk
    assert np.all(np.sort(walk, axis=1) == np.arange(walk.shape[1]))
    rungs = np.argsort(walk, axis=1)
    assert np.all(np.abs(np.diff(rungs, axis=0)) <= 1)
    assert np.any(np.diff(rungs, axis=0) != 0)


@pytest.fixture
def log_compiles():
    """Log every compilation, in all threads."""
    jax.config.update("jax_log_compiles", True)
    yield
    jax.config.update("jax_log_compiles", False)


def test_programs_do_not_grow_in_number_with_the_draws(result, caplog, log_compiles):
    def programs(n_draws):
        caplog.clear()
        cdsampler.sample(three, 2, 60 * n_draws, plan=result.plan)
        return [message for message in caplog.messages if message.startswith("Compiling ")]

    assert any("_advance" in name for name in programs(5)), "the control: another number of chains is a new program"
    assert len(programs(25)) < 20, "some conversion for new shapes is fine, one program for each draw is not"


@pytest.mark.slow
def test_a_search_from_a_point_of_symmetry_leaves_the_saddle():
    def two(x):
        return jnp.logaddexp(-0.5 * jnp.sum((x - 6) ** 2), -0.5 * jnp.sum((x + 6) ** 2))

    plan = make_plan(LogDensity(two, 2))
    np.testing.assert_allclose(np.abs(plan.shift), 6, atol=0.01)
    np.testing.assert_allclose(plan.scale_tril, np.eye(2), atol=0.01)


def test_a_damaged_plan_is_named(tmp_path):
    path = tmp_path / "plan.json"
    path.write_text(f'{{"format": {FORMAT}, "names": ["x"]}}')
    with pytest.raises(InvalidInputError, match="not a valid plan"):
        Plan.load(path)


def test_no_finite_start_and_unbounded_densities_are_errors():
    with pytest.raises(DensityError, match="127 draws"):
        cdsampler.sample(lambda x: jnp.full((), -jnp.inf) + 0 * x[0], 1, 10)
    with pytest.raises(DensityError, match=r"\+inf"):
        cdsampler.sample(lambda x: jnp.where(x[0] > 1, jnp.inf, -0.5 * x[0] ** 2), 1, 10)


@pytest.mark.slow
def test_an_improper_target_warns(draw, codes):
    assert "improper" in codes(draw(lambda x: -0.5 * x[0] ** 2, 2, n_samples=64, max_evaluations=200_000))


@pytest.mark.slow
def test_a_narrow_forced_reference_warns_on_gmnu_16(draw, codes):
    density = benchmark.build_target("gmnu-16").density()
    assert "reference-too-narrow" in codes(draw(density, n_samples=64, reference_scale=30.0, max_evaluations=600_000))
