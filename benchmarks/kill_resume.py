"""Kill -9 a run at random moments, go on with it, and compare with the run that nobody killed.

Every run is a process of its own, so that nothing survives a kill but what is on the disk. For each moment the table
says in which phase the kill came, and whether samples, plan, accounts and warnings of the resumed run equal those of
the uninterrupted one. Each resumed run is killed once more, halfway to its end.

    python benchmarks/kill_resume.py [--kills 10] [--seed 0]
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

INTERVAL = 0.5


def density():
    """Return a mixture of three Gaussians in 4-d whose log density takes time, as one on the host does."""
    import jax
    import jax.numpy as jnp

    from cdsampler import LogDensity

    centres = np.array([[-8.0, 0, 0, 0], [8.0, 0, 0, 0], [0.0, 12.0, 0, 0]])

    def on_host(y):
        time.sleep(50e-6)
        squares = np.sum((y - centres) ** 2, axis=1)
        weights = np.exp(-0.5 * (squares - squares.min()))
        value = np.log(weights.sum()) - 0.5 * squares.min()
        gradient = (weights[:, None] * (centres - y)).sum(axis=0) / weights.sum()
        return np.asarray(value, y.dtype), np.asarray(gradient, y.dtype)

    def value_and_grad(y):
        shapes = jax.ShapeDtypeStruct((), y.dtype), jax.ShapeDtypeStruct(y.shape, y.dtype)
        return jax.pure_callback(on_host, shapes, y, vmap_method="sequential")

    return LogDensity(lambda y: jnp.asarray(value_and_grad(y)[0]), 4, value_and_grad=value_and_grad)


def run(folder: Path, out: Path, *, resume: bool) -> None:
    """Sample, saying on standard output where it is, and write down what must be equal."""
    import cdsampler
    from cdsampler.journal import digest

    warnings.simplefilter("ignore", cdsampler.SamplingWarning)
    print("tuning", flush=True)
    result = cdsampler.sample(
        density(),
        n_samples=640,
        seed=1,
        max_evaluations=80_000,
        checkpoint=folder,
        resume=resume,
        checkpoint_interval=INTERVAL,
        on_progress=lambda progress: print("production", flush=True),
    )
    accounts = (result.evaluations, result.tuning_evaluations, result.spare_evaluations, result.executed_evaluations)
    facts = {
        "samples": digest(result.samples, result.log_density),
        "plan": digest(result.plan),
        "accounts": digest(accounts),
        "warnings": digest([str(warning) for warning in result.warnings], result.tempering),
        "evaluations": result.total_evaluations,
    }
    out.write_text(json.dumps(facts))


def process(folder: Path, out: Path, *, resume: bool) -> subprocess.Popen:
    """Start a run of its own."""
    command = [sys.executable, __file__, "--folder", str(folder), "--out", str(out)]
    return subprocess.Popen([*command, *(["--resume"] if resume else [])], stdout=subprocess.PIPE, text=True)


def killed_after(seconds: float, folder: Path, out: Path, *, resume: bool) -> str:
    """Run for so many seconds from the beginning of sampling, kill, and return the phase that it was in."""
    child = process(folder, out, resume=resume)
    assert child.stdout is not None
    child.stdout.readline()
    try:
        child.wait(seconds)
        return "finished"
    except subprocess.TimeoutExpired:
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        return (["tuning", *child.stdout.read().split()])[-1]


def main() -> None:
    """Kill and resume, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--resume", action="store_true")
    given = parser.parse_args()
    if given.folder is not None:
        run(given.folder, given.out, resume=given.resume)
        return
    rng = np.random.default_rng(given.seed)
    with tempfile.TemporaryDirectory() as root:
        base = Path(root)
        began = time.perf_counter()
        assert process(base / "whole", base / "whole.json", resume=False).wait() == 0
        whole, seconds = json.loads((base / "whole.json").read_text()), time.perf_counter() - began
        print(f"The whole run takes {seconds:.0f} s and {whole['evaluations']} evaluations.")
        names = [name for name in whole if name != "evaluations"]
        print(f"{'killed after':>12} {'in':>11} {'and again after':>15} {'in':>11}  " + "  ".join(names))
        n_equal = 0
        for number in range(given.kills):
            folder, out = base / str(number), base / f"{number}.json"
            first, second = seconds * rng.uniform(0.02, 0.98), seconds * rng.uniform(0.05, 0.5)
            phases = killed_after(first, folder, out, resume=False), killed_after(second, folder, out, resume=True)
            assert process(folder, out, resume=True).wait() == 0
            resumed = json.loads(out.read_text())
            equal = [resumed[name] == whole[name] for name in names]
            n_equal += all(equal)
            marks = "  ".join(
                f"{'equal' if same else 'DIFFER':<{len(name)}}" for same, name in zip(equal, names, strict=True)
            )
            print(f"{first:>10.1f} s {phases[0]:>11} {second:>13.1f} s {phases[1]:>11}  {marks}", flush=True)
        print(f"{n_equal} of {given.kills} equal the uninterrupted run.")
    sys.exit(n_equal != given.kills)


if __name__ == "__main__":
    main()
