"""All metrics of one sample against an exact reference, each beside its finite-sample floor.

Energies are minus the log density, or what the reference says; a sample outside the support has energy +inf, which
matches nothing, as does one far beyond all exact energies in their histogram: it would widen every bin. The squared
MMD is unbiased, so its mean over exact pairs is about 0: its floor is the mean of its absolute value. Its bandwidth is
the median heuristic of two exact samples, so that samplers of one target share one kernel. The expectation of the
observable comes from 200 000 exact draws, or the whole of a finite pool. Floors of the metrics that need no second
sample use both members of each exact pair.

A pool of N reference rows gives no two independent samples of more than N/2 rows: more than that are never judged, but
a random subsample of N/2. The error of n rows against the mean of the pool has variance σ²(1/n + 1/N), and that of n
rows of the pool itself only σ²(1/n − 1/N), so that floors against the pool's own mean are scaled up by the root of the
ratio.

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
from cdsampler.metrics.histogram import energy_total_variation, plausible_range
from cdsampler.metrics.mmd import median_bandwidth, mmd_squared
from cdsampler.metrics.modes import mode_weight_total_variation, modes_found
from cdsampler.metrics.moments import quadratic_observable, relative_mae
from cdsampler.metrics.reference import ExactReference
from cdsampler.metrics.transport import energy_wasserstein_1

METRICS = {
    "wasserstein_2": "Wasserstein-2 distance to an exact sample (root of transport at squared distance)",
    "wasserstein_1": "Wasserstein-1 distance to an exact sample (optimal transport at plain distance)",
    "kabsch_wasserstein_2": "Wasserstein-2 distance after the best superposition (particles)",
    "kabsch_wasserstein_1": "Wasserstein-1 distance after the best superposition (particles)",
    "sorted_radius_wasserstein_2": "Wasserstein-2 distance of sorted distances from the centroid (clusters)",
    "pair_distance_total_variation": "Total variation between 200-bin histograms of pair distances (clusters)",
    "mmd_squared_energy": "Squared maximum mean discrepancy of the energies (unbiased, Gaussian kernel)",
    "energy_total_variation": "Total variation between 200-bin histograms of the energies",
    "energy_wasserstein_1": "Wasserstein-1 distance of the energies, in their unit",
    "relative_mae": "Relative error of the expectation of the quadratic observable",
    "ramachandran_kl": "Divergence of the histogram of φ and ψ (36² bins, half a draw added to each)",
    "ramachandran_kl_published": "The same as published: 100² bins, 1e-10 added to each share",
    "free_energy_rmse": "Error of the free energy of φ and ψ where the reference has mass, in kJ/mol",
    "c7ax_weight": "Weight of the basin C7ax, φ > 0 (no error: compare with the reference's)",
    "mean_nll": "Mean negative log likelihood per test label (no error: compare with the reference's)",
    "predictive_nll": "Negative log predictive likelihood per test label (no error: compare with the reference's)",
    "mode_weight_total_variation": "Total variation between observed and exact mode weights (mixtures)",
    "modes_found": "Number of modes with at least a tenth of their expected mass (mixtures)",
}
"""Name and one-line description of every metric that targets of this library have, in the order of `evaluate`."""

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
        Key of `METRICS`, or of the reference's own metrics.
    value : float
        The metric.
    floor : Floor or None
        The metric of exact samples of size ``n_used``; None for ``modes_found``.
    ratio : float or None
        ``value / floor.mean``, about 1 for an exact sampler; None without a floor, with a floor of 0, or where the
        metric is no error.
    n_used : int
        Number of samples that the metric was computed on.
    is_error : bool
        Whether less is better; if not, the value should agree with the floor.
    """

    name: str
    value: float
    floor: Floor | None
    ratio: float | None
    n_used: int
    is_error: bool = True


