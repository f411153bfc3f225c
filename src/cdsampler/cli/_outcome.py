"""What a run came to: tables on the console, and files."""

import json
import math
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cdsampler import __version__, benchmark, report
from cdsampler.benchmark import references
from cdsampler.cli._console import console
from cdsampler.cli._pictures import make_rows, save_pictures
from cdsampler.cli._progress import ReferenceBar
from cdsampler.errors import InvalidInputError, ReferenceWarning
from cdsampler.metrics import ExactReference, MetricValue, evaluate
from cdsampler.sampling import Result
from cdsampler.targets import AbstractExactTarget, AbstractTarget


@dataclass(frozen=True)
class Job:
    """What one `sample` command asks for, checked as far as that goes without evaluating anything.

    Attributes
    ----------
    target : str
    n_samples, seed : int
    out : Path or None
    settings : dict
        Of a sampler at a preset, for the record; empty for the tuned plan.
    """

    target: str
    n_samples: int
    seed: int
    out: Path | None
    settings: dict[str, Any] = field(default_factory=dict)


def show_outcome(job: Job, result: Result) -> None:
    """Compare a run's samples with the target's reference, print what came out, and write the files asked for."""
    target = benchmark.build_target(job.target)
    exact = _reference(target)
    values = None
    if exact is not None and len(result.positions) > 1:
        with console.status("Comparing with exact samples"):
            values = evaluate(benchmark.metric_rows(target, result.positions), exact, seed=job.seed)
        n_modes = len(target.mode_weights) if isinstance(target, AbstractExactTarget) else None
        console.print(report.metrics_table(values, n_modes=n_modes))
    console.print(report.cost_table(result))
    for table in (report.tempering_table(result), report.annealing_table(result)):
        if table is not None:
            console.print(table)
    panel = report.warnings_panel(result)
    if panel is not None:
        console.print(panel)
    if job.out is not None:
        _write(job, target, result, values, exact)


def _reference(target: AbstractTarget) -> ExactReference | None:
    """Return the target's reference, after a line that says where it comes from; None if there is none yet."""
    if isinstance(target, AbstractExactTarget):
        return benchmark.exact_reference(target)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ReferenceWarning)
        try:
            with ReferenceBar(target.name) as bar:
                pool = references.load_reference(target.name, on_progress=bar.update)
        except InvalidInputError as error:
            _say(f"No errors are shown: {error}")
            return None
    for warning in caught:
        if issubclass(warning.category, ReferenceWarning):
            _say(f"Warning: {warning.message}")
    how = "independent" if pool.is_independent else f"autocorrelation {pool.autocorrelation:.2g}"
    _say(
        f"Reference: {len(pool.samples):,} samples of {pool.name} ({how}) by {pool.provenance['method']}, "
        f"{pool.provenance['date']}; details: cdsampler reference {pool.name}"
    )
    return benchmark.exact_reference(target, pool)


def _say(text: str) -> None:
    console.print(text, highlight=False, markup=False)


def _write(
    job: Job, target: AbstractTarget, result: Result, values: list[MetricValue] | None, exact: ExactReference | None
) -> None:
    assert job.out is not None
    job.out.mkdir(parents=True, exist_ok=True)
    path = result.save(job.out / "samples.nc")
    pictures = save_pictures(job.out, target, result, make_rows(target, result, exact, job.seed), values)
    summary = {
        "version": __version__,
        "target": job.target,
        "n_samples": len(result.positions),
        "settings": job.settings,
        "total_evaluations": result.total_evaluations,
        **{k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in result.attributes().items()},
        "metrics": {value.name: _plain(value) for value in values or []},
    }
    (job.out / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
    console.print(f"Wrote {', '.join(map(str, [path, *pictures]))} and {job.out / 'summary.json'}.")


def _plain(value: MetricValue) -> dict[str, Any]:
    # JSON has no infinity, which is what energies outside the support are.
    finite = lambda x: x if x is None or math.isfinite(x) else None  # noqa: E731
    return {
        "value": finite(value.value),
        "floor": value.floor.mean if value.floor else None,
        "ratio": finite(value.ratio),
        "n": value.n_used,
    }
