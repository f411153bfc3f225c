"""Sampler overhead: time per evaluation of NRPT and CDS over that of the bare batched value-and-gradient.

Both are measured in one process, alternately, after compilation, and the smallest of the repeats is kept, since
machines are noisy. The bare evaluation is timed twice: on as many points at once as all chains have replicas
(the issue's yardstick), and in blocks that fit the cache (the best that the bare evaluation can do).
"""

import argparse
import time

import jax
import numpy as np

from cdsampler import benchmark
from cdsampler.sampling import run
from cdsampler.tuning import find_mode


def bare_seconds(density, n_points: int, block: int) -> float:
    """Return seconds per evaluation of the bare batched value-and-gradient."""
    evaluate = jax.jit(jax.vmap(lambda y: density.value_and_gradient(y)[:2]))
    points = 30 * jax.random.normal(jax.random.key(0), (n_points, density.dim), density.dtype)
    blocks = [points[i : i + block] for i in range(0, n_points - block + 1, block)]
    jax.block_until_ready(evaluate(blocks[0]))
    began = time.perf_counter()
    for part in blocks:
        jax.block_until_ready(evaluate(part))
    return (time.perf_counter() - began) / (block * len(blocks))


def sampler_seconds(name: str, task: str, n_chains: int, n_steps: int) -> tuple[float, int]:
    """Return seconds per evaluation of a run after compilation, and its number of replicas."""
    preset = benchmark.PRESETS[task]
    target = benchmark.build_target(task)
    density = target.density()
    mode = find_mode(density)
    tuned = benchmark.tune_sampler(benchmark.build_sampler(name, preset), density, mode.position, 0, n_rounds=2)
    transport = preset.integration_steps if name == "cds" else 0
    budget = preset.n_replicas * (n_steps + 1) + transport
    sampler = tuned.sampler.with_budget(budget)
    run(sampler.with_budget(preset.n_replicas * 2 + transport), density, n_chains, anchor=mode.position)
    began = time.perf_counter()
    result = run(sampler, density, n_chains, anchor=mode.position)
    seconds = time.perf_counter() - began
    return seconds / int(result.evaluations.total().count), preset.n_replicas


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chains", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tasks", default="gm-2,gm-16")
    arguments = parser.parse_args()
    print(f"{'task':8} {'sampler':8} {'ns/eval':>8} {'bare':>8} {'ratio':>6} {'bare, cached':>13} {'ratio':>6}")
    for task in arguments.tasks.split(","):
        density = benchmark.build_target(task).density()
        n_points = arguments.chains * benchmark.PRESETS[task].n_replicas
        for name in ("nrpt", "cds"):
            rows = []
            for _ in range(arguments.repeats):
                ours, _ = sampler_seconds(name, task, arguments.chains, arguments.steps)
                bare = min(bare_seconds(density, n_points, n_points) for _ in range(3))
                cached = min(bare_seconds(density, n_points, 5_000) for _ in range(3))
                rows.append((ours, bare, cached))
            ours, bare, cached = np.min(np.array(rows), axis=0) * 1e9
            print(
                f"{task:8} {name:8} {ours:8.0f} {bare:8.0f} {ours / bare:6.2f} {cached:13.0f} {ours / cached:6.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
