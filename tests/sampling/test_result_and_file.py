"""A result's accounts, and its way through a file."""

import os
import stat

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cdsampler.density import Evaluations, LogDensity
from cdsampler.interpolants import geometric_times, noise_variances
from cdsampler.kernels import MALA
from cdsampler.paths import GaussianReference
from cdsampler.samplers import CDS, NRPT, Evidence, LocalChain, TemperingDiagnostics
from cdsampler.sampling import _inference_data as inference_data
from cdsampler.sampling import _run, read_netcdf, run
from cdsampler.sampling._warnings import evaluation_warnings, tempering_warnings

TIMES = geometric_times(0.5, 3)


class Counted:
    """A density computed on the host, which counts the points it is given."""

    def __init__(self):
        self.points = 0
        scalar, vector = jax.ShapeDtypeStruct((), np.float64), jax.ShapeDtypeStruct((2,), np.float64)

        def on_host(y):
            y = np.asarray(y)
            self.points += int(np.prod(y.shape[:-1]))
            return -0.5 * np.sum(y**2, axis=-1), -y

        def both(y):
            return jax.pure_callback(on_host, (scalar, vector), y, vmap_method="expand_dims")

        self.density = LogDensity(lambda y: both(y)[0], 2, value_and_grad=both, names=("width", "height"))


@pytest.fixture(scope="module")
def sampler():
    stage1 = NRPT(GaussianReference(1.0), [0.0, 0.3, 1.0], MALA(0.5), 20)
    return CDS(stage1, TIMES, noise_variances(TIMES, 0.1))


@pytest.fixture(scope="module")
def tuning():
    return Evaluations(*(jnp.asarray([n]) for n in (3, 70, 0, 0, 0)))


@pytest.fixture(scope="module")
def counted():
    return Counted()


@pytest.fixture(scope="module")
def result(sampler, counted, tuning):
    return run(sampler, counted.density, 7, anchor=np.zeros(2), chunk_size=4, seed=11, tuning_evaluations=tuning)


def test_seven_samples_are_seven(result, sampler):
    assert result.samples.shape == (7, 1, 2)
    assert result.positions.shape == (7, 2)
    assert result.log_density.shape == (7, 1)
    assert result.evaluations.count.tolist() == [sampler.cost()] * 7
    np.testing.assert_allclose(result.log_density[:, 0], -0.5 * (result.positions**2).sum(axis=1), rtol=1e-12)
    assert result.tempering.restarts.shape == (7,)
    assert result.timing.total >= result.timing.compilation > 0


def test_both_accounts(result, sampler):
    assert result.evaluations_per_sample == sampler.cost() == 3 + 3 * 20 + 3
    assert result.tuning_evaluations.count == 73
    spent = 7 * sampler.cost() + 73 + result.spare_evaluations
    assert result.evaluations_per_returned_sample == pytest.approx(spent / 7, rel=1e-15)


def test_chains_that_only_fill_the_last_group_are_charged(result, sampler, counted, monkeypatch):
    monkeypatch.setattr(_run, "cache_width", lambda sampler, density: 7)
    counted.points = 0
    longer = run(sampler, counted.density, 26, anchor=np.zeros(2), seed=11)
    np.testing.assert_array_equal(longer.samples[:7], result.samples)
    assert len(longer.positions) == 26
    assert longer.spare_evaluations == 2 * sampler.cost()  # four groups of seven
    assert counted.points == longer.evaluations.total().count + longer.spare_evaluations
    assert longer.evaluations_per_sample == sampler.cost()
    assert longer.evaluations_per_returned_sample == pytest.approx(counted.points / 26, rel=1e-15)


def test_an_interrupted_run_accounts_for_what_it_did_not_finish(sampler, counted, tuning, monkeypatch):
    monkeypatch.setattr(_run, "cache_width", lambda sampler, density: 7)
    long = eqx.tree_at(lambda s: s.stage1, sampler, sampler.stage1.with_steps(50 * 128))
    first_group = 7 * long.cost()

    def interrupt(progress):
        if progress.evaluations > first_group:
            raise KeyboardInterrupt

    counted.points = 0
    partial = run(long, counted.density, 21, anchor=np.zeros(2), chunk_size=7, on_progress=interrupt)
    assert partial.is_partial
    assert len(partial.positions) in (7, 14)
    assert counted.points > first_group
    assert counted.points == partial.evaluations.total().count + partial.spare_evaluations


