"""The command `sweep`: tasks × samplers × grids × budgets × repeats, resumable."""

import os
from collections import defaultdict
from pathlib import Path
from typing import Annotated, Self

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from cdsampler.benchmark import sweeps
from cdsampler.cli._console import console
from cdsampler.cli._progress import duration
from cdsampler.errors import InvalidInputError

EXECUTORS = ("in-process", "processes", "ray")
MAX_FAILURES_SHOWN = 10


def sweep(
    config: Annotated[str, typer.Argument(help="Name of a sweep that comes with the library, or a TOML file.")],
    out: Annotated[Path | None, typer.Option(help="Folder of the store; default sweep-NAME.")] = None,
    executor: Annotated[str, typer.Option(help="in-process, processes or ray.")] = "in-process",
    workers: Annotated[int | None, typer.Option(help="Runs at once; with processes or ray.")] = None,
    address: Annotated[str | None, typer.Option(help="Of a Ray cluster, e.g. auto; default one of its own.")] = None,
    gpus_per_worker: Annotated[float | None, typer.Option(help="Of a Ray cluster's; default none.")] = None,
    tasks: Annotated[str | None, typer.Option(help="Only these, separated by commas.")] = None,
    samplers: Annotated[str | None, typer.Option(help="Only these entries, labels or samplers.")] = None,
    retry_failed: Annotated[bool, typer.Option(help="Make runs again that failed.")] = False,
    redo_changed: Annotated[bool, typer.Option(help="Make runs anew whose target's file was changed.")] = False,
    dry_run: Annotated[bool, typer.Option(help="Only say how many runs and evaluations there are.")] = False,
) -> None:
    """Run a sweep, or what is left of it: Ctrl-C ends it after the current run, and the same command goes on."""
    _check_options(executor, workers, address, gpus_per_worker)
    if executor != "in-process":
        # This process plans and writes; workers need the accelerator's memory.
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    asked = sweeps.read_config(config)
    only_tasks, only_samplers = _names(tasks), _names(samplers)
    jobs = sweeps.expand(asked, tasks=only_tasks, samplers=only_samplers)
    if dry_run:
        console.print(_table(jobs))
        return
    folder = Path(f"sweep-{asked.name}") if out is None else out
    failures: list[sweeps.Record] = []
    with _SweepBar(len(jobs)) as bar:

        def update(progress: sweeps.SweepProgress) -> None:
            if progress.latest is not None and progress.latest["status"] == "failed":
                failures.append(progress.latest)
            bar.update(progress)

        progress = sweeps.run_sweep(
            asked,
            folder,
            executor=_executor(executor, workers, address, gpus_per_worker),
            tasks=only_tasks,
            samplers=only_samplers,
            retry_failed=retry_failed,
            redo_changed=redo_changed,
            on_progress=update,
            on_message=_say,
        )
    _show_end(progress, failures, folder)
    if progress.left:
        raise typer.Exit(130)


def _check_options(executor: str, workers: int | None, address: str | None, gpus: float | None) -> None:
    if executor not in EXECUTORS:
        raise InvalidInputError(f"--executor must be one of {', '.join(EXECUTORS)}, got {executor!r}.")
    if workers is not None and executor == "in-process":
        raise InvalidInputError("--workers belongs to other processes: give --executor processes or ray, too.")
    if address is not None and executor != "ray":
        raise InvalidInputError("--address is that of a Ray cluster: give --executor ray, too.")
    if gpus is not None and executor != "ray":
        raise InvalidInputError("--gpus-per-worker is of a Ray cluster's GPUs: give --executor ray, too.")


def _executor(name: str, workers: int | None, address: str | None, gpus: float | None) -> sweeps.Executor:
    if name == "ray":
        return sweeps.Ray(address, workers, gpus_per_worker=gpus or 0)
    return sweeps.Processes(workers) if name == "processes" else sweeps.InProcess()


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _table(jobs: list[sweeps.Job]) -> Table:
    table = Table(title="What would be run", title_justify="left", box=None, padding=(0, 2))
    for title in ("task", "runs", "infeasible", "programs", "evaluations, tuning apart"):
        table.add_column(title, justify="left" if title == "task" else "right")
    by_task: dict[str, list[sweeps.Job]] = defaultdict(list)
    for job in jobs:
        by_task[job.spec.task].append(job)
    for task, some in [*by_task.items(), ("all", jobs)]:
        possible = [job for job in some if not job.problem]
        table.add_row(
            task,
            f"{len(possible):,}",
            f"{len(some) - len(possible):,}",
            f"{len({job.structure for job in possible}):,}",
            f"{sum(job.spec.evaluations for job in possible):,}",
        )
    return table


def _show_end(progress: sweeps.SweepProgress, failures: list[sweeps.Record], folder: Path) -> None:
    for record in failures[:MAX_FAILURES_SHOWN]:
        _say(f"Failed: {record['label']} on {record['task']} (key {record['key']}): {record['error']}")
    if len(failures) > MAX_FAILURES_SHOWN:
        _say(f"... and {len(failures) - MAX_FAILURES_SHOWN} more; {folder / 'records.jsonl'} has them all.")
    _say(
        f"{progress.done} runs in {folder}, of them {progress.failed} failed and {progress.infeasible} infeasible"
        + (f"; interrupted with {progress.left} left: the same command goes on." if progress.left else ".")
    )


def _say(text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)


class _SweepBar:
    """Shows runs made, failed ones and the time left, from the first call."""

    def __init__(self, n_runs: int):
        columns = (TextColumn("Sweep"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[text]}"))
        self._bar = Progress(*columns, console=console)
        self._task = self._bar.add_task("sweep", total=n_runs, text="")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._bar.stop()

    def update(self, progress: sweeps.SweepProgress) -> None:
        """Show how far the sweep is; the bar appears now, after everything that could be refused."""
        self._bar.start()
        parts = [f"{progress.failed} failed"] if progress.failed else []
        if progress.seconds_left is not None and progress.left:
            parts.append(f"about {duration(progress.seconds_left)} left")
        if progress.latest is not None:
            parts.append(f"{progress.latest['label']} on {progress.latest['task']}")
        self._bar.update(self._task, completed=progress.done, text=", ".join(parts))
