"""Production on 1, 2 and 4 simulated devices of this machine: seconds, compilation apart, and whether bits agree.

Each number of devices is measured in a process of its own. The first run compiles and the smallest of the repeats
counts. Simulated devices share the machine's cores: more devices than cores can't be faster. One device has a row with
one group of chains at a time, and one with as many threads as cores, as the library does by itself.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys

# Devices, and the most chains in flight: at least one group is.
ROWS = ((1, 1), (1, None), (2, None), (4, None))


def measure(task: str, n_samples: int, n_steps: int, repeats: int, chunk: int | None) -> dict[str, object]:
    """Return what runs on all devices of this process took."""
    import jax

    from cdsampler import benchmark
    from cdsampler.sampling import run
    from cdsampler.tuning import find_mode

    preset = benchmark.PRESETS[task]
    density = benchmark.build_target(task).density()
    sampler = benchmark.build_sampler("nrpt", preset).with_budget(preset.n_replicas * (n_steps + 1))
    anchor = find_mode(density).position
    results = [run(sampler, density, n_samples, anchor=anchor, chunk_size=chunk) for _ in range(1 + repeats)]
    first, others = results[0], results[1:]
    return {
        "devices": len(jax.devices()),
        "compilation": first.timing.compilation,
        "first": first.timing.total,
        "seconds": min(result.timing.total for result in others),
        "evaluations": int(first.evaluations.total().count),
        "bits": hashlib.sha256(first.samples.tobytes() + first.log_density.tobytes()).hexdigest()[:12],
    }


def apart(n_devices: int, chunk: int | None, arguments: list[str]) -> dict[str, object]:
    """Return what a process with that many simulated devices measures."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={n_devices}"
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    chosen = [] if chunk is None else ["--chunk", str(chunk)]
    command = [sys.executable, __file__, "--here", *chosen, *arguments]
    made = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, object] = json.loads(made.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", default="gm-16")
    parser.add_argument("--samples", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--chunk", type=int, help="most chains in flight, with --here")
    parser.add_argument("--here", action="store_true", help="measure on this process's devices, and print JSON")
    given = parser.parse_args()
    if given.here:
        print(json.dumps(measure(given.task, given.samples, given.steps, given.repeats, given.chunk)))
        return
    print(f"{os.cpu_count()} cores, {given.task}, {given.samples} chains of {given.steps} steps")
    print(" devices  threads  compilation s  first run s     run s  speed-up  same bits")
    alone = None
    for n_devices, chunk in ROWS:
        row = apart(n_devices, chunk, sys.argv[1:])
        alone = alone or row
        ratio, same = alone["seconds"] / row["seconds"], "yes" if row["bits"] == alone["bits"] else "NO"
        threads = "one" if chunk else "all"
        print(
            f"{row['devices']:8} {threads:>8} {row['compilation']:14.1f} {row['first']:12.1f} {row['seconds']:9.2f} "
            f"{ratio:9.2f} {same:>10}",
            flush=True,
        )


if __name__ == "__main__":
    main()
