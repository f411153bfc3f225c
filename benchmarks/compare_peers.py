"""Sets samplers of this library beside other implementations: same task, same settings, true counts of evaluations.

    python benchmarks/compare_peers.py --parts smc,hmc,digs,authors --digs CHECKOUT --authors CHECKOUT \
        --torch-python PATH --out docs/results/peers.csv

The parts, and what must agree:

smc      `cdsampler.SMC` and BlackJAX's `adaptive_tempered_smc`, one group of 1000 particles from N(mode, 50² I). With
         the temperatures that BlackJAX chose, ours is the same algorithm, but for BlackJAX's moving before it weighs:
         its last particles are weighted (here resampled) and lack the moves at β = 1, and its first moves are spent
         at β = 0. `oasmc` gets as many evaluations as BlackJAX used, and tunes its own temperatures and steps.
hmc      `cdsampler.HMC` and `blackjax.hmc` at one step size and length, on a Gaussian and on a mixture from its mode;
         also single trajectories from the same momenta and uniforms.
digs     `cdsampler.samplers.DiGS` and the DiGS release, one level of noise, after equal numbers of *sweeps*.
authors  Annealed particles and the SMC of the paper's authors, equal true evaluations, from one mode. Theirs tempers
         π^β from the mode, which is our reference=flat; the recommended reference is a Gaussian. Their moves start
         from a stale log density (see authors_runner.py); "repaired" is their code with that evaluated anew. Their
         step size starts at .1 and adapts as they go, ours is tuned for each β beforehand: a second comparison has
         the same temperatures and a constant step size, where "repaired" and ours must agree. They resample after
         the move, we before, so that their particles repeat each other more.

`nuts` isn't here: tests/samplers/test_nuts.py shows it to equal `blackjax.nuts` draw for draw. DiGS and the authors'
code need their checkouts and a Python with torch; without, these parts are skipped.

The table gives means over seeds with standard errors, and in column p a Welch test against the part's first line;
TV is that of the modes' weights, over its mean for exact samples of the same size; the spread in modes is the mean
square distance from the likeliest mode, over that of exact samples.
"""

import argparse
import csv
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from blackjax.mcmc.metrics import default_metric
from blackjax.smc import extend_params
from blackjax.smc.resampling import systematic
from scipy.stats import ttest_ind

from cdsampler import benchmark
from cdsampler.density import AbstractLogDensity, LogDensity
from cdsampler.kernels import HMC, MALA, Noise
from cdsampler.metrics import mode_weight_total_variation
from cdsampler.paths import FlatReference, GaussianReference, geometric_schedule
from cdsampler.samplers import SMC, DiGS, LocalChain, chain_keys, run_chunk
from cdsampler.sampling import Result, run
from cdsampler.tuning import find_mode
from compare_authors import authors_samples

jax.config.update("jax_enable_x64", True)
TASK = "gm-2"
TARGET = benchmark.build_target(TASK)
DIGS_RUNNER = Path(__file__).with_name("peer_digs.py")


class Row(NamedTuple):
    """One number of one run."""

    part: str
    task: str
    implementation: str
    seed: int
    quantity: str
    value: float


def rows(part: str, task: str, implementation: str, seed: int, values: dict[str, float]) -> Iterator[Row]:
    """Yield a row for each quantity."""
    for quantity, value in values.items():
        yield Row(part, task, implementation, seed, quantity, float(value))


def total_variation(samples: np.ndarray) -> float:
    """Total variation of the modes' weights."""
    exact = benchmark.exact_reference(TARGET)
    return mode_weight_total_variation(exact.responsibilities(samples), exact.weights)


def spread(samples: np.ndarray) -> float:
    """Mean square distance from the mean of the likeliest component."""
    likeliest = np.argmax(benchmark.exact_reference(TARGET).responsibilities(samples), axis=1)
    return float(np.mean((samples - np.asarray(TARGET.means)[likeliest]) ** 2))


