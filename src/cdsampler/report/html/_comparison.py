"""A comparison of samplers on one density, as one page of HTML that needs nothing else."""

import itertools
from collections.abc import Mapping, Sequence, Set
from pathlib import Path

import numpy as np
from matplotlib.lines import Line2D

from cdsampler.benchmark import Comparison, Entry, Pair
from cdsampler.report._comparison import column_of, differ, gave_samples
from cdsampler.report._format import count, number, spread
from cdsampler.report._format import seconds as duration
from cdsampler.report._style import finish
from cdsampler.report.html._files import write_whole
from cdsampler.report.html._look import Look, looks
from cdsampler.report.html._markup import escaped, many, section, small, swatch, table
from cdsampler.report.html._panels import legend_above, panel_grid
from cdsampler.report.html._picture import Picture
from cdsampler.report.html._template import page_text

_MOST_COORDINATES = 7
_N_BINS = 40
_FARTHEST = 4.0  # times the range between the quartiles
_NOTHING = '<span class="faint">–</span>'


def write_comparison(
    comparison: Comparison, names: Sequence[str], out: str | Path, facts: Mapping[str, object] | None = None
) -> Path:
    """Write whether samplers agree on a density, and what each gave, as a page of HTML.

    Parameters
    ----------
    comparison
        Of `cdsampler.benchmark.compare`.
    names
        Of the coordinates.
    out
        File of the page; missing folders are made.
    facts
        What was run, for the end of the page: its model, budget and so on.

    Returns
    -------
    Path
        The page.
    """
    shown = looks([entry.name for entry in comparison.entries])
    facts = {} if facts is None else facts
    parts = [_agreement(comparison, shown), _entries(comparison, shown), _log_z(comparison, shown)]
    parts += [_distributions(comparison, names, shown), _warnings(comparison, shown), _provenance(facts)]
    subtitle = f"{many(len(comparison.entries), 'sampler')} on a density of {many(len(names), 'parameter')}"
    body = "\n".join(part for part in parts if part)
    return write_whole(Path(out), page_text("Comparison of samplers", subtitle, body).encode("utf-8"))


def verdict(comparison: Comparison) -> str:
    """Return in words whether the samplers agree, and who doesn't with whom."""
    names = [entry.name for entry in gave_samples(comparison)]
    if len(names) < 2:
        return f"{many(len(names), 'sampler')} gave samples: there is nothing to compare."
    bad = {frozenset((pair.first, pair.second)) for pair in comparison.pairs if differ(pair, len(comparison.pairs))}
    if not bad:
        return (
            f"No two of {len(names)} samplers differ by more than chance. That is no proof: samplers that all miss a "
            "mode agree, too."
        )
    groups = _groups(names, bad)
    if len(groups) > 1 and all(not _within(group, bad) for group in groups):
        listed = "; ".join(", ".join(group) for group in groups)
        return f"There are {len(groups)} groups that agree within and differ between: {listed}. At most one is right."
    pairs = "; ".join(" and ".join(name for name in names if name in pair) for pair in sorted(bad, key=sorted))
    return f"These differ by more than chance: {pairs}. At least one of each pair is wrong."


def _groups(names: Sequence[str], bad: Set[frozenset[str]]) -> list[list[str]]:
    """Return samplers that are linked by agreement, the largest group first."""
    groups: list[list[str]] = []
    for name in names:
        linked = [group for group in groups if any(frozenset((name, other)) not in bad for other in group)]
        rest = [group for group in groups if group not in linked]
        groups = [*rest, [*(other for group in linked for other in group), name]]
    order = {name: index for index, name in enumerate(names)}
    return sorted(
        (sorted(group, key=order.__getitem__) for group in groups), key=lambda group: (-len(group), order[group[0]])
    )


def _within(group: Sequence[str], bad: Set[frozenset[str]]) -> bool:
    """Return whether two of a group differ."""
    return any(frozenset(pair) in bad for pair in itertools.combinations(group, 2))


