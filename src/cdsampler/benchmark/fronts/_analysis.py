"""All that records say in one accounting, from one bootstrap."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cdsampler.benchmark.fronts._cells import Cell, cells_of
from cdsampler.benchmark.fronts._fronts import Front, fronts_of
from cdsampler.benchmark.fronts._hypervolume import HypervolumeRatio, ratios_of
from cdsampler.benchmark.fronts._means import N_RESAMPLES, means_of
from cdsampler.benchmark.fronts._reach import Reach, reaches


class Analysis(NamedTuple):
    """Error against cost in one accounting.

    Attributes
    ----------
    cells, fronts, reaches
        Of `cells_of`, `fronts` and `reaches`.
    ratios, unclipped
        Hypervolume ratios: an error below its floor counts as the floor, or as it is, as in the paper.
    """

    cells: list[Cell]
    fronts: list[Front]
    ratios: list[HypervolumeRatio]
    unclipped: list[HypervolumeRatio]
    reaches: list[Reach]


def analyse_records(
    records: Sequence[Mapping[str, Any]],
    accounting: str = "independent",
    *,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> Analysis:
    """Return fronts, hypervolume ratios and what it costs to come near the floor.

    Parameters
    ----------
    records
        Of `read_records`.
    accounting
        Key of `ACCOUNTINGS`: what a sample costs.
    n_resamples, seed
        Of the bootstrap.

    Returns
    -------
    Analysis

    Raises
    ------
    InvalidInputError
        See `cells_of`; or fewer than one resample.
    MissingExtraError
        moocore is absent.
    """
    cells = cells_of(records, accounting)
    means = means_of(cells, n_resamples, seed)
    return Analysis(
        cells,
        fronts_of(means.clipped()),
        ratios_of(means, records),
        ratios_of(means, records, is_clipped=False),
        reaches(cells),
    )
