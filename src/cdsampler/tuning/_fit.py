"""A mixture of Gaussians fitted to a pilot's draws; every choice by cross-validation, which costs no evaluation."""

from typing import NamedTuple

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.linalg import cholesky, solve_triangular
from scipy.special import logsumexp

COUNTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 56, 64, 80, 96, 128)
SHAPES = ("diagonal", "shared", "own")
MAX_LINKED = 2000
DEFENSIVE_WEIGHT = 0.1
N_FOLDS = 2
N_REFINEMENTS = 10
# Nats by which the wide component must explain a draw better for it to be a surprise.
CLEARLY = 3.0
# Members with which the size of a component is known to a fifth or so.
ENOUGH_MEMBERS = 12


class MixtureFit(NamedTuple):
    """A fitted mixture.

    Attributes
    ----------
    means : ndarray, shape (n_components, dim)
    scale_trils : ndarray, shape (n_covariances, dim, dim)
        The last one belongs to the wide, defensive component, which is also the last component.
    labels : ndarray of int, shape (n_components,)
    weights : ndarray, shape (n_components,)
    n_members : ndarray, shape (n_components - 1,)
        Different draws that each component explains best.
    sizes : ndarray, shape (n_components - 1,)
        Geometric mean over coordinates of the members' standard deviations, whatever the shape; NaN with few members.
    shape : str
        Which kind of covariance won.
    score : float
        Mean log density of held-out draws.
    """

    means: np.ndarray
    scale_trils: np.ndarray
    labels: np.ndarray
    weights: np.ndarray
    n_members: np.ndarray
    sizes: np.ndarray
    shape: str
    score: float

    @property
    def n_components(self) -> int:
        """Components, the wide one apart."""
        return len(self.means) - 1

    def log_density(self, draws: np.ndarray) -> np.ndarray:
        """Return the log density at draws, shape (n_draws,)."""
        return logsumexp(self._terms(draws), axis=1)

    def component(self, draws: np.ndarray) -> np.ndarray:
        """Return which component, the wide one apart, explains each draw best; shape (n_draws,)."""
        return np.argmax(self._terms(draws)[:, :-1], axis=1)

    def size_ratio(self) -> float:
        """Return how many times wider the widest mode is than the narrowest, among those with enough members."""
        known = self.sizes[np.isfinite(self.sizes) & (self.sizes > 0)]
        return float(known.max() / known.min()) if len(known) else 1.0

    def local_variance(self) -> float:
        """Return the trace of the components' covariances, averaged by weight."""
        traces = np.sum(self.scale_trils**2, axis=(1, 2))
        return float(np.average(traces[self.labels[:-1]], weights=self.weights[:-1]))

    def wide_share(self, draws: np.ndarray) -> float:
        """Return the share of draws that only the wide component explains: signs of undiscovered mass."""
        terms = self._terms(draws)
        return float(np.mean(terms[:, -1] > logsumexp(terms[:, :-1], axis=1) + CLEARLY))

    def _terms(self, draws: np.ndarray) -> np.ndarray:
        return _log_terms(draws, self.means, self.scale_trils, self.labels, self.weights)


