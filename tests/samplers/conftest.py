from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cdsampler.density import LogDensity, Point
from cdsampler.kernels import AbstractKernel, KernelInfo
from cdsampler.paths import FlatReference, GaussianReference, TemperedDensity


class GaussianPath:
    """Reference N(0, s² I), target N(m, t² I) without its norm: every π_β is Gaussian, so everything is known."""

    def __init__(self, scale, mean, sd, constant=0.0):
        self.scale, self.mean, self.sd = scale, np.atleast_1d(np.asarray(mean, dtype=np.float64)), sd
        self.dim = len(self.mean)
        self.constant = constant
        self.log_z = constant + self.dim * (np.log(sd) + 0.5 * np.log(2 * np.pi))
        self._densities = {}

    @property
    def anchor(self):
        return np.zeros(self.dim)

    def reference(self, is_proper=True):
        return GaussianReference(self.scale) if is_proper else FlatReference()

    def density(self, dtype=np.float64):
        """The same object for the same dtype, so that compiled programs are reused."""
        if dtype not in self._densities:

            def log_density(y):
                standard = (y - jnp.asarray(self.mean, y.dtype)) / self.sd
                return -0.5 * jnp.sum(standard**2) + jnp.asarray(self.constant, y.dtype)

            self._densities[dtype] = LogDensity(log_density, self.dim, dtype=dtype)
        return self._densities[dtype]

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
        for hot, cold in zip(betas[:-1], betas[1:], strict=True):
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


@pytest.fixture(scope="session")
def quick_compilation():
    """Options for programs that run for milliseconds."""
    return {"xla_backend_optimization_level": 0}
