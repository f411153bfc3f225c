"""log Z of OASMC, AIS and NRPT where it is known to be 0 and modes differ in width.

    python benchmarks/log_evidence.py

"widths": in two dimensions, each axis ½ N(0, 1) + ½ N(8, .05²). "two": .3 N(-5·1, I) + .7 N(5·1, .3² I) in five
dimensions. Every run has the same number of evaluations in production: annealed particles take many short chains, and
tempering takes few long ones, since its chains must have converged for its standard error to mean anything. The last
column is the error in the estimate's own standard errors; TV is that of the modes' weights.
"""

import argparse
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from cdsampler import LogDensity, run
from cdsampler.benchmark import Preset, build_sampler, tune_sampler, with_budget_per_sample

SAMPLERS = ("oasmc", "ais", "nrpt")
N_LONG_CHAINS = 64


def widths(y: jax.Array) -> jax.Array:
    """Return the log density of the product of two mixtures."""
    wide = -0.5 * y**2
    narrow = -0.5 * ((y - 8) / 0.05) ** 2 - jnp.log(0.05)
    return jnp.sum(jnp.logaddexp(wide, narrow) - jnp.log(2) - 0.5 * jnp.log(2 * jnp.pi))


def two(y: jax.Array) -> jax.Array:
    """Return the log density of two modes in five dimensions."""
    norm = 2.5 * jnp.log(2 * jnp.pi)
    wide = jnp.log(0.3) - 0.5 * jnp.sum((y + 5) ** 2)
    narrow = jnp.log(0.7) - 0.5 * jnp.sum(((y - 5) / 0.3) ** 2) - 5 * jnp.log(0.3)
    return jnp.logaddexp(wide, narrow) - norm


def _weights_of_widths(x: np.ndarray) -> np.ndarray:
    kind = 2 * (x[:, 0] > 6.5) + (x[:, 1] > 6.5)
    return np.bincount(kind, minlength=4) / len(x)


def _weights_of_two(x: np.ndarray) -> np.ndarray:
    right = np.mean(x.mean(axis=1) > 0)
    return np.array([1 - right, right])


# Modes of different widths need steps of different sizes.
SETTINGS = {"n_particles": 1000, "kernel": "hmc", "n_leapfrog": 1, "smallest_step": 0.05}
CASES: dict[str, tuple[Callable[..., jax.Array], int, Preset, Callable[[np.ndarray], np.ndarray], list[float]]] = {
    "widths": (widths, 2, Preset(10, reference_scale=8.0, step_size=0.1, **SETTINGS), _weights_of_widths, [0.25] * 4),
    "two": (two, 5, Preset(10, reference_scale=6.0, step_size=0.1, **SETTINGS), _weights_of_two, [0.3, 0.7]),
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=4000)
    parser.add_argument("--budget", type=int, default=2000, help="evaluations per returned sample, tuning apart")
    parser.add_argument("--seeds", default="0,1,2,3,4")
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    print(f"{'case':8}{'sampler':9}{'seed':>5}{'log Z':>10}{'error':>9}{'TV':>7}{'evaluations':>13}{'in errors':>11}")
    for case, (log_density, dim, preset, weights_of, truth) in CASES.items():
        density = LogDensity(log_density, dim)
        centre = np.zeros(dim)
        for name in SAMPLERS:
            for seed in map(int, arguments.seeds.split(",")):
                n = N_LONG_CHAINS if name == "nrpt" else arguments.samples
                budget = arguments.samples * arguments.budget // n
                tuned = tune_sampler(build_sampler(name, preset), density, centre, seed)
                sampler = with_budget_per_sample(tuned.sampler, budget)
                result = run(sampler, density, n, anchor=centre, seed=seed, tuning_evaluations=tuned.evaluations)
                assert result.log_z is not None
                log_z, error = result.log_z
                tv = 0.5 * np.abs(weights_of(result.positions) - truth).sum()
                spent = result.total_evaluations
                codes = " ".join(warning.code for warning in result.warnings)
                shown = f"{case:8}{name:9}{seed:5}{log_z:10.4f}{error:9.4f}{tv:7.3f}{spent:13}{log_z / error:11.2f}"
                print(f"{shown}  {codes}", flush=True)


if __name__ == "__main__":
    main()
