"""All metrics of one sample against an exact reference, each beside its finite-sample floor.

Energies are minus the log density; a sample outside the support has energy +inf, which matches nothing. The
squared MMD is unbiased, so its mean over exact pairs is about 0: its floor is the mean of its absolute value.
Its bandwidth is the median heuristic of two exact samples, so that samplers of one target share one kernel.
The expectation of the observable comes from 200 000 exact draws. Floors of the metrics that need no second
sample use both members of each exact pair.

Source: Castro-Macías et al. 2026, 'Conditional Diffusion Sampling', appendix 'Evaluation Metrics', with the
corrections and the floors described in each module.
"""

from collections import defaultdict
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cdsampler.metrics._validate import (
    FloatArray,
    as_finite_rows,
    require_at_least,
    require_same_dim,
)
from cdsampler.metrics.floors import Floor, exact_pairs, new_seed, summarise
from cdsampler.metrics.histogram import energy_total_variation
from cdsampler.metrics.mmd import median_bandwidth, mmd_squared
from cdsampler.metrics.modes import mode_weight_total_variation, modes_found
from cdsampler.metrics.moments import quadratic_observable, relative_mae
from cdsampler.metrics.reference import ExactReference
from cdsampler.metrics.transport import wasserstein_1_and_2

METRICS = {
    "wasserstein_2": "Wasserstein-2 distance to an exact sample (root of transport at squared distance)",
    "wasserstein_1": "Wasserstein-1 distance to an exact sample (optimal transport at plain distance)",
    "mmd_squared_energy": "Squared maximum mean discrepancy of the energies (unbiased, Gaussian kernel)",
    "energy_total_variation": "Total variation between 200-bin histograms of the energies",
    "relative_mae": "Relative error of the expectation of the quadratic observable",
    "mode_weight_total_variation": "Total variation between observed and exact mode weights (mixtures)",
    "modes_found": "Number of modes with at least a tenth of their expected mass (mixtures)",
}
"""Name and one-line description of every metric that `evaluate` reports, in its order."""

_EXPECTATION_DRAWS = 200_000
_BLOCK_ENTRIES = 4_000_000  # 32 MB of exact draws held at once for the expectation


class FloorRepeats(NamedTuple):
    """Repeats of the floors: pairs of exact samples for the transport metrics, and for all others."""

    transport: int = 3
    cheap: int = 20


DEFAULT_FLOOR_REPEATS = FloorRepeats()


class MetricValue(NamedTuple):
    """A metric of one sample.

    Attributes
    ----------
    name : str
        Key of `METRICS`.
    value : float
        The metric.
    floor : Floor or None
        The metric of exact samples of size ``n_used``; None for ``modes_found``.
    ratio : float or None
        ``value / floor.mean``, about 1 for an exact sampler; None without a floor, or with a floor of 0.
    n_used : int
        Number of samples that the metric was computed on.
    """

    name: str
    value: float
    floor: Floor | None
    ratio: float | None
    n_used: int


class _Yardstick(NamedTuple):
    """What one call of `evaluate` measures every sample with."""

    reference: ExactReference
    bandwidth: float
    observable_mean: float


