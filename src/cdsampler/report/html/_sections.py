"""Tables of results: the summary, costs of coming near the floor, hypervolume ratios, and other quantities."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cdsampler.benchmark.fronts import REACHED, HypervolumeRatio, Reach
from cdsampler.report._format import count, metric_label, number, spread
from cdsampler.report.html._markup import escaped, swatch, table
from cdsampler.report.html._sweep import Sweep, best_first, in_order

COSTS = {"independent": "of an independent sample", "returned": "of a returned sample, tuning included"}

_NOTHING = '<span class="faint">–</span>'
_NOT_TESTED = '<span class="faint">not run</span>'


def summary_table(sweep: Sweep, accounting: str) -> str:
    """Return a row for each sampler: hypervolume ratio, and what it costs to come near each task's floor."""
    analysis = sweep.analyses[accounting]
    overall = {ratio.label: ratio for ratio in analysis.ratios if (ratio.task, ratio.metric) == ("all", "all")}
    tasks = [(task, metric) for task in sweep.tasks if (metric := sweep.headline(task)) is not None]
    by_key = {(reach.task, reach.metric, reach.label): reach for reach in analysis.reaches}
    cheapest = {pair: _cheapest(by_key, pair, sweep.labels) for pair in tasks}
    heads = ["sampler", "hypervolume ratio<small>mean</small>", "metrics near floor<small>all tasks</small>"]
    heads += [f"{escaped(task)}<small>{_metric_head(metric)}</small>" for task, metric in tasks]
    rows = []
    for label in best_first(analysis, sweep.labels):
        n_reached = sum(reach.cost is not None for reach in analysis.reaches if reach.label == label)
        n_tried = sum(len(sweep.error_metrics(task)) for task in sweep.tasks if sweep.was_tried(task, label))
        row = [name_cell(sweep, label), _ratio_bar(overall.get(label)), f"{n_reached} of {n_tried}"]
        for pair in tasks:
            row.append(_reach_cell(sweep, by_key.get((*pair, label)), pair[0], label, cheapest[pair]))
        rows.append(row)
    caption = f"Samplers, best first. Cost {COSTS[accounting]}."
    groups = [("", 3), (f"evaluations per sample to reach {REACHED:g} × the floor", len(tasks))] if tasks else []
    return table(heads, rows, caption=caption, groups=groups)


def reach_tables(sweep: Sweep, accounting: str) -> str:
    """Return what it costs each sampler to come near the floor by every metric, a table for each task."""
    analysis = sweep.analyses[accounting]
    by_key = {(reach.task, reach.metric, reach.label): reach for reach in analysis.reaches}
    tables = []
    for task in sweep.tasks:
        metrics = sweep.error_metrics(task)
        if not metrics:
            continue
        best = {metric: _cheapest(by_key, (task, metric), sweep.labels) for metric in metrics}
        rows = []
        for label in best_first(analysis, sweep.labels):
            if sweep.was_tried(task, label):
                reaches = [by_key.get((task, metric, label)) for metric in metrics]
                pairs = zip(metrics, reaches, strict=True)
                cells = [_reach_cell(sweep, reach, task, label, best[metric]) for metric, reach in pairs]
                rows.append([name_cell(sweep, label), *cells])
        heads = ["sampler", *map(_metric_head, metrics)]
        caption = f"{task}: evaluations per sample to reach {REACHED:g} × the floor. Cost {COSTS[accounting]}."
        tables.append(table(heads, rows, caption=caption))
    return "".join(tables)


def hypervolume_table(sweep: Sweep, accounting: str) -> str:
    """Return hypervolume ratios by metric, means over tasks, and their mean, also of errors that are not clipped."""
    analysis = sweep.analyses[accounting]
    ratios = {(r.label, r.metric): r for r in analysis.ratios if r.task == "all"}
    plain = {r.label: r for r in analysis.unclipped if (r.task, r.metric) == ("all", "all")}
    metrics = in_order(metric for _, metric in ratios if metric != "all")
    best = {m: max((r.value for (_, name), r in ratios.items() if name == m), default=0.0) for m in metrics}
    best_plain = max((ratio.value for ratio in plain.values()), default=0.0)
    rows = []
    for label in best_first(analysis, sweep.labels):
        cells = [_ratio_text(ratios.get((label, metric)), best[metric]) for metric in metrics]
        mean = _ratio_bar(ratios.get((label, "all")))
        rows.append([name_cell(sweep, label), mean, _ratio_text(plain.get(label), best_plain), *cells])
    heads = ["sampler", "mean", "mean<small>not clipped, as in the paper</small>", *map(_metric_head, metrics)]
    caption = f"Hypervolume ratios, with 5–95 % of the bootstrap. Cost {COSTS[accounting]}."
    return table(heads, rows, caption=caption)


