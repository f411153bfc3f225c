import itertools
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cdsampler.density import LogDensity, Point
from cdsampler.kernels import AbstractKernel, KernelInfo
from cdsampler.paths import FlatReference, GaussianReference, TemperedDensity
from cdsampler.samplers import chain_keys


class UnnormalisedGaussian(eqx.Module):
    """`-‖y - m‖² / 2t² + c`; its numbers are arrays, so that densities which differ in them share programs."""

    mean: jax.Array
    sd: jax.Array
    constant: jax.Array

    def __call__(self, y):
        return -0.5 * jnp.sum(((y - self.mean) / self.sd) ** 2) + self.constant


class GaussianPath:
    """Reference N(0, s² I), target N(m, t² I) without its norm: every π_β is Gaussian, so everything is known."""

    def __init__(self, scale, mean, sd, constant=0.0):
        self.scale, self.mean, self.sd = scale, np.atleast_1d(np.asarray(mean, dtype=np.float64)), sd
        self.dim = len(self.mean)
        self.constant = constant
        self.log_z = constant + self.dim * (np.log(sd) + 0.5 * np.log(2 * np.pi))

    @property
    def anchor(self):
        return np.zeros(self.dim)

    def reference(self, is_proper=True):
        return GaussianReference(self.scale) if is_proper else FlatReference()

    def density(self, dtype=np.float64):
        numbers = (jnp.asarray(a, dtype) for a in (self.mean, self.sd, self.constant))
        return LogDensity(UnnormalisedGaussian(*numbers), self.dim, dtype=dtype)

    def moments(self, betas, is_proper=True):
        """Mean, shape (n_betas, dim), and variance, shape (n_betas,), of every π_β."""
        betas = np.asarray(betas, dtype=np.float64)
        precision = betas / self.sd**2 + ((1 - betas) / self.scale**2 if is_proper else 0.0)
        return (betas / self.sd**2 / precision)[:, None] * self.mean, 1 / precision

    def log_ratio(self, x):
        """Target minus reference in one dimension."""
        log_reference = -0.5 * (x / self.scale) ** 2 - np.log(self.scale) - 0.5 * np.log(2 * np.pi)
        return -0.5 * ((x - self.mean[0]) / self.sd) ** 2 - log_reference

    def _grid(self, beta):
        """Log ratio on a grid of π_β, with the quadrature's weights; one dimension."""
        mean, variance = self.moments([beta])
        standard = np.linspace(-8, 8, 801)
        weights = np.exp(-0.5 * standard**2)
        return self.log_ratio(mean[0, 0] + np.sqrt(variance[0]) * standard), weights / weights.sum()

    def rejections(self, betas):
        """E[1 - min(1, α)] of every neighbouring pair, by quadrature; one dimension."""
        out = []
        for hot, cold in itertools.pairwise(betas):
            (r_hot, w_hot), (r_cold, w_cold) = self._grid(hot), self._grid(cold)
            log_alpha = (cold - hot) * (r_hot[:, None] - r_cold[None, :])
            out.append(1 - w_hot @ np.exp(np.minimum(log_alpha, 0)) @ w_cold)
        return np.array(out)

    def barrier(self):
        """Λ = ∫ ½ E|V - V'| dβ by quadrature; one dimension."""
        u, weights = np.polynomial.legendre.leggauss(60)
        # β = u³ resolves the hot end, where the local barrier is largest.
        u, weights = 0.5 * (u + 1), 0.5 * weights
        total = 0.0
        for beta, weight in zip(u**3, weights * 3 * u**2, strict=True):
            r, w = self._grid(beta)
            total += weight * 0.5 * (w @ np.abs(r[:, None] - r[None, :]) @ w)
        return total


class PathNumbers(NamedTuple):
    """What an exact kernel has to know of a `GaussianPath`, as arrays."""

    mean: jax.Array
    target_precision: jax.Array
    reference_precision: jax.Array


class ExactGaussian(AbstractKernel):
    """Draws from π_β itself: exploration as efficient as the theory of round trips assumes it."""

    step_size: jax.Array
    numbers: PathNumbers
    target_acceptance: ClassVar[float] = 1.0
    needs_gradient: ClassVar[bool] = False

    def __init__(self, path):
        self.step_size = jnp.ones(())
        self.numbers = PathNumbers(jnp.asarray(path.mean), jnp.asarray(1 / path.sd**2), jnp.asarray(1 / path.scale**2))

    def move(self, noise, point: Point, density: TemperedDensity):
        cold = density.beta * self.numbers.target_precision
        precision = cold + (1 - density.beta) * self.numbers.reference_precision
        position = cold / precision * self.numbers.mean + noise.normal / jnp.sqrt(precision)
        new, evaluations = density.evaluate_value(position.astype(point.position.dtype))
        return new, KernelInfo(jnp.ones((), point.position.dtype), evaluations)

    def scaled(self, factor):
        return self

    @property
    def evaluations_per_step(self):
        return 1


@pytest.fixture(scope="module", autouse=True)
def _quick_compilation():
    """Compile without optimisation: these programs run for milliseconds."""
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


@pytest.fixture(scope="session")
def gaussian_path():
    return GaussianPath


@pytest.fixture(scope="session")
def exact_kernel():
    return ExactGaussian


@pytest.fixture(scope="session")
def plane_path():
    """Two dimensions, target off centre and narrower than the reference."""
    return GaussianPath(scale=2.0, mean=[1.5, -1.0], sd=0.6)


@pytest.fixture(scope="session")
def line_path():
    """One dimension, where rates are known by quadrature; Λ is about 1.5."""
    return GaussianPath(scale=20.0, mean=[15.0], sd=0.5)


@eqx.filter_jit
def _evaluate_all(stage, density, anchor, points):
    path = stage.path(density, anchor)
    one = path.evaluate if stage.kernel.needs_gradient else path.evaluate_value
    return jax.vmap(jax.vmap(lambda y: one(y)[0]))(points.position)


@pytest.fixture(scope="session")
def fresh_points():
    """Evaluate every replica of a stacked state anew."""
    return lambda stage, density, anchor, points: _evaluate_all(
        stage, density, jnp.asarray(anchor, density.dtype), points
    )


@eqx.filter_jit
def _run_all(stage, density, keys):
    path = stage.path(density, jnp.zeros(density.dim, density.dtype))

    def chain(key):
        def body(i, state):
            return stage.step(jax.random.fold_in(key, i + 1), state, i, None, path)

        return jax.lax.fori_loop(0, stage.n_steps, body, stage.init(jax.random.fold_in(key, 0), path, None))

    return jax.vmap(chain)(keys)


@pytest.fixture(scope="session")
def quick_run():
    """Final states of a stage's chains about the origin, with the driver's keys, in one program."""

    def run(stage, density, n_chains, seed=0):
        keys = chain_keys(jax.random.key(seed), np.arange(n_chains))
        return jax.tree.map(np.asarray, _run_all(stage, density, keys))

    return run