def fit_mixture(
    draws: np.ndarray,
    chains: np.ndarray,
    centre: np.ndarray,
    width: float,
    rng: np.random.Generator,
    *,
    groups: np.ndarray | None = None,
    max_components: int = 128,
) -> MixtureFit:
    """Fit a mixture with a wide component; number of components and kind of covariance by cross-validation.

    Clusters are those of Ward's linkage, refined by hard expectation–maximisation. A cluster's own covariance is
    shrunk towards the shape that all have in common, at its own size, so that a mode which was seen once is described
    as well as the others.

    Parameters
    ----------
    draws : ndarray, shape (n_draws, dim)
    chains : ndarray of int, shape (n_draws,)
        Which chain each came from: draws of one chain resemble each other, so they are held out together.
    centre : ndarray, shape (dim,)
        Of the wide component.
    width
        Its standard deviation.
    rng
        Shuffles draws into folds.
    groups : ndarray of int, shape (n_draws,), optional
        Draws with the same number are known to come from one mode: they are a cluster of their own, however small
        beside the others. -1 means not known.
    max_components
    """
    x, first = np.unique(np.asarray(draws, dtype=np.float64), axis=0, return_index=True)
    known = np.full(len(x), -1) if groups is None else groups[first]
    wide = (np.asarray(centre, dtype=np.float64), float(width))
    order = rng.permutation(len(x))
    fold_of = (rng.permutation(int(chains.max()) + 1) % N_FOLDS)[chains[first]]
    scores: dict[tuple[int, str], float] = {}
    n_smallest = len(x) - max(np.bincount(fold_of, minlength=N_FOLDS))
    counts = [c for c in COUNTS if c <= min(max_components, n_smallest // 2)]
    for fold in range(N_FOLDS):
        held_out = fold_of == fold
        train = np.array([j for j in order if not held_out[j]][:MAX_LINKED], dtype=np.int64)
        clusters = _Clusters(x[train], known[train])
        for count in counts:
            members = clusters.cut(count)
            for shape in SHAPES:
                part = _assembled(x[train], members, shape, wide)
                score = float(np.mean(logsumexp(_log_terms(x[held_out], *part), axis=1)))
                scores[count, shape] = scores.get((count, shape), 0.0) + score / N_FOLDS
    (count, shape), score = max(scores.items(), key=lambda item: item[1], default=((1, "diagonal"), -np.inf))
    linked = order[:MAX_LINKED]
    part = _assembled(x[linked], _Clusters(x[linked], known[linked]).cut(count), shape, wide)
    for _ in range(N_REFINEMENTS):
        _, members = np.unique(np.argmax(_log_terms(x, *part)[:, :-1], axis=1), return_inverse=True)
        part = _assembled(x, members, shape, wide)
    n_members = np.bincount(members)
    return MixtureFit(*part, n_members, _sizes(x, members, n_members), shape, score)


def _sizes(x: np.ndarray, members: np.ndarray, counts: np.ndarray) -> np.ndarray:
    sizes = np.full(len(counts), np.nan)
    for c in np.flatnonzero(counts >= ENOUGH_MEMBERS):
        sizes[c] = np.exp(np.mean(np.log(np.maximum(x[members == c].std(axis=0, ddof=1), 1e-300))))
    return sizes


class _Clusters:
    """Ward's tree over the draws whose mode isn't known, to be cut at any number of clusters."""

    def __init__(self, x: np.ndarray, groups: np.ndarray):
        self._groups = groups
        free = x[groups < 0]
        self._tree = linkage(free, "ward") if len(free) > 1 else None

    def cut(self, count: int) -> np.ndarray:
        """Return each draw's cluster, numbered from 0 without gaps."""
        members = self._groups.copy()
        is_free = members < 0
        first = members.max() + 1
        members[is_free] = first
        if self._tree is not None:
            members[is_free] = first + fcluster(self._tree, count, criterion="maxclust")
        return np.unique(members, return_inverse=True)[1]


def _assembled(
    x: np.ndarray, members: np.ndarray, shape: str, wide: tuple[np.ndarray, float]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return means, Cholesky factors, labels and weights of the clusters and the wide component."""
    dim = x.shape[1]
    counts: np.ndarray = np.bincount(members).astype(np.float64)
    k = len(counts)
    means = np.stack([np.bincount(members, weights=x[:, d], minlength=k) for d in range(dim)], axis=1)
    means = means / counts[:, None]
    centred = x - means[members]
    free = max(len(x) - k, 1)
    smallest = (1e-6 * wide[1]) ** 2
    pooled = _regular(centred.T @ centred / free, free, smallest, diagonal=shape == "diagonal")
    covariances, labels = [pooled], np.zeros(k, dtype=np.int64)
    if shape == "own":
        covariances, labels = _own_covariances(centred, members, counts, pooled, smallest), np.arange(k)
    trils = [cholesky(c, lower=True) for c in covariances]
    trils.append(wide[1] * np.eye(dim))
    weights = (1 - DEFENSIVE_WEIGHT) * (counts + 0.5) / (counts + 0.5).sum()
    return (
        np.concatenate([means, wide[0][None]]),
        np.stack(trils),
        np.append(labels, len(covariances)),
        np.append(weights, DEFENSIVE_WEIGHT),
    )


def _own_covariances(
    centred: np.ndarray, members: np.ndarray, counts: np.ndarray, pooled: np.ndarray, smallest: float
) -> list[np.ndarray]:
    """Return each cluster's covariance, shrunk towards the common shape at the cluster's own size."""
    dim = len(pooled)
    whitened = solve_triangular(cholesky(pooled, lower=True), centred.T, lower=True).T
    squares = np.bincount(members, weights=np.sum(whitened**2, axis=1))
    sizes = np.ones(len(counts))
    many = counts > 1
    sizes[many] = np.maximum(squares[many] / (dim * (counts[many] - 1)), 1e-12)
    # Sizes differ by orders of magnitude, so they are shrunk in the log: one draw says nothing, two say half.
    sizes = sizes ** (1 - counts**-1.0)
    scaled = centred / np.sqrt(sizes[members])[:, None]
    free = max(len(centred) - len(counts), 1)
    common = _regular(scaled.T @ scaled / free, free, smallest, diagonal=False)
    prior = dim + 2.0
    covariances = []
    for c, (count, size) in enumerate(zip(counts, sizes, strict=True)):
        own = centred[members == c]
        covariance = (own.T @ own + prior * size * common) / (count - 1 + prior)
        covariances.append(covariance + smallest * np.eye(dim))
    return covariances


def _regular(covariance: np.ndarray, n: float, smallest: float, *, diagonal: bool) -> np.ndarray:
    """Shrink a covariance of `n` draws towards its diagonal, and keep it from collapsing."""
    dim = len(covariance)
    variances = np.maximum(np.diag(covariance), smallest)
    share = 1.0 if diagonal else dim / (n + dim)
    return (1 - share) * covariance + share * np.diag(variances) + np.diag(1e-6 * variances)


def _log_terms(
    x: np.ndarray, means: np.ndarray, scale_trils: np.ndarray, labels: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Return log(weight · component density), shape (n_draws, n_components)."""
    dim = x.shape[1]
    out = np.empty((len(x), len(means)))
    for c, tril in enumerate(scale_trils):
        chosen = labels == c
        u = solve_triangular(tril, x.T, lower=True).T
        v = solve_triangular(tril, means[chosen].T, lower=True).T
        squares = np.maximum((u**2).sum(1)[:, None] - 2 * u @ v.T + (v**2).sum(1), 0)
        out[:, chosen] = -0.5 * squares - np.log(np.diag(tril)).sum() - 0.5 * dim * np.log(2 * np.pi)
    return out + np.log(weights)