def _agreement(comparison: Comparison, shown: Mapping[str, Look]) -> str:
    lead = f"<strong>{escaped(verdict(comparison))}</strong>"
    if not comparison.pairs:
        return section("agreement", "Do they agree?", lead)
    more = (
        "Each pair's draws are compared by their energy distance (0 for one law), in coordinates of unit variance. p "
        "is the chance that draws of one law are as far apart; a pair differs if it is below 0.01 over the number of "
        "pairs, or if the estimates of log Z are more than four standard errors apart."
    )
    by_names = {(pair.first, pair.second): pair for pair in comparison.pairs}
    names = [entry.name for entry in gave_samples(comparison)]
    rows = []
    for index, name in enumerate(names[1:], start=1):
        cells = [_pair_cell(by_names.get((other, name)), len(comparison.pairs)) for other in names[:index]]
        rows.append([_name(shown, name), *cells, *[""] * (len(names) - 1 - index)])
    heads = ["", *(_name(shown, name) for name in names[:-1])]
    return section("agreement", "Do they agree?", lead, small(more), table(heads, rows, caption="Pairs of samplers"))


def _pair_cell(pair: Pair | None, n_pairs: int) -> str:
    if pair is None:
        return _NOTHING
    is_bad = differ(pair, n_pairs)
    words, kind = ("they differ", "differs") if is_bad else ("no difference seen", "agrees")
    p_value = "p &lt; 0.001" if pair.p_value < 1e-3 else f"p = {pair.p_value:.3f}"
    gap = "" if pair.log_z_gap is None else f"<br>log Z {pair.log_z_gap:+.1f} s.e."
    figures = f'<small class="best">distance {number(pair.distance, 2)}, {p_value}{gap}</small>'
    return f'<span class="{kind}">{words} {figures}</span>'


def _entries(comparison: Comparison, shown: Mapping[str, Look]) -> str:
    lead = (
        "Energies are minus the log density: a sampler that misses a mode or has not settled often shows it there. "
        "Evaluations per sample count everything, tuning included."
    )
    rows = []
    for entry in comparison.entries:
        result, name = entry.result, _name(shown, entry.name)
        if result is None:
            rows.append(
                [name, f'<span class="faint">{escaped(entry.error)}</span>', *[""] * 4, duration(entry.seconds)]
            )
            continue
        energies = column_of(entry, None)
        lost = np.size(result.log_density) - len(energies)
        low, middle, high = np.quantile(energies, [0.05, 0.5, 0.95]) if len(energies) else (np.nan,) * 3
        cells = [count(len(result.positions)), count(round(result.evaluations_per_returned_sample))]
        cells += [_log_z_text(result.log_z), number(middle, 4)]
        cells.append(f"{number(low, 4)} to {number(high, 4)}" + (f", {count(lost)} not finite" if lost else ""))
        rows.append([name, *cells, duration(entry.seconds)])
    heads = ["sampler", "samples", "evaluations per sample", "log Z", "energy<small>median</small>"]
    heads += ["energy<small>5–95 %</small>", "time"]
    return section("samplers", "What each gave", lead, table(heads, rows, caption="Samplers"))


def _log_z_text(log_z: tuple[float, float] | None) -> str:
    if log_z is None:
        return _NOTHING
    return spread(*log_z) if np.isfinite(log_z[0]) else '<span class="faint">not finite</span>'


def _log_z(comparison: Comparison, shown: Mapping[str, Look]) -> str:
    found = [(entry.name, entry.result.log_z) for entry in comparison.entries if entry.result is not None]
    having = [(name, log_z) for name, log_z in found if log_z is not None and np.isfinite(log_z[0])]
    if len(having) < 2:
        return ""
    lead = "Independent estimates of the normalising constant, with two standard errors: their bars should overlap."
    figure, (axes, *_) = panel_grid(1)
    figure.set_figheight(0.9 + 0.3 * len(having))
    for row, (name, (value, error)) in enumerate(having):
        width = 2 * error if np.isfinite(error) else 0.0
        axes.errorbar(value, row, xerr=width, fmt=shown[name].marker, color=shown[name].colour, capsize=3, markersize=5)
    axes.set_yticks(range(len(having)), [name for name, _ in having])
    axes.set_ylim(len(having) - 0.5, -0.5)
    finish(axes, x="log Z")
    text = "; ".join(f"{name}: {spread(*log_z)}" for name, log_z in having)
    return section("log-z", "Log Z", lead, Picture("log-z", figure, "", text).html())


