"""What makes runs of one sweep less comparable: several devices, versions or commits."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_FIELDS = {
    "device": ("devices", "times are not comparable, and rounding may differ"),
    "version": ("versions of cdsampler", "samplers may differ by version"),
    "commit": ("commits", "samplers may differ by commit"),
    "jax_version": ("versions of JAX", "times and random numbers may differ by version"),
}
_MOST_NAMES = 6
_COMMIT_LENGTH = 10


def mixtures(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a note for each thing that runs of one sweep differ in and shouldn't.

    A note says which runs have which, and on which tasks they meet: only samplers on one task are compared.

    Parameters
    ----------
    records
        Of a sweep.

    Returns
    -------
    list of str
        Empty where all runs are of one device, version and commit.
    """
    notes = []
    for field, (what, caution) in _FIELDS.items():
        groups: dict[str, list[Mapping[str, Any]]] = {}
        for record in records:
            if record.get(field):
                groups.setdefault(str(record[field]), []).append(record)
        if len(groups) > 1:
            notes.append(_note(what, caution, groups, is_commit=field == "commit"))
    return notes


def _note(what: str, caution: str, groups: Mapping[str, Sequence[Mapping[str, Any]]], *, is_commit: bool) -> str:
    tasks: dict[str, set[str]] = {}
    for value, records in groups.items():
        for record in records:
            tasks.setdefault(record["task"], set()).add(value)
    meeting = [task for task, values in tasks.items() if len(values) > 1]
    # Where they meet, it matters which samplers have which; where they don't, which tasks.
    whose = "label" if meeting else "task"
    parts = []
    for value, records in sorted(groups.items()):
        name = value[:_COMMIT_LENGTH] if is_commit else value
        runs = f"{len(records)} run{'' if len(records) == 1 else 's'}"
        parts.append(f"{name} ({runs} of {_listed(record[whose] for record in records)})")
    values = "; ".join(parts)
    if meeting:
        return f"Runs of {len(groups)} {what} are compared on {_listed(meeting)}: {values}. So {caution}."
    return f"The runs are of {len(groups)} {what}, but never on one task: {values}. Between tasks {caution}."


def _listed(names: Iterable[str]) -> str:
    unique = list(dict.fromkeys(names))
    more = len(unique) - _MOST_NAMES
    return ", ".join(unique) if more <= 0 else f"{', '.join(unique[:_MOST_NAMES])} and {more} more"
