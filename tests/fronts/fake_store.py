"""A store as a sweep writes it, of made-up runs whose errors fall with the budget."""

import json
import zlib

import numpy as np

METRICS = {
    "gm-2": ("wasserstein_2", "mmd_squared_energy", "modes_found"),
    "lj-13": ("energy_wasserstein_1", "mmd_squared_energy"),
    "aldp": ("ramachandran_kl", "c7ax_weight", "energy_total_variation"),
}
FLOORS = {"mmd_squared_energy": 1e-3, "ramachandran_kl": 0.05}
SPEED = {"nrpt": 1.0, "oasmc": 0.7, "cds": 1.6, "mala": 0.02}


def record(task="gm-2", label="nrpt", budget=1000, seed=0, changes=None, status="ok", values=None, **more):
    """One record; `values` are the metrics' values where they matter."""
    changes = {} if changes is None else changes
    key = f"{task}-{label}-{'-'.join(f'{k}{v}' for k, v in changes.items()) or 'plain'}-{budget}-{seed}"
    rng = np.random.default_rng(zlib.crc32(key.encode()))
    metrics = {}
    for name in METRICS[task] if values is None else values:
        floor = FLOORS.get(name, 0.5)
        speed = SPEED.get(label, 1.0) * (0.6 if changes.get("n_replicas") == 5 else 1.0)
        value = floor * (1 + 40 * (budget * speed / 100) ** -1.3) * rng.lognormal(0, 0.1)
        if name == "mmd_squared_energy":
            value -= floor
        value = value if values is None else values[name]
        is_error = name not in ("modes_found", "c7ax_weight")
        ratio = value / floor if is_error else None
        metrics[name] = {"value": value, "floor": floor, "floor_sd": 0.2 * floor, "ratio": ratio}
    is_ok = status == "ok"
    fields = {
        "key": key, "task": task, "label": label, "sampler": label, "changes": changes, "settings": dict(changes),
        "preset": "recommended", "budget": budget, "n_samples": 500, "seed": seed, "status": status,
        "error": None if is_ok else f"SomeError: <{status}> & more",
        "evaluations_per_sample": budget - 3 if is_ok else None,
        "evaluations_per_returned_sample": 1.2 * budget if is_ok else None,
        "evaluations_total": 600 * budget, "evaluations_tuning": 100 * budget, "evaluations_executed": 601 * budget,
        "seconds": budget / 400, "seconds_tuning": 1.5, "seconds_compilation": 2.0, "metrics": metrics if is_ok else {},
        "log_z": -1.2 if is_ok else None, "log_z_error": 0.1 if is_ok else None, "diagnostics": {},
        "warnings": ["few-restarts"] if label == "mala" and is_ok else [],
        "warning_texts": ["few-restarts: 12% never moved. Raise the budget."] if label == "mala" and is_ok else [],
        "version": "0.1.0", "commit": "0ebdd66", "device": "cpu", "host_cores": 2, "jax_version": "0.10.2",
        "started": "2026-01-01T00:00:00", "samples_file": f"samples/{key}.npz" if is_ok and seed == 0 else None,
    }  # fmt: skip
    return fields | more


def grid(tasks=tuple(METRICS), labels=tuple(SPEED), budgets=(500, 2000, 8000), n_seeds=3):
    """The records of a sweep over samplers, replicas, budgets and seeds, with a failure and what is infeasible."""
    records = []
    for task in tasks:
        for label in labels:
            for n_replicas in (5, 10) if label in ("nrpt", "cds") else (None,):
                changes = {} if n_replicas is None else {"n_replicas": n_replicas}
                for budget in budgets:
                    for seed in range(n_seeds):
                        status = "infeasible" if label == "oasmc" and budget == budgets[0] else "ok"
                        status = "failed" if (label, budget, seed) == ("cds", budgets[-1], 2) else status
                        records.append(record(task, label, budget, seed, changes, status))
    return records


def study(values=(0.25, 0.5, 0.75, 1.0)):
    """The records of a sweep over one setting of two samplers."""
    runs = []
    for label in ("cds", "nrpt"):
        for budget in (1000, 4000):
            for rho in values:
                runs += [record("gm-2", label, budget, seed, {"rho": rho}) for seed in range(3)]
    return runs


def write_store(folder, records, *, name="made-up", torn="", with_samples=True, config=None):
    """Write a store of the records, and return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {"tasks": sorted({r["task"] for r in records})} if config is None else config
    header = {"format": 1, "version": "0.1.0", "config": config, "name": name}
    (folder / "store.json").write_text(json.dumps(header))
    (folder / "records.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records) + torn)
    if with_samples:
        (folder / "samples").mkdir(exist_ok=True)
        for task in {r["task"] for r in records}:
            np.savez(folder / "samples" / f"reference-{task}.npz", **_draws(task, 4000, 0.0))
        for r in records:
            if r["samples_file"]:
                np.savez(folder / r["samples_file"], **_draws(r["task"], 500, 5.0 if r["label"] == "mala" else 0.3))
    return folder


def _draws(task, n, shift):
    rng = np.random.default_rng(n)
    draws = {"energies": rng.gamma(18, size=n) + shift}
    if task == "gm-2":
        centres = np.random.default_rng(1).uniform(-40, 40, size=(40, 2))
        draws["positions"] = centres[rng.integers(40 if shift < 1 else 1, size=n)] + rng.standard_normal((n, 2))
    if task == "aldp":
        draws["angles"] = np.array([-1.4, 1.2])[:, None].T + 0.4 * rng.standard_normal((n, 2))
    return draws
