import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cdsampler import HMC, MALA, FlatReference, GaussianReference, InvalidInputError, LogDensity, RandomWalk
from cdsampler.kernels import _base, _mala, adapt_step_size
from cdsampler.paths import AnnealingPath
from cdsampler.targets import GaussianMixture

N_CHAINS, N_STEPS, N_ERRORS = 20_000, 4, 5.0
KERNELS = [RandomWalk(1.5), MALA(0.8), HMC(0.7, 3)]
MIXTURE = GaussianMixture("three", [[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]], [0.5, 0.3, 0.2], 1.0)
NAMES = [type(k).__name__ for k in KERNELS]


def move(kernel, path, beta, positions, key):
    """Start a chain at each position and return where it is after a few steps."""
    density = path.at(beta)

    def run(position, key):
        start, _ = path.evaluate(position)
        step = lambda i, point: kernel.step(jax.random.fold_in(key, i), point, density)[0]  # noqa: E731
        return jax.lax.fori_loop(0, N_STEPS, step, start).position

    return jax.vmap(run)(positions, jax.random.split(key, len(positions)))


moved = eqx.filter_jit(move)


def errors_of_moments(positions, mean, covariance):
    """Return the errors of means and second moments in standard errors."""
    centred = np.asarray(positions) - mean
    values = np.concatenate([centred, centred**2 - np.diag(covariance)], axis=1)
    return np.abs(values.mean(0)) / (values.std(0) / np.sqrt(len(values)))


def mixture_errors(kernel, moved=moved):
    positions = MIXTURE.sample(jax.random.key(1), N_CHAINS)
    path = AnnealingPath(FlatReference(), MIXTURE.density(), jnp.zeros(2))
    new = moved(kernel, path, jnp.asarray(1.0), positions, jax.random.key(2))
    assert not np.allclose(new, positions)
    means, weights = np.asarray(MIXTURE.means), np.asarray(MIXTURE.mode_weights)
    mean = weights @ means
    covariance = np.eye(2) + (weights[:, None] * (means - mean)).T @ (means - mean)
    share = np.asarray(MIXTURE.responsibilities(new))
    of_weights = np.abs(share.mean(0) - weights) / (share.std(0) / np.sqrt(N_CHAINS))
    return np.concatenate([errors_of_moments(new, mean, covariance), of_weights])


@pytest.mark.parametrize("kernel", [*KERNELS, HMC(4.0, 3, 0.05)], ids=[*NAMES, "jittered"])
def test_exact_draws_of_a_mixture_stay_exact(kernel):
    assert np.all(mixture_errors(kernel) < N_ERRORS)


def jittered_errors(kernel, moved):
    """Errors of the moments of N(0, 1) after a few steps from exact draws, with steps of very different sizes."""
    path = AnnealingPath(FlatReference(), LogDensity(lambda y: -0.5 * jnp.sum(y**2), 1), jnp.zeros(1))
    draws = jax.random.normal(jax.random.key(3), (N_CHAINS, 1))
    return errors_of_moments(moved(kernel, path, jnp.asarray(1.0), draws, jax.random.key(4)), 0.0, np.eye(1))


def test_random_step_sizes_are_independent_of_acceptance(monkeypatch, traced_anew):
    kernel = HMC(3.0, 1, 0.05)
    assert np.all(jittered_errors(kernel, moved) < N_ERRORS)
    true = _base.draw_noise

    def one_number_for_both(*arguments, **settings):
        noise = true(*arguments, **settings)
        return noise._replace(jitter=noise.uniform)

    monkeypatch.setattr(_base, "draw_noise", one_number_for_both)
    assert np.max(jittered_errors(kernel, traced_anew)) > 2 * N_ERRORS


@pytest.fixture
def traced_anew():
    """Return a program of its own, so that a patched kernel isn't served the compiled true one."""
    return eqx.filter_jit(lambda *arguments: move(*arguments))


def test_a_kernel_that_always_accepts_fails(monkeypatch, traced_anew):
    monkeypatch.setattr(_mala, "metropolis", lambda uniform, old, new, log_ratio: (new, jnp.ones(())))
    assert np.max(mixture_errors(MALA(0.8), traced_anew)) > 2 * N_ERRORS


def test_a_kernel_without_the_proposals_quotient_fails(monkeypatch, traced_anew):
    true = _mala.metropolis

    def symmetric(uniform, old, new, log_ratio):
        return true(uniform, old, new, new.target.log_density - old.target.log_density)

    monkeypatch.setattr(_mala, "metropolis", symmetric)
    assert np.max(mixture_errors(MALA(0.8), traced_anew)) > 2 * N_ERRORS


@pytest.mark.parametrize("kernel", KERNELS, ids=NAMES)
def test_exact_draws_of_a_tempered_gaussian_stay_exact(kernel):
    # Reference N(0, 4), target N(2, 1): at β = 1/2 the precision is 5/8 and the mean 1.6.
    beta, mean, variance = 0.5, 1.6, 1.6
    density = LogDensity(lambda y: -0.5 * jnp.sum((y - 2.0) ** 2), 2)
    path = AnnealingPath(GaussianReference(2.0), density, jnp.zeros(2))
    draws = mean + np.sqrt(variance) * jax.random.normal(jax.random.key(3), (N_CHAINS, 2))
    new = moved(kernel, path, jnp.asarray(beta), draws, jax.random.key(4))
    assert np.all(errors_of_moments(new, mean, variance * np.eye(2)) < N_ERRORS)


