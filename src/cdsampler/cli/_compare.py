"""The command `compare`: several samplers on a density of the user's."""

import json
from pathlib import Path
from typing import Annotated, Any

import jax
import numpy as np
import typer

from cdsampler import __version__, benchmark, report
from cdsampler._user_code import load_object
from cdsampler.cli._console import console
from cdsampler.density import AbstractLogDensity, LogDensity, coordinate_names
from cdsampler.errors import InvalidInputError
from cdsampler.report.html import write_comparison


def compare(
    model: Annotated[str, typer.Argument(help="FILE.py:NAME of a JAX function of one point, or of a LogDensity.")],
    dim: Annotated[int | None, typer.Option(help="Number of parameters; not needed for a LogDensity.")] = None,
    samples: Annotated[int, typer.Option(help="Samples of each sampler.")] = 1000,
    budget: Annotated[int, typer.Option(help="Evaluations per sample.")] = 1000,
    samplers: Annotated[str, typer.Option(help="Names, separated by commas; see 'cdsampler list'.")] = ",".join(
        benchmark.SHORTLIST
    ),
    scale: Annotated[float, typer.Option(help="Rough standard deviation of the parameters.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Same seed, same samples.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Folder for comparison.html, comparison.png, comparison.json and samples.")
    ] = None,
    dtype: Annotated[str, typer.Option(help="float32 or float64.")] = "float32",
) -> None:
    """Run several samplers on your own density, and say whether they agree."""
    if dtype not in ("float32", "float64"):
        raise InvalidInputError(f"--dtype must be float32 or float64, got {dtype!r}.")
    for name, value in (("--samples", samples), ("--budget", budget)):
        if value < 1:
            raise InvalidInputError(f"{name} must be at least 1, got {value}.")
    if out is not None and out.exists() and not out.is_dir():
        raise InvalidInputError(f"--out must be a folder, and {out} is a file.")
    jax.config.update("jax_enable_x64", dtype == "float64")
    density = _density(load_object(model), model, dim)
    entries: list[benchmark.Entry] = []

    def show(entry: benchmark.Entry) -> None:
        entries.append(entry)
        console.print(f"{entry.name}: {entry.seconds:.1f} s", highlight=False)

    comparison = benchmark.compare(
        density, samples, budget, samplers=samplers.split(","), scale=scale, seed=seed, on_entry=show
    )
    console.print(report.entries_table(comparison.entries))
    console.print(report.pairs_table(comparison))
    if out is not None:
        facts = {"model": model, "parameters": density.dim, "samples": samples, "budget": f"{budget} per sample"}
        facts |= {"scale": scale, "seed": seed, "dtype": dtype, "cdsampler": __version__, "JAX": jax.__version__}
        facts["device"] = jax.devices()[0].device_kind
        _write(out, comparison, coordinate_names(density), facts)


def _density(loaded: Any, model: str, dim: int | None) -> AbstractLogDensity:
    if isinstance(loaded, AbstractLogDensity):
        return loaded
    if dim is None:
        raise InvalidInputError(f"--dim says how many parameters {model} has: give it.")
    return LogDensity(loaded, dim)


def _write(out: Path, comparison: benchmark.Comparison, names: tuple[str, ...], facts: dict[str, Any]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    written = [write_comparison(comparison, names, out / "comparison.html", facts)]
    written.append(report.save_figure(report.comparison_figure(comparison, names), out / "comparison.png"))
    runs = {}
    for entry in comparison.entries:
        if entry.result is None:
            runs[entry.name] = {"error": entry.error}
            continue
        written.append(entry.result.save(out / f"{entry.name}.nc"))
        attributes = entry.result.attributes()
        runs[entry.name] = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in attributes.items()}
    summary = {"runs": runs, "pairs": [pair._asdict() for pair in comparison.pairs]}
    (out / "comparison.json").write_text(json.dumps(summary, indent=2) + "\n")
    console.print(f"Wrote {', '.join(map(str, [*written, out / 'comparison.json']))}.")
