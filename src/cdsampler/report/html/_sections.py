"""Tables of the page: the summary, hypervolume ratios, costs of coming near the floor, failures and provenance."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cdsampler.benchmark.fronts import REACHED, HypervolumeRatio, Reach, describe
from cdsampler.report._format import count, metric_label, number, spread
from cdsampler.report._format import seconds as duration
from cdsampler.report.html._markup import escaped, many, swatch, table
from cdsampler.report.html._sweep import Sweep, in_order

_NOTHING = '<span class="faint">–</span>'
_NOT_TESTED = '<span class="faint">not run</span>'


def summary_table(sweep: Sweep, accounting: str) -> str:
    """Return a row for each sampler: hypervolume ratio, and what it costs to come near each task's floor."""
    analysis = sweep.analyses[accounting]
    overall = {ratio.label: ratio for ratio in analysis.ratios if (ratio.task, ratio.metric) == ("all", "all")}
    tasks = [(task, metric) for task in sweep.tasks if (metric := sweep.headline(task)) is not None]
    by_key = {(reach.task, reach.metric, reach.label): reach for reach in analysis.reaches}
    cheapest = {pair: _cheapest(by_key, pair, sweep.labels) for pair in tasks}
    heads = ["sampler", "hypervolume ratio<small>mean</small>", "near floor<small>all metrics</small>"]
    heads += [f"{escaped(task)}<small>{_metric_head(metric)}</small>" for task, metric in tasks]
    order = sorted(sweep.labels, key=lambda label: -overall[label].value if label in overall else 1.0)
    rows = []
    for label in order:
        n_reached = sum(reach.cost is not None for reach in analysis.reaches if reach.label == label)
        n_tried = sum(len(sweep.error_metrics(task)) for task in sweep.tasks if sweep.was_tried(task, label))
        row = [name_cell(sweep, label), _ratio_bar(overall.get(label)), f"{n_reached} of {n_tried}"]
        for pair in tasks:
            row.append(_reach_cell(sweep, by_key.get((*pair, label)), pair[0], label, cheapest[pair]))
        rows.append(row)
    caption = f"Evaluations per sample at which the error is within {REACHED:g} × its floor, {accounting} accounting"
    return table(heads, rows, caption=caption)


def reach_table(sweep: Sweep, accounting: str) -> str:
    """Return what it costs each sampler to come near the floor, by every metric of every task."""
    by_key = {(reach.task, reach.metric, reach.label): reach for reach in sweep.analyses[accounting].reaches}
    rows = []
    for task in sweep.tasks:
        for metric in sweep.error_metrics(task):
            best = _cheapest(by_key, (task, metric), sweep.labels)
            cells = [_reach_cell(sweep, by_key.get((task, metric, label)), task, label, best) for label in sweep.labels]
            rows.append([f"{escaped(task)} <small>{escaped(metric_label(metric))}</small>", *cells])
    heads = ["task and metric", *(name_cell(sweep, label) for label in sweep.labels)]
    return table(heads, rows, caption=f"Evaluations to {REACHED:g} × the floor, {accounting} accounting")


def hypervolume_table(sweep: Sweep, accounting: str) -> str:
    """Return hypervolume ratios by metric, means over tasks, and their mean."""
    ratios = {(r.label, r.metric): r for r in sweep.analyses[accounting].ratios if r.task == "all"}
    metrics = in_order(metric for _, metric in ratios if metric != "all")
    order = sorted(sweep.labels, key=lambda label: -ratios[label, "all"].value if (label, "all") in ratios else 1.0)
    best = {m: max((r.value for (_, name), r in ratios.items() if name == m), default=0.0) for m in metrics}
    rows = []
    for label in order:
        cells = [_ratio_text(ratios.get((label, metric)), best[metric]) for metric in metrics]
        rows.append([name_cell(sweep, label), _ratio_bar(ratios.get((label, "all"))), *cells])
    heads = ["sampler", "mean", *map(_metric_head, metrics)]
    return table(heads, rows, caption=f"Hypervolume ratios with 5–95 % of the bootstrap, {accounting} accounting")


def quantity_table(sweep: Sweep) -> str:
    """Return what is no error, beside the reference's, at each sampler's largest budget; empty without any."""
    rows = []
    for task in sweep.tasks:
        records = [record for item in sweep.shown[task] for record in item.records]
        for metric in in_order(name for record in records for name in record["metrics"] or {}):
            if metric in sweep.error_metrics(task):
                continue
            by_label = {item.label: _values(item.records, metric) for item in sweep.shown[task]}
            cells = [_mean_and_deviation(by_label.get(label, [])) for label in sweep.labels]
            entry = next(r["metrics"][metric] for r in records if metric in (r["metrics"] or {}))
            exact = _NOTHING
            if entry.get("floor") is not None:
                exact = spread(float(entry["floor"]), float(entry.get("floor_sd") or np.nan))
            rows.append([f"{escaped(task)} <small>{escaped(metric_label(metric))}</small>", exact, *cells])
    if not rows:
        return ""
    heads = ["task and quantity", "exact draws", *(name_cell(sweep, label) for label in sweep.labels)]
    return table(heads, rows, caption="Quantities that should agree with the reference, at the largest budgets")


