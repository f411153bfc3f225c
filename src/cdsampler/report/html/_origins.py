"""What the names on the page mean, and where its figures come from."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from cdsampler.benchmark import SAMPLERS, TARGETS
from cdsampler.metrics import METRICS
from cdsampler.report._format import count, metric_label
from cdsampler.report._format import seconds as duration
from cdsampler.report.html._markup import details, escaped, many, table
from cdsampler.report.html._sweep import Sweep


def glossary(sweep: Sweep) -> str:
    """Return what tasks, samplers and metrics of the sweep are; those that the library doesn't know are left out."""
    records = sweep.store.records
    samplers = {str(record.get("sampler")) for record in records}
    metrics = {name for record in records for name in record["metrics"] or {}}
    lists = {
        "Tasks": {name: TARGETS[name][0] for name in sweep.tasks if name in TARGETS},
        # In the catalog's order: some are described by those before them.
        "Samplers": {name: text for name, (text, _) in SAMPLERS.items() if name in samplers},
        "Metrics": {metric_label(name): text for name, text in METRICS.items() if name in metrics},
    }
    parts = []
    for title, texts in lists.items():
        items = "".join(f"<dt>{escaped(name)}</dt><dd>{escaped(text)}</dd>" for name, text in texts.items())
        parts.append(f"<h3>{title}</h3><dl>{items}</dl>" if items else "")
    return details("What the names mean", *parts)


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
        "cores of the host": _values_of(records, "host_cores"),
        "started": f"{started[0]} to {started[-1]}" if started else "",
        "evaluations in all": count(total),
        "time of all runs": duration(time),
    }
    rows = [[escaped(name), escaped(value)] for name, value in facts.items() if value]
    config = escaped(json.dumps(sweep.store.config, indent=2, ensure_ascii=False))
    return table(["what", "value"], rows, caption="Provenance", n_texts=2) + details(
        "What the sweep was asked for", f"<pre>{config}</pre>"
    )


def _values_of(records: Sequence[Mapping[str, Any]], field: str) -> str:
    values = dict.fromkeys(record.get(field) for record in records if record.get(field) is not None)
    return ", ".join(str(value) for value in sorted(values, key=lambda v: (isinstance(v, str), v)))
