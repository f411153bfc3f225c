"""Clusters, alanine dipeptide and the neural network: errors over their floors against evaluations.

python benchmarks/expensive_targets.py lj-13   # 2 000 draws within 500 000 evaluations; 1 000 at 1 500 each
python benchmarks/expensive_targets.py lj-55   # 500 draws, no settings
python benchmarks/expensive_targets.py aldp    # 2 000 draws, no settings
python benchmarks/expensive_targets.py bnn     # four samplers at budgets per sample, 256 samples
"""

import csv
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

import cdsampler
from cdsampler import Result, benchmark
from cdsampler.kernels import HMC, MALA
from cdsampler.metrics import MetricValue, basin_weight, evaluate, negative_log_likelihoods
from cdsampler.samplers import AbstractSampler, LocalChain
from cdsampler.sampling import run
from cdsampler.targets import BayesianNeuralNetwork

FOLDER = Path(__file__).parent.parent / "docs" / "results"
SEEDS = (0, 1, 2)
BUDGETS = (1000, 4000, 10_000, 20_000)
N_NETWORKS = 256
# Step sizes that a local sampler's pilot tries, from large to small, for the first that reaches its target acceptance.
STEPS = {"mala": (1e-4, 5e-5, 2.5e-5, 1.2e-5, 6e-6), "hmc": (0.012, 0.009, 0.007, 0.005, 0.0035)}


def front_door(name: str, n_samples: int, seed: int, **settings: Any) -> dict[str, object]:
    """Draw by the one-call form, and compare with the reference."""
    target = benchmark.build_target(name)
    began = time.perf_counter()
    result = cdsampler.sample(
        target.density(), n_samples=n_samples, seed=seed, start=benchmark.starting_point(target), **settings
    )
    seconds = time.perf_counter() - began
    rows = benchmark.metric_rows(target, result.positions)
    values = evaluate(rows, benchmark.exact_reference(target), seed=seed)
    return {
        "task": name,
        "mode": "independent" if settings.get("independent") else "many draws",
        "seed": seed,
        "samples": len(result.positions),
        "total": result.total_evaluations,
        "tuning": int(result.tuning_evaluations.count),
        "per_sample": round(result.total_evaluations / len(result.positions)),
        **{metric.name: _shown(metric) for metric in values},
        **_basin(name, rows, result),
        "seconds": round(seconds, 1),
        "warnings": " ".join(w.code for w in result.warnings),
    }


def _shown(metric: MetricValue) -> str:
    ratio = "" if metric.ratio is None else f" = {metric.ratio:.2f} floors"
    return f"{metric.value:.4g}{ratio}"


def _basin(name: str, rows: np.ndarray, result: Result) -> dict[str, object]:
    if not name.startswith("aldp"):
        return {}
    phi = benchmark.backbone_angles(rows)[:, 0]
    basin = basin_weight((phi > 0).reshape(result.samples.shape[:2]))
    return {"c7ax": f"{basin.weight:.4f} ± {basin.standard_error:.4f}"}


def clusters(name: str) -> Iterator[dict[str, object]]:
    """LJ-13 with a hard limit and in independent mode; LJ-55 with no settings."""
    for seed in SEEDS:
        if name == "lj-13":
            yield front_door(name, 2000, seed, max_evaluations=500_000)
            yield front_door(name, 1000, seed, independent=True, budget=1500)
        else:
            yield front_door(name, 500, seed)


def molecule() -> Iterator[dict[str, object]]:
    """Alanine dipeptide with no settings."""
    for seed in SEEDS:
        yield front_door("aldp", 2000, seed)


def networks() -> Iterator[dict[str, object]]:
    """Test NLL of the network against evaluations per sample; every sampler starts from draws of the prior."""
    target = benchmark.build_target("bnn")
    assert isinstance(target, BayesianNeuralNetwork)
    density, preset = target.density(), benchmark.PRESETS["bnn"]
    anchor = np.zeros(density.dim)
    samplers: dict[str, tuple[AbstractSampler, int]] = {}
    for name in ("mala", "hmc-5", "hmc-25", "nrpt", "cds"):
        if name.startswith(("nrpt", "cds")):
            untuned = benchmark.build_sampler(name, replace(preset, n_replicas=12))
            tuned = benchmark.tune_sampler(untuned, density, anchor, 0)
            samplers[name] = (tuned.sampler, int(tuned.evaluations.total().count))
        else:
            samplers[name] = _tuned_local(density, name)
    for budget in BUDGETS:
        for name, (sampler, tuning) in samplers.items():
            # Local chains start at draws of the prior; the tempered ones draw from it themselves.
            scale = 1.0 if isinstance(sampler, LocalChain) else 0.0
            result = run(sampler.with_budget(budget), density, N_NETWORKS, anchor=anchor, anchor_scale=scale)
            nll = negative_log_likelihoods(np.asarray(target.test_log_likelihood(result.positions)))
            yield {
                "sampler": name,
                "budget": budget,
                "per_sample": result.evaluations_per_sample,
                "tuning": tuning,
                "mean_nll": round(nll.mean_nll, 4),
                "predictive_nll": round(nll.predictive_nll, 4),
                "mean_energy": round(float(-result.log_density.mean()), 1),
                "seconds": round(result.timing.total, 1),
            }


def _tuned_local(density: cdsampler.LogDensity, name: str) -> tuple[AbstractSampler, int]:
    """Return a local sampler whose step size a pilot of 32 chains of 2 000 evaluations found acceptable."""
    length = int(name.removeprefix("hmc-")) if name.startswith("hmc") else 1
    spent = 0
    for step in STEPS[name.split("-")[0]]:
        kernel = HMC(step, length) if name.startswith("hmc") else MALA(step)
        sampler = LocalChain(kernel)
        result = run(sampler.with_budget(2000), density, 32, anchor=np.zeros(density.dim), anchor_scale=1.0, seed=99)
        spent += result.total_evaluations
        # The chains' last states tell the acceptance where the samples are.
        starts = result.positions
        late = run(sampler.with_budget(400), density, 32, anchor=starts, seed=98)
        spent += late.total_evaluations
        moved = np.mean(np.any(late.positions != starts, axis=1))
        acceptance = _acceptance(kernel, density, late.positions)
        print(f"{name}, step {step:g}: acceptance {acceptance:.2f}, {moved:.0%} moved", flush=True)
        if acceptance >= kernel.target_acceptance:
            break
    return sampler, spent


def _acceptance(kernel: MALA | HMC, density: cdsampler.LogDensity, positions: np.ndarray) -> float:
    sampler = LocalChain(kernel).with_steps(1)
    kept = [
        np.any(run(sampler, density, len(positions), anchor=positions, seed=s).positions != positions, axis=1).mean()
        for s in range(8)
    ]
    return float(np.mean(kept))


def main() -> None:
    """Run the study named on the command line, and write its table."""
    study = sys.argv[1] if len(sys.argv) == 2 else ""
    studies = {
        "lj-13": lambda: clusters("lj-13"),
        "lj-55": lambda: clusters("lj-55"),
        "aldp": molecule,
        "bnn": networks,
    }
    if study not in studies:
        sys.exit(__doc__)
    warnings.simplefilter("ignore", cdsampler.SamplingWarning)
    rows = []
    for row in studies[study]():
        rows.append(row)
        print(row, flush=True)
        FOLDER.mkdir(parents=True, exist_ok=True)
        with (FOLDER / f"{study}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        jax.clear_caches()


if __name__ == "__main__":
    main()
