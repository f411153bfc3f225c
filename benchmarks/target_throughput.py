"""Time per batched value-and-gradient of the targets, beside a loop in Numba (Lennard-Jones) and OpenMM (molecule).

Our densities are evaluated as samplers do, through `LogDensity`, vmapped and compiled, in blocks that fit the cache,
a share of the points on each core; the best of a few block sizes is kept, and so is the least time of the repeats,
since machines are noisy. The Numba loop visits each pair once, with as many threads as cores, in the same precision.
OpenMM's Reference platform, which has one thread, is called in a loop: positions are set, energy and forces read.

    pip install numba openmm openmmtools
    python benchmarks/target_throughput.py

Without Numba or OpenMM the columns are left empty.
"""

import argparse
import csv
import math
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cdsampler import targets

try:
    import numba
except ImportError:
    numba = None

RESULTS = Path(__file__).parent.parent / "docs/results/target_throughput.csv"
BLOCKS = (32, 64, 128, 256, 512)
N_POINTS = {"lj-13": 10_000, "lj-55": 1_000, "aldp": 10_000, "aldp-implicit": 10_000, "bnn": 1_000}
MIN_SECONDS = 1.0
N_OPENMM = 500  # of its calls, all alike
TASKS = [(name, dtype) for name in N_POINTS for dtype in ("float32", "float64") if (name, dtype) != ("bnn", "float64")]


def build(name: str) -> Any:
    """Return the target of this name."""
    kind, _, option = name.partition("-")
    if kind == "lj":
        return targets.lennard_jones(int(option))
    if kind == "aldp":
        return targets.alanine_dipeptide(option or "vacuum")
    return targets.bayesian_neural_network()


def points(name: str, target: Any, n: int) -> np.ndarray:
    """Return points like those that a sampler visits, float64."""
    rng = np.random.default_rng(0)
    if name.startswith("lj"):
        # A cubic lattice with noise: no pair is in the rare short range, as in equilibrium.
        side = math.ceil(target.n_particles ** (1 / 3))
        lattice = np.stack(np.meshgrid(*3 * [np.arange(side)], indexing="ij"), -1).reshape(-1, 3)
        positions = 1.1 * lattice[: target.n_particles] + 0.05 * rng.normal(size=(n, target.n_particles, 3))
        return np.array(jax.jit(jax.vmap(target.from_positions))(jnp.asarray(positions)))
    scale = 1.0 if name == "bnn" else 0.05
    return scale * rng.normal(size=(n, target.dim))


def best_seconds(call: Callable[[], Any], repeats: int) -> float:
    """Return the least time of the repeats, of which there are more if they are short, after one that compiles."""
    call()
    times: list[float] = []
    while len(times) < repeats or sum(times) < MIN_SECONDS:
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)


def our_seconds(target: Any, dtype: str, q: np.ndarray, repeats: int) -> tuple[float, int]:
    """Return seconds per point with the best block size, and that size."""
    density = target.density(dtype)
    # Operations on blocks are too small for XLA to share out, so each core has its own call.
    parts = np.array_split(q, os.cpu_count() or 1)
    shares = [jnp.asarray(part, dtype) for part in parts]
    pool = ThreadPoolExecutor(len(shares))
    found = []
    for block in BLOCKS:

        @jax.jit
        def evaluate(x: jax.Array, block: int = block) -> Any:
            return jax.lax.map(lambda y: density.value_and_gradient(y)[:2], x, batch_size=block)

        def call(evaluate: Any = evaluate) -> None:
            list(pool.map(lambda x: jax.block_until_ready(evaluate(x)), shares))

        found.append((best_seconds(call, repeats) / len(q), block))
    return min(found)


