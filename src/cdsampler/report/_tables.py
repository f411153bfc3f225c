"""What a run says about itself, as tables for the console. Colour only repeats what the text says."""

from collections.abc import Sequence

import numpy as np
from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from cdsampler.metrics import MetricValue
from cdsampler.report._format import count, metric_label, number, percent, seconds, spread
from cdsampler.sampling import Result
from cdsampler.tuning import Plan

_NOTHING = "–"


def metrics_table(values: Sequence[MetricValue], *, n_modes: int | None = None) -> Table:
    """Return a table of errors, each beside the floor that exact samples of the same size have.

    Parameters
    ----------
    values
        As `cdsampler.metrics.evaluate` returns them.
    n_modes
        Number of modes of a mixture, for "38 of 40".

    Returns
    -------
    Table
        The multiple of the floor is green within two standard deviations of an exact sample, red beyond twice
        the floor, and yellow between. What is no error, as a weight, stands beside the value that exact samples have,
        with its distance from it in their standard deviations: green up to two, red beyond four.
    """
    table = _table("Errors against exact draws")
    table.add_column("metric")
    for heading in ("error", "floor", "multiple of floor", "n"):
        table.add_column(heading, justify="right")
    for value in values:
        if value.name == "modes_found":
            found = count(value.value) + (f" of {n_modes}" if n_modes is not None else "")
            cells = [Text(found, style=_modes_style(value.value, n_modes)), Text(_NOTHING), Text(_NOTHING)]
        elif not value.is_error:
            exact = _NOTHING if value.floor is None else spread(value.floor.mean, value.floor.std)
            cells = [Text(number(value.value)), Text(exact), _deviation(value)]
        else:
            floor = _NOTHING if value.floor is None else spread(value.floor.mean, value.floor.std)
            ratio = _NOTHING if value.ratio is None else f"{value.ratio:.2f} ×"
            cells = [Text(number(value.value)), Text(floor), Text(ratio, style=_ratio_style(value))]
        table.add_row(Text(metric_label(value.name)), *cells, count(value.n_used))
    return table


def cost_table(result: Result) -> Table:
    """Return a table of what a run cost, in both accountings.

    Parameters
    ----------
    result
        Of `cdsampler.sampling.run`.
    """
    production, tuning = result.evaluations.total(), result.tuning_evaluations.total()
    table = _two_columns("Cost" + (" of the finished chains (interrupted)" if result.is_partial else ""))
    table.add_row("samples returned", count(len(result.positions)))
    n_draws = result.samples.shape[1]
    chain = "independent sample (its own chain)" if n_draws == 1 else f"chain, of {n_draws} draws each"
    n_particles = result.sampler.stages()[0].n_points
    if n_particles > 1:
        chain = f"group of {n_particles} particles"
    table.add_row(f"evaluations per {chain}", count(result.evaluations_per_sample))
    table.add_row("evaluations per returned sample (tuning included)", count(result.evaluations_per_returned_sample))
    table.add_section()
    table.add_row("evaluations in production", count(int(production.count)))
    table.add_row("  of the value alone", count(int(production.value)))
    table.add_row("  with the gradient", count(int(production.gradient)))
    table.add_row("evaluations in tuning", count(int(tuning.count)))
    waited = result.executed_evaluations - int(production.count) - result.spare_evaluations
    if waited > 0:
        table.add_row("evaluations executed while chains waited for longer ones", count(waited))
    if result.spare_evaluations:
        table.add_row("evaluations of draws that are not returned", count(result.spare_evaluations))
    for label, attribute in (("-inf", "neg_inf"), ("NaN", "nan"), ("+inf", "pos_inf")):
        amount = int(getattr(production, attribute)) + int(getattr(tuning, attribute))
        if amount:
            of_all = f"{count(amount)} ({percent(amount / int(production.count + tuning.count))})"
            table.add_row(f"evaluations that gave {label}", Text(of_all, style="yellow"))
    table.add_section()
    working = max(result.timing.total - result.timing.compilation, 0.0)
    rate = number(int(production.count) / working) if working > 0 else _NOTHING
    table.add_row("production time", seconds(working))
    table.add_row("compilation time", seconds(result.timing.compilation))
    table.add_row("evaluations per second (without compilation)", rate)
    return table


