"""Samplers that add noise and take it off again: exact invariance of DiGS, consistency of RDMC."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cdsampler.density import LogDensity
from cdsampler.errors import InvalidInputError
from cdsampler.kernels import HMC, MALA, RandomWalk
from cdsampler.paths import AnnealingPath, DenoisingPosterior, FlatReference
from cdsampler.samplers import RDMC, DiGS, ReferenceDraw, _digs
from cdsampler.sampling import run
from cdsampler.targets import GaussianMixture
from cdsampler.tuning import adapt

MIXTURE = GaussianMixture("two", [[-4.0, 0.0], [4.0, 1.0]], [0.3, 0.7], 0.5)
N, N_ERRORS = 8000, 5.0


def errors(positions):
    """Errors of the means, second moments and weights of the mixture in standard errors."""
    x = np.asarray(positions)
    means, weights = np.asarray(MIXTURE.means), np.asarray(MIXTURE.mode_weights)
    mean = weights @ means
    second = weights @ ((means - mean) ** 2 + 0.5)
    heavy = np.asarray(MIXTURE.responsibilities(jnp.asarray(x)))[:, 1]
    values = np.column_stack([x - mean, (x - mean) ** 2 - second, heavy - 0.7])
    return np.abs(values.mean(axis=0)) / (values.std(axis=0) / np.sqrt(len(values)))


@pytest.fixture(scope="module")
def exact():
    return np.asarray(MIXTURE.sample(jax.random.key(1), N))


@pytest.mark.parametrize("kernel", [MALA(0.3), HMC(0.5, 2), RandomWalk(0.6)], ids=lambda k: type(k).__name__)
def test_exact_draws_stay_exact_and_change_modes(exact, kernel):
    sampler = DiGS(kernel, [0.2, 0.6], 4, n_denoising=2)
    result = run(sampler, MIXTURE.density(), N, anchor=exact, seed=2)
    assert np.all(errors(result.positions) < N_ERRORS)
    is_other = (result.positions[:, 0] > 0) != (exact[:, 0] > 0)
    assert is_other.mean() > 0.01


def test_a_jump_that_is_always_accepted_fails(exact, monkeypatch):
    monkeypatch.setattr(_digs, "metropolis", lambda uniform, old, new, log_ratio: (new, jnp.ones(())))
    result = run(DiGS(MALA(0.3), [0.2], 3), MIXTURE.density(), N, anchor=exact, seed=2)
    assert np.max(errors(result.positions)) > 2 * N_ERRORS


def test_a_chain_from_one_mode_finds_the_others_weight():
    sampler = DiGS(MALA(0.3), [0.15, 0.4, 0.8], n_denoising=2).with_budget(1200)
    assert 1197 < sampler.cost() <= 1200
    result = run(sampler, MIXTURE.density(), 1000, anchor=np.array([-4.0, 0.0]), seed=3)
    share = np.mean(result.positions[:, 0] > 0)
    assert share == pytest.approx(0.7, abs=5 * np.sqrt(0.21 / 1000))


def test_levels_end_with_the_mildest():
    sampler = DiGS(MALA(0.3), [0.2, 0.5, 0.9], 7, n_sweeps=2)
    assert [int(sampler.level(i)) for i in range(7)] == [2, 0, 0, 1, 1, 2, 2]
    np.testing.assert_allclose(sampler.widths, np.sqrt(1 - np.array([0.2, 0.5, 0.9]) ** 2) / [0.2, 0.5, 0.9])


def test_adaptation_gives_every_level_its_own_step():
    sampler = DiGS(MALA(0.01), [0.1, 0.9], n_denoising=2)
    tuned, cost = adapt(sampler, MIXTURE.density(), np.array([4.0, 1.0]), jax.random.key(0))
    steps = np.asarray(tuned.kernel.step_size)
    # At α = .9 the noise has width .48, and the posterior is narrower than the mode.
    assert steps[0] > 1.5 * steps[1] > 0.1
    assert cost.count == 64 * (1 + 400 * 3)
    result = run(tuned.with_steps(40), MIXTURE.density(), 500, anchor=np.array([4.0, 1.0]), seed=1)
    assert np.all(np.isfinite(result.positions))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alphas": [0.0, 0.5]}, "strictly between 0 and 1"),
        ({"n_denoising": 0}, "at least 1 sweep and 1 denoising step, got 1 and 0"),
        ({"scale": 0.0}, "scale of the noise must be positive"),
        ({"kernel": MALA([0.1, 0.2, 0.3])}, "one for each of the 2 levels"),
    ],
    ids=str,
)
def test_bad_settings_of_digs_are_refused(settings, message):
    given = {"kernel": MALA(0.1), "alphas": [0.2, 0.5], **settings}
    with pytest.raises(InvalidInputError, match=message):
        DiGS(given.pop("kernel"), given.pop("alphas"), **given)


def test_the_posterior_given_a_noisy_copy_has_its_own_gradient():
    path = AnnealingPath(FlatReference(), MIXTURE.density(), jnp.zeros(2))
    posterior = DenoisingPosterior(path, jnp.asarray([0.3, -1.0]), jnp.asarray(0.8))

    def log_density(y):
        return posterior.log_density(posterior.evaluate_value(y)[0])

    y = jnp.asarray([-3.5, 0.4])
    point, _ = posterior.evaluate(y)
    np.testing.assert_allclose(posterior.gradient(point), jax.grad(log_density)(y), rtol=1e-10)
    numeric = MIXTURE.density().value(y)[0] - 0.5 * np.sum((np.asarray(y) - [0.3, -1.0]) ** 2) / 0.64
    assert float(log_density(y)) == pytest.approx(float(numeric))


def rdmc(**settings):
    return RDMC(6.0, 0.3, **{"n_inner": 20, "n_moves": 5, "widths": (0.15, 30.0), **settings})


def test_reverse_diffusion_is_consistent_on_a_gaussian():
    density = LogDensity(lambda y: -0.5 * jnp.sum((y - 1.0) ** 2 / jnp.asarray([1.0, 0.25])), 2)
    result = run(rdmc().with_steps(60), density, 2000, anchor=np.zeros(2), seed=1)
    error = np.array([1.0, 0.5]) / np.sqrt(2000)
    assert np.all(np.abs(result.positions.mean(axis=0) - 1) < 5 * error)
    # The score is an estimate and steps are finite: consistent, not exact.
    np.testing.assert_allclose(result.positions.std(axis=0), [1.0, 0.5], rtol=0.1)


def weight_of_the_right_mode(n_inner, n_moves):
    """Of a mixture on the line with modes at -4 (.3) and 4 (.7)."""
    line = GaussianMixture("line", [[-4.0], [4.0]], [0.3, 0.7], 0.5)
    sampler = RDMC(5.0, 0.3, n_inner=n_inner, n_moves=n_moves, widths=(0.15, 15.0)).with_steps(40)
    result = run(sampler, line.density(), 2000, anchor=np.zeros(1), seed=1)
    return np.mean(result.positions > 0)


def test_reverse_diffusion_finds_both_modes_and_their_weights():
    assert weight_of_the_right_mode(200, 3) == pytest.approx(0.7, abs=5 * np.sqrt(0.21 / 2000))


def test_too_few_candidates_are_seen_in_the_weights():
    """The control, and what makes the method infeasible: inner chains that find the modes by luck."""
    assert abs(weight_of_the_right_mode(2, 3) - 0.7) > 8 * np.sqrt(0.21 / 2000)


def test_costs_of_reverse_diffusion_are_those_promised():
    sampler = rdmc().with_budget(1000)
    assert int(sampler.n_steps) == 999 // 120
    result = run(sampler, MIXTURE.density(), 3, anchor=np.zeros(2))
    assert result.evaluations_per_sample == sampler.cost() == 1 + 120 * 8


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"n_inner": 0}, "at least 1 inner chain"), ({"widths": (1.0, 0.5)}, "widths must be two finite numbers")],
    ids=str,
)
def test_bad_settings_of_reverse_diffusion_are_refused(settings, message):
    with pytest.raises(InvalidInputError, match=message):
        rdmc(**settings)


def test_a_draw_of_the_reference_needs_one():
    with pytest.raises(InvalidInputError, match="A flat reference can't be drawn from"):
        ReferenceDraw(FlatReference())