def _distributions(comparison: Comparison, names: Sequence[str], shown: Mapping[str, Look]) -> str:
    entries = gave_samples(comparison)
    if not entries:
        return ""
    chosen = _most_different(entries, len(names))
    which = "all" if len(chosen) == len(names) else f"the {len(chosen)} of {len(names)} in which they differ most"
    lead = (
        f"Histograms of the energies and of the coordinates ({which}): where samplers agree, lines lie on each other. "
        "Far tails are beyond the axes."
    )
    figure, panels = panel_grid(1 + len(chosen), top=0.4)
    lines = [
        Line2D([], [], color=shown[e.name].colour, linestyle=shown[e.name].linestyle, label=e.name) for e in entries
    ]
    for axes, coordinate in zip(panels, [None, *chosen], strict=True):
        columns = [column_of(entry, coordinate) for entry in entries]
        edges = _edges(columns)
        for entry, column in zip(entries, columns, strict=True):
            heights = np.histogram(column, edges)[0] / (max(len(column), 1) * np.diff(edges))
            look = shown[entry.name]
            axes.stairs(heights, edges, color=look.colour, linestyle=look.linestyle, linewidth=1.4)
        label = "energy" if coordinate is None else names[coordinate]
        finish(axes, x=label, y="density" if axes is panels[0] else "")
        axes.set_ylim(bottom=0)
    legend_above(figure, lines)
    labels = ", ".join(["the energy", *(names[coordinate] for coordinate in chosen)])
    text = f"Histograms of {labels}, of {', '.join(entry.name for entry in entries)}."
    return section("distributions", "Distributions", lead, Picture("distributions", figure, "", text).html())


def _edges(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Return bins that hold the bulk of every sampler, but not the far tail of one that has gone astray."""
    pooled = np.concatenate(columns)
    if not len(pooled):
        return np.linspace(0, 1, _N_BINS + 1)
    ends = np.array([np.quantile(column, [0.002, 0.998]) for column in columns if len(column)])
    first, third = np.quantile(pooled, [0.25, 0.75])
    low = max(ends[:, 0].min(), first - _FARTHEST * (third - first))
    high = min(ends[:, 1].max(), third + _FARTHEST * (third - first))
    n_bins = int(np.clip(3 * min(len(column) for column in columns if len(column)) ** (1 / 3), 12, _N_BINS))
    return np.linspace(low, high if high > low else low + 1, n_bins + 1)


def _most_different(entries: Sequence[Entry], dim: int) -> list[int]:
    """Return the coordinates whose deciles differ most between samplers, in units of their spread, in order."""
    draws = [entry.result.positions.astype(np.float64) for entry in entries if entry.result is not None]
    deciles = np.stack([np.quantile(one, np.linspace(0.1, 0.9, 9), axis=0) for one in draws])
    spreads = np.concatenate(draws).std(axis=0)
    gaps = np.ptp(deciles, axis=0).max(axis=0) / np.where(spreads > 0, spreads, 1.0)
    order = np.argsort(-gaps, kind="stable")[: min(dim, _MOST_COORDINATES)]
    return sorted(order.tolist())


def _warnings(comparison: Comparison, shown: Mapping[str, Look]) -> str:
    rows = []
    for entry in comparison.entries:
        for warning in () if entry.result is None else entry.result.warnings:
            rows.append([_name(shown, entry.name), *map(escaped, (warning.code, warning.meaning, warning.advice))])
    lead = "What the samplers themselves doubt about their samples, and what to do."
    heads = ["sampler", "warning", "what was seen", "what to do"]
    content = table(heads, rows, caption="Warnings", n_texts=4) if rows else "<p>No sampler warned of anything.</p>"
    return section("warnings", "Warnings", lead, content)


def _provenance(facts: Mapping[str, object]) -> str:
    if not facts:
        return ""
    rows = [[escaped(name), escaped(value)] for name, value in facts.items()]
    lead = "The same request to the same version gives the same samples."
    return section("provenance", "Provenance", lead, table(["what", "value"], rows, caption="What was run", n_texts=2))


def _name(shown: Mapping[str, Look], name: str) -> str:
    return f'<span class="name">{swatch(shown[name])}{escaped(name)}</span>'