@cache
def of_exact(n: int) -> tuple[float, float]:
    """Return both for n exact draws, averaged over 50 samples."""
    exact = [benchmark.exact_reference(TARGET).sample(9000 + i, n) for i in range(50)]
    return float(np.mean([total_variation(x) for x in exact])), float(np.mean([spread(x) for x in exact]))


def errors(samples: np.ndarray) -> dict[str, float]:
    """Return the errors of samples of the mixture; those that aren't finite are counted and left out."""
    finite = samples[np.all(np.isfinite(samples), axis=1)]
    tv, variance = of_exact(len(samples))
    values = {"TV over floor": total_variation(finite) / tv, "spread in modes": spread(finite) / variance}
    lost = len(samples) - len(finite)
    return values | ({"not finite": lost} if lost else {})


def production(result: Result) -> float:
    """Return evaluations per returned sample, without tuning."""
    return int(result.evaluations.total().count) / len(result.positions)


def ours(result: Result) -> dict[str, float]:
    """Return the numbers of a run of ours on the mixture."""
    n = len(result.positions)
    values = {"evaluations": production(result), **errors(result.positions)}
    tuning = int(result.tuning_evaluations.count) / n
    return values | ({"evaluations of tuning": tuning} if tuning else {})


class Meter:
    """A density for BlackJAX that counts, on the host, the points at which it's truly evaluated."""

    def __init__(self, density: AbstractLogDensity):
        self.value = self.gradient = 0
        shape = jax.ShapeDtypeStruct((), density.dtype)

        def count_value(values: np.ndarray) -> np.ndarray:
            self.value += np.size(values)
            return np.asarray(values)

        def count_gradient(values: np.ndarray) -> np.ndarray:
            self.gradient += np.size(values)
            return np.asarray(values)

        @jax.custom_vjp
        def log_density(y: jax.Array) -> jax.Array:
            return jax.pure_callback(count_value, shape, density.log_density(y), vmap_method="expand_dims")

        def forward(y: jax.Array) -> tuple[jax.Array, jax.Array]:
            value, gradient = density.value_and_grad(y)
            return jax.pure_callback(count_gradient, shape, value, vmap_method="expand_dims"), gradient

        log_density.defvjp(forward, lambda gradient, cotangent: (cotangent * gradient,))
        self.log_density = log_density


class Annealed(NamedTuple):
    """A run of BlackJAX's annealed particles."""

    positions: np.ndarray
    betas: list[float]
    log_z: float
    value: int
    gradient: int


def blackjax_smc(density: AbstractLogDensity, mode: np.ndarray, scale: float, settings: argparse.Namespace) -> Callable:
    """Return a function from seeds to runs of `adaptive_tempered_smc`."""
    meter, n, dim = Meter(density), settings.particles, density.dim

    def log_reference(y: jax.Array) -> jax.Array:
        return -0.5 * jnp.sum((y - mode) ** 2) / scale**2 - 0.5 * dim * jnp.log(2 * jnp.pi * scale**2)

    algorithm = blackjax.adaptive_tempered_smc(
        log_reference,
        lambda y: meter.log_density(y) - log_reference(y),
        blackjax.mala.build_kernel(),
        blackjax.mala.init,
        extend_params({"step_size": settings.smc_step_size}),
        systematic,
        target_ess=0.5,
        num_mcmc_steps=settings.moves,
    )
    step = jax.jit(algorithm.step)

    def sample(seed: int) -> Annealed:
        meter.value = meter.gradient = 0
        key_start, key_steps, key_last = jax.random.split(jax.random.key(seed), 3)
        state = algorithm.init(mode + scale * jax.random.normal(key_start, (n, dim), density.dtype))
        betas, log_z = [0.0], 0.0
        while betas[-1] < 1:
            state, info = step(jax.random.fold_in(key_steps, len(betas)), state)
            log_z += float(info.log_likelihood_increment)
            beta = float(state.tempering_param)
            betas.append(1.0 if beta > 1 - 1e-9 else beta)
        jax.block_until_ready(state)
        n_stages, per_stage = len(betas) - 1, (2 * n, n * (settings.moves + 1))
        assert (meter.value, meter.gradient) == (n_stages * per_stage[0], n_stages * per_stage[1]), vars(meter)
        chosen = systematic(key_last, state.weights, n)
        return Annealed(np.asarray(state.particles)[chosen], betas, log_z, meter.value, meter.gradient)

    return sample


