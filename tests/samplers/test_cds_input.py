import jax.numpy as jnp
import numpy as np
import pytest

from cdsampler import (
    CDS,
    HMC,
    MALA,
    NRPT,
    Corrector,
    GaussianReference,
    LocalChain,
    LogDensity,
    RandomWalk,
    Trigonometric,
    geometric_schedule,
    geometric_times,
    noise_variances,
    run,
)
from cdsampler.errors import InvalidInputError
from cdsampler.interpolants import AutodiffInterpolant, Linear

TIMES = geometric_times(0.1, 10)
VARIANCES = noise_variances(TIMES, 0.5)
STAGE1 = NRPT(GaussianReference(1.0), geometric_schedule(3, 0.1), MALA(0.5))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"times": np.append(0.0, TIMES[1:])}, "t0 must lie in"),
        ({"times": TIMES[::-1]}, "t0 must lie in"),
        ({"times": TIMES[:-1]}, "from t0 > 0 to 1"),
        ({"variances": VARIANCES[:-1]}, "one finite noise variance"),
        ({"variances": None}, "needs a noise variance"),
        ({"integrator": "heun"}, "Unknown integrator 'heun'"),
        ({"transport": "teleport"}, "'sde' or 'inverse-map'"),
        ({"max_langevin_step": 0.0}, "must be positive"),
        ({"stage1": NRPT(GaussianReference(1.0), geometric_schedule(3, 0.1), RandomWalk(1.0))}, "RandomWalk has none"),
        (
            {"interpolant": AutodiffInterpolant(Linear().forward, Linear().inverse), "integrator": "exponential"},
            "needs an affine interpolant",
        ),
    ],
)
def test_wrong_arguments_are_named(change, words):
    arguments = {"stage1": STAGE1, "times": TIMES, "variances": VARIANCES} | change
    with pytest.raises(InvalidInputError, match=words):
        CDS(**arguments)


@pytest.mark.parametrize("kernel", [RandomWalk(1.0)])
def test_a_corrector_needs_gradients_and_steps(kernel):
    with pytest.raises(InvalidInputError, match="gradient-based"):
        Corrector(kernel)
    with pytest.raises(InvalidInputError, match="at least 1 step"):
        Corrector(HMC(0.1, 2), 0)


def test_budget_is_split_between_the_stages():
    sampler = CDS(STAGE1, TIMES, VARIANCES, corrector=Corrector(HMC(0.1, 3), 2)).with_budget(500)
    assert sampler.stages()[1].cost_step() == 1 + 2 * 3
    assert 500 - 3 < sampler.cost() <= 500


def test_anchors_drawn_from_the_reference_differ_by_chain_and_leave_the_target_invariant():
    mean, n = np.array([1.0, -2.0]), 4000
    density = LogDensity(lambda y: -0.5 * jnp.sum((y - mean) ** 2), dim=2)
    sampler = CDS(STAGE1, TIMES, VARIANCES, interpolant=Trigonometric()).with_budget(150)
    drawn = run(sampler, density, n, anchor=mean, anchor_scale=1.0, seed=5)
    shared = run(sampler, density, n, anchor=mean, seed=5)
    assert not np.allclose(drawn.positions, shared.positions)
    # The exponential integrator's last step is short, so its bias is far below 5 standard errors of the mean.
    assert np.all(np.abs(drawn.positions.mean(0) - mean) < 5 / np.sqrt(n))


def test_any_stage_can_be_the_first():
    density = LogDensity(lambda y: -0.5 * jnp.sum(y**2), dim=2)
    sampler = CDS(LocalChain(MALA(0.5)), TIMES, VARIANCES).with_budget(60)
    result = run(sampler, density, 2000, anchor=np.array([3.0, 3.0]), seed=1)
    assert result.tempering is None
    assert result.evaluations_per_sample == 60
    assert np.all(np.abs(result.positions.mean(0)) < 5 / np.sqrt(2000))
