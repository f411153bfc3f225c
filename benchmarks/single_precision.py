"""Errors of CDS in single and double precision at small t0, with few integration steps.

In path coordinates single precision loses x − z at small t0; in target coordinates there is nothing to lose. With
t0 = 0.001 and 10 steps an explicit integrator is far beyond its stability limit, so the uncapped rows are wrong in
both precisions: they are here to show that they stay finite and equally wrong. The capped rows are what is used.
"""

import argparse

import equinox as eqx
import jax
import numpy as np

from cdsampler import (
    CDS,
    MALA,
    NRPT,
    GaussianReference,
    benchmark,
    geometric_schedule,
    geometric_times,
    noise_variances,
)
from cdsampler.benchmark import exact_reference
from cdsampler.metrics import mode_weight_total_variation, wasserstein
from cdsampler.samplers import INTEGRATORS
from cdsampler.sampling import run
from cdsampler.tuning import find_mode


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="gm-2")
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--budget", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--t0", type=float, default=0.001)
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    target = benchmark.build_target(arguments.task)
    exact = exact_reference(target)
    preset = benchmark.PRESETS[arguments.task]
    times = geometric_times(arguments.t0, arguments.steps)
    betas = geometric_schedule(preset.n_replicas + 4, preset.beta_min)
    stage1 = NRPT(GaussianReference(1.0), betas, MALA(preset.step_size))
    truth = exact.sample(99, arguments.samples)
    print(f"floor: W1 {wasserstein(exact.sample(98, arguments.samples), truth, order=1):.3f}")
    print(f"{'integrator':20} {'σ² capped':>9} {'dtype':>8} {'finite':>7} {'TV':>7} {'W1':>10}")
    for integrator in INTEGRATORS:
        for capped in (True, False):
            for dtype in ("float32", "float64"):
                density = target.density(dtype)
                mode = find_mode(density)
                variances = noise_variances(times, preset.noise_variance)
                sampler = CDS(stage1, times, variances, integrator=integrator)
                tuned = benchmark.tune_sampler(sampler, density, mode.position, 0).sampler
                if not capped:
                    tuned = eqx.tree_at(lambda s: s.max_langevin_step, tuned, None)
                result = run(tuned.with_budget(arguments.budget), density, arguments.samples, anchor=mode.position)
                finite = np.all(np.isfinite(result.positions))
                tv = mode_weight_total_variation(exact.responsibilities(result.positions), exact.weights)
                w1 = wasserstein(result.positions.astype(np.float64), truth, order=1)
                print(f"{integrator:20} {capped!s:>9} {dtype:>8} {finite!s:>7} {tv:7.3f} {w1:10.4g}", flush=True)


if __name__ == "__main__":
    main()
