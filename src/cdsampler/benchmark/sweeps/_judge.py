"""Metrics of a task's runs, each beside a floor that is taken once for each number of samples."""

from typing import Any

import numpy as np

from cdsampler.benchmark._dihedrals import backbone_angles
from cdsampler.benchmark._exact import exact_reference, metric_rows
from cdsampler.benchmark._rows import energy_of
from cdsampler.metrics import ExactReference, Floor, FloorRepeats, evaluate
from cdsampler.sampling import Result
from cdsampler.targets import AbstractExactTarget, AbstractTarget, Molecule

MAX_TRANSPORT_SAMPLES = 2000
KEPT_ROWS = 2000

# The value of a run comes without a floor of its own, and `evaluate` takes at least one pair.
_NO_FLOOR = FloorRepeats(1, 1)
_FLOOR_SEED = 0


class Judge:
    """Compares the samples of a task's runs with its reference.

    Runs of one seed are compared with one exact sample, so that samplers differ by themselves alone; repeats of
    other seeds have another one, so that its noise averages out.

    Parameters
    ----------
    target
    is_of_catalog
        Others have metrics only with an exact sampler; what they are called says nothing.
    """

    def __init__(self, target: AbstractTarget, is_of_catalog: bool):
        self._target = target
        self._is_of_catalog = is_of_catalog
        has_reference = isinstance(target, AbstractExactTarget) or is_of_catalog
        self._exact: ExactReference | None = exact_reference(target) if has_reference else None
        self._floors: dict[int, dict[str, Floor]] = {}

    def metrics(self, positions: np.ndarray, seed: int) -> dict[str, dict[str, float | None]]:
        """Return value, floor, its standard deviation and their ratio, by name of the metric."""
        if self._exact is None:
            return {}
        rows = metric_rows(self._target, positions)
        floors = self._floors_of(len(rows), self._exact)
        found = evaluate(
            rows, self._exact, max_transport_samples=MAX_TRANSPORT_SAMPLES, floor_repeats=_NO_FLOOR, seed=seed
        )
        metrics = {}
        for metric in found:
            floor = floors.get(metric.name)
            has_ratio = metric.is_error and floor is not None and floor.mean > 0
            metrics[metric.name] = {
                "value": metric.value,
                "floor": None if floor is None else floor.mean,
                "floor_sd": None if floor is None else floor.std,
                "ratio": metric.value / floor.mean if has_ratio and floor is not None else None,
            }
        return metrics

    def kept(self, result: Result) -> dict[str, np.ndarray]:
        """Return what is kept of a run's samples: energies, and positions in the plane or backbone angles."""
        # Draws of a group or a chain are in any order, so that the first are as good as others.
        positions = result.positions[:KEPT_ROWS]
        return self._arrays(metric_rows(self._target, positions))

    def kept_reference(self, n: int) -> dict[str, np.ndarray]:
        """Return the same of n exact draws, but no more than there are or are kept; empty without a reference."""
        if self._exact is None:
            return {}
        n = min(n, KEPT_ROWS)
        return self._arrays(self._exact.draw(_FLOOR_SEED, n if self._exact.size is None else min(n, self._exact.size)))

    def _arrays(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        energies = energy_of(self._target)(rows) if self._exact is None else self._exact.energies(rows)
        arrays: dict[str, Any] = {"energies": np.asarray(energies, dtype=np.float32)}
        if rows.shape[1] == 2:
            arrays["positions"] = rows.astype(np.float32)
        if isinstance(self._target, Molecule) and self._is_of_catalog:
            arrays["angles"] = backbone_angles(rows).astype(np.float32)
        return arrays

    def _floors_of(self, n: int, exact: ExactReference) -> dict[str, Floor]:
        if n not in self._floors:
            drawn = exact.draw(_FLOOR_SEED, exact.usable(n))
            values = evaluate(drawn, exact, max_transport_samples=MAX_TRANSPORT_SAMPLES, seed=_FLOOR_SEED)
            self._floors[n] = {value.name: value.floor for value in values if value.floor is not None}
        return self._floors[n]
