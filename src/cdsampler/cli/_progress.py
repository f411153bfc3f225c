"""What the command line shows while it works."""

import time
from typing import Any, Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from cdsampler.cli._console import console
from cdsampler.sampling import Progress as RunProgress
from cdsampler.tuning import RESTARTS_PER_DRAW, RoundSummary

WIDTHS = ("<11", ">9", ">8", ">8", ">10", ">10", ">13", ">8")


class RoundTable:
    """Prints one line for each round of tuning, as it ends.

    The last column says how long production would take at the round's rate of restarts and the speed so far.
    """

    def __init__(self, n_samples: int) -> None:
        self._n_samples = n_samples
        self._began = time.perf_counter()
        self._is_first = True

    def add(self, summary: RoundSummary) -> None:
        """Print a round."""
        if self._is_first:
            _print_row("round", "replicas", "steps", "Λ", "restarts", "log Z", "evaluations", "left", style="bold")
            self._is_first = False
        _print_row(
            summary.what,
            f"{summary.n_replicas}",
            f"{summary.n_steps}",
            f"{summary.barrier:.2f}",
            f"{summary.restart_rate:.3f}",
            f"{summary.log_z:.3f}",
            f"{summary.evaluations:,}",
            self._left(summary),
        )

    def _left(self, summary: RoundSummary) -> str:
        if summary.restart_rate == 0:
            return "?"
        speed = summary.evaluations / (time.perf_counter() - self._began)
        needed = self._n_samples * RESTARTS_PER_DRAW * summary.evaluations_per_step / summary.restart_rate
        return duration(needed / speed)


class _LateBar:
    """A bar that shows nothing before its first update: bad input and other displays come before it."""

    def __init__(self, bar: Progress, description: str, total: int | None, **fields: Any) -> None:
        self._bar = bar
        self._task = bar.add_task(description, total=total, **fields)
        self._is_shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._is_shown:
            self._bar.stop()

    def _show(self, done: int, total: int, **fields: Any) -> None:
        if not self._is_shown:
            self._bar.start()
            self._is_shown = True
        self._bar.update(self._task, completed=done, total=total, **fields)


class ProgressBar(_LateBar):
    """Shows evaluations made, samples finished and the time left."""

    def __init__(self, n_samples: int):
        self._n_samples = n_samples
        columns = (
            TextColumn("Sampling"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[text]}"),
            TimeRemainingColumn(),
        )
        super().__init__(Progress(*columns, console=console), "sampling", 1, text="")

    def update(self, progress: RunProgress) -> None:
        """Show how far the run is."""
        text = (
            f"{progress.evaluations:,} of {progress.total:,} evaluations, "
            f"{progress.finished:,} of {self._n_samples:,} samples"
        )
        self._show(progress.evaluations, progress.total, text=text)


class ReferenceBar(_LateBar):
    """Shows how many blocks are done, from the first that had to be made."""

    def __init__(self, name: str) -> None:
        columns = (
            TextColumn(f"{name}: {{task.description}}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
        )
        super().__init__(Progress(*columns, console=console), "", None)

    def update(self, done: int, total: int, what: str) -> None:
        """Show how far the run is."""
        self._show(done, total, description=what)


def _print_row(*cells: str, style: str | None = None) -> None:
    console.print(
        "".join(f"{cell:{form}}" for cell, form in zip(cells, WIDTHS, strict=True)), style=style, highlight=False
    )


def duration(seconds: float) -> str:
    """Return a time in the largest unit that keeps two digits before the point at most."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
