"""Rounds of tempering on a pilot: replicas, schedule, step sizes and the rate of restarts."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import PRNGKey
from cdsampler.density import AbstractLogDensity
from cdsampler.kernels import AbstractKernel
from cdsampler.paths import AbstractReference, equal_rejection_schedule
from cdsampler.samplers import NRPT, chain_keys, stepping_stones
from cdsampler.tuning._account import Account
from cdsampler.tuning._draws import Draws
from cdsampler.tuning._fit import MixtureFit
from cdsampler.tuning._plan import RoundSummary
from cdsampler.tuning._rounds import Measured, interpolated_steps, run_round, start_chains, with_numbers

MAX_REPLICAS, MAX_MEASURING_ROUNDS = 64, 6
# Restarts per pilot chain that the last round should see: 64 chains then know the rate to 6 %.
WANTED_RESTARTS = 4.0


class Ladder(NamedTuple):
    """A reference with its schedule and step sizes, as a round measured them.

    Attributes
    ----------
    reference : AbstractReference
    fit : MixtureFit or None
        Of a learned reference.
    betas, step_sizes : ndarray, shape (n_replicas,)
    rejection : ndarray, shape (n_replicas - 1,)
    """

    reference: AbstractReference
    fit: MixtureFit | None
    betas: np.ndarray
    step_sizes: np.ndarray
    rejection: np.ndarray


class Verified(NamedTuple):
    """What the last, frozen round measured.

    Attributes
    ----------
    ladder : Ladder
    measured : Measured
    restart_rate : float
        Restarts per step and chain.
    n_from_reference : int
        Chains that started from the reference; the others started at the modes found.
    """

    ladder: Ladder
    measured: Measured
    restart_rate: float
    n_from_reference: int


class PilotGroup:
    """The pilot group: its target, its accounts and the rounds it has made."""

    def __init__(
        self,
        density: AbstractLogDensity,
        anchor: np.ndarray,
        rng_key: PRNGKey,
        account: Account,
        *,
        n_chains: int,
        n_replicas: int | None = None,
        on_round: Callable[[RoundSummary], None] = lambda summary: None,
    ):
        self.density = density
        self.account = account
        self.n_chains = n_chains
        self.n_replicas = n_replicas
        self.rounds: list[RoundSummary] = []
        self._rng_key = rng_key
        self._on_round = on_round
        self._anchors = jnp.broadcast_to(jnp.asarray(anchor, density.dtype), (n_chains, density.dim))

    def run(
        self, what: str, ladder: Ladder, kernel: AbstractKernel, length: int, starts: np.ndarray, *, n_chains: int = 0
    ) -> Measured | None:
        """Run one round from fresh chains; None if the account can't pay for it.

        Parameters
        ----------
        what
            For the record.
        ladder
            Where step sizes start, and the schedule.
        kernel
            Its step sizes are replaced by the ladder's.
        length
            Steps after the ramp.
        starts : ndarray, shape (n_started, dim)
            The last chains start here, the others from the reference.
        n_chains
            Fewer chains than the pilot has; 0 means all.
        """
        n = n_chains or self.n_chains
        nrpt = _sampler(ladder, kernel)
        total = int(nrpt.ramp_length) + length
        if not self.account.affords(n * (nrpt.cost_init() + 1 + total * nrpt.cost_step())):
            return None
        keys = chain_keys(jax.random.fold_in(self._rng_key, len(self.rounds)), np.arange(n))
        anchors = self._anchors[:n]
        positions = jnp.asarray(starts, self.density.dtype) if len(starts) else None
        nrpt = eqx.tree_at(lambda s: s.n_steps, nrpt, jnp.asarray(total, jnp.int32))
        journal = self.account.journal
        state = journal.call("start", start_chains, nrpt, nrpt, self.density, keys, anchors, positions)
        state, measured = journal.call_in_parts(
            what, run_round, nrpt, nrpt, self.density, keys, anchors, state, 0, total
        )
        self.account.charge(state.evaluations)
        self._record(what, nrpt, total, state, measured)
        return measured

    def _record(self, what: str, nrpt: NRPT, length: int, state: Any, measured: Measured) -> None:
        log_z = stepping_stones(jax.tree.map(np.asarray, state.statistics)).log_z
        rate = float(measured.restarts.mean()) / max(length - int(nrpt.ramp_length), 1)
        barrier = float(measured.rejection.sum())
        spent = int(self.account.spent.count)
        summary = RoundSummary(what, nrpt.n_replicas, length, barrier, rate, log_z, spent, nrpt.cost_step())
        self.rounds.append(summary)
        self._on_round(summary)


def verify(
    pilot: PilotGroup, ladder: Ladder, kernel: AbstractKernel, starts: np.ndarray, first_length: int
) -> Verified | None:
    """Measure a ladder from two starts, in rounds of doubling length until restarts are seen or the account ends.

    Parameters
    ----------
    pilot
        Charged.
    ladder
        Its schedule and replica count follow what is measured between rounds.
    kernel
    starts : ndarray, shape (n_started, dim)
        Where the second group of chains starts.
    first_length
        Steps of the first round.
    """
    best, length = None, first_length
    for _ in range(MAX_MEASURING_ROUNDS):
        measured = pilot.run("measure", ladder, kernel, length, starts)
        if measured is None:
            break
        used = ladder._replace(step_sizes=measured.step_sizes, rejection=measured.rejection)
        rate = float(measured.restarts.mean()) / length
        best = Verified(used, measured, rate, pilot.n_chains - len(starts))
        ladder = rescheduled(used, measured, pilot.n_replicas)
        is_settled = len(ladder.betas) == len(used.betas) or pilot.n_replicas is not None
        if measured.restarts.mean() >= WANTED_RESTARTS and (is_settled or _is_close(ladder, used)):
            break
        length *= 2
    return best


def rescheduled(ladder: Ladder, measured: Measured, n_replicas: int | None) -> Ladder:
    """Return the ladder with the cheapest number of replicas and equal rejections, from what was measured."""
    n_old = len(ladder.betas)
    barrier = float(measured.rejection.sum())
    n = n_replicas
    if n is None:
        # Where nearly every swap is rejected the sum of rejections only says how many pairs there are.
        is_saturated = barrier > 0.75 * (n_old - 1)
        n = min(2 * n_old, MAX_REPLICAS) if is_saturated else cheapest_count(barrier)
    betas = equal_rejection_schedule(ladder.betas, measured.rejection, n)
    steps = interpolated_steps(betas, ladder.betas, measured.step_sizes)
    return ladder._replace(betas=betas, step_sizes=steps, rejection=np.full(n - 1, barrier / (n - 1)))


def cheapest_count(barrier: float) -> int:
    """Return the number of replicas with the least evaluations per restart, near 2Λ for large Λ.

    Parameters
    ----------
    barrier
        Λ.

    Notes
    -----
    A step costs one evaluation per replica, and a restart takes `2 + 2 Σ r/(1-r)` steps with equal rejections
    `r = Λ/(R-1)` (Syed et al. 2022).
    """
    return min(range(2, MAX_REPLICAS + 1), key=lambda n: restart_cost(barrier, n))


def restart_cost(barrier: float, n_replicas: int) -> float:
    """Return the predicted stage-1 evaluations for each restart with MALA; infinite if swaps never succeed."""
    rejection = barrier / (n_replicas - 1)
    if rejection >= 0.95:
        return float("inf")
    return n_replicas * (2 + 2 * barrier / (1 - rejection))


def spread_starts(draws: Draws, fit: MixtureFit, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return `n` draws that visit the fitted components evenly."""
    component = fit.component(draws.positions)
    order = rng.permutation(len(component))
    _, first = np.unique(component[order], return_index=True)
    starts = [order[first]]
    if sum(map(len, starts)) < n:
        starts.append(rng.choice(len(component), n - len(first)))
    return draws.positions[rng.permutation(np.concatenate(starts))[:n]]


def _sampler(ladder: Ladder, kernel: AbstractKernel) -> NRPT:
    return with_numbers(NRPT(ladder.reference, ladder.betas, kernel), ladder.betas, ladder.step_sizes)


def _is_close(new: Ladder, old: Ladder) -> bool:
    """Return whether another number of replicas would save less than a tenth."""
    barrier = float(old.rejection.sum())
    return restart_cost(barrier, len(old.betas)) < 1.1 * restart_cost(barrier, len(new.betas))
