"""Errors as multiples of their finite-sample floors, for every sampler at equal evaluations and several seeds.

The floor of W2 comes from pairs of exact draws of the same size, that of the mode weights' TV from exact draws; both
with their spread, since single draws scatter: an exact sampler exceeds its own mean floor half of the time.
"""

import argparse
import csv
import itertools
import sys
import time
from pathlib import Path

import numpy as np

from cdsampler import benchmark
from cdsampler.metrics import mode_weight_total_variation, one_sample_floor, two_sample_floor, wasserstein
from cdsampler.sampling import run
from cdsampler.tuning import find_mode

DEFAULTS = {
    "gm-2": (10_000, 2_000),
    "gmnu-2": (10_000, 2_000),
    "gm-16": (2_000, 20_000),
    "gmnu-16": (2_000, 50_000),
}
COLUMNS = [
    "task",
    "sampler",
    "n_samples",
    "budget",
    "seed",
    "evaluations_per_sample",
    "evaluations_per_returned_sample",
    "tv",
    "tv_floor",
    "tv_floor_sd",
    "tv_ratio",
    "w2",
    "w2_floor",
    "w2_floor_sd",
    "w2_ratio",
    "modes",
    "restarts",
    "never_restarted",
    "barrier",
    "log_z",
    "log_z_se",
    "seconds",
]


def floors(exact, n: int, with_w2: bool):
    """Return the floors of TV and, if wanted, W2."""
    tv = one_sample_floor(
        lambda x: mode_weight_total_variation(exact.responsibilities(x), exact.weights),
        exact.sample,
        n,
        50,
        np.random.default_rng(1),
    )
    w2 = two_sample_floor(wasserstein, exact.sample, n, 5, np.random.default_rng(2)) if with_w2 else None
    return tv, w2


def measure(task: str, sampler: str, n: int, budget: int, seed: int, preset, with_w2: bool, floor) -> dict:
    """Run one sampler once and return a row of the table."""
    target = benchmark.build_target(task)
    density, exact = target.density(), benchmark.exact_reference(target)
    began = time.perf_counter()
    mode = find_mode(density)
    tuned = benchmark.tune_sampler(benchmark.build_sampler(sampler, preset), density, mode.position, seed)
    result = run(
        tuned.sampler.with_budget(budget),
        density,
        n,
        anchor=mode.position,
        seed=seed,
        tuning_evaluations=tuned.evaluations + mode.evaluations.total(),
    )
    seconds = time.perf_counter() - began
    tv_floor, w2_floor = floor
    responsibilities = exact.responsibilities(result.positions)
    tv = mode_weight_total_variation(responsibilities, exact.weights)
    row = {
        "task": task,
        "sampler": sampler,
        "n_samples": n,
        "budget": budget,
        "seed": seed,
        "evaluations_per_sample": result.evaluations_per_sample,
        "evaluations_per_returned_sample": result.evaluations_per_returned_sample,
        "tv": tv,
        "tv_floor": tv_floor.mean,
        "tv_floor_sd": tv_floor.std,
        "tv_ratio": tv / tv_floor.mean,
        "modes": int(np.sum(responsibilities.mean(0) > 0.1 * exact.weights)),
        "seconds": seconds,
    }
    if with_w2:
        w2 = wasserstein(result.positions, exact.sample(1000 + seed, n))
        row |= {
            "w2": w2,
            "w2_floor": w2_floor.mean,
            "w2_floor_sd": w2_floor.std,
            "w2_ratio": w2 / w2_floor.mean,
        }
    if result.tempering is not None:
        row["restarts"] = float(np.mean(result.tempering.restarts))
        row["never_restarted"] = float(np.mean(result.tempering.restarts == 0))
        row["barrier"] = result.tempering.barrier
        if result.tempering.evidence is not None:
            row["log_z"], row["log_z_se"] = result.tempering.evidence[:2]
    return row


def main() -> None:
    """Print and optionally write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", default=",".join(DEFAULTS))
    parser.add_argument("--samplers", default="cds,nrpt")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--samples", type=int, help="default 10 000 in 2 dimensions, 2 000 in 16")
    parser.add_argument("--budgets", help="default 2 000, 20 000 (gm-16), 50 000 (gmnu-16)")
    parser.add_argument("--no-w2", action="store_true", help="skip the exact transport (36 s for 10 000 samples)")
    parser.add_argument("--out", type=Path, help="CSV file; rows are appended")
    arguments = parser.parse_args()
    writer = csv.DictWriter(sys.stdout, COLUMNS)
    writer.writeheader()
    seeds = [int(s) for s in arguments.seeds.split(",")]
    for task in arguments.tasks.split(","):
        n, budget = DEFAULTS[task]
        n = arguments.samples or n
        budgets = [int(b) for b in arguments.budgets.split(",")] if arguments.budgets else [budget]
        floor = floors(benchmark.exact_reference(benchmark.build_target(task)), n, not arguments.no_w2)
        for budget, sampler, seed in itertools.product(budgets, arguments.samplers.split(","), seeds):
            preset = benchmark.PRESETS[task]
            row = measure(task, sampler, n, budget, seed, preset, not arguments.no_w2, floor)
            row = {k: f"{v:.5g}" if isinstance(v, float) else v for k, v in row.items()}
            writer.writerow(row)
            sys.stdout.flush()
            if arguments.out is not None:
                _append(arguments.out, row)


def _append(path: Path, row: dict) -> None:
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if is_new:
            writer.writeheader()
        writer.writerow(row)


if __name__ == "__main__":
    main()
