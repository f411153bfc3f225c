import textwrap

import pytest

pytest.importorskip("pydantic")

TINY = """
name = "tiny"
repeats = 2
dtype = "float64"

[tasks.gm-2]
samples = 20
budgets = [40, 20]

[samplers.mala]

[samplers.hmc]
grid = { n_leapfrog = [2, 3] }
"""

MINE = """
import jax.numpy as jnp

from cdsampler.density import LogDensity
from cdsampler.targets import AbstractTarget


class Mine(AbstractTarget):
    name: str = "mine"
    dim: int = 2

    def density(self, dtype=None):
        return LogDensity(lambda y: -0.5 * jnp.sum(y**2), 2, dtype=dtype)


def build():
    return Mine()


def broken():
    raise RuntimeError("no such luck")
"""

MINE_TOML = """
name = "mine"
[tasks.mine]
samples = 10
budgets = [20]
target = "mine.py:{function}"
settings = {{ n_replicas = 3, reference_scale = 2.0 }}
[samplers.mala]
"""


@pytest.fixture
def tiny():
    """A sweep of 12 runs, of a second or so after compilation."""
    return textwrap.dedent(TINY)


@pytest.fixture
def mine(tmp_path):
    """Return a function that writes a sweep on a target of one's own, and gives its file."""
    (tmp_path / "mine.py").write_text(MINE)

    def write(function="build"):
        path = tmp_path / "mine.toml"
        path.write_text(MINE_TOML.format(function=function))
        return path

    return write
