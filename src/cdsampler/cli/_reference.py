"""The command `reference`: makes, shows and checks reference samples."""

import warnings
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from cdsampler.benchmark import references
from cdsampler.cli._console import console
from cdsampler.cli._progress import ReferenceBar
from cdsampler.errors import InvalidInputError, ReferenceWarning


def reference(
    name: Annotated[str | None, typer.Argument(help="Name of a target; without it, all references are listed.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of the run, with --regenerate; default 0.")] = None,
    samples: Annotated[int | None, typer.Option(help="Samples to make, with --regenerate.")] = None,
    regenerate: Annotated[bool, typer.Option("--regenerate", help="Make it anew, whatever there is.")] = False,
    check: Annotated[
        Path | None, typer.Option(help="Compare an .npy file of independent samples, shape (n, dim), with it.")
    ] = None,
) -> None:
    """Make or show the reference samples of a target, or compare others with them."""
    for option, value, least in (("--seed", seed, 0), ("--samples", samples, 1)):
        if value is not None and not regenerate:
            raise InvalidInputError(f"{option} belongs to a new run: give --regenerate, too.")
        if value is not None and value < least:
            raise InvalidInputError(f"{option} must be at least {least}, got {value}.")
    if name is None:
        if regenerate or check is not None:
            raise InvalidInputError("Name a target: 'cdsampler reference' without one lists what there is.")
        _list()
        return
    others = None if check is None else references.read_samples(check)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ReferenceWarning)
        try:
            with ReferenceBar(name) as bar:
                if regenerate:
                    made = references.generate_reference(name, seed=seed or 0, n=samples, on_progress=bar.update)
                else:
                    made = references.load_reference(name, on_progress=bar.update)
        except KeyboardInterrupt:
            console.print("Interrupted. Finished blocks are kept: the same command goes on from there.")
            raise typer.Exit(130) from None
    for warning in caught:
        if issubclass(warning.category, ReferenceWarning):
            console.print(
                f"[bold yellow]Warning:[/bold yellow] {escape(str(warning.message))}", highlight=False, soft_wrap=True
            )
    comparison = None if others is None else references.check_samples(made, others)
    _show(made)
    if comparison is not None:
        _show_comparison(comparison, str(check), made.name)


def _list() -> None:
    table = Table(title="References", title_justify="left", box=None, padding=(0, 2))
    for heading in ("target", "method", "minutes", "where"):
        table.add_column(heading, justify="right" if heading == "minutes" else "left")
    for entry in references.list_references():
        where = str(entry.path) if entry.where == "cached" else entry.where
        table.add_row(f"[bold]{entry.name}[/bold]", entry.method, f"{entry.minutes:.1f}", where)
    console.print(table)


def _show(made: references.Reference) -> None:
    moments = references.energy_moments(references.energies(made.name, made.samples), made.autocorrelation)
    provenance = made.provenance
    table = _two_columns(f"Reference of {made.name}")
    table.add_row("samples", f"{len(made.samples):,} of dimension {made.samples.shape[1]}")
    table.add_row("method", str(provenance["method"]))
    table.add_row(
        "independent", "yes" if made.is_independent else f"no: autocorrelation of {made.autocorrelation:.3g} samples"
    )
    table.add_row(f"mean {_energy(made.name)}", f"{moments.mean:.4f} ± {moments.mean_error:.4f}")
    table.add_row(f"standard deviation of {_energy(made.name)}", f"{moments.sd:.4f} ± {moments.sd_error:.4f}")
    for group, value in provenance.items():
        if group.startswith("energy_of_"):
            mean, error = value
            plus = "" if error is None else f" ± {error:.4f}"
            table.add_row(group.replace("_", " "), f"{mean:.4f}{plus}")
    table.add_row("made", f"{provenance['date']}, seed {provenance['seed']}")
    table.add_row("SHA-256", made.checksum)
    path = {entry.name: entry for entry in references.list_references()}[made.name]
    table.add_row("stored", str(path.path) if path.where == "cached" else "with the library")
    console.print(table)
    if "caveat" in provenance:
        console.print(provenance["caveat"], highlight=False)


def _show_comparison(comparison: references.Comparison, path: str, name: str) -> None:
    first, second = comparison.reference, comparison.other
    table = Table(title=f"{path} against the reference", title_justify="left", box=None, padding=(0, 2))
    for heading in ("", "reference", "file", "z"):
        table.add_column(heading, justify="left" if not heading else "right")
    table.add_row("samples", f"{first.n:,}", f"{second.n:,}", "")
    table.add_row("autocorrelation in samples", f"{first.autocorrelation:.2f}", f"{second.autocorrelation:.2f}", "")
    table.add_row(
        f"mean {_energy(name)}",
        f"{first.mean:.4f} ± {first.mean_error:.4f}",
        f"{second.mean:.4f} ± {second.mean_error:.4f}",
        f"{comparison.mean_z:+.2f}",
    )
    table.add_row(
        "standard deviation",
        f"{first.sd:.4f} ± {first.sd_error:.4f}",
        f"{second.sd:.4f} ± {second.sd_error:.4f}",
        f"{comparison.sd_z:+.2f}",
    )
    console.print(table)
    console.print(
        f"Kolmogorov-Smirnov test of the energies: D = {comparison.ks_statistic:.4f}, p = {comparison.ks_p:.3g}"
    )
    if comparison.n_mirrored:
        console.print(f"{comparison.n_mirrored:,} configurations of the file have the mirror form, which is no sample.")


def _energy(name: str) -> str:
    return "energy in kJ/mol" if references.is_molecule(name) else "energy (minus the log density)"


def _two_columns(title: str) -> Table:
    table = Table(title=title, title_justify="left", show_header=False, box=None, padding=(0, 2))
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    return table
