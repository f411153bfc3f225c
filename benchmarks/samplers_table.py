"""Every sampler on the paper's tasks: errors over their floors, evaluations in both accountings, seconds.

    python benchmarks/samplers_table.py --out docs/results/samplers.csv

Each run finds a mode, tunes on a pilot, and draws 1 000 samples with the task's recommended settings and budget, which
is the evaluations per sample in production. The groups of annealed particles have two rows: "oasmc" returns all its
particles and gets the budget for each of them; "oasmc (one)" returns one of each group of 10, which gets the budget
once: the paper's accounting of independent samples. An error of 1 is that of exact draws. Finished runs in the file are
not repeated.
"""

import argparse
import csv
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from cdsampler import benchmark
from cdsampler.errors import InvalidInputError
from cdsampler.metrics import (
    ExactReference,
    energy_total_variation,
    mode_weight_total_variation,
    plausible_range,
    wasserstein_1_and_2,
)

TASKS = {"gm-2": 2000, "gmnu-2": 2000, "gm-16": 20_000, "lj-13": 2000}
ONE = {"returns": "one", "n_particles": 10}
ROWS: dict[str, tuple[str, dict[str, Any]]] = {name: (name, {}) for name in benchmark.SAMPLERS} | {
    f"{name} (one)": (name, ONE) for name in ("oasmc", "smc")
}
FIELDS = (
    "task",
    "sampler",
    "seed",
    "metric",
    "error_over_floor",
    "evaluations_per_independent_sample",
    "evaluations_per_returned_sample",
    "executed_per_returned_sample",
    "seconds",
    "log_z",
    "log_z_standard_error",
    "warnings",
)


class Judge:
    """Errors of one task's samples over the floor of exact draws of the same number."""

    def __init__(self, task: str, n: int):
        self.target = benchmark.build_target(task)
        self.exact = benchmark.exact_reference(self.target)
        self.n = n
        self.floors = {
            name: float(np.mean([self._errors(self.exact.draw(9000 + i, n), i)[name] for i in range(10)]))
            for name in self._errors(self.exact.draw(0, n), 1)
        }

    def errors(self, positions: np.ndarray, seed: int) -> dict[str, float]:
        """Return every metric over its floor."""
        found = self._errors(benchmark.metric_rows(self.target, positions), 500 + seed)
        return {name: value / self.floors[name] for name, value in found.items()}

    def _errors(self, rows: np.ndarray, seed: int) -> dict[str, float]:
        exact: ExactReference = self.exact
        others = exact.draw(100 + seed, self.n)
        if exact.weights is None:
            found, true = exact.energies(rows), exact.energies(others)
            return {"energy TV": energy_total_variation(found, true, limits=plausible_range(true))}
        assert exact.responsibilities is not None
        return {
            "mode TV": mode_weight_total_variation(exact.responsibilities(rows), exact.weights),
            "W2": wasserstein_1_and_2(rows, others)[1],
        }


def one_run(label: str, judge: Judge, budget: int, n: int, seed: int) -> Iterator[dict[str, Any]]:
    """Run one sampler once; yield a row for each metric, or one that says why there is none."""
    name, changes = ROWS[label]
    task = judge.target.name
    preset = benchmark.with_overrides(benchmark.preset_of(task), **changes)
    began = time.perf_counter()
    row: dict[str, Any] = {"task": task, "sampler": label, "seed": seed}
    try:
        ready = benchmark.prepare(name, judge.target, n, budget, preset=preset, seed=seed)
        result = benchmark.produce(ready, n, seed=seed)
    except InvalidInputError as error:
        yield row | {"metric": "failed", "warnings": str(error)}
        return
    log_z = result.log_z or ("", "")
    row |= {
        "evaluations_per_independent_sample": round(result.evaluations_per_sample),
        "evaluations_per_returned_sample": round(result.evaluations_per_returned_sample),
        "executed_per_returned_sample": round(result.executed_evaluations / n),
        "seconds": round(time.perf_counter() - began, 1),
        "log_z": log_z[0],
        "log_z_standard_error": log_z[1],
        "warnings": " ".join(warning.code for warning in result.warnings),
    }
    for metric, value in judge.errors(result.positions, seed).items():
        yield row | {"metric": metric, "error_over_floor": round(value, 3)}


def summary(rows: list[dict[str, str]]) -> Iterator[str]:
    """Yield a table: mean and spread over seeds of each task, sampler and metric."""
    yield f"{'task':8}{'sampler':18}{'metric':11}{'error/floor':>16}{'independent':>13}{'returned':>10}{'seconds':>9}"
    keys = dict.fromkeys((row["task"], row["sampler"], row["metric"]) for row in rows)
    for key in keys:
        runs = [row for row in rows if (row["task"], row["sampler"], row["metric"]) == key]
        if key[2] == "failed":
            yield f"{key[0]:8}{key[1]:18}failed: {runs[0]['warnings']}"
            continue
        column = lambda name, runs=runs: np.array([float(row[name]) for row in runs])  # noqa: E731
        errors = column("error_over_floor")
        spread = f"{errors.mean():.2f} ± {errors.std():.2f}"
        cost = column("evaluations_per_independent_sample").mean(), column("evaluations_per_returned_sample").mean()
        seconds = column("seconds").mean()
        yield f"{key[0]:8}{key[1]:18}{key[2]:11}{spread:>16}{cost[0]:13.0f}{cost[1]:10.0f}{seconds:9.1f}"


def main() -> None:
    """Run what the file lacks, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("samplers.csv"))
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--samplers", default=",".join(ROWS))
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--seeds", default="0,1,2")
    arguments = parser.parse_args()
    rows = list(csv.DictReader(arguments.out.open())) if arguments.out.exists() else []
    done = {(row["task"], row["sampler"], row["seed"]) for row in rows}
    for task in arguments.tasks.split(","):
        judge = None
        for label in arguments.samplers.split(","):
            for seed in arguments.seeds.split(","):
                if (task, label, seed) in done:
                    continue
                judge = Judge(task, arguments.samples) if judge is None else judge
                new = list(one_run(label, judge, TASKS[task], arguments.samples, int(seed)))
                is_new = not arguments.out.exists()
                with arguments.out.open("a", newline="") as file:
                    writer = csv.DictWriter(file, FIELDS, restval="")
                    if is_new:
                        writer.writeheader()
                    writer.writerows(new)
                print(
                    *(f"{r['task']} {label} {seed} {r['metric']} {r.get('error_over_floor')}" for r in new), flush=True
                )
            jax.clear_caches()
    print(*summary(list(csv.DictReader(arguments.out.open()))), sep="\n")


if __name__ == "__main__":
    main()