def numba_loop() -> Callable[..., None]:
    """Return the parallel double loop; it fills arrays of energies and gradients of positions."""

    @numba.njit(parallel=True, fastmath=True)
    def evaluate(x: np.ndarray, energy: np.ndarray, gradient: np.ndarray) -> None:
        one, two, half = x.dtype.type(1), x.dtype.type(2), x.dtype.type(0.5)
        for k in numba.prange(x.shape[0]):
            total = x.dtype.type(0)
            for i in range(x.shape[1]):
                for c in range(3):
                    gradient[k, i, c] = x[k, i, c]
                    total += half * x[k, i, c] * x[k, i, c]
            for i in range(x.shape[1]):
                for j in range(i):
                    dx, dy, dz = x[k, i, 0] - x[k, j, 0], x[k, i, 1] - x[k, j, 1], x[k, i, 2] - x[k, j, 2]
                    inverse = one / (dx * dx + dy * dy + dz * dz)
                    sixth = inverse * inverse * inverse
                    total += two * (sixth * sixth - two * sixth)
                    slope = x.dtype.type(-24) * (sixth * sixth - sixth) * inverse
                    gradient[k, i, 0] += slope * dx
                    gradient[k, i, 1] += slope * dy
                    gradient[k, i, 2] += slope * dz
                    gradient[k, j, 0] -= slope * dx
                    gradient[k, j, 1] -= slope * dy
                    gradient[k, j, 2] -= slope * dz
            energy[k] = total

    return evaluate


def numba_seconds(target: Any, dtype: str, q: np.ndarray, repeats: int) -> float:
    """Return seconds per point of the double loop, which must agree with us."""
    x = np.array(jax.jit(jax.vmap(target.to_positions))(jnp.asarray(q)), dtype)
    evaluate, energy, gradient = numba_loop(), np.empty(len(x), dtype), np.empty_like(x)
    seconds = best_seconds(lambda: evaluate(x, energy, gradient), repeats) / len(x)
    ours = jax.jit(jax.vmap(target.log_density))(jnp.asarray(q[:100]))
    np.testing.assert_allclose(-energy[:100], ours, rtol=1e-4)
    return seconds


def openmm_seconds(target: Any, environment: str, q: np.ndarray, repeats: int) -> float:
    """Return seconds per point of OpenMM's Reference platform."""
    from openmm_agreement import Reference, openmm_system

    reference = Reference(openmm_system(environment)[0])
    x = np.array(jax.jit(jax.vmap(target.to_positions))(jnp.asarray(q[:N_OPENMM])))

    def loop() -> None:
        for one in x:
            reference.energy_and_forces(one)

    return best_seconds(loop, repeats) / len(x)


def other_seconds(name: str, target: Any, dtype: str, q: np.ndarray, repeats: int) -> tuple[str, float]:
    """Return what our time is compared with, and its seconds per point (NaN if it isn't there)."""
    if name.startswith("lj"):
        if numba is None:
            print("Numba isn't installed: pip install numba for the comparison.")
            return "numba", math.nan
        return "numba", numba_seconds(target, dtype, q, repeats)
    if name.startswith("aldp"):
        try:
            import openmm  # noqa: F401
        except ImportError:
            print("OpenMM isn't installed: pip install openmm for the comparison.")
            return "openmm-reference", math.nan
        environment = "implicit" if name.endswith("implicit") else "vacuum"
        return "openmm-reference", openmm_seconds(target, environment, q, repeats)
    return "", math.nan


def main() -> None:
    """Print the table and write it."""
    jax.config.update("jax_enable_x64", True)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--tasks", default=",".join(N_POINTS))
    parser.add_argument("--no-file", action="store_true", help="only print")
    arguments = parser.parse_args()
    rows = []
    print(f"{'task':14} {'dtype':8} {'block':>6} {'µs/point':>9} {'other':>17} {'µs/point':>9} {'ratio':>6}")
    for name, dtype in TASKS:
        if name not in arguments.tasks.split(","):
            continue
        target = build(name)
        q = points(name, target, N_POINTS[name])
        ours, block = our_seconds(target, dtype, q, arguments.repeats)
        other, seconds = other_seconds(name, target, dtype, q, arguments.repeats)
        figures = [f"{1e6 * ours:.2f}", other, f"{1e6 * seconds:.2f}", f"{seconds / ours:.2f}"]
        figures = ["" if figure == "nan" else figure for figure in figures]
        print(f"{name:14} {dtype:8} {block:6} {figures[0]:>9} {other:>17} {figures[2]:>9} {figures[3]:>6}", flush=True)
        rows.append([name, dtype, len(q), block, *figures])
    if not arguments.no_file:
        header = ["task", "dtype", "points", "block", "us_per_point", "other", "other_us_per_point", "other_over_ours"]
        with RESULTS.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([header, *rows])


if __name__ == "__main__":
    main()
