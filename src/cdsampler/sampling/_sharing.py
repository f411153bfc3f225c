"""Shares a run's groups of chains out to devices and processes, and brings the outcomes together."""

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from cdsampler.samplers import ChunkOutcome
from cdsampler.sampling._groups import Groups
from cdsampler.sampling._meeting import Alone, Meeting
from cdsampler.sampling._pool import Interrupted, Ledger, n_workers, run_jobs
from cdsampler.sampling._team import Team
from cdsampler.tuning import Plan, RoundSummary

# A group runs as one program on one device; rows of groups run on several devices in step.
Row = tuple[int, ...]


class Made(NamedTuple):
    """What came of the groups.

    Attributes
    ----------
    outcomes : list of ChunkOutcome
        Of the finished groups, in the order of their numbers.
    evaluations : int
        Made by all processes, unfinished groups included.
    is_partial : bool
        Whether an interrupt left some out.
    """

    outcomes: list[ChunkOutcome]
    evaluations: int
    is_partial: bool


class _Share(NamedTuple):
    outcomes: dict[int, ChunkOutcome]
    evaluations: int
    is_partial: bool


def run_shared(
    groups: Groups, n_groups: int, team: Team, n_at_once: int, seed: int, report: Callable[[int, int], None]
) -> Made:
    """Run all groups; every process of the team returns all of their outcomes.

    Parameters
    ----------
    groups
    n_groups
    team
    n_at_once
        Most groups in flight in one process.
    seed
        For the processes to compare.
    report
        Called in this thread several times a second, with the evaluations made and the groups finished by all.

    Raises
    ------
    Interrupted
        Before any group was finished.
    ProcessError
        Another process has failed, is silent, or runs something else.
    """
    rows, finished, ledger = team.rows(n_groups, n_at_once), list[int](), Ledger()

    def work(row: Row) -> dict[int, ChunkOutcome]:
        outcomes = groups.run(row, team.devices_for(rows, row), ledger)
        finished.extend(row)
        return outcomes

    with Meeting(_about(groups, n_groups, seed)) if team.is_several else Alone() as meeting:

        def watch(n_rows: int) -> None:
            report(*meeting.look(ledger.made, len(finished)))

        mine = _run_rows(work, rows, ledger, watch, _n_threads(team, rows, n_at_once))
        meeting.tell(ledger.made, len(finished))
        shares = meeting.gather(mine, report, is_leaving=mine.is_partial)
    outcomes = dict(item for share in shares for item in share.outcomes.items())
    made = sum(share.evaluations for share in shares)
    if not outcomes:
        raise Interrupted(made)
    if team.is_several:
        report(made, len(outcomes))
    return Made([outcomes[number] for number in sorted(outcomes)], made, any(share.is_partial for share in shares))


def plan_of_first(
    tune: Callable[..., Plan], on_round: Callable[[RoundSummary], None], about: dict[str, Any], team: Team
) -> Plan:
    """Return on every process the plan that the first one makes, so that tuning is executed and charged once."""
    if not team.is_several:
        return tune(on_round=on_round)
    with Meeting(about) as meeting:

        def watch(summary: RoundSummary) -> None:
            meeting.look(0, 0)
            on_round(summary)

        plan: Plan = meeting.gather(tune(on_round=watch) if team.is_first else None)[0]
        return plan


def _run_rows(
    work: Callable[[Row], dict[int, ChunkOutcome]],
    rows: list[Row],
    ledger: Ledger,
    watch: Callable[[int], None],
    n_threads: int,
) -> _Share:
    if not rows:
        return _Share({}, 0, False)
    try:
        made, is_partial = run_jobs(work, rows, ledger, watch, n_threads)
    except KeyboardInterrupt:
        # Another process may have finished some.
        made, is_partial = [], True
    return _Share(dict(item for row in made for item in row.items()), ledger.made, is_partial)


def _n_threads(team: Team, rows: list[Row], n_at_once: int) -> int:
    """Return how many rows a process has in flight: what the cores allow, one where devices aren't the processor."""
    if not rows or team.own[0].platform != "cpu":
        return 1
    return max(1, min(n_workers(), n_at_once) // len(rows[0]))


def _about(groups: Groups, n_groups: int, seed: int) -> dict[str, Any]:
    """Return what processes must agree on; of all the numbers in sampler, density and anchors a short hash."""
    made = hashlib.sha256()
    numbers = eqx.filter((groups.sampler, groups.density, groups.centres, groups.anchor_scale), eqx.is_array_like)
    for leaf in jax.tree.leaves(numbers):
        made.update(np.asarray(leaf).tobytes())
    return {
        "seed": seed,
        "the number of chains": groups.n_chains,
        "the draws of a chain": groups.harvest.n_draws,
        "their spacing": groups.harvest.thinning,
        "groups": f"{n_groups} of {groups.width}",
        "dim": groups.density.dim,
        "dtype": str(groups.density.dtype),
        "numbers of sampler, density and anchors": made.hexdigest()[:12],
    }
