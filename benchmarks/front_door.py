"""The one-call form on tasks with a known answer: errors over the floor, evaluations, log Z and warnings.

python benchmarks/front_door.py default      # many draws per chain, 2 000 draws, seeds 0 to 4
python benchmarks/front_door.py independent  # one chain per sample, 2 000 samples, seeds 0 to 2
python benchmarks/front_door.py evidence     # log Z over 20 seeds: is its standard error honest?
python benchmarks/front_door.py loud         # targets that mislead samplers: right, or warned on seeds 0 to 9?
python benchmarks/front_door.py ridges       # a curved ridge (the mean is 1, seeds 0 to 2) and a funnel (0, seed 0)
"""

import csv
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import cdsampler
from cdsampler import LogDensity, Result, benchmark
from cdsampler.metrics import evaluate

FOLDER = Path(__file__).parent.parent / "docs" / "results"
TASKS = ("gm-2", "gmnu-2", "gm-16", "gmnu-16")
BUDGETS = {"gm-2": 1000, "gmnu-2": 1000, "gm-16": 10_000, "gmnu-16": 20_000}


def normal(x: jnp.ndarray, mean: float, variance: float) -> jnp.ndarray:
    """Return the log density of N(mean, variance I)."""
    return -0.5 * jnp.sum((x - mean) ** 2) / variance - 0.5 * x.shape[0] * jnp.log(2 * jnp.pi * variance)


def spike(x: jnp.ndarray) -> jnp.ndarray:
    """Nine tenths of the mass in a spike beside, or rather inside, a broad bulk."""
    return jnp.logaddexp(jnp.log(0.9) + normal(x, 0, 1e-4), jnp.log(0.1) + normal(x, 0, 25.0))


def widths(x: jnp.ndarray) -> jnp.ndarray:
    """Per axis ½ N(0, 1) + ½ N(8, .0025)."""
    return jnp.sum(jnp.logaddexp(-0.5 * x**2, -0.5 * (x - 8) ** 2 / 0.0025 - jnp.log(0.05)))


def far(x: jnp.ndarray) -> jnp.ndarray:
    """Return the log density of N(50, .0025), unnormalised."""
    return -0.5 * jnp.sum((x - 50) ** 2) / 0.0025


def gaussian(x: jnp.ndarray) -> jnp.ndarray:
    """Return the log density of N(0, I), unnormalised."""
    return -0.5 * jnp.sum(x**2)


def banana(x: jnp.ndarray) -> jnp.ndarray:
    """Return the log density of x₁ ~ N(0, 1), x₂ ~ N(x₁², .01), unnormalised."""
    return -0.5 * x[0] ** 2 - 0.5 * (x[1] - x[0] ** 2) ** 2 / 0.01


def funnel(x: jnp.ndarray) -> jnp.ndarray:
    """Return the log density of x₁ ~ N(0, 9), the others ~ N(0, exp x₁), unnormalised (Neal 2003)."""
    return -(x[0] ** 2) / 18 - 0.5 * jnp.sum(x[1:] ** 2) * jnp.exp(-x[0]) - 0.5 * (x.shape[0] - 1) * x[0]


def in_spike(x: np.ndarray) -> float:
    """Share of the spike; truth .9."""
    return float(np.mean(np.linalg.norm(x, axis=1) < 0.2))


def both_narrow(x: np.ndarray) -> float:
    """Share of the narrowest mode; truth ¼."""
    return float(np.mean(np.all(np.abs(x - 8) < 0.5, axis=1)))


Target = tuple[Callable[[], LogDensity], dict[str, Any], Callable[[np.ndarray], float]]
LOUD: dict[str, Target] = {
    "spike": (lambda: LogDensity(spike, 8), {}, in_spike),
    "case-6": (lambda: LogDensity(widths, 2), {}, both_narrow),
    "case-7": (
        lambda: LogDensity(far, 2),
        {"reference_scale": 1.0, "anchor": np.zeros(2)},
        lambda x: float(x.mean()),
    ),
    "gmnu-16, sd 30": (
        lambda: benchmark.build_target("gmnu-16").density(),
        {"reference_scale": 30.0},
        lambda x: float(x.mean()),
    ),
    "gaussian-10": (lambda: LogDensity(gaussian, 10), {}, lambda x: float(x.std())),
    "gm-2": (lambda: benchmark.build_target("gm-2").density(), {}, lambda x: float(x.mean())),
}
RIDGES: dict[str, Target] = {
    "banana": (lambda: LogDensity(banana, 2), {}, lambda x: float(x[:, 1].mean())),
    "funnel": (lambda: LogDensity(funnel, 4), {}, lambda x: float(x[:, 0].mean())),
}


