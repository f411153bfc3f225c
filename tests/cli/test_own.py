"""The command `sample` on a file of the user's."""

import json

import jax
import pytest
from typer.testing import CliRunner

from cdsampler import InvalidInputError
from cdsampler.cli._app import app
from cdsampler.cli._own import parse_parameters

MODEL = """
import jax.numpy as jnp

def plain(y):
    return -0.5 * jnp.sum(y**2)

def named(p):
    return -0.5 * p["loc"] ** 2 - p["scale"] ** 2 / 2
"""


@pytest.fixture(autouse=True)
def give_precision_back():
    before = jax.config.read("jax_enable_x64")
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    return path


def test_a_function_of_named_parameters_gives_files_with_their_names(model, tmp_path):
    out = tmp_path / "out"
    arguments = ["sample", f"{model}:named", "--params", '{"loc": [], "scale": "positive"}', "--samples", "200"]
    arguments += ["--out", str(out)]
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    assert "scale" in done.output
    assert {path.name for path in out.iterdir()} == {"samples.nc", "figure.png", "pairs.png", "summary.json"}
    summary = json.loads((out / "summary.json").read_text())
    assert summary["n_samples"] >= 200
    xarray = pytest.importorskip("xarray")
    with xarray.open_dataset(out / "samples.nc", group="posterior", engine="h5netcdf") as posterior:
        assert set(posterior.data_vars) == {"loc", "scale"}
        assert float(posterior["scale"].min()) > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{model}:plain"], "Say how many parameters"),
        (["{model}:plain", "--dim", "2", "--sampler", "nrpt"], "--sampler is for targets of the catalog"),
        (["gm-2", "--dim", "2"], "--dim is for a density of your own"),
        (["{model}:missing", "--dim", "2"], "has no missing"),
        (["nowhere.py:plain", "--dim", "2"], "There is no file"),
        (["{model}:plain", "--params", "nowhere.json"], "there is no file nowhere.json"),
    ],
)
def test_bad_input_is_named(model, arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        CliRunner().invoke(app, ["sample", *(a.format(model=model) for a in arguments)], catch_exceptions=False)


def test_parameters_in_json():
    found = parse_parameters(
        '{"a": [], "b": [2, 3], "c": "positive", "d": {"interval": [0, null], "shape": [2]}, "e": {"simplex": 3}, '
        '"f": {"ordered": 2}, "g": {"positive_definite": 2}}'
    )
    assert {name: (p.shape, p.size) for name, p in found.items()} == {
        "a": ((), 1),
        "b": ((2, 3), 6),
        "c": ((), 1),
        "d": ((2,), 2),
        "e": ((3,), 2),
        "f": ((2,), 2),
        "g": ((2, 2), 3),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("{}", "must be an object"),
        ('{"a": "wide"}', "Parameter 'a' of --params must be a shape"),
        ('{"a": {"interval": [2, 1]}}', "Parameter 'a' of --params: .* no room"),
        ('{"a": {"simplex": 3, "shape": [2]}}', "Parameter 'a' of --params must be a shape"),
        ('{"a": 3}', "Parameter 'a' of --params must be a shape"),
    ],
)
def test_parameters_that_are_none_are_named(text, message):
    with pytest.raises(InvalidInputError, match=message):
        parse_parameters(text)