def evaluate(
    samples: ArrayLike,
    reference: ExactReference,
    *,
    max_transport_samples: int | None = 2000,
    floor_repeats: FloorRepeats = DEFAULT_FLOOR_REPEATS,
    seed: int = 0,
) -> list[MetricValue]:
    """Compare a sample with an exact reference by every metric that the reference allows.

    The module's docstring says how each metric and its floor is taken.

    Parameters
    ----------
    samples : array_like, [n, dim]
        The sample to judge, at least two rows, taken as equally weighted.
    reference : ExactReference
        Exact sampler and log density of the target and, for a mixture, its responsibilities and weights.
    max_transport_samples : int, optional
        The Wasserstein distances use at most so many rows of each side, since their cost grows as n³: a
        random subsample of ``samples``, fixed by ``seed``. None uses all.
    floor_repeats : FloorRepeats
        Number of exact pairs behind each floor.
    seed : int
        Fixes the subsample and all exact draws.

    Returns
    -------
    list of MetricValue
        In the order of `METRICS`; the two mode metrics only if the reference has responsibilities.

    Raises
    ------
    InvalidInputError
        If a row of ``samples`` is not finite (the message names the count), there are fewer than two rows, an
        option is out of range, or the reference returns arrays of the wrong shape or dimension.
    """
    rows = as_finite_rows("samples", samples)
    require_at_least("The number of samples", len(rows), 2)
    n_transport = _transport_size(len(rows), max_transport_samples)
    require_at_least("floor_repeats.transport", floor_repeats.transport, 1)
    require_at_least("floor_repeats.cheap", floor_repeats.cheap, 1)
    rng = np.random.default_rng(seed)
    exact = reference.draw(new_seed(rng), len(rows))
    require_same_dim(rows, exact)
    yardstick = _yardstick(reference, exact, rng)
    subsample = rows[rng.choice(len(rows), n_transport, replace=False)]

    values = _transport(subsample, exact[:n_transport])
    values |= _two_sample(rows, exact, yardstick) | _one_sample(rows, yardstick)
    floors = _floors(len(rows), n_transport, yardstick, floor_repeats, rng)
    return [
        _with_floor(name, values[name], floors.get(name), n_transport if "wasserstein" in name else len(rows))
        for name in METRICS
        if name in values
    ]


def _transport_size(n: int, maximum: int | None) -> int:
    if maximum is None:
        return n
    require_at_least("max_transport_samples", maximum, 1)
    return min(n, maximum)


def _yardstick(reference: ExactReference, exact: FloatArray, rng: np.random.Generator) -> _Yardstick:
    other = reference.draw(new_seed(rng), len(exact))
    bandwidth = median_bandwidth(reference.energies(exact), reference.energies(other))
    draws_per_block = min(_EXPECTATION_DRAWS, max(1, _BLOCK_ENTRIES // exact.shape[1]))
    blocks = -(-_EXPECTATION_DRAWS // draws_per_block)
    means = [quadratic_observable(reference.draw(new_seed(rng), draws_per_block)).mean() for _ in range(blocks)]
    return _Yardstick(reference, bandwidth, float(np.mean(means)))


def _transport(x: FloatArray, y: FloatArray) -> dict[str, float]:
    first, second = wasserstein_1_and_2(x, y)
    return {"wasserstein_2": second, "wasserstein_1": first}


def _two_sample(x: FloatArray, y: FloatArray, yardstick: _Yardstick) -> dict[str, float]:
    u, v = yardstick.reference.energies(x), yardstick.reference.energies(y)
    return {
        "mmd_squared_energy": mmd_squared(u, v, yardstick.bandwidth),
        "energy_total_variation": energy_total_variation(u, v),
    }


def _one_sample(x: FloatArray, yardstick: _Yardstick) -> dict[str, float]:
    reference = yardstick.reference
    values = {"relative_mae": relative_mae(quadratic_observable(x), yardstick.observable_mean)}
    if reference.responsibilities is not None and reference.weights is not None:
        responsibilities = reference.responsibilities(x)
        values["mode_weight_total_variation"] = mode_weight_total_variation(responsibilities, reference.weights)
        values["modes_found"] = modes_found(responsibilities, reference.weights)
    return values


def _floors(
    n: int, n_transport: int, yardstick: _Yardstick, repeats: FloorRepeats, rng: np.random.Generator
) -> dict[str, Floor]:
    """Floors of all metrics from one set of exact pairs."""
    readings: dict[str, list[float]] = defaultdict(list)
    pairs = exact_pairs(yardstick.reference.draw, n, max(repeats), rng)
    for repeat, (first, second) in enumerate(pairs):
        parts: list[dict[str, float]] = []
        if repeat < repeats.transport:
            parts.append(_transport(first[:n_transport], second[:n_transport]))
        if repeat < repeats.cheap:
            parts.append(_two_sample(first, second, yardstick))
            parts += [_one_sample(first, yardstick), _one_sample(second, yardstick)]
        for part in parts:
            for name, value in part.items():
                readings[name].append(abs(value))
    readings.pop("modes_found", None)
    return {name: summarise(values) for name, values in readings.items()}


def _with_floor(name: str, value: float, floor: Floor | None, n_used: int) -> MetricValue:
    ratio = value / floor.mean if floor is not None and floor.mean > 0 else None
    return MetricValue(name, value, floor, ratio, n_used)
