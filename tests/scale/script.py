"""Runs cases in a process of its own, since the number of devices and processes can't be changed later.

python script.py OUT SCENARIO [PROCESS N_PROCESSES PORT]
"""

import os
import pickle
import signal
import sys
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_disable_most_optimizations", True)

from cdsampler import LogDensity, sample  # noqa: E402
from cdsampler.errors import ProcessError  # noqa: E402
from cdsampler.interpolants import geometric_times, noise_variances  # noqa: E402
from cdsampler.kernels import MALA  # noqa: E402
from cdsampler.paths import GaussianReference, geometric_schedule  # noqa: E402
from cdsampler.samplers import CDS, NRPT, SMC, Corrector, Harvest, NUTSChain  # noqa: E402
from cdsampler.sampling import _groups, _meeting, _run, run  # noqa: E402

# Five groups of 32 chains, three of them spare; in rows of three the last leaves a device idle.
N_CHAINS = 157
BETAS = geometric_schedule(3, 1e-2)
TIMES = geometric_times(0.02, 5)


class Shifted(eqx.Module):
    """A density with an array of its own, which may lie on any device."""

    centre: jax.Array

    def __call__(self, y):
        return -0.5 * jnp.sum((y - self.centre) ** 2) + jnp.sum(jnp.cos(3 * y))


def density():
    return LogDensity(Shifted(jax.device_put(jnp.array([1.0, -2.0]), jax.local_devices()[0])), 2)


def tempering(n_steps=20):
    return NRPT(GaussianReference(2.0), BETAS, MALA(0.5), n_steps)


def draw(sampler, *, n_samples=N_CHAINS, seed=3, **settings):
    return run(sampler, density(), n_samples, **{"anchor": np.zeros(2), "seed": seed} | settings)


def cases(names=("tempering", "transport", "trajectories", "particles")):
    """Return results by name: several draws and anchors, two stages, a device's own count of work, groups of points."""
    made = {
        "tempering": lambda: draw(
            tempering(60),
            harvest=Harvest(3, 7),
            anchor=np.array([[0.0, 1.0], [2.0, 0.0], [1.0, 1.0]]),
            anchor_scale=0.5,
        ),
        "transport": lambda: draw(
            CDS(tempering(), TIMES, noise_variances(TIMES, 0.01), corrector=Corrector(MALA(0.5)))
        ),
        "trajectories": lambda: draw(NUTSChain(0.5, 5, max_num_doublings=3)),
        "particles": lambda: draw(
            CDS(
                SMC(GaussianReference(2.0), BETAS, MALA(0.5), n_particles=4),
                TIMES,
                noise_variances(TIMES, 0.01),
                corrector=Corrector(MALA(0.5)),
            ),
            n_samples=4 * N_CHAINS,
        ),
    }
    return {name: plain(made[name]()) for name in names}


def plain(result):
    """Return what has to be the same everywhere, as arrays and numbers."""
    return {
        "samples": result.samples,
        "log_density": result.log_density,
        "value": result.evaluations.value,
        "gradient": result.evaluations.gradient,
        "spare": result.spare_evaluations,
        "executed": result.executed_evaluations,
        "tuning": int(result.tuning_evaluations.count),
        "total": result.total_evaluations,
        "is_partial": result.is_partial,
        "log_z": result.log_z,
        "warnings": [str(warning) for warning in result.warnings],
        "plan": None if result.plan is None else str(result.plan),
    }


def depends_on_the_device():
    """What the comparison has to find: keys that depend on where a group runs."""
    right = _groups.run_groups

    def wrong(sampler, density, keys, anchors, on_block, harvest, devices=None):
        n_devices = 1 if devices is None else len(devices.is_busy)
        place = jnp.arange(len(keys)) // (len(keys) // n_devices)
        keys = jax.vmap(jax.random.fold_in)(keys, place)
        return right(sampler, density, keys, anchors, on_block, harvest, devices)

    _groups.run_groups = wrong
    made = cases(["tempering"])
    _groups.run_groups = right
    return made


def front_door():
    """Return a call that tunes, with what it reported."""
    rounds, progress = [], []
    result = sample(
        density(), n_samples=320, max_evaluations=60_000, on_round=rounds.append, on_progress=progress.append
    )
    return plain(result) | {"n_rounds": len(rounds), "last": tuple(progress[-1]) if progress else None}


def attempt(call):
    """Return what a call returns, or the error that it raises."""
    try:
        return plain(call())
    except (ProcessError, RuntimeError, KeyboardInterrupt) as error:
        return f"{type(error).__name__}: {error}"


def faults(process):
    """Return what becomes of runs in which the processes disagree, one fails, or one is interrupted."""

    def stop(error):
        def on_block(progress):
            if progress.finished > 0:
                raise error

        return on_block

    slow = tempering(4_000)
    return {
        "seeds": attempt(lambda: draw(tempering(), seed=process)),
        "failure": attempt(lambda: draw(slow, n_samples=1000, on_progress=stop(RuntimeError("no space left")))),
        "interrupt": attempt(lambda: draw(slow, n_samples=1000, on_progress=stop(KeyboardInterrupt()))),
        "alone": attempt(lambda: draw(tempering(), devices=jax.local_devices())),
        "after": attempt(lambda: draw(tempering())),
    }


def attempt_meeting(work=lambda meeting: None, about=None):
    """Return what processes gather that do some work first, or the error that ends it."""
    try:
        with _meeting.Meeting(about or {}) as meeting:
            work(meeting)
            return meeting.gather((jax.process_index(), "x" * 3_000_000))
    except (ProcessError, KeyboardInterrupt) as error:
        return f"{type(error).__name__}: {error}"


def meetings(process):
    """Return what becomes of meetings of which some go wrong; in the last one process 1 is killed."""
    _meeting.SILENCE = _meeting.JOIN = 4.0

    def on(number, fault):
        def work(meeting):
            if process == number:
                fault()
            while True:
                meeting.look(0, 0)
                time.sleep(0.1)

        return work

    def fail():
        raise KeyboardInterrupt

    made = {
        "well": [len(text) for _, text in attempt_meeting()],
        "interrupt": attempt_meeting(on(0, fail)),
        "again": [number for number, _ in attempt_meeting()],
        "absent": attempt_meeting() if process == 0 else next(_meeting._numbers),
        "about": attempt_meeting(about={"seed": process}),
    }
    made["killed"] = attempt_meeting(on(1, lambda: os.kill(os.getpid(), signal.SIGKILL)))
    return made


def main(out, scenario, process=0, n_processes=1, port=0):
    if n_processes > 1:
        address = f"127.0.0.1:{port}"
        jax.distributed.initialize(address, n_processes, process, heartbeat_timeout_seconds=10)
    _run.GROUP_BYTES = 1
    made = {
        "quick": lambda: cases(["tempering"]) | {"faulty": depends_on_the_device()["tempering"]},
        "devices": cases,
        "whole": lambda: cases() | {"front door": front_door()},
        "processes": lambda: cases(["tempering", "trajectories"]) | {"front door": front_door()},
        "faults": lambda: faults(process),
        "meetings": lambda: meetings(process),
    }[scenario]()
    with open(out, "wb") as file:
        pickle.dump(made, file)


if __name__ == "__main__":
    main(*sys.argv[1:3], *map(int, sys.argv[3:]))
