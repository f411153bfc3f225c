"""Finite-sample floors: what a metric reads when the sampler is exact.

A distance between two finite samples of one law is not zero. Beside each value goes its floor, the mean of
the metric over independent exact samples of the same size: a value at its floor cannot be told from exact
sampling. The two samples of a pair are the halves of one draw: where a finite pool of reference samples is
drawn from without replacement, they have no row in common.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from cdsampler.metrics._validate import FloatArray, require_at_least

ExactSampler = Callable[[int, int], np.ndarray]
"""``(seed, n) -> [n, dim]``: n independent exact draws, a function of the seed alone."""


class Floor(NamedTuple):
    """Mean and standard deviation of a metric over exact samples; ``std`` is NaN for one repeat."""

    mean: float
    std: float
    repeats: int


def two_sample_floor(
    metric: Callable[[FloatArray, FloatArray], float],
    exact_sampler: ExactSampler,
    n: int,
    repeats: int,
    rng: np.random.Generator,
) -> Floor:
    """Floor of a metric that compares two samples.

    Parameters
    ----------
    metric : callable
        ``([n, dim], [n, dim]) -> float``.
    exact_sampler : callable
        ``(seed, n) -> [n, dim]``, independent exact draws.
    n : int
        Size of each sample; take the size that the evaluated sample has.
    repeats : int
        Number of independent pairs.
    rng : numpy.random.Generator
        Source of the seeds.

    Returns
    -------
    Floor
        Over ``metric(A, B)`` for independent exact A and B.

    Raises
    ------
    InvalidInputError
        If ``n`` or ``repeats`` is below 1.
    """
    return summarise([metric(a, b) for a, b in exact_pairs(exact_sampler, n, repeats, rng)])


def one_sample_floor(
    metric: Callable[[FloatArray], float],
    exact_sampler: ExactSampler,
    n: int,
    repeats: int,
    rng: np.random.Generator,
) -> Floor:
    """Floor of a metric that compares one sample with exact numbers.

    Parameters
    ----------
    metric : callable
        ``[n, dim] -> float``.
    exact_sampler : callable
        ``(seed, n) -> [n, dim]``, independent exact draws.
    n : int
        Size of the sample; take the size that the evaluated sample has.
    repeats : int
        Number of independent samples.
    rng : numpy.random.Generator
        Source of the seeds.

    Returns
    -------
    Floor
        Over ``metric(A)`` for independent exact A.

    Raises
    ------
    InvalidInputError
        If ``n`` or ``repeats`` is below 1.
    """
    _require_positive(n, repeats)
    return summarise([metric(_draw(exact_sampler, n, rng)) for _ in range(repeats)])


def exact_pairs(
    exact_sampler: ExactSampler, n: int, repeats: int, rng: np.random.Generator
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield ``repeats`` pairs of independent exact samples [n, dim], for several metrics to share.

    Each pair is one draw of ``2 n`` rows, split in halves.

    Raises
    ------
    InvalidInputError
        If ``n`` or ``repeats`` is below 1.
    """
    _require_positive(n, repeats)
    for _ in range(repeats):
        both = _draw(exact_sampler, 2 * n, rng)
        yield both[:n], both[n:]


def summarise(values: Sequence[float]) -> Floor:
    """Return the `Floor` of a metric's values over exact samples.

    Raises
    ------
    InvalidInputError
        If there is no value.
    """
    require_at_least("The number of repeats", len(values), 1)
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
    return Floor(float(np.mean(values)), spread, len(values))


def new_seed(rng: np.random.Generator) -> int:
    """Draw a seed, below 2³¹ so that any generator takes it."""
    return int(rng.integers(2**31))


def _draw(exact_sampler: ExactSampler, n: int, rng: np.random.Generator) -> FloatArray:
    return np.asarray(exact_sampler(new_seed(rng), n), dtype=np.float64)


def _require_positive(n: int, repeats: int) -> None:
    require_at_least("n", n, 1)
    require_at_least("repeats", repeats, 1)
