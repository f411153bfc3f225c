import dataclasses
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import jax
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cdsampler import __version__, benchmark, report
from cdsampler.cli._compare import compare
from cdsampler.cli._console import console
from cdsampler.cli._outcome import Job, show_outcome
from cdsampler.cli._own import is_own, sample_own
from cdsampler.cli._progress import ProgressBar, RoundTable
from cdsampler.cli._reference import reference
from cdsampler.cli._report import report as write_report
from cdsampler.cli._sweep import sweep
from cdsampler.errors import CdsamplerError, InvalidInputError, SamplingWarning
from cdsampler.metrics import METRICS
from cdsampler.sampling import sample as draw
from cdsampler.tuning import Plan

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
app.command("reference")(reference)
app.command("compare")(compare)
app.command("sweep")(sweep)
app.command("report")(write_report)
PRESET_BUDGET = 2000


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
    target: Annotated[
        str, typer.Argument(help="Name of a target, see 'cdsampler list'; or FILE.py:NAME of a density of your own.")
    ],
    samples: Annotated[int, typer.Option(help="Samples to draw.")] = 1000,
    dim: Annotated[int | None, typer.Option(help="Number of parameters of a function of your own.")] = None,
    params: Annotated[
        str | None,
        typer.Option(help='JSON, or a file of it, of named parameters: {"loc": [], "scale": "positive", "w": [3]}.'),
    ] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same samples bit for bit.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Folder for samples.nc, summary.json, figure.png and other pictures.")
    ] = None,
    dtype: Annotated[str, typer.Option(help="float32 or float64.")] = "float32",
    independent: Annotated[bool, typer.Option(help="One chain per sample instead of many draws per chain.")] = False,
    budget: Annotated[
        int | None, typer.Option(help="Evaluations per sample, tuning apart; with --independent or --sampler.")
    ] = None,
    max_evaluations: Annotated[int | None, typer.Option(help="Hard limit on the total, tuning included.")] = None,
    plan: Annotated[Path | None, typer.Option(help="Reuse a plan that --save-plan kept: no tuning.")] = None,
    save_plan: Annotated[Path | None, typer.Option(help="Keep what tuning chose in this file.")] = None,
    sampler: Annotated[
        str | None,
        typer.Option(help="Run one sampler at its task preset instead of the tuned plan; see 'cdsampler list'."),
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="recommended (default) or paper: settings of the task; with --sampler.")
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME=VALUE: changes one setting of the preset; repeat for more; with --sampler."),
    ] = None,
    replicas: Annotated[int | None, typer.Option(help="Replicas of stage 1.")] = None,
    reference_scale: Annotated[float | None, typer.Option(help="Reference width in target coordinates.")] = None,
) -> None:
    """Draw samples from a target, and say how good they are and what they cost."""
    job = _checked_job(target, samples, seed, out, budget, dtype)
    if is_own(target):
        _refuse("is for targets of the catalog: 'cdsampler compare' runs samplers on your own", sampler=sampler)
    else:
        _refuse("is for a density of your own (FILE.py:NAME)", dim=dim, params=params)
    if sampler is None:
        _refuse(
            "belongs to a preset: give --sampler, too",
            preset=preset,
            set=setting or None,
        )
        settings: dict[str, Any] = {
            "independent": independent,
            "budget": budget,
            "max_evaluations": max_evaluations,
            "plan": None if plan is None else Plan.load(plan),
            "save_plan": save_plan,
            "replicas": replicas,
            "reference_scale": reference_scale,
        }
        if is_own(target):
            sample_own(target, samples, seed, out, dim=dim, params=params, **settings)
        else:
            _run_tuned(job, **settings)
        return
    _refuse(
        "belongs to the tuned plan: leave out --sampler",
        max_evaluations=max_evaluations,
        plan=plan,
        save_plan=save_plan,
        independent=independent or None,  # a preset always runs one chain per sample
    )
    chosen = benchmark.with_overrides(
        benchmark.preset_of(target, preset or "recommended"),
        n_replicas=replicas,
        reference_scale=reference_scale,
        **dict(benchmark.parse_setting(text) for text in setting or []),
    )
    budget = PRESET_BUDGET if budget is None else budget
    recorded = {"sampler": sampler, "budget": budget, **dataclasses.asdict(chosen)}
    _run_preset(dataclasses.replace(job, settings=recorded), sampler, budget, chosen)


def _checked_job(target: str, samples: int, seed: int, out: Path | None, budget: int | None, dtype: str) -> Job:
    """Return what is asked for, after checking it and setting JAX's default type."""
    if dtype not in ("float32", "float64"):
        raise InvalidInputError(f"--dtype must be float32 or float64, got {dtype!r}.")
    jax.config.update("jax_enable_x64", dtype == "float64")
    if not is_own(target):
        benchmark.build_target(target)
    for name, value, least in (("--samples", samples, 1), ("--budget", budget, 1), ("--seed", seed, 0)):
        if value is not None and value < least:
            raise InvalidInputError(f"{name} must be at least {least}, got {value}.")
    if out is not None and out.exists() and not out.is_dir():
        raise InvalidInputError(f"--out must be a folder, and {out} is a file.")
    return Job(target, samples, seed, out)


def _refuse(why: str, **options: Any) -> None:
    for name, value in options.items():
        if value is not None:
            raise InvalidInputError(f"--{name.replace('_', '-')} {why}.")


def _run_tuned(job: Job, *, save_plan: Path | None, **settings: Any) -> None:
    rounds = RoundTable(job.n_samples)
    target = benchmark.build_target(job.target)
    if settings["plan"] is None:
        settings["start"] = benchmark.starting_point(target)
    density = target.density()
    with ProgressBar(job.n_samples) as bar, warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)  # they are shown in a panel of their own
        result = draw(
            density,
            n_samples=job.n_samples,
            seed=job.seed,
            on_round=rounds.add,
            on_progress=bar.update,
            **settings,
        )
    assert result.plan is not None
    console.print(report.plan_table(result.plan))
    if save_plan is not None:
        console.print(f"Wrote {result.plan.save(save_plan)}.")
    show_outcome(job, result)


def _run_preset(job: Job, sampler: str, budget: int, preset: benchmark.Preset) -> None:
    target = benchmark.build_target(job.target)
    with console.status("Finding a mode and tuning on a pilot group of chains"):
        ready = benchmark.prepare(sampler, target, job.n_samples, budget, preset=preset, seed=job.seed)
    console.print(f"Mode search and tuning: {ready.seconds:.1f} s")
    with ProgressBar(job.n_samples) as bar:
        result = benchmark.produce(ready, job.n_samples, seed=job.seed, on_progress=bar.update)
    show_outcome(job, result)


def main() -> None:
    """Run the command line; an error in the input is one line and exit code 2."""
    try:
        app()
    except CdsamplerError as error:
        Console(stderr=True).print(f"[bold red]Error:[/bold red] {escape(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt as interrupt:
        Console(stderr=True).print(escape(str(interrupt)) or "Interrupted before any sample was complete.")
        sys.exit(130)
