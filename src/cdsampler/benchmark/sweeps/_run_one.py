"""One run of a sweep, from tuning to metrics, in whatever process it is called."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from cdsampler.benchmark._presets import Preset
from cdsampler.benchmark._protocol import prepare, produce
from cdsampler.benchmark.sweeps._judge import Judge
from cdsampler.benchmark.sweeps._plan import Job, RunSpec
from cdsampler.benchmark.sweeps._records import Record, blank_record, failed_record, finished_record, now
from cdsampler.benchmark.sweeps._targets import is_of_catalog, target_of, what_builds
from cdsampler.sampling._compilation import compilation_seconds
from cdsampler.targets import AbstractTarget


@dataclass(frozen=True)
class Outcome:
    """What a run came to.

    Attributes
    ----------
    record
    samples, reference
        Arrays to be kept, of the run and of exact draws; empty if none are.
    """

    record: Record
    samples: dict[str, np.ndarray] = field(default_factory=dict)
    reference: dict[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class _Bench:
    """A task, ready for its runs."""

    target: AbstractTarget
    judge: Judge


# One task at a time: runs come task by task, and a pool of reference samples takes much memory.
_benches: dict[tuple[Any, ...], _Bench] = {}


def run_one(job: Job) -> Outcome:
    """Run once; whatever a run raises is in its record.

    Parameters
    ----------
    job

    Raises
    ------
    KeyboardInterrupt
        Interrupted: there is no record.
    """
    if job.problem:
        return Outcome(blank_record(job.spec, "infeasible", job.problem))
    started = now()
    try:
        with _default_dtype(job.spec.dtype):
            return _run(job, started)
    except Exception as error:
        # A sweep of hundreds of runs goes on; the record says what went wrong.
        return Outcome(failed_record(job.spec, error, started))


def _run(job: Job, started: str) -> Outcome:
    spec = job.spec
    bench = _bench_of(job)
    # Tuning's own account of seconds has compilation in it.
    compiled = compilation_seconds()
    preset = Preset(**spec.settings)  # type: ignore[arg-type]
    ready = prepare(spec.sampler, bench.target, spec.n_samples, spec.budget, preset=preset, seed=spec.seed)
    compiling = compilation_seconds() - compiled
    result = produce(ready, spec.n_samples, seed=spec.seed)
    if result.is_partial:
        raise KeyboardInterrupt
    metrics = bench.judge.metrics(result.positions, spec.seed)
    return Outcome(
        finished_record(spec, result, (ready.seconds, compiling), metrics, started),
        bench.judge.kept(result) if job.keeps_samples else {},
        bench.judge.kept_reference(spec.n_samples) if job.keeps_reference else {},
    )


def _bench_of(job: Job) -> _Bench:
    spec: RunSpec = job.spec
    name = spec.task, job.target, spec.target_sha256, what_builds(spec.task), spec.dtype
    if name not in _benches:
        _benches.clear()
        target = target_of(spec.task, job.target, spec.target_sha256)
        _benches[name] = _Bench(target, Judge(target, is_of_catalog(spec.task, job.target)))
    return _benches[name]


@contextmanager
def _default_dtype(dtype: str) -> Iterator[None]:
    before = bool(jax.config.read("jax_enable_x64"))
    # For all threads: production runs in some of its own, where JAX's context manager has no effect.
    jax.config.update("jax_enable_x64", dtype == "float64")
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", before)
