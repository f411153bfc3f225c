import jax
import pytest

from cdsampler.sampling import _run


@pytest.fixture(scope="module", autouse=True)
def _quick_compilation():
    """Compile without optimisation: these programs run for milliseconds."""
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


@pytest.fixture
def narrow_groups(monkeypatch):
    """Groups of at most 32 chains, so that a few hundred samples make many groups."""
    monkeypatch.setattr(_run, "GROUP_BYTES", 1)