class _Yardstick(NamedTuple):
    """What one call of `evaluate` measures every sample with."""

    reference: ExactReference
    bandwidth: float
    limits: tuple[float, float]
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
        The sample to judge, at least two rows, taken as equally weighted, in the space of the reference's rows.
        Of more than half of the rows in a reference's pool, a random subsample is judged.
    reference : ExactReference
        Exact sampler and log density of the target, and what else suits it.
    max_transport_samples : int, optional
        The Wasserstein distances use at most so many rows of each side, since their cost grows as n³: a
        random subsample of ``samples``, fixed by ``seed``. None uses all.
    floor_repeats : FloorRepeats
        Number of exact pairs behind each floor.
    seed : int
        Fixes the subsamples and all exact draws.

    Returns
    -------
    list of MetricValue
        In the order of `METRICS`, metrics of other names last.

    Raises
    ------
    InvalidInputError
        If a row of ``samples`` is not finite (the message names the count), there are fewer than two rows, an
        option is out of range, or the reference returns arrays of the wrong shape or dimension.
    """
    rows = as_finite_rows("samples", samples)
    require_at_least("The number of samples", len(rows), 2)
    n = reference.usable(len(rows))
    n_transport = _transport_size(n, max_transport_samples)
    require_at_least("floor_repeats.transport", floor_repeats.transport, 1)
    require_at_least("floor_repeats.cheap", floor_repeats.cheap, 1)
    rng = np.random.default_rng(seed)
    judged = rows if n == len(rows) else rows[rng.choice(len(rows), n, replace=False)]
    both = reference.draw(new_seed(rng), 2 * n)
    exact, other = both[:n], both[n:]
    require_same_dim(judged, exact)
    energies = reference.energies(exact), reference.energies(other)
    limits = plausible_range(np.concatenate(energies))
    yardstick = _Yardstick(
        reference, median_bandwidth(*energies), limits, _observable_mean(reference, exact.shape[1], rng)
    )
    subsample = judged[rng.choice(n, n_transport, replace=False)]

    distances = dict(reference.transport(subsample, exact[:n_transport]))
    values = distances | _two_sample(judged, exact, yardstick) | _one_sample(judged, yardstick)
    floors = _floors(n, n_transport, yardstick, floor_repeats, rng)
    named = [*METRICS, *(name for name in values if name not in METRICS)]
    return [
        _with_floor(name, values[name], floors.get(name), n_transport if name in distances else n, reference)
        for name in named
        if name in values
    ]


def _transport_size(n: int, maximum: int | None) -> int:
    if maximum is None:
        return n
    require_at_least("max_transport_samples", maximum, 1)
    return min(n, maximum)


def _observable_mean(reference: ExactReference, dim: int, rng: np.random.Generator) -> float:
    if reference.size is not None:
        return float(quadratic_observable(reference.draw(new_seed(rng), reference.size)).mean())
    draws_per_block = min(_EXPECTATION_DRAWS, max(1, _BLOCK_ENTRIES // dim))
    blocks = -(-_EXPECTATION_DRAWS // draws_per_block)
    means = [quadratic_observable(reference.draw(new_seed(rng), draws_per_block)).mean() for _ in range(blocks)]
    return float(np.mean(means))


def _two_sample(x: FloatArray, y: FloatArray, yardstick: _Yardstick) -> dict[str, float]:
    u, v = yardstick.reference.energies(x), yardstick.reference.energies(y)
    values = {
        "mmd_squared_energy": mmd_squared(u, v, yardstick.bandwidth),
        "energy_total_variation": energy_total_variation(u, v, limits=yardstick.limits),
        "energy_wasserstein_1": energy_wasserstein_1(u, v),
    }
    return values | {name: float(metric(x, y)) for name, metric in yardstick.reference.extra.items()}


def _one_sample(x: FloatArray, yardstick: _Yardstick) -> dict[str, float]:
    reference = yardstick.reference
    values = {"relative_mae": relative_mae(quadratic_observable(x), yardstick.observable_mean)}
    if reference.responsibilities is not None and reference.weights is not None:
        responsibilities = reference.responsibilities(x)
        values["mode_weight_total_variation"] = mode_weight_total_variation(responsibilities, reference.weights)
        values["modes_found"] = modes_found(responsibilities, reference.weights)
    return values | {name: float(quantity(x)) for name, quantity in reference.quantities.items()}


def _floors(
    n: int, n_transport: int, yardstick: _Yardstick, repeats: FloorRepeats, rng: np.random.Generator
) -> dict[str, Floor]:
    """Floors of all metrics from one set of exact pairs."""
    readings: dict[str, list[float]] = defaultdict(list)
    reference = yardstick.reference
    pairs = exact_pairs(reference.draw, n, max(repeats), rng)
    for repeat, (first, second) in enumerate(pairs):
        parts: list[dict[str, float]] = []
        if repeat < repeats.transport:
            parts.append(dict(reference.transport(first[:n_transport], second[:n_transport])))
        if repeat < repeats.cheap:
            parts.append(_two_sample(first, second, yardstick))
            parts += [_one_sample(first, yardstick), _one_sample(second, yardstick)]
        for part in parts:
            for name, value in part.items():
                readings[name].append(value)
    readings.pop("modes_found", None)
    scale = _pool_scale(n, reference.size)
    floors = {}
    for name, values in readings.items():
        if name in reference.quantities:
            floor = summarise(values)
            floors[name] = floor._replace(std=scale * floor.std)
        else:
            floors[name] = summarise([(scale if name == "relative_mae" else 1.0) * abs(value) for value in values])
    return floors


def _pool_scale(n: int, size: int | None) -> float:
    """Return how much further n independent rows are from the mean of a pool than n rows of the pool itself."""
    return 1.0 if size is None else float(np.sqrt((size + n) / (size - n)))


def _with_floor(name: str, value: float, floor: Floor | None, n_used: int, reference: ExactReference) -> MetricValue:
    is_error = name not in reference.quantities
    ratio = value / floor.mean if is_error and floor is not None and floor.mean > 0 else None
    return MetricValue(name, value, floor, ratio, n_used, is_error)
