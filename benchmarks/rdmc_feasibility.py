"""Where reverse diffusion Monte Carlo is feasible: errors against inner chains, dimension and evaluations.

    python benchmarks/rdmc_feasibility.py

On a single Gaussian, N(1, I), the error is that of the mean in standard errors of exact draws, and the ratio of the
standard deviation to the true one; on the mixtures it is the total variation of the modes' weights over its floor, with
that of annealed particles at the same evaluations beside it.
"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np

from cdsampler import LogDensity, benchmark, run
from cdsampler.benchmark import Preset, build_sampler, tune_sampler, with_budget_per_sample
from cdsampler.metrics import mode_weight_total_variation

PER_INNER_CHAIN = 200  # evaluations of each inner chain over all reverse steps


def gaussian(dim: int, n_inner: int, n: int) -> str:
    """Return mean and spread of reverse diffusion on N(1, I)."""
    density = LogDensity(lambda y: -0.5 * jnp.sum((y - 1) ** 2), dim)
    preset = Preset(n_replicas=2, reference_scale=3.0, n_inner=n_inner)
    tuned = tune_sampler(build_sampler("rdmc", preset), density, np.zeros(dim), 0)
    sampler = with_budget_per_sample(tuned.sampler, PER_INNER_CHAIN * n_inner)
    x = run(sampler, density, n, anchor=np.zeros(dim)).positions.astype(np.float64)
    worst = np.max(np.abs(x.mean(axis=0) - 1)) * np.sqrt(n)
    return f"worst mean {worst:.1f} standard errors, sd {x.std(axis=0).mean():.3f} of 1"


def mixture(task: str, n_inner: int, n: int) -> str:
    """Return the error of the weights, and that of annealed particles at the same evaluations."""
    target = benchmark.build_target(task)
    exact = benchmark.exact_reference(target)
    of = lambda x: mode_weight_total_variation(exact.responsibilities(x.astype(np.float64)), exact.weights)  # noqa: E731
    floor = np.mean([of(exact.draw(i, n)) for i in range(10)])
    preset = benchmark.with_overrides(benchmark.preset_of(task), n_inner=n_inner)
    texts = []
    for name in ("rdmc", "oasmc"):
        ready = benchmark.prepare(name, target, n, PER_INNER_CHAIN * n_inner, preset=preset)
        texts.append(f"{name} {of(benchmark.produce(ready, n).positions) / floor:.2f}")
    return "TV over floor: " + ", ".join(texts)


def main() -> None:
    """Print a line for each target and number of inner chains."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=500)
    parser.add_argument("--inner", default="10,100,1000", help="inner chains")
    arguments = parser.parse_args()
    n = arguments.samples
    for n_inner in map(int, arguments.inner.split(",")):
        for dim in (2, 16):
            text = gaussian(dim, n_inner, n)
            print(
                f"gaussian-{dim:<3} {n_inner:5} inner chains, {PER_INNER_CHAIN * n_inner:7} a sample: {text}",
                flush=True,
            )
        for task in ("gm-2", "gmnu-2", "gm-16"):
            text = mixture(task, n_inner, n)
            print(f"{task:12} {n_inner:5} inner chains, {PER_INNER_CHAIN * n_inner:7} a sample: {text}", flush=True)
        jax.clear_caches()


if __name__ == "__main__":
    main()