@pytest.mark.parametrize("kernel", KERNELS, ids=NAMES)
def test_a_step_costs_what_it_says(kernel):
    path = AnnealingPath(FlatReference(), MIXTURE.density(), jnp.zeros(2))
    point, _ = path.evaluate(jnp.ones(2))
    _, info = eqx.filter_jit(kernel.step)(jax.random.key(0), point, path.at(jnp.asarray(1.0)))
    assert int(info.evaluations.count) == kernel.evaluations_per_step
    assert int(info.evaluations.value) == (0 if kernel.needs_gradient else kernel.evaluations_per_step)


@pytest.mark.parametrize("kernel", KERNELS, ids=NAMES)
def test_no_kernel_leaves_a_hard_edge_and_all_can_enter(kernel):
    edge = LogDensity(lambda y: jnp.where(jnp.all(y > 0), -0.5 * jnp.sum(y**2), -jnp.inf), 2)
    path = AnnealingPath(FlatReference(), edge, jnp.zeros(2))
    inside = jnp.abs(jax.random.normal(jax.random.key(5), (500, 2)))
    assert np.all(np.asarray(moved(kernel, path, jnp.asarray(1.0), inside, jax.random.key(6))) > 0)
    outside = jnp.full((500, 2), -0.1)
    entered = np.all(np.asarray(moved(kernel, path, jnp.asarray(1.0), outside, jax.random.key(7))) > 0, axis=1)
    assert entered.mean() > 0.2


def test_malas_quotient_is_that_of_its_proposal_densities():
    density = AnnealingPath(FlatReference(), MIXTURE.density(), jnp.zeros(2)).at(jnp.asarray(1.0))
    epsilon, seen = 0.7, {}

    def spy(uniform, old, new, log_ratio):
        seen.update(old=old, new=new, log_ratio=log_ratio)
        return new, jnp.ones(())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_mala, "metropolis", spy)
        MALA(epsilon).step(jax.random.key(8), density.evaluate(jnp.array([0.3, 1.0]))[0], density)

    def log_proposal(to, start):
        drift = start.position + epsilon * start.target.gradient
        return -np.sum((np.asarray(to.position) - np.asarray(drift)) ** 2) / (4 * epsilon)

    old, new = seen["old"], seen["new"]
    expected = new.target.log_density - old.target.log_density + log_proposal(old, new) - log_proposal(new, old)
    np.testing.assert_allclose(seen["log_ratio"], expected, rtol=1e-10)


@pytest.mark.parametrize("kernel", [RandomWalk(1.0), MALA(1.0), HMC(1.0, 4)], ids=NAMES)
@pytest.mark.parametrize("factor", [0.02, 50.0])
def test_adaptation_finds_the_optimal_acceptance_from_either_side(kernel, factor):
    density = LogDensity(lambda y: -0.5 * jnp.sum(y**2), 10)
    path = AnnealingPath(FlatReference(), density, jnp.zeros(10))
    start = jax.random.normal(jax.random.key(9), (200, 10))

    @jax.jit
    def run(step_size):
        def body(i, carry):
            points, step_size, total = carry
            tuned = eqx.tree_at(lambda k: k.step_size, kernel, step_size)
            keys = jax.random.split(jax.random.fold_in(jax.random.key(10), i), 200)
            points, info = jax.vmap(lambda k, p: tuned.step(k, p, path.at(jnp.asarray(1.0))))(keys, points)
            acceptance = jnp.mean(info.acceptance_prob)
            return points, adapt_step_size(tuned, acceptance, i), total + jnp.where(i >= 150, acceptance, 0)

        points = jax.vmap(lambda y: path.evaluate(y)[0])(start)
        return jax.lax.fori_loop(0, 300, body, (points, step_size, jnp.zeros(())))[2] / 150

    assert abs(float(run(kernel.step_size * factor)) - kernel.target_acceptance) < 0.05


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
@pytest.mark.parametrize("make", [RandomWalk, MALA, lambda s: HMC(s, 3)], ids=NAMES)
def test_step_sizes_must_be_positive_and_finite(make, bad):
    with pytest.raises(InvalidInputError, match="step_size must be positive"):
        make(bad)


def test_hmc_takes_at_least_one_leapfrog_step():
    with pytest.raises(InvalidInputError, match="at least 1, got 0"):
        HMC(0.1, 0)


@pytest.mark.parametrize("bad", [0.0, -0.5, 1.5, np.nan])
def test_the_smallest_step_is_a_share_of_the_largest(bad):
    with pytest.raises(InvalidInputError, match="smallest_step must be in"):
        HMC(0.1, 3, bad)


def test_jittered_steps_get_through_where_their_largest_is_unstable():
    # Leapfrog is stable on N(0, 1) for steps below 2: of those log-uniform in [0.2, 20], half are.
    path = AnnealingPath(FlatReference(), LogDensity(lambda y: -0.5 * jnp.sum(y**2), 1), jnp.zeros(1))
    start = jax.random.normal(jax.random.key(11), (N_CHAINS, 1))

    def share_moved(kernel):
        new = jax.vmap(lambda k, y: kernel.step(k, path.evaluate(y)[0], path.at(jnp.asarray(1.0)))[0].position)
        return float(np.mean(np.asarray(jax.jit(new)(jax.random.split(jax.random.key(12), N_CHAINS), start)) != start))

    assert share_moved(HMC(20.0, 8)) < 0.01
    assert 0.35 < share_moved(HMC(20.0, 8, 0.01)) < 0.55