def task_row(name: str, seed: int, budget: int | None) -> dict[str, object]:
    """Run one task and compare it with exact draws."""
    target = benchmark.build_target(name)
    began = time.perf_counter()
    result = cdsampler.sample(
        target.density(), n_samples=2000, seed=seed, independent=budget is not None, budget=budget
    )
    seconds = time.perf_counter() - began
    metrics = {m.name: m for m in evaluate(result.positions, benchmark.exact_reference(target), seed=seed)}
    return {
        "task": name,
        "seed": seed,
        "budget": budget or "",
        "total": result.total_evaluations,
        "tuning": int(result.tuning_evaluations.count),
        "tv_over_floor": round(metrics["mode_weight_total_variation"].ratio or np.nan, 3),
        "w2_over_floor": round(metrics["wasserstein_2"].ratio or np.nan, 3),
        "modes": int(metrics["modes_found"].value),
        **evidence_of(result),
        "ess": round(float(result.ess.min())),
        "seconds": round(seconds, 1),
        "warnings": " ".join(w.code for w in result.warnings),
    }


def evidence_of(result: Result) -> dict[str, object]:
    """Return log Z and its standard error."""
    assert result.tempering is not None
    assert result.tempering.evidence is not None
    return {
        "log_z": round(result.tempering.evidence.log_z, 4),
        "log_z_error": round(result.tempering.evidence.standard_error, 4),
    }


def evidence_row(name: str, seed: int) -> dict[str, object]:
    """Run one task with few draws for log Z alone."""
    result = cdsampler.sample(benchmark.build_target(name).density(), n_samples=2000, seed=seed)
    return {"task": name, "seed": seed, **evidence_of(result)}


def loud_row(name: str, seed: int) -> dict[str, object]:
    """Run one misleading target."""
    make, settings, statistic = (LOUD | RIDGES)[name]
    result = cdsampler.sample(make(), n_samples=2000, seed=seed, **settings)
    return {
        "task": name,
        "seed": seed,
        "statistic": round(statistic(result.positions), 4),
        "total": result.total_evaluations,
        "warnings": " ".join(w.code for w in result.warnings),
    }


def rows(study: str) -> Iterator[dict[str, object]]:
    """Yield the rows of a study."""
    if study == "default":
        yield from (task_row(name, seed, None) for name in TASKS for seed in range(5))
    elif study == "independent":
        yield from (task_row(name, seed, BUDGETS[name]) for name in TASKS for seed in range(3))
    elif study == "evidence":
        yield from (evidence_row(name, seed) for name in TASKS for seed in range(20))
    elif study == "loud":
        yield from (loud_row(name, seed) for name in LOUD for seed in range(10))
    elif study == "ridges":
        yield from (loud_row(name, seed) for name, n in (("banana", 3), ("funnel", 1)) for seed in range(n))
    else:
        sys.exit(__doc__)


def main() -> None:
    """Run a study, print its rows and keep them as CSV."""
    study = sys.argv[1] if len(sys.argv) == 2 else ""
    warnings.simplefilter("ignore", cdsampler.SamplingWarning)
    writer, path, task = None, FOLDER / f"front-door-{study}.csv", ""
    for row in rows(study):
        if row["task"] != task:
            jax.clear_caches()  # programs of a dozen targets exhaust the memory maps that Linux grants a process
            task = str(row["task"])
        if writer is None:
            file = path.open("w", newline="")
            writer = csv.DictWriter(file, row.keys())
            writer.writeheader()
        writer.writerow(row)
        file.flush()
        print(*(f"{k}={v}" for k, v in row.items()), flush=True)


if __name__ == "__main__":
    main()