def trouble_table(sweep: Sweep) -> str:
    """Return the runs that gave no samples, those alike in one row."""
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for record in sweep.store.records:
        if record["status"] != "ok":
            budget = number(float(record.get("budget") or 0))
            key = (
                record["label"],
                record["task"],
                describe(record),
                budget,
                record["status"],
                str(record.get("error") or ""),
            )
            groups.setdefault(key, []).append(record)
    if not groups:
        return "<p>Every run gave samples.</p>"
    rows = []
    for (label, task, configuration, budget, status, error), records in groups.items():
        seeds = ", ".join(str(record.get("seed")) for record in records)
        texts = [task, configuration, budget, status, error or "", seeds]
        rows.append([name_cell(sweep, label), *map(escaped, texts)])
    heads = ["sampler", "task", "configuration", "budget", "status", "why", "seeds"]
    return table(heads, rows, caption="Runs without samples", n_texts=len(heads))


def warnings_table(sweep: Sweep) -> str:
    """Return the warnings of the runs, by sampler and code."""
    groups: dict[tuple[str, str], list[tuple[Mapping[str, Any], str]]] = {}
    for record in sweep.store.records:
        codes, texts = record.get("warnings") or [], record.get("warning_texts") or []
        for index, code in enumerate(codes):
            groups.setdefault((record["label"], code), []).append((record, texts[index] if index < len(texts) else ""))
    if not groups:
        return "<p>No run warned of anything.</p>"
    n_runs = {
        label: sum(r["label"] == label and r["status"] == "ok" for r in sweep.store.records) for label in sweep.labels
    }
    rows = []
    for (label, code), items in groups.items():
        tasks = ", ".join(dict.fromkeys(record["task"] for record, _ in items))
        share = f"{len({record['key'] for record, _ in items})} of {n_runs[label]}"
        rows.append([name_cell(sweep, label), escaped(code), share, escaped(tasks), escaped(items[0][1])])
    heads = ["sampler", "warning", "runs", "tasks", "for example"]
    return table(heads, rows, caption="Warnings", n_texts=len(heads))


def provenance(sweep: Sweep) -> str:
    """Return where the runs come from, and what the sweep was asked for."""
    records = sweep.store.records
    started = sorted(str(record["started"]) for record in records if record.get("started"))
    total = sum(float(record.get("evaluations_total") or 0) for record in records)
    time = sum(float(record.get("seconds") or 0) + float(record.get("seconds_tuning") or 0) for record in records)
    facts = {
        "sweep": sweep.store.name,
        "runs": f"{len(records)}, of {many(len(sweep.labels), 'sampler')} on {many(len(sweep.tasks), 'task')}",
        "repeats": f"seeds {_values_of(records, 'seed')}",
        "samples of a run": _values_of(records, "n_samples"),
        "cdsampler": _values_of(records, "version"),
        "commit": _values_of(records, "commit"),
        "JAX": _values_of(records, "jax_version"),
        "device": _values_of(records, "device"),
        "host": f"{_values_of(records, 'host_cores')} cores",
        "started": f"{started[0]} to {started[-1]}" if started else "",
        "evaluations in all": count(total),
        "time of all runs": duration(time),
    }
    rows = [[escaped(name), escaped(value)] for name, value in facts.items() if value]
    config = escaped(json.dumps(sweep.store.config, indent=2, ensure_ascii=False))
    return (
        table(["what", "value"], rows, caption="Provenance", n_texts=2)
        + f"<details><summary>What the sweep was asked for</summary><pre>{config}</pre></details>"
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
    hint = escaped(reach.cell.configuration)
    if reach.cost is None:
        times = f"{number(reach.best, 2)} ×" if np.isfinite(reach.best) else "not finite"
        best = f'<small class="best">best {times}</small>'
        return f'<span class="faint" title="{hint}">not reached {best}</span>'
    text = f'<span title="{hint}">{count(round(reach.cost))}</span>'
    return f"<strong>{text}</strong>" if reach.cost <= cheapest else text


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


def _values_of(records: Sequence[Mapping[str, Any]], field: str) -> str:
    values = dict.fromkeys(record.get(field) for record in records if record.get(field) is not None)
    return ", ".join(str(value) for value in sorted(values, key=lambda v: (isinstance(v, str), v)))
