"""Runs the authors' published code and cdsampler on one task at the same count of samples and *true* evaluations.

    python benchmarks/compare_authors.py CHECKOUT --torch-python PATH --task gm-2 --budget 2000 --samples 1000

CHECKOUT is a clone of the authors' repository; PATH is a Python that has torch, numpy, scipy and tqdm, since their
code needs torch and cdsampler doesn't. Their nominal budget counts one evaluation a step; their swaps evaluate the
target anew, so the true count is about twice that, and that is what cdsampler gets. Their budget of smc is that of a
group of 100 particles; its reference is flat, ours is Gaussian (benchmarks/compare_peers.py takes the two apart).
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from cdsampler import benchmark
from cdsampler.metrics import ExactReference, mode_weight_total_variation, wasserstein_1_and_2
from cdsampler.sampling import run
from cdsampler.tuning import find_mode

RUNNER = Path(__file__).with_name("authors_runner.py")
OURS = {"nrpt": "nrpt", "cds": "cds", "smc": "oasmc"}


def authors_samples(
    arguments: argparse.Namespace, sampler: str, seed: int, *options: str
) -> tuple[np.ndarray, int, np.ndarray]:
    """Run the authors' code; return samples, true evaluations per sample, and the mode that it started at."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "samples.npz"
        command = [arguments.torch_python, str(RUNNER), str(arguments.checkout), "--out", str(out)]
        command += ["--task", arguments.task, "--sampler", sampler, "--seed", str(seed)]
        command += ["--budget", str(arguments.budget), "--samples", str(arguments.samples)]
        command += ["--mode", arguments.mode, *options]
        if sampler == "cds":
            command += ["--t0", str(arguments.t0), "--integration-steps", str(arguments.integration_steps)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        with np.load(out) as data:
            evaluations = float(np.mean(data["value_evaluations"]) + np.mean(data["gradient_evaluations"]))
            return data["samples"].astype(np.float64), round(evaluations), data["mode"].astype(np.float64).reshape(-1)


def our_samples(task: str, sampler: str, budget: int, n: int, seed: int, start: np.ndarray) -> tuple[np.ndarray, int]:
    """Run cdsampler within that many evaluations per sample, tuning included, about the same mode."""
    density = benchmark.build_target(task).density()
    mode = find_mode(density, start)
    tuned = benchmark.tune_sampler(
        benchmark.build_sampler(sampler, benchmark.PRESETS[task]), density, mode.position, seed
    )
    set_up = tuned.evaluations + mode.evaluations.total()
    left = budget - -(-int(set_up.count) // n)
    sampler_in_budget = benchmark.with_budget_per_sample(tuned.sampler, left)
    result = run(sampler_in_budget, density, n, anchor=mode.position, seed=seed, tuning_evaluations=set_up)
    return result.positions.astype(np.float64), round(result.evaluations_per_returned_sample)


def row(label: str, samples: np.ndarray, evaluations: int, exact: ExactReference, seed: int) -> str:
    """Return a line of the table; samples that aren't finite are counted and left out of the errors."""
    finite = samples[np.all(np.isfinite(samples), axis=1)]
    w1, w2 = wasserstein_1_and_2(finite, exact.sample(5000 + seed, len(finite)))
    tv = mode_weight_total_variation(exact.responsibilities(finite), exact.weights)
    lost = len(samples) - len(finite)
    return f"{label:22} {seed:4} {evaluations:12} {tv:8.3f} {w1:10.2f} {w2:10.2f} {lost:10}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--torch-python", default=sys.executable)
    parser.add_argument("--task", choices=list(benchmark.TARGETS), default="gm-2")
    parser.add_argument("--budget", type=int, default=2000, help="the authors' nominal budget")
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--samplers", default="nrpt,cds", help="some of nrpt, cds and smc; smc needs a larger budget")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--t0", type=float, default=0.01)
    parser.add_argument("--integration-steps", type=int, default=100)
    parser.add_argument(
        "--mode", choices=["highest", "central"], default="highest", help="where the authors' code starts"
    )
    arguments = parser.parse_args()
    if not arguments.checkout.is_dir():
        parser.error(f"{arguments.checkout} is not a folder: clone the authors' repository there first")
    exact = benchmark.exact_reference(benchmark.build_target(arguments.task))
    print(f"{'':22} {'seed':>4} {'evaluations':>12} {'TV':>8} {'W1':>10} {'W2':>10} {'not finite':>10}")
    for seed in map(int, arguments.seeds.split(",")):
        print(row("exact draws (floor)", exact.sample(7000 + seed, arguments.samples), 0, exact, seed))
        for sampler in arguments.samplers.split(","):
            samples, evaluations, mode = authors_samples(arguments, sampler, seed)
            print(row(f"authors' {sampler}", samples, evaluations, exact, seed))
            own = OURS[sampler]
            ours, spent = our_samples(arguments.task, own, evaluations, arguments.samples, seed, mode)
            print(row(f"cdsampler {own}", ours, spent, exact, seed), flush=True)


if __name__ == "__main__":
    main()