def part_smc(settings: argparse.Namespace) -> Iterator[Row]:
    """Compare annealed particles with BlackJAX's."""
    n, moves = settings.particles, settings.moves
    preset = benchmark.with_overrides(benchmark.preset_of(TASK), n_particles=n, n_moves=moves)
    density = TARGET.density()
    mode = find_mode(density, benchmark.starting_point(TARGET)).position
    sample = blackjax_smc(density, mode, preset.reference_scale, settings)
    for seed in range(settings.smc_seeds):
        peer = sample(seed)
        values = {
            "evaluations": (peer.value + peer.gradient) / n,
            "value-only evaluations": peer.value / n,
            "temperatures": len(peer.betas),
            "log Z": peer.log_z,
            **errors(peer.positions),
        }
        yield from rows("smc", TASK, "blackjax adaptive_tempered_smc", seed, values)
        same = SMC(
            GaussianReference(preset.reference_scale),
            peer.betas,
            MALA(settings.smc_step_size),
            n_particles=n,
            n_moves=moves,
            ess_threshold=1.0,
        )
        result = run(same, density, n, anchor=mode, seed=seed)
        values = ours(result) | {"temperatures": len(peer.betas), "log Z": result.log_z[0]}
        yield from rows("smc", TASK, "cdsampler SMC, its temperatures", seed, values)
        budget = (peer.value + peer.gradient) // n
        protocol = benchmark.prepare("oasmc", TARGET, n, budget, preset=preset, seed=seed)
        result = benchmark.produce(protocol, n, seed=seed)
        values = ours(result) | {"temperatures": int(protocol.sampler.n_steps) + 1, "log Z": result.log_z[0]}
        yield from rows("smc", TASK, "cdsampler oasmc, equal budget", seed, values)


def gaussian_39() -> tuple[LogDensity, np.ndarray]:
    """Return a Gaussian in 39 dimensions with condition number 100, and its variances."""
    variances = np.geomspace(0.01, 1, 39)
    return LogDensity(lambda y: -0.5 * jnp.sum(y**2 / variances), 39), variances


