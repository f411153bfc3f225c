"""Small targets that broke other samplers: the right answer, or a warning, never a confident wrong one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cdsampler import DensityError, HostLogDensity, InvalidInputError, LogDensity


@pytest.fixture(autouse=True)
def forget_each_targets_programs():
    """Every test here has a target of its own."""
    yield
    jax.clear_caches()


def evidence(result):
    return result.tempering.evidence


def check_log_z(result, truth):
    assert abs(evidence(result).log_z - truth) < 4 * evidence(result).standard_error + 0.005


@pytest.mark.slow
def test_hard_edge(draw, check_moments):
    result = draw(lambda x: jnp.where(x[0] > 0, -0.5 * x[0] ** 2, -jnp.inf), 1)
    check_moments(result, [0.7979], [0.3634])
    check_log_z(result, 0.2258)
    assert result.positions.min() > 0


@pytest.mark.slow
def test_nan_region_is_rejected_and_counted(draw, check_moments, codes):
    result = draw(lambda x: jnp.where(x[0] < -1, jnp.nan, -0.5 * x[0] ** 2), 1)
    check_moments(result, [0.2876], [0.6297])
    check_log_z(result, 0.7462)
    assert "nan" in codes(result)


def test_box_support(draw, check_moments):
    result = draw(lambda x: jnp.where(jnp.all((x >= -1) & (x <= 2)), 0.0, -jnp.inf), 2)
    check_moments(result, [0.5, 0.5], [0.75, 0.75])
    check_log_z(result, 2.1972)


@pytest.mark.slow
def test_curved_and_lobed(draw, check_moments):
    def lobes(x):
        r = jnp.sqrt(jnp.sum(x**2))
        return -0.5 * ((r - 3) / 0.3) ** 2 + jnp.logaddexp(
            -0.5 * ((x[0] - 3) / 0.8) ** 2, -0.5 * ((x[0] + 3) / 0.8) ** 2
        )

    result = draw(lobes, 2)
    check_moments(result, [0, 0], [7.182, 2.294])
    check_log_z(result, 1.9718)
    share = np.mean(result.positions[:, 0] > 0)
    assert abs(share - 0.5) < 4 * 0.5 / np.sqrt(min(result.ess[0], 2000))


def banana(x):
    return -0.5 * x[0] ** 2 - 0.5 * (x[1] - x[0] ** 2) ** 2 / 0.01 - jnp.log(2 * jnp.pi * 0.1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_evidence_of_a_banana(draw, seed):
    assert abs(evidence(draw(banana, 2, seed=seed)).log_z) < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_moments_of_a_banana(draw, check_moments, seed):
    check_moments(draw(banana, 2, seed=seed), [0, 1], [1, 2.01])


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_modes_of_very_different_width_warn(draw, codes, seed):
    def widths(x):
        return jnp.sum(jnp.logaddexp(-0.5 * x**2, -0.5 * (x - 8) ** 2 / 0.0025 - jnp.log(0.05)))

    assert "mode-widths" in codes(draw(widths, 2, seed=seed))


def far(x):
    return -0.5 * jnp.sum((x - 50) ** 2) / 0.0025


@pytest.mark.slow
@pytest.mark.parametrize("replicas", [None, 2])
def test_mass_far_from_a_forced_reference_warns_and_rates_stay_rates(draw, codes, replicas):
    result = draw(far, 2, reference_scale=1.0, anchor=[0.0, 0.0], replicas=replicas)
    assert "reference-too-far" in codes(result)
    rejection = result.tempering.rejection
    assert np.all((rejection >= 0) & (rejection <= 1))


def test_the_same_mass_is_no_trouble_for_the_default(draw, check_moments, codes):
    result = draw(far, 2)
    check_moments(result, [50, 50], [0.0025, 0.0025])
    assert not codes(result)


@pytest.mark.slow
@pytest.mark.parametrize("constant", [1e6, -1e6])
def test_a_large_constant_changes_nothing_in_double_precision(draw, constant):
    plain = draw(lambda x: -0.5 * jnp.sum(x**2), 2, n_samples=256)
    shifted = draw(lambda x: -0.5 * jnp.sum(x**2) + constant, 2, n_samples=256)
    np.testing.assert_allclose(shifted.positions, plain.positions, atol=1e-5)
    assert abs(evidence(shifted).log_z - constant - np.log(2 * np.pi)) < 4 * evidence(plain).standard_error + 0.005


def test_a_large_constant_warns_in_single_precision(draw, codes):
    density = LogDensity(lambda x: -0.5 * jnp.sum(x**2) + 1e6, 2, dtype="float32")
    assert "precision" in codes(draw(density, n_samples=256))


@pytest.mark.slow
def test_scales_far_apart(draw):
    sd = 10.0 ** (np.arange(7) - 3.0)
    result = draw(lambda x: -0.5 * jnp.sum((x / sd) ** 2), 7)
    np.testing.assert_allclose(result.positions.std(axis=0), sd, rtol=0.1)


def root(x):
    return jnp.where(x[0] >= 0, jnp.sqrt(x[0]) - x[0] ** 2, -jnp.inf)


@pytest.mark.slow
def test_a_singular_start_is_named_and_the_default_avoids_it(draw, check_moments):
    with pytest.raises(DensityError, match=r"start \[0\.\]"):
        draw(root, 1, start=[0.0])
    result = draw(root, 1)
    check_moments(result, [0.6917], [0.2160])
    check_log_z(result, 0.6139)


def test_output_of_shape_1_is_a_scalar(draw):
    assert draw(lambda x: -0.5 * x**2, 1, n_samples=64).samples.shape == (64, 1, 1)


def test_target_equal_to_the_reference(draw, codes):
    result = draw(lambda x: -0.5 * jnp.sum(x**2) - jnp.log(2 * jnp.pi), 2, reference_scale=1.0)
    np.testing.assert_allclose(result.tempering.rejection, 0, atol=1e-6)
    assert abs(evidence(result).log_z) < 1e-6
    assert not codes(result)


def test_one_replica_is_an_error(draw):
    with pytest.raises(InvalidInputError, match="at least 2 replicas, got 1"):
        draw(far, 2, replicas=1)


def raising(x):
    if x[0] > 2:
        raise ArithmeticError("beyond 2")
    return float(-0.5 * x[0] ** 2)


def test_a_raising_target_passes_its_exception_on_with_the_point(draw):
    with pytest.raises(ArithmeticError, match="beyond 2") as caught:
        draw(HostLogDensity(raising, 1), None)
    assert any("at the parameters [" in note for note in caught.value.__notes__)


@pytest.mark.slow
def test_a_raising_target_may_reject_and_count(draw, check_moments, codes):
    density = HostLogDensity(raising, 1, on_error="reject")
    result = draw(density, None)
    check_moments(result, [-0.0552], [0.8865])
    assert "nan" in codes(result)
    assert density.function.n_rejected > 0
    assert isinstance(density.rejections[0].error, ArithmeticError)


@pytest.mark.slow
def test_jax_within_a_host_function_neither_hangs_nor_lies(draw, check_moments):
    density = HostLogDensity(lambda x: -0.5 * jnp.sum(jnp.asarray(x) ** 2, axis=-1), 2, batched=True)
    result = draw(density, None)
    check_moments(result, [0, 0], [1, 1])
    assert int(result.evaluations.total().gradient) == 0
    assert density.n_calls == result.total_evaluations


@pytest.mark.slow
def test_integers_are_cast(draw, check_moments):
    result = draw(lambda x: -0.5 * jnp.sum(x**2), 2, start=[0, 0], n_samples=256)
    check_moments(result, [0, 0], [1, 1])
