"""One plain record for each run: what the analysis reads."""

import datetime
import functools
import math
import os
import subprocess
import traceback
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import numpy as np

from cdsampler import __version__
from cdsampler.benchmark.sweeps._plan import RunSpec
from cdsampler.sampling import Result

Record = dict[str, Any]

FORMAT = 1
"""Of the store and of its records."""

MEASURED = (
    "evaluations_per_sample",
    "evaluations_per_returned_sample",
    "evaluations_total",
    "evaluations_tuning",
    "evaluations_executed",
    "seconds",
    "seconds_tuning",
    "seconds_compilation",
    "log_z",
    "log_z_error",
)
"""Fields that are null unless the run succeeded."""


def blank_record(
    spec: RunSpec, status: str, error: str = "", started: str = "", made_on: Record | None = None
) -> Record:
    """Return the record of a run that measured nothing.

    Parameters
    ----------
    spec
    status
        "ok", "failed" or "infeasible".
    error
        What went wrong.
    started
        ISO time; default now.
    made_on
        What `machine` returned in the process that made it; default this one.
    """
    asked = asdict(spec)
    names = ("task", "label", "sampler", "changes", "settings", "preset", "budget", "n_samples", "seed")
    return {
        "key": spec.key,
        **{name: asked[name] for name in names},
        "status": status,
        "error": error,
        **dict.fromkeys(MEASURED[:8]),
        "metrics": {},
        **dict.fromkeys(MEASURED[8:]),
        "diagnostics": {},
        "warnings": [],
        "warning_texts": [],
        **(machine() if made_on is None else made_on),
        "started": started or now(),
        "samples_file": "",
        **({} if spec.target_sha256 is None else {"target_sha256": spec.target_sha256}),
    }


def failed_record(spec: RunSpec, error: BaseException, started: str) -> Record:
    """Return the record of a run that raised: its message, and where it was raised."""
    place = traceback.extract_tb(error.__traceback__)[-1:]
    where = f" ({Path(place[0].filename).name}:{place[0].lineno} in {place[0].name})" if place else ""
    text = f"{type(error).__name__}: {error}{where}"
    return blank_record(spec, "failed", text, started)


def finished_record(
    spec: RunSpec, result: Result, tuning: tuple[float, float], metrics: Mapping[str, Mapping[str, Any]], started: str
) -> Record:
    """Return the record of a run that succeeded.

    Parameters
    ----------
    spec
    result
    tuning
        Seconds of mode search and tuning, and those of them that were compilation.
    metrics
        By name.
    started
        ISO time.
    """
    seconds, compiling = tuning
    log_z, log_z_error = (None, None) if result.log_z is None else result.log_z
    measured = {
        "evaluations_per_sample": result.evaluations_per_sample,
        "evaluations_per_returned_sample": result.evaluations_per_returned_sample,
        "evaluations_total": result.total_evaluations,
        "evaluations_tuning": int(result.tuning_evaluations.total().count),
        "evaluations_executed": int(result.executed_evaluations),
        "seconds": max(result.timing.total - result.timing.compilation, 0.0),
        "seconds_tuning": max(seconds - compiling, 0.0),
        "seconds_compilation": compiling + result.timing.compilation,
        "metrics": {name: dict(metric) for name, metric in metrics.items()},
        "log_z": log_z,
        "log_z_error": log_z_error,
        "diagnostics": _diagnostics(result),
        "warnings": [warning.code for warning in result.warnings],
        "warning_texts": [str(warning) for warning in result.warnings],
    }
    plain: Record = as_json(blank_record(spec, "ok", started=started) | measured)
    return plain


def _diagnostics(result: Result) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if result.tempering is not None:
        tempering = result.tempering
        n = len(result.positions)
        found |= {
            "barrier": tempering.barrier,
            "n_replicas": len(tempering.betas),
            "largest_rejection": float(np.max(tempering.rejection, initial=0.0)),
            "smallest_acceptance": float(np.min(tempering.acceptance)),
            "restarts_per_sample": float(np.sum(tempering.restarts)) / n,
            "round_trips_per_sample": float(np.sum(tempering.round_trips)) / n,
        }
    if result.annealing is not None:
        annealing = result.annealing
        found |= {
            "ess_smallest": annealing.smallest_ess,
            "effective_groups": annealing.effective_groups,
            "n_groups": annealing.n_groups,
            "ancestors": annealing.n_ancestors,
            "resamplings": annealing.n_resampled,
            "acceptance": annealing.acceptance,
        }
    if result.transport is not None:
        found["transport_acceptance"] = float(np.mean(result.transport.acceptance))
        found["transport_refused"] = float(np.mean(result.transport.refused))
    if result.spare_evaluations:
        found["spare_evaluations"] = result.spare_evaluations
    return found


def as_json(value: Any) -> Any:
    """Return nested plain values as JSON has them: numbers that aren't finite become null."""
    if isinstance(value, Mapping):
        return {str(name): as_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, np.ndarray | jax.Array):
        return as_json(np.asarray(value).tolist())
    if isinstance(value, np.generic):
        return as_json(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def machine() -> Record:
    """Return what records say about what makes them in this process; initialises JAX's device."""
    return {
        "version": __version__,
        "commit": commit(),
        "device": jax.devices()[0].device_kind,
        "host_cores": n_cores(),
        "jax_version": jax.__version__,
    }


@functools.cache
def commit() -> str:
    """Return the commit of the source tree that is running; empty for an installed package."""
    # A package in somebody's environment may lie inside a repository of theirs, whose commit says nothing.
    root = Path(__file__).resolve().parents[4]
    if not (root / ".git").exists():
        return ""
    command = ["git", "-C", str(root), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()
    except (OSError, subprocess.SubprocessError):  # no git here, or a repository that it refuses: there is no answer
        return ""


def n_cores() -> int:
    """Return the cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def now() -> str:
    """Return the time in UTC, ISO 8601."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
