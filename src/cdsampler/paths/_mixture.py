from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

from cdsampler._typing import Array, Position, PRNGKey, Scalar
from cdsampler.errors import InvalidInputError
from cdsampler.paths._reference import AbstractReference

# Programs are compiled anew for every number of components and covariances, so both are rounded up to a multiple of
# this (two covariances stay two: that is what shared ones need).
COMPONENT_BLOCK = 16


class MixtureReference(AbstractReference):
    """A mixture of Gaussians, in target coordinates: what a pilot's draws say about the target, made a reference.

    Components may share covariances, so that particles with one common kernel cost little more than distances.

    Parameters
    ----------
    means : array_like, shape (n_components, dim)
        Absolute positions: the anchor has no say.
    scale_trils : array_like, shape (n_covariances, dim, dim)
        Lower Cholesky factors of the covariances.
    labels : array_like of int, shape (n_components,)
        Which covariance each component has.
    weights : array_like, shape (n_components,)
        Non-negative; they are normalised.

    Raises
    ------
    InvalidInputError
        Shapes don't fit, a weight is negative, or a Cholesky factor has a diagonal that isn't positive.

    Notes
    -----
    Tempering is exact for any reference, so the weights need not be right: see docs/one-call.md.
    """

    means: Array
    scale_trils: Array
    labels: Array
    log_weights: Array
    _whiteners: Array
    _whitened_means: Array
    _log_norms: Array
    is_proper: ClassVar[bool] = True

    def __init__(self, means: np.ndarray, scale_trils: np.ndarray, labels: np.ndarray, weights: np.ndarray):
        m, trils, w = (np.asarray(a, dtype=np.float64) for a in (means, scale_trils, weights))
        groups = np.asarray(labels, dtype=np.int32)
        _check(m, trils, groups, w)
        dim = m.shape[1]
        # Padding keeps the number of compiled programs small; its components have weight zero.
        if len(trils) > 2:
            spare = np.broadcast_to(np.eye(dim), (-len(trils) % COMPONENT_BLOCK, dim, dim))
            trils = np.concatenate([trils, spare])
        n_pad = -len(m) % COMPONENT_BLOCK
        m = np.concatenate([m, np.zeros((n_pad, dim))])
        groups = np.concatenate([groups, np.zeros(n_pad, np.int32)])
        with np.errstate(divide="ignore"):
            log_weights = np.log(np.concatenate([w / w.sum(), np.zeros(n_pad)]))
        whiteners = np.stack([np.asarray(solve_triangular(t, np.eye(dim), lower=True)) for t in trils])
        log_dets = np.log(np.diagonal(trils, axis1=1, axis2=2)).sum(axis=1)
        dtype = jnp.zeros(()).dtype
        self.means = jnp.asarray(m, dtype)
        self.scale_trils = jnp.asarray(trils, dtype)
        self.labels = jnp.asarray(groups)
        self.log_weights = jnp.asarray(log_weights, dtype)
        self._whiteners = jnp.asarray(whiteners, dtype)
        self._whitened_means = jnp.asarray(np.einsum("kij,kj->ki", whiteners[groups], m), dtype)
        self._log_norms = jnp.asarray(-log_dets[groups] - 0.5 * dim * np.log(2 * np.pi), dtype)

    def log_density_and_gradient(self, position: Position, anchor: Position) -> tuple[Scalar, Position]:
        """Return the normalised log density and its gradient."""
        dtype = position.dtype
        whiteners = self._whiteners.astype(dtype)
        projected = jnp.einsum("cij,j->ci", whiteners, position)
        offset = projected[self.labels] - self._whitened_means.astype(dtype)
        terms = (self.log_weights + self._log_norms).astype(dtype) - 0.5 * jnp.sum(offset**2, axis=1)
        value = jax.scipy.special.logsumexp(terms)
        pulls = jnp.exp(terms - value)[:, None] * offset
        per_covariance = jax.ops.segment_sum(pulls, self.labels, num_segments=whiteners.shape[0])
        return value, -jnp.einsum("cij,ci->j", whiteners, per_covariance)

    def sample(self, rng_key: PRNGKey, anchor: Position) -> Position:
        """Draw one independent sample."""
        key_component, key_noise = jax.random.split(rng_key)
        k = jax.random.categorical(key_component, self.log_weights)
        noise = jax.random.normal(key_noise, anchor.shape, anchor.dtype)
        return self.means[k].astype(anchor.dtype) + self.scale_trils[self.labels[k]].astype(anchor.dtype) @ noise


def _check(means: np.ndarray, scale_trils: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> None:
    if means.ndim != 2 or len(means) == 0:
        raise InvalidInputError(f"means must have shape (n_components, dim), got {means.shape}.")
    n, dim = means.shape
    if scale_trils.ndim != 3 or scale_trils.shape[1:] != (dim, dim):
        raise InvalidInputError(f"scale_trils must have shape (n_covariances, {dim}, {dim}), got {scale_trils.shape}.")
    if labels.shape != (n,) or np.any((labels < 0) | (labels >= len(scale_trils))):
        raise InvalidInputError(
            f"labels must name one of {len(scale_trils)} covariances for each of {n} components, got {labels!r}."
        )
    if weights.shape != (n,) or not (np.all(weights >= 0) and np.isfinite(weights.sum()) and weights.sum() > 0):
        raise InvalidInputError(f"weights must be {n} non-negative numbers with a positive sum, got {weights!r}.")
    diagonals = np.diagonal(scale_trils, axis1=1, axis2=2)
    if not (np.all(np.isfinite(means)) and np.all(np.isfinite(scale_trils)) and np.all(diagonals > 0)):
        raise InvalidInputError("Means and Cholesky factors must be finite, with positive diagonals.")
