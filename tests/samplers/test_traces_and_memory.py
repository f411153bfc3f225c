"""One program serves all numbers, and its memory doesn't grow with the number of steps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cdsampler.density import LogDensity
from cdsampler.interpolants import geometric_times, noise_variances
from cdsampler.kernels import HMC, MALA
from cdsampler.paths import GaussianReference, linear_schedule
from cdsampler.samplers import CDS, NRPT, Corrector, LocalChain, Pace, chain_keys, run_chunk
from cdsampler.samplers._driver import BLOCK_LENGTH, _advance, _init

N_CHAINS = 4


class Traced:
    """A log density that counts how often Python runs it: once a trace."""

    def __init__(self):
        self.traces = 0
        self.density = LogDensity(self._log_density, 2)

    def _log_density(self, y):
        self.traces += 1
        return -0.5 * jnp.sum(y**2)


@pytest.fixture(scope="module")
def traced():
    return Traced()


def run_it(sampler, density, seed=0):
    return run_chunk(sampler, density, chain_keys(jax.random.key(seed), np.arange(N_CHAINS)), jnp.zeros((N_CHAINS, 2)))


def cds(*, betas=(0.0, 0.3, 1.0), steps=6, step_size=0.5, scale=2.0, n_integration=4, variance=0.1, m=1, t0=0.1,
        cap=None, corrector_step=0.1):  # fmt: skip
    times = geometric_times(t0, n_integration)
    stage1 = NRPT(GaussianReference(scale), betas, MALA(jnp.asarray(step_size)), steps)
    corrector = Corrector(HMC(corrector_step, m), m)
    return CDS(stage1, times, noise_variances(times, variance), corrector=corrector, max_langevin_step=cap)


@pytest.fixture(scope="module")
def warmed(traced):
    """The density after a first run: from now on nothing should be traced."""
    run_it(cds(), traced.density)
    assert traced.traces > 0
    return traced


@pytest.mark.parametrize(
    "changes",
    [
        {"steps": 9},
        {"steps": BLOCK_LENGTH + 3},
        {"betas": (0.0, 0.01, 1.0)},
        {"step_size": 0.02},
        {"step_size": [0.1, 0.2, 0.3]},
        {"scale": 5.0},
        {"n_integration": 11},
        {"n_integration": BLOCK_LENGTH + 5},
        {"variance": 0.7},
        {"t0": 0.01},
        {"m": 3},
        {"corrector_step": 0.3},
        {"cap": 0.05},
    ],
    ids=str,
)
def test_changed_numbers_are_not_traced_anew(warmed, changes):
    before, first = warmed.traces, run_it(cds(), warmed.density)
    second = run_it(cds(**changes), warmed.density, seed=1)
    assert warmed.traces == before
    assert not np.array_equal(first.position, second.position)


def test_another_number_of_replicas_is(warmed):
    """The control: the counter does see a new program."""
    keys, anchors = chain_keys(jax.random.key(0), np.arange(N_CHAINS)), jnp.zeros((N_CHAINS, 2))
    before = warmed.traces
    _init.lower(cds().stages()[0], warmed.density, keys, anchors, None)
    assert warmed.traces == before
    _init.lower(cds(betas=linear_schedule(4)).stages()[0], warmed.density, keys, anchors, None)
    assert warmed.traces > before


def test_local_chains_share_a_program_too():
    traced = Traced()
    run_it(LocalChain(HMC(0.3, 2), 5), traced.density)
    before = traced.traces
    run_it(LocalChain(HMC(0.1, 7), 50), traced.density, seed=3)
    assert traced.traces == before


def test_the_program_of_a_block_serves_any_number_of_steps_in_the_same_memory(warmed):
    """The compiled program takes the number of steps as data, and needs little more than the state itself."""
    program, sizes = None, []
    for n_steps in (10, 10_000):
        stage = cds(steps=n_steps).stages()[0].compiled_part()
        keys = chain_keys(jax.random.key(0), np.arange(N_CHAINS))
        arguments = (stage, warmed.density, keys, jnp.zeros((N_CHAINS, 2)))
        state = _init(*arguments, None)
        lowered = _advance.lower(*arguments, state, None, jnp.int32(0), jnp.int32(n_steps))
        assert program in (None, lowered.as_text())
        program = lowered.as_text()
        sizes.append(sum(leaf.nbytes for leaf in jax.tree.leaves(state)))
    assert sizes[0] == sizes[1]
    temporary = lowered.compile().compiled.memory_analysis().temp_size_in_bytes
    assert temporary < 30 * sizes[0] + 100_000


def test_nothing_accumulates_from_block_to_block(warmed, monkeypatch):
    """Live arrays take as many bytes after ten blocks as after two, in either stage."""
    # Blocks are as long as the clock says, which is no number to count on.
    monkeypatch.setattr(Pace, "next", lambda pace, left: min(BLOCK_LENGTH, left))
    live = []
    sampler = cds(steps=10 * BLOCK_LENGTH, n_integration=10 * BLOCK_LENGTH)

    def weigh(evaluations):
        live.append(sum(array.nbytes for array in jax.live_arrays()))

    run_chunk(
        sampler, warmed.density, chain_keys(jax.random.key(0), np.arange(N_CHAINS)), jnp.zeros((N_CHAINS, 2)), weigh
    )
    assert len(live) == 22  # each stage's start and ten blocks
    assert len(set(live[2:11])) == 1
    assert len(set(live[13:22])) == 1
