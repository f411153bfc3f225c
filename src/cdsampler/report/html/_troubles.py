"""What went wrong: runs without samples, and warnings, those alike taken together."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from cdsampler.benchmark.fronts import describe
from cdsampler.report._format import count
from cdsampler.report.html._markup import escaped, many, table
from cdsampler.report.html._sections import name_cell
from cdsampler.report.html._sweep import Sweep

_Record = Mapping[str, Any]
_STATUSES = {"failed": "Runs that failed", "infeasible": "Runs whose budget does not pay for a single step"}


def trouble_tables(sweep: Sweep) -> str:
    """Return the runs that gave no samples: a row for each sampler and reason, whatever numbers are in it."""
    tables = [_trouble_table(sweep, status, caption) for status, caption in _STATUSES.items()]
    return "".join(tables) or "<p>Every run gave samples.</p>"


def warnings_table(sweep: Sweep) -> str:
    """Return the warnings of the runs, a row for each code."""
    groups: dict[str, list[tuple[_Record, str]]] = {}
    for record in sweep.store.records:
        codes, texts = record.get("warnings") or [], record.get("warning_texts") or []
        for index, code in enumerate(codes):
            groups.setdefault(code, []).append((record, texts[index] if index < len(texts) else ""))
    if not groups:
        return "<p>No run warned of anything.</p>"
    n_runs = {label: len(runs) for label, runs in _by_label(sweep, _of_status(sweep, "ok")).items()}
    rows = []
    for code, items in sorted(groups.items(), key=lambda group: -len(group[1])):
        # A run that warns twice of one thing counts once.
        runs = _by_label(sweep, {record["key"]: record for record, _ in items}.values())
        shares = [f"{name_cell(sweep, label)} {len(own)} of {n_runs[label]}" for label, own in runs.items()]
        example = items[0][1].removeprefix(f"{code}: ")
        tasks = ", ".join(dict.fromkeys(record["task"] for record, _ in items))
        rows.append(
            [escaped(code), escaped(example), f'<span class="names">{"<br>".join(shares)}</span>', escaped(tasks)]
        )
    heads = ["warning", "for example", "runs that have it", "tasks"]
    return table(heads, rows, caption="Warnings, the most frequent first", n_texts=len(heads))


def _trouble_table(sweep: Sweep, status: str, caption: str) -> str:
    rows = []
    for label, records in _by_label(sweep, _of_status(sweep, status)).items():
        groups: dict[str, list[_Record]] = {}
        for record in records:
            # Budgets and costs differ from run to run: the words are what is the same.
            groups.setdefault(re.sub(r"[\d.,]+", "#", str(record.get("error") or "")), []).append(record)
        n_tried = sum(record["label"] == label for record in sweep.store.records)
        for own in groups.values():
            cells = [f"{len(own)} of {n_tried}", escaped(_places(own)), escaped(str(own[0].get("error") or ""))]
            rows.append([name_cell(sweep, label), *cells])
    heads = ["sampler", "runs", "tasks and budgets", "why, for example"]
    return table(heads, rows, caption=caption, n_texts=len(heads)) if rows else ""


def _places(records: Sequence[_Record]) -> str:
    """Return tasks with their budgets, and how many configurations there are if more than one."""
    budgets: dict[str, dict[str, None]] = {}
    for record in records:
        budgets.setdefault(record["task"], {})[count(float(record.get("budget") or 0))] = None
    text = "; ".join(f"{task} at {', '.join(own)}" for task, own in budgets.items())
    n = len({describe(record) for record in records})
    return text if n == 1 else f"{text} ({many(n, 'configuration')})"


def _of_status(sweep: Sweep, status: str) -> list[_Record]:
    return [record for record in sweep.store.records if record["status"] == status]


def _by_label(sweep: Sweep, records: Any) -> dict[str, list[_Record]]:
    groups: dict[str, list[_Record]] = {label: [] for label in sweep.labels}
    for record in records:
        groups[record["label"]].append(record)
    return {label: own for label, own in groups.items() if own}