def test_a_file_keeps_samples_dims_names_and_attributes(result, tmp_path):
    path = result.save(tmp_path / "deep" / "run.nc")
    assert path == tmp_path / "deep" / "run.nc"
    data = read_netcdf(path)
    x = data["posterior"]["x"]
    assert x.dims == ("chain", "draw", "coordinate")
    assert x.shape == (7, 1, 2)
    assert x["coordinate"].values.tolist() == ["width", "height"]
    np.testing.assert_array_equal(x.values, result.samples)
    statistics = data["sample_stats"]
    np.testing.assert_array_equal(statistics["lp"].values, result.log_density)
    np.testing.assert_array_equal(statistics["n_evaluations"].values[:, 0], result.evaluations.count)
    np.testing.assert_array_equal(statistics["restarts"].values[:, 0], result.tempering.restarts)
    np.testing.assert_array_equal(statistics["round_trips"].values[:, 0], result.tempering.round_trips)
    kept, given = data["posterior"].attrs, result.attributes()
    assert given.keys() <= kept.keys()
    assert given["sampler"] == "CDS"
    assert given["seed"] == 11
    assert "log_z" in given
    for name, value in given.items():
        if name == "warnings":
            assert np.atleast_1d(kept[name]).tolist() == value
        elif isinstance(value, str):
            assert kept[name] == value
        else:
            np.testing.assert_array_equal(kept[name], value, err_msg=name)


def test_a_result_without_tempering_can_be_saved(counted, tmp_path):
    plain = run(LocalChain(MALA(0.5), 3), counted.density, 1, anchor=np.zeros(2))
    data = read_netcdf(plain.save(tmp_path / "local.nc"))
    assert data["posterior"]["x"].shape == (1, 1, 2)
    assert "restarts" not in data["sample_stats"]
    assert "betas" not in data["posterior"].attrs


def test_a_failed_write_leaves_the_old_file_and_nothing_else(result, tmp_path, monkeypatch):
    path = tmp_path / "run.nc"
    path.write_text("precious")

    class Broken:
        def to_netcdf(self, target, **settings):
            with open(target, "w") as file:
                file.write("half")
            raise OSError("disk full")

    monkeypatch.setattr(inference_data, "to_inference_data", lambda *a, **k: Broken())
    with pytest.raises(OSError, match="disk full"):
        inference_data.write_netcdf(Broken(), path)
    assert path.read_text() == "precious"
    assert [p.name for p in tmp_path.iterdir()] == ["run.nc"]


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_a_saved_file_has_the_permissions_of_any_new_file(result, tmp_path):
    # A temporary file of Python's is private, and would stay so under its final name.
    ordinary = tmp_path / "ordinary"
    ordinary.touch()
    saved = result.save(tmp_path / "run.nc")
    assert stat.S_IMODE(saved.stat().st_mode) == stat.S_IMODE(ordinary.stat().st_mode)


def diagnostics(restarts, evidence):
    return TemperingDiagnostics(
        betas=np.array([0.0, 1.0]),
        rejection=np.array([0.5]),
        acceptance=np.array([1.0, 0.6]),
        barrier=0.5,
        restarts=np.asarray(restarts),
        round_trips=np.zeros(len(restarts), int),
        evidence=evidence,
    )


def codes(restarts, evidence):
    return [w.code for w in tempering_warnings(diagnostics(restarts, evidence))]


@pytest.mark.parametrize(("n_without", "expected"), [(0, []), (5, []), (6, ["few-restarts"]), (100, ["few-restarts"])])
def test_few_restarts_are_warned_of(n_without, expected):
    agreeing = Evidence(1.0, 0.01, 1.0, 1.0, 0.1)
    assert codes([0] * n_without + [2] * (100 - n_without), agreeing) == expected


@pytest.mark.parametrize(
    ("forward", "backward", "error", "expected"),
    [
        (1.0, 1.1, 0.01, []),  # ten errors, but less than half a nat
        (1.0, 2.0, 0.3, []),  # a nat, but three errors
        (1.0, 2.0, 0.1, ["log-z-gap"]),
        (1.0, np.inf, 0.1, ["log-z-gap"]),
        (1.0, np.nan, 0.1, ["log-z-gap"]),
        (1.0, 9.0, np.nan, ["log-z-gap"]),
    ],
)
def test_disagreeing_estimates_of_log_z_are_warned_of(forward, backward, error, expected):
    assert codes([1, 1], Evidence(1.0, 0.01, forward, backward, error)) == expected


def test_nan_is_warned_of_and_minus_infinity_is_not():
    numbers = {"value": 0, "gradient": 100, "neg_inf": 40, "nan": 0, "pos_inf": 0}
    assert evaluation_warnings(Evaluations(**{k: jnp.asarray(v) for k, v in numbers.items()})) == []
    numbers["nan"] = 3
    (warning,) = evaluation_warnings(Evaluations(**{k: jnp.asarray(v) for k, v in numbers.items()}))
    assert warning.code == "nan"
    assert "3 of 100" in warning.meaning
