"""Every kind of target has its table and its pictures, with its reference or, as yet, without."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cdsampler.benchmark import build_target, starting_point
from cdsampler.benchmark.references import Reference
from cdsampler.cli import _outcome as outcome
from cdsampler.cli._outcome import Job, show_outcome
from cdsampler.density import Evaluations
from cdsampler.errors import InvalidInputError
from cdsampler.kernels import MALA
from cdsampler.metrics import FloorRepeats, evaluate
from cdsampler.samplers import LocalChain
from cdsampler.sampling import Result, Timing

N = 40
OF_KIND = {
    "lj-13": ({"figure.png", "structure.png"}, ("W2 (Kabsch)", "W2 of radii", "TV of distances")),
    "aldp": ({"figure.png", "ramachandran.png", "structure.png"}, ("KL of φ, ψ", "weight of C7ax")),
    "bnn": ({"figure.png", "pairs.png", "predictive.png"}, ("Wasserstein-2", "mean test NLL")),
    "gm-16": ({"figure.png", "pairs.png"}, ("Wasserstein-2", "modes found")),
}


def near_the_start(name, n, seed):
    target = build_target(name)
    start = np.asarray(target.true_parameters) if name == "bnn" else starting_point(target)
    middle = np.zeros(target.dim) if start is None else start
    return middle + 0.02 * np.random.default_rng(seed).standard_normal((n, target.dim))


def result_of(name):
    density = build_target(name).density()
    samples = near_the_start(name, N, 1)
    counts = Evaluations(*(np.full(N, count, np.int32) for count in (0, 9, 0, 0, 0)))
    return Result(
        samples=samples[:, None, :],
        log_density=np.asarray(jax.jit(jax.vmap(lambda y: density.value(y)[0]))(jnp.asarray(samples)))[:, None],
        evaluations=counts,
        tuning_evaluations=Evaluations.zero().total(),
        sampler=LocalChain(MALA(0.1)),
        seed=0,
        names=tuple(f"x{i}" for i in range(samples.shape[1])),
        timing=Timing(total=2.0, compilation=1.0),
        tempering=None,
    )


def pool_of(name):
    target = build_target(name)
    rows = near_the_start(name, 100, 2)
    if name != "bnn":
        rows = np.asarray(jax.vmap(lambda q: target.to_positions(q).reshape(-1))(jnp.asarray(rows)))
    return Reference(name, rows.astype(np.float32), None, False, 1.5, {"method": "a stand-in", "date": "today"})


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(outcome, "evaluate", lambda *a, **k: evaluate(*a, **k, floor_repeats=FloorRepeats(1, 2)))


@pytest.mark.parametrize("name", OF_KIND)
def test_tables_and_pictures_suit_the_target(name, quick, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(outcome.references, "load_reference", lambda name, on_progress: pool_of(name))
    show_outcome(Job(name, N, 0, tmp_path), result_of(name))
    printed = capsys.readouterr().out
    pictures, words = OF_KIND[name]
    for word in words:
        assert word in printed
    assert ("a stand-in" in printed) == (name != "gm-16")
    assert {path.name for path in tmp_path.iterdir()} == pictures | {"samples.nc", "summary.json"}
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["metrics"]["energy_wasserstein_1"]["n"] == N


def test_without_a_reference_there_are_still_samples_and_pictures(monkeypatch, capsys, tmp_path):
    def refuse(name, on_progress):
        raise InvalidInputError("There is no reference for aldp-implicit yet: run 'cdsampler reference'.")

    monkeypatch.setattr(outcome.references, "load_reference", refuse)
    show_outcome(Job("aldp-implicit", N, 0, tmp_path), result_of("aldp-implicit"))
    printed = capsys.readouterr().out
    assert "No errors are shown: There is no reference for aldp-implicit yet" in printed
    assert "Kabsch" not in printed
    assert (tmp_path / "ramachandran.png").exists()
    assert json.loads((tmp_path / "summary.json").read_text())["metrics"] == {}