def tempering_table(result: Result) -> Table | None:
    """Return a table of the tempering stage's rates; None without such a stage.

    Parameters
    ----------
    result
        Of `cdsampler.sampling.run`.
    """
    tempering = result.tempering
    if tempering is None:
        return None
    table = _two_columns("Tempering")
    table.add_row("barrier Λ", number(tempering.barrier))
    table.add_row("replicas", count(len(tempering.betas)))
    rate = tempering.round_trip_rate
    every = f" (one in {number(1 / rate)} steps)" if rate > 0 else ""
    table.add_row("predicted round trips per step", number(rate) + every)
    table.add_row("round trips per chain", _per_chain(tempering.round_trips))
    table.add_row("restarts per chain", _per_chain(tempering.restarts))
    table.add_section()
    table.add_row("swap rejection", _range(tempering.rejection))
    table.add_row("local acceptance", _range(_local_acceptance(result)))
    table.add_section()
    evidence = tempering.evidence
    if evidence is None:
        table.add_row("log Z", "none (flat reference)")
        return table
    unknown = "" if np.isfinite(evidence.standard_error) else " (one chain: no error)"
    table.add_row("log Z ± standard error", spread(evidence.log_z, evidence.standard_error) + unknown)
    table.add_row("  stepping stones up and down", f"{evidence.forward:.3f} and {evidence.backward:.3f}")
    return table


def annealing_table(result: Result) -> Table | None:
    """Return a table of what groups of annealed particles say; None without any.

    Parameters
    ----------
    result
        Of `cdsampler.sampling.run`.
    """
    annealing = result.annealing
    if annealing is None:
        return None
    table = _two_columns("Annealed particles")
    table.add_row("groups", count(annealing.n_groups))
    table.add_row("groups that their weights are worth", number(annealing.effective_groups))
    table.add_row("particles in a group", count(annealing.n_particles))
    if annealing.n_particles > 1:
        table.add_row("smallest effective share before resampling", percent(annealing.smallest_ess))
        table.add_row("resamplings", number(annealing.n_resampled))
        table.add_row("first draws with descendants", number(annealing.n_ancestors))
    table.add_row("local acceptance", percent(annealing.acceptance))
    table.add_section()
    unknown = "" if np.isfinite(annealing.standard_error) else " (one group: no error)"
    table.add_row("log Z ± standard error", spread(annealing.log_z, annealing.standard_error) + unknown)
    return table


def plan_table(plan: Plan) -> Table:
    """Return a table of what tuning chose.

    Parameters
    ----------
    plan
        Of a result.
    """
    table = _table("Plan")
    table.show_header = False
    table.add_column("choice")
    table.add_column("value")
    for name, text in plan.table():
        table.add_row(name, text)
    return table


def warnings_panel(result: Result) -> Panel | None:
    """Return a panel with every warning of a run, what was seen first and what to do after; None without any.

    Parameters
    ----------
    result
        Of `cdsampler.sampling.run`.
    """
    if not result.warnings:
        return None
    lines = [
        Text.assemble((warning.code, "bold yellow"), f": {warning.meaning} ", (warning.advice, "bold"))
        for warning in result.warnings
    ]
    title = "1 warning" if len(lines) == 1 else f"{len(lines)} warnings"
    return Panel(Group(*lines), title=title, title_align="left", border_style="yellow", expand=False)


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="bold", header_style="bold")


def _two_columns(title: str) -> Table:
    table = _table(title)
    table.show_header = False
    table.add_column("quantity")
    table.add_column("value", justify="right")
    return table


def _ratio_style(value: MetricValue) -> str:
    if value.floor is None or value.ratio is None:
        return ""
    noise = 2 * value.floor.std if np.isfinite(value.floor.std) else 0.2 * value.floor.mean
    if value.value <= value.floor.mean + noise:
        return "green"
    return "yellow" if value.ratio <= 2 else "red"


def _deviation(value: MetricValue) -> Text:
    if value.floor is None or not value.floor.std > 0:
        return Text(_NOTHING)
    z = (value.value - value.floor.mean) / value.floor.std
    return Text(f"{z:+.1f} sd", style="green" if abs(z) <= 2 else "yellow" if abs(z) <= 4 else "red")


def _modes_style(found: float, n_modes: int | None) -> str:
    if n_modes is None:
        return ""
    return "green" if found >= n_modes else "yellow" if found >= 0.9 * n_modes else "red"


def _per_chain(counts: np.ndarray) -> str:
    none = percent(float(np.mean(counts == 0)))
    return f"mean {number(float(np.mean(counts)))}, min {count(int(np.min(counts)))}, none in {none}"


def _local_acceptance(result: Result) -> np.ndarray:
    """Return the acceptance of the replicas that move locally; the one drawn from the reference doesn't."""
    assert result.tempering is not None
    is_moving = result.tempering.betas > 0
    return result.tempering.acceptance[is_moving]


def _range(rates: np.ndarray) -> str:
    return f"{np.min(rates):.2f} to {np.max(rates):.2f} (mean {np.mean(rates):.2f})"
