"""The command line: `cdsampler sample`, `cdsampler list`."""

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import jax
import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from cdsampler import __version__, benchmark, report
from cdsampler.errors import CdsamplerError, InvalidInputError
from cdsampler.metrics import METRICS, ExactReference, MetricValue, evaluate
from cdsampler.sampling import Progress as RunProgress
from cdsampler.sampling import Result, run
from cdsampler.tuning import find_mode

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
console = Console()


@dataclass(frozen=True)
class Job:
    """What one `sample` command asks for, checked as far as that goes without evaluating anything."""

    target: str
    sampler: str
    n_samples: int
    budget: int
    seed: int
    out: Path | None
    preset: benchmark.Preset


@app.command("list")
def list_names() -> None:
    """Name the targets, samplers and metrics."""
    sections = {
        "Targets": {name: text for name, (text, _) in benchmark.TARGETS.items()},
        "Samplers": {name: text for name, (text, _) in benchmark.SAMPLERS.items()},
        "Metrics": METRICS,
    }
    for title, rows in sections.items():
        table = Table(title=title, title_justify="left", show_header=False, box=None, padding=(0, 2))
        for name, text in rows.items():
            table.add_row(f"[bold]{name}[/bold]", text)
        console.print(table)


@app.command("version")
def version() -> None:
    """Print the version."""
    console.print(__version__)


@app.command("sample")
def sample(
    target: Annotated[str, typer.Argument(help="Name of a target; see 'cdsampler list'.")],
    samples: Annotated[int, typer.Option(help="Independent samples to draw, one chain each.")] = 1000,
    budget: Annotated[int, typer.Option(help="Density evaluations per sample (tuning apart).")] = 2000,
    seed: Annotated[int, typer.Option(help="Same seed, same samples bit for bit.")] = 0,
    sampler: Annotated[str, typer.Option(help="Name of a sampler; see 'cdsampler list'.")] = "cds",
    out: Annotated[Path | None, typer.Option(help="Folder for samples.nc, figure.png and summary.json.")] = None,
    dtype: Annotated[str, typer.Option(help="float32 or float64.")] = "float32",
    replicas: Annotated[int | None, typer.Option(help="Replicas of stage 1; default from the task's preset.")] = None,
    reference_scale: Annotated[
        float | None,
        typer.Option(help="Reference width in target coordinates, 1/t0; default from the preset."),
    ] = None,
    integration_steps: Annotated[int | None, typer.Option(help="Steps of the SDE; default from the preset.")] = None,
    noise_variance: Annotated[float | None, typer.Option(help="σ² of the SDE; default from the preset.")] = None,
) -> None:
    """Draw samples from a target, and say how good they are and what they cost."""
    if dtype not in ("float32", "float64"):
        raise InvalidInputError(f"--dtype must be float32 or float64, got {dtype!r}.")
    jax.config.update("jax_enable_x64", dtype == "float64")
    job = _checked_job(
        target,
        sampler,
        samples,
        budget,
        seed,
        out,
        n_replicas=replicas,
        reference_scale=reference_scale,
        integration_steps=integration_steps,
        noise_variance=noise_variance,
    )
    _run_job(job)


def _checked_job(
    target: str, sampler: str, samples: int, budget: int, seed: int, out: Path | None, **overrides: Any
) -> Job:
    benchmark.build_target(target)
    preset = benchmark.with_overrides(benchmark.PRESETS[target], **overrides)
    for name, value, least in (("--samples", samples, 1), ("--budget", budget, 1), ("--seed", seed, 0)):
        if value < least:
            raise InvalidInputError(f"{name} must be at least {least}, got {value}.")
    if out is not None and out.exists() and not out.is_dir():
        raise InvalidInputError(f"--out must be a folder, and {out} is a file.")
    benchmark.build_sampler(sampler, preset).with_budget(budget)
    return Job(target, sampler, samples, budget, seed, out, preset)


def _run_job(job: Job) -> None:
    target = benchmark.build_target(job.target)
    density = target.density()
    began = time.perf_counter()
    with console.status("Finding a mode and tuning on a pilot group of chains"):
        mode = find_mode(density)
        tuned = benchmark.tune_sampler(
            benchmark.build_sampler(job.sampler, job.preset), density, mode.position, job.seed
        )
    console.print(f"Mode search and tuning: {time.perf_counter() - began:.1f} s")
    with _ProgressBar(job.n_samples) as bar:
        result = run(
            tuned.sampler.with_budget(job.budget),
            density,
            job.n_samples,
            anchor=mode.position,
            seed=job.seed,
            tuning_evaluations=tuned.evaluations + mode.evaluations.total(),
            on_progress=bar.update,
        )
    exact = benchmark.exact_reference(target)
    n_modes = len(target.mode_weights)
    with console.status("Comparing with exact samples"):
        values = evaluate(result.positions, exact, seed=job.seed)
    console.print(report.metrics_table(values, n_modes=n_modes))
    console.print(report.cost_table(result))
    if result.tempering is not None:
        console.print(report.tempering_table(result))
    panel = report.warnings_panel(result)
    if panel is not None:
        console.print(panel)
    if job.out is not None:
        _write(job, result, values, exact, n_modes)


class _ProgressBar:
    """Shows evaluations made, samples finished and the time left."""

    def __init__(self, n_samples: int):
        self._n_samples = n_samples
        self._bar = Progress(
            TextColumn("Sampling"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[text]}"),
            TimeRemainingColumn(),
            console=console,
        )
        self._task = self._bar.add_task("sampling", total=1, text="")

    def __enter__(self) -> "_ProgressBar":
        self._bar.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._bar.stop()

    def update(self, progress: RunProgress) -> None:
        """Show how far the run is."""
        text = (
            f"{progress.evaluations:,} of {progress.total:,} evaluations, "
            f"{progress.finished:,} of {self._n_samples:,} samples"
        )
        self._bar.update(self._task, completed=progress.evaluations, total=progress.total, text=text)


def _write(job: Job, result: Result, values: list[MetricValue], exact: ExactReference, n_modes: int) -> None:
    assert job.out is not None
    job.out.mkdir(parents=True, exist_ok=True)
    path = result.save(job.out / "samples.nc")
    draws = exact.sample(job.seed, min(len(result.positions), 10_000))
    figure = report.run_figure(
        result,
        draws,
        job.target,
        metrics=values,
        exact_log_density=exact.log_density(draws),
        n_modes=n_modes,
    )
    report.save_figure(figure, job.out / "figure.png")
    summary = {
        "version": __version__,
        "target": job.target,
        "sampler": job.sampler,
        "n_samples": len(result.positions),
        "budget": job.budget,
        **{k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in result.attributes().items() if k != "sampler"},
        "metrics": {
            v.name: {
                "value": v.value,
                "floor": v.floor.mean if v.floor else None,
                "ratio": v.ratio,
                "n": v.n_used,
            }
            for v in values
        },
    }
    (job.out / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
    console.print(f"Wrote {path}, {job.out / 'figure.png'} and {job.out / 'summary.json'}.")


def main() -> None:
    """Run the command line; an error in the input is one line and exit code 2."""
    try:
        app()
    except CdsamplerError as error:
        Console(stderr=True).print(f"[bold red]Error:[/bold red] {error}", highlight=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        Console(stderr=True).print("Interrupted before any sample was complete.")
        sys.exit(130)
