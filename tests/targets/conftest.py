import jax.numpy as jnp
import numpy as np
import pytest

from cdsampler.targets.molecules import _alanine_dipeptide as packaged


@pytest.fixture(scope="session")
def perturbed():
    """A function of n: so many configurations of alanine dipeptide near the test system's, in nm."""

    def draw(n, seed=0, scale=0.005):
        noise = np.random.default_rng(seed).normal(scale=scale, size=(n, 22, 3))
        return jnp.asarray(packaged.test_positions_nm() + noise)

    return draw


@pytest.fixture(scope="session")
def handedness():
    """By how much a mirror image's energy may differ in kJ/mol: phases of the force field are π but for rounding."""
    p = packaged.parameters("vacuum")
    found = 2 * np.sum(np.abs(p.torsion_barrier * np.sin(p.torsion_phase_rad)))
    assert found < 1e-3
    return found