def blackjax_chains(
    density: AbstractLogDensity, starts: np.ndarray, step: float, length: int, n_steps: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the last positions of chains of `blackjax.hmc`, and each chain's mean acceptance."""
    algorithm = blackjax.hmc(density.log_density, step, jnp.ones(density.dim), length)

    def chain(key: jax.Array, start: jax.Array) -> tuple[jax.Array, jax.Array]:
        first, keys = algorithm.init(start), jax.random.split(key, n_steps)
        state, info = jax.lax.scan(lambda state, k: algorithm.step(k, state), first, keys)
        return state.position, jnp.mean(info.acceptance_rate)

    keys = chain_keys(jax.random.key(1000 + seed), np.arange(len(starts)))
    return tuple(map(np.asarray, jax.jit(jax.vmap(chain))(keys, jnp.asarray(starts))))


def moments(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return means and variances of independent draws with their standard errors, each of shape (2, dim)."""
    squares = (x - x.mean(0)) ** 2
    values = np.stack([x.mean(0), squares.mean(0)])
    return values, np.stack([x.std(0), squares.std(0)]) / np.sqrt(len(x))


def rms(z: np.ndarray) -> float:
    """Root mean square; of z-scores about 1."""
    return float(np.sqrt(np.mean(z**2)))


def same_randomness(density: AbstractLogDensity, points: np.ndarray, step: float, length: int) -> float:
    """Return the largest difference of a transition from BlackJAX's, given its momenta and uniforms, over the scale."""
    algorithm = blackjax.hmc(density.log_density, step, jnp.ones(density.dim), length)
    path = LocalChain(HMC(step, length)).path(density, jnp.asarray(points[0]))
    metric = default_metric(jnp.ones(density.dim))

    def both(key: jax.Array, position: jax.Array) -> tuple[jax.Array, jax.Array]:
        key_momentum, key_accept = jax.random.split(key)
        noise = Noise(metric.sample_momentum(key_momentum, position), jax.random.uniform(key_accept))
        mine, _ = HMC(step, length).move(noise, path.evaluate(position)[0], path.at(jnp.ones(())))
        return mine.position, algorithm.step(key, algorithm.init(position))[0].position

    mine, theirs = jax.jit(jax.vmap(both))(chain_keys(jax.random.key(5), np.arange(len(points))), jnp.asarray(points))
    return float(np.max(np.abs(mine - theirs)) / np.max(np.abs(points)))


def part_hmc(settings: argparse.Namespace) -> Iterator[Row]:
    """Compare Hamiltonian Monte Carlo with BlackJAX's."""
    gaussian, variances = gaussian_39()
    mixture = TARGET.density()
    mode = find_mode(mixture, benchmark.starting_point(TARGET)).position
    n = settings.hmc_chains
    truth = np.stack([np.zeros(39), variances])
    for task, density, origin, scale, step, length in (
        ("gaussian-39 from exact", gaussian, np.zeros(39), np.sqrt(variances), 0.11, 12),
        ("gaussian-39 from its mode", gaussian, np.zeros(39), 0.0, 0.11, 12),
        (f"{TASK} from its mode", mixture, mode, 0.0, 1.0, 5),
    ):
        for seed in range(settings.seeds):
            n_steps = 100
            starts = origin + scale * np.random.default_rng(seed).normal(size=(n, len(origin)))
            theirs, their_acceptance = blackjax_chains(density, starts, step, length, n_steps, seed)
            keys = chain_keys(jax.random.key(seed), np.arange(n))
            outcome = run_chunk(LocalChain(HMC(step, length), n_steps), density, keys, jnp.asarray(starts))
            mine, my_acceptance = outcome.position[:, 0], outcome.statistics[0].acceptance
            per_chain = int(outcome.evaluations.total().count) / n
            (a, sa), (b, sb) = moments(theirs), moments(mine)
            for name, acceptance, value, error, evaluations in (
                ("blackjax hmc", their_acceptance, a, sa, 1 + length * n_steps),
                ("cdsampler hmc", my_acceptance, b, sb, per_chain),
            ):
                values = {"evaluations": evaluations, "acceptance": np.mean(acceptance)}
                if "exact" in task:
                    z = (value - truth) / error
                    values |= {"rms z of means to truth": rms(z[0]), "rms z of variances to truth": rms(z[1])}
                else:
                    values |= {"mean of x1": value[0, 0], "variance of x1": value[1, 0]}
                yield from rows("hmc", task, name, seed, values)
            z = (a - b) / np.sqrt(sa**2 + sb**2)
            error = np.sqrt((np.var(their_acceptance) + np.var(my_acceptance)) / n)
            values = {
                "rms z of means": rms(z[0]),
                "rms z of variances": rms(z[1]),
                "largest |z|": np.max(np.abs(z)),
                "z of acceptance": (np.mean(my_acceptance) - np.mean(their_acceptance)) / error,
                "given the same randomness": same_randomness(density, theirs[:300], step, length),
            }
            yield from rows("hmc", task, "difference of the two", seed, values)


def part_digs(settings: argparse.Namespace) -> Iterator[Row]:
    """Compare diffusive Gibbs sampling with the release."""
    density, n_chains = TARGET.density(), 500
    with tempfile.TemporaryDirectory() as folder:
        mixture, out = Path(folder) / "mixture.npz", Path(folder) / "digs.npz"
        np.savez(mixture, means=TARGET.means, weights=TARGET.mode_weights, variance=TARGET.variance)
        for seed in range(settings.seeds):
            command = [settings.torch_python, str(DIGS_RUNNER), str(settings.digs), "--mixture", str(mixture)]
            command += ["--out", str(out), "--seed", str(seed), "--chains", str(n_chains), "--sweeps", settings.sweeps]
            subprocess.run(command, check=True)
            with np.load(out) as data:
                kept = dict(data)
            for sweeps in map(int, settings.sweeps.split(",")):
                value, gradient = float(kept[f"value_{sweeps}"]), float(kept[f"gradient_{sweeps}"])
                values = {"evaluations": value + gradient, "value-only evaluations": value}
                values |= errors(kept[f"samples_{sweeps}"])
                task = f"{TASK}, {sweeps} sweeps"
                yield from rows("digs", task, "DiGS release", seed, values)
                sampler = DiGS(MALA(0.1), [0.1], sweeps, n_denoising=5)
                result = run(sampler, density, n_chains, anchor=np.zeros(TARGET.dim), seed=seed)
                yield from rows("digs", task, "cdsampler digs", seed, ours(result))


def part_authors(settings: argparse.Namespace) -> Iterator[Row]:
    """Compare annealed particles with the paper's authors' code, as each is run, and with one constant step size."""
    for budget in map(int, settings.authors_budgets.split(",")):
        for seed in range(settings.seeds):
            yield from as_published(settings, budget, seed)
            yield from with_constant_step(settings, budget, seed)


def authors_smc(
    settings: argparse.Namespace, budget: int, seed: int, *options: str
) -> tuple[np.ndarray, int, np.ndarray]:
    """Run the authors' particles; return samples, evaluations per sample and the mode they started at."""
    wanted = {"checkout": settings.authors, "task": TASK, "budget": budget, "samples": 1000, "mode": "highest"}
    return authors_samples(argparse.Namespace(torch_python=settings.torch_python, **wanted), "smc", seed, *options)


def as_published(settings: argparse.Namespace, budget: int, seed: int) -> Iterator[Row]:
    """Compare their particles with ours tuned, at equal evaluations; tuning comes on top."""
    paper = benchmark.with_overrides(benchmark.preset_of(TASK, "paper"), beta_min=1e-3)
    samples, evaluations, mode = authors_smc(settings, budget, seed)
    task = f"{TASK}, {evaluations} evaluations"
    yield from rows("authors", task, "authors' smc", seed, {"evaluations": evaluations, **errors(samples)})
    # Their repaired step costs three evaluations instead of two.
    samples, spent, _ = authors_smc(settings, 2 * budget // 3, seed, "--refresh-cache")
    yield from rows("authors", task, "authors' smc, repaired", seed, {"evaluations": spent, **errors(samples)})
    for label, name, preset in (
        ("cdsampler smc, flat", "smc", paper),
        ("cdsampler oasmc, flat", "oasmc", paper),
        ("cdsampler oasmc, Gaussian", "oasmc", benchmark.preset_of(TASK)),
    ):
        result = ours_at(name, preset, mode, evaluations, len(samples), seed)
        yield from rows("authors", task, label, seed, ours(result))


def with_constant_step(settings: argparse.Namespace, budget: int, seed: int) -> Iterator[Row]:
    """Compare with the same temperatures, and one step size of 1 that nobody adapts."""
    n_betas, options = budget // 100, ("--adaptation-rate", "0", "--step-size", "1")
    task = f"{TASK}, {n_betas} betas, step 1"
    for label, extra in (("authors' smc, repaired", ("--refresh-cache",)), ("authors' smc", ())):
        samples, evaluations, mode = authors_smc(settings, budget, seed, *options, *extra)
        yield from rows("authors", task, label, seed, {"evaluations": evaluations, **errors(samples)})
    betas = geometric_schedule(n_betas, 1e-3, with_zero=False)
    sampler = SMC(FlatReference(), betas, MALA(1.0), n_particles=100, ess_threshold=1.0, start="anchor")
    result = run(sampler, TARGET.density(), len(samples), anchor=mode, seed=seed)
    yield from rows("authors", task, "cdsampler SMC, flat", seed, ours(result))


def ours_at(name: str, preset: benchmark.Preset, mode: np.ndarray, budget: int, n: int, seed: int) -> Result:
    """Run a sampler about the given mode with that many evaluations per sample; tuning comes on top."""
    density = TARGET.density()
    tuned = benchmark.tune_sampler(
        benchmark.build_sampler(name, preset, budget), density, mode, seed, adapts_schedule=name != "smc"
    )
    sampler = benchmark.with_budget_per_sample(tuned.sampler, budget)
    return run(sampler, density, n, anchor=mode, seed=seed, tuning_evaluations=tuned.evaluations)


def print_table(table: list[Row]) -> None:
    """Print means over seeds with standard errors, and the test against the first implementation of each task."""
    groups: dict[tuple[str, str, str], dict[str, list[float]]] = defaultdict(dict)
    for row in table:
        groups[row.part, row.task, row.quantity].setdefault(row.implementation, []).append(row.value)
    for (part, task, quantity), by_name in groups.items():
        first = next(iter(by_name.values()))
        for i, (name, values) in enumerate(by_name.items()):
            error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
            is_count = "evaluations" in quantity or quantity == "temperatures"
            is_tested = i > 0 and not is_count and np.std(values) + np.std(first) > 0
            p = f"{ttest_ind(first, values, equal_var=False).pvalue:8.3f}" if is_tested else ""
            value = f"{np.mean(values):12.5g} ± {error:<9.2g}"
            print(f"{part:8} {task:26} {quantity:28} {name:32} {value} {p}", flush=True)


def write(path: Path, table: list[Row]) -> None:
    """Write the rows in place of those of the same parts; rows of other parts stay."""
    kept: list[list[str]] = []
    if path.exists():
        with path.open(newline="") as file:
            kept = [row for row in list(csv.reader(file))[1:] if row[0] not in {new.part for new in table}]
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Row._fields)
        writer.writerows(kept)
        writer.writerows(row._replace(value=float(f"{row.value:.6g}")) for row in table)


def main() -> None:
    """Run the parts asked for, print the table, and write the numbers of every seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--parts", default="smc,hmc,digs,authors")
    add("--digs", type=Path, help="clone of the DiGS release")
    add("--authors", type=Path, help="clone of the repository of the paper's authors")
    add("--torch-python", default=sys.executable, help="a Python with torch, numpy, scipy and tqdm")
    add("--seeds", type=int, default=3)
    add("--smc-seeds", type=int, default=20)
    add("--particles", type=int, default=1000)
    add("--moves", type=int, default=5, help="MALA steps at each temperature of part smc")
    add("--smc-step-size", type=float, default=1.0)
    add("--hmc-chains", type=int, default=2000)
    add("--sweeps", default="25,300", help="of DiGS")
    add("--authors-budgets", default="10000,50000", help="their nominal budgets, of a group of 100 particles")
    add("--out", type=Path, help="csv file, in which the rows of these parts are replaced")
    settings = parser.parse_args()
    parts = {"smc": part_smc, "hmc": part_hmc, "digs": part_digs, "authors": part_authors}
    unknown = [name for name in settings.parts.split(",") if name not in parts]
    if unknown:
        parser.error(f"no such part: {', '.join(unknown)}; there are {', '.join(parts)}")
    # torch's threads wait for each other far longer than such small batches take.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    table: list[Row] = []
    for name in settings.parts.split(","):
        if name in ("digs", "authors") and getattr(settings, name) is None:
            print(f"{name}: skipped, --{name} gives no checkout")
            continue
        made = list(parts[name](settings))
        print_table(made)
        table += made
    if settings.out is not None and table:
        write(settings.out, table)


if __name__ == "__main__":
    main()
