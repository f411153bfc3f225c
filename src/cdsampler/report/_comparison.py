"""Samplers beside each other where no truth is known: tables and a figure."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from rich.table import Table
from rich.text import Text

from cdsampler.benchmark import Comparison, Entry, Pair
from cdsampler.report._format import count, seconds, spread
from cdsampler.report._style import finish

LARGEST_GAP = 4.0  # standard errors
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def entries_table(entries: Sequence[Entry]) -> Table:
    """Return what each sampler gave: log Z, mean energy, cost, time and warnings.

    Parameters
    ----------
    entries
        Of `cdsampler.benchmark.compare`.
    """
    table = Table(title="Samplers", title_justify="left")
    table.add_column("sampler")
    for heading in ("log Z", "mean −log density", "evaluations per sample", "time"):
        table.add_column(heading, justify="right")
    table.add_column("warnings")
    for entry in entries:
        result = entry.result
        if result is None:
            table.add_row(entry.name, "", "", "", seconds(entry.seconds), Text(entry.error, style="red"))
            continue
        log_z = "–" if result.log_z is None else spread(*result.log_z)
        energy = -np.asarray(result.log_density, dtype=np.float64)
        codes = " ".join(warning.code for warning in result.warnings)
        table.add_row(
            entry.name,
            log_z,
            f"{energy.mean():.4g} (sd {energy.std():.3g})",
            count(result.evaluations_per_returned_sample),
            seconds(entry.seconds),
            Text(codes, style="yellow"),
        )
    return table


def pairs_table(comparison: Comparison) -> Table:
    """Return which samplers' draws differ by more than chance.

    Parameters
    ----------
    comparison
        Of `cdsampler.benchmark.compare`.
    """
    table = Table(title="Do they agree?", title_justify="left")
    for heading in ("", "", "energy distance", "p", "log Z gap", ""):
        table.add_column(heading, justify="right" if heading else "left")
    for pair in comparison.pairs:
        is_bad = differ(pair, len(comparison.pairs))
        verdict = Text("they differ", style="red") if is_bad else Text("no difference seen", style="green")
        gap = "–" if pair.log_z_gap is None else f"{pair.log_z_gap:+.1f} s.e."
        table.add_row(pair.first, pair.second, f"{pair.distance:.3g}", f"{pair.p_value:.4f}", gap, verdict)
    return table


def differ(pair: Pair, n_pairs: int) -> bool:
    """Return whether two samplers differ by more than chance, by their draws or by log Z, as one pair of several."""
    limit = 0.01 / max(n_pairs, 1)
    return pair.p_value < limit or (pair.log_z_gap is not None and abs(pair.log_z_gap) > LARGEST_GAP)


def gave_samples(comparison: Comparison) -> list[Entry]:
    """Return the entries that have samples."""
    return [entry for entry in comparison.entries if entry.result is not None]


def comparison_figure(comparison: Comparison, names: Sequence[str]) -> Figure:
    """Draw the distributions of energies and of the first coordinates by every sampler.

    Parameters
    ----------
    comparison
        Of `cdsampler.benchmark.compare`.
    names
        Of the coordinates; the first four are drawn.
    """
    shown = gave_samples(comparison)
    n_coordinates = min(len(names), 4)
    figure = Figure(figsize=(3.7 * (1 + n_coordinates), 3.4), layout="constrained")
    panels = figure.subplots(1, 1 + n_coordinates, squeeze=False)[0]
    for number, panel in enumerate(panels):
        columns = [column_of(entry, number - 1 if number else None) for entry in shown]
        low, high = np.quantile(np.concatenate(columns), [0.001, 0.999])
        bins = np.linspace(low, high if high > low else low + 1, 40)
        for index, (entry, column) in enumerate(zip(shown, columns, strict=True)):
            style = {"histtype": "step", "density": True, "color": COLOURS[index % len(COLOURS)]}
            panel.hist(column, bins=bins, label=entry.name, linewidth=1.4, **style)
        label = "−log density (nats)" if number == 0 else names[number - 1]
        finish(panel, x=label, y="density" if number == 0 else "")
    if shown:
        panels[0].legend(fontsize=8, frameon=False)
    return figure


def column_of(entry: Entry, coordinate: int | None) -> np.ndarray:
    """Return all draws of one coordinate, or of the energy (minus the log density) where it is finite."""
    assert entry.result is not None
    if coordinate is None:
        energies = -np.asarray(entry.result.log_density, dtype=np.float64).reshape(-1)
        return energies[np.isfinite(energies)]
    return entry.result.positions[:, coordinate].astype(np.float64)
