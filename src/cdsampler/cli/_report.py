"""The command `report`: a sweep as a page to look at."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from cdsampler.cli._console import console
from cdsampler.report.html import write_report


def report(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The sweep's folder.")],
    out: Annotated[Path | None, typer.Option(help="File of the page; by default report.html in the folder.")] = None,
    accounting: Annotated[
        str,
        typer.Option(help="What the page shows first: independent (cost of a chain) or returned (tuning included)."),
    ] = "independent",
) -> None:
    """Write a sweep's results as one page of HTML, with its figures and tables beside it."""
    written = write_report(directory, out, accounting=accounting)
    for note in written.notes:
        console.print(f"[yellow]Note:[/yellow] {escape(note)}", highlight=False)
    folders = "".join(
        f", {len(files)} files in {files[0].parent}" for files in (written.figures, written.tables) if files
    )
    console.print(f"Wrote {written.page}{folders}.", highlight=False, soft_wrap=True)