def quantity_table(sweep: Sweep) -> str:
    """Return what is no error, beside the reference's, at each sampler's largest budget; empty without any."""
    heads, exact = ["sampler"], ["exact draws"]
    rows = {label: [name_cell(sweep, label)] for label in sweep.labels}
    for task in sweep.tasks:
        records = [record for item in sweep.shown[task] for record in item.records]
        for metric in in_order(name for record in records for name in record["metrics"] or {}):
            if metric in sweep.error_metrics(task):
                continue
            heads.append(f"{_metric_head(metric)}<small>{escaped(task)}</small>")
            entry = next(r["metrics"][metric] for r in records if metric in (r["metrics"] or {}))
            has_floor = entry.get("floor") is not None
            exact.append(spread(entry["floor"], float(entry.get("floor_sd") or np.nan)) if has_floor else _NOTHING)
            by_label = {item.label: _values(item.records, metric) for item in sweep.shown[task]}
            for label, row in rows.items():
                row.append(_mean_and_deviation(by_label.get(label, [])))
    if len(heads) == 1:
        return ""
    lines = [row for row in rows.values() if set(row[1:]) != {_NOTHING}]
    return table(
        heads, [exact, *lines], caption="Quantities that should agree with exact draws, at the largest budgets"
    )


def name_cell(sweep: Sweep, label: str) -> str:
    """Return a sampler's name beside its line."""
    return f'<span class="name">{swatch(sweep.looks[label])}{escaped(label)}</span>'


def _metric_head(metric: str) -> str:
    return escaped(metric_label(metric)).replace("-", "\N{NON-BREAKING HYPHEN}")


def _cheapest(by_key: Mapping[tuple[str, str, str], Reach], pair: tuple[str, str], labels: Sequence[str]) -> float:
    reached = [by_key[*pair, label].cost for label in labels if (*pair, label) in by_key]
    return min((cost for cost in reached if cost is not None), default=0.0)


def _reach_cell(sweep: Sweep, reach: Reach | None, task: str, label: str, cheapest: float) -> str:
    if reach is None:
        return '<span class="faint">no samples</span>' if sweep.was_tried(task, label) else _NOT_TESTED
    cell = reach.cell
    hint = escaped(f"{cell.configuration}, budget {count(cell.budget)}, {len(cell.costs)} of {cell.n_runs} repeats")
    if reach.cost is None:
        # What is rounded to the threshold is beyond it.
        rounded = number(reach.best, 3) if float(f"{reach.best:.3g}") > REACHED else f"> {REACHED:g}"
        times = f"{rounded} ×" if np.isfinite(reach.best) else "not finite"
        return f'<span class="faint" title="{hint}">not reached <small class="best">best {times}</small></span>'
    text = f'<span class="reached" title="{hint}">{count(round(reach.cost))}</span>'
    text = f"<strong>{text}</strong>" if reach.cost <= cheapest else text
    return text if reach.is_lasting else f'{text} <small class="best">not at more</small>'


def _ratio_bar(ratio: HypervolumeRatio | None) -> str:
    if ratio is None:
        return _NOTHING
    bar = f'<span class="bar" aria-hidden="true"><i style="width:{100 * ratio.value:.0f}%"></i></span>'
    return f"{bar}{_band(ratio)}"


def _ratio_text(ratio: HypervolumeRatio | None, best: float) -> str:
    if ratio is None:
        return _NOTHING
    text = f"<strong>{_band(ratio)}</strong>" if ratio.value >= best > 0 else _band(ratio)
    return f'<span class="below">{text}</span>'


def _band(ratio: HypervolumeRatio) -> str:
    return f"{ratio.value:.2f} <small>{ratio.low:.2f}–{ratio.high:.2f}</small>"


def _values(records: Sequence[Mapping[str, Any]], metric: str) -> list[float]:
    entries = [(record["metrics"] or {}).get(metric) or {} for record in records]
    return [float(entry["value"]) for entry in entries if entry.get("value") is not None]


def _mean_and_deviation(values: Sequence[float]) -> str:
    if not values:
        return _NOTHING
    if len(set(values)) == 1 and values[0] == round(values[0]):
        return count(values[0])
    return spread(float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else np.nan)
