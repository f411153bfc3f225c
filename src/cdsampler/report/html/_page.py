"""The page, put together and written with its figures and tables."""

import os
import uuid
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from cdsampler.benchmark.fronts import ACCOUNTINGS, N_RESAMPLES, tables, write_table
from cdsampler.errors import InvalidInputError
from cdsampler.report._figures import save_figure
from cdsampler.report.html import _contents as contents
from cdsampler.report.html._markup import escaped, many
from cdsampler.report.html._pictures import Picture, front_picture, sample_pictures
from cdsampler.report.html._plot_data import plot_data
from cdsampler.report.html._study import study_pictures
from cdsampler.report.html._sweep import Sweep, analyse


class Report(NamedTuple):
    """The files of a report.

    Attributes
    ----------
    page
        One file of HTML that needs no other and no network.
    figures, tables
        The same figures as PNG and PDF, and the analysis as CSV (and Parquet where pyarrow is installed).
    notes
        What is missing, or makes the runs less comparable; the page says it, too.
    """

    page: Path
    figures: tuple[Path, ...]
    tables: tuple[Path, ...]
    notes: tuple[str, ...]


def write_report(
    directory: str | Path,
    out: str | Path | None = None,
    *,
    accounting: str = "independent",
    n_resamples: int = N_RESAMPLES,
) -> Report:
    """Write a sweep as a page of HTML, beside folders of figures and tables.

    Parameters
    ----------
    directory
        The sweep's store.
    out
        File of the page, by default `report.html` in the store; `figures/` and `tables/` are made beside it.
    accounting
        What the page shows first: "independent" (the cost of a chain that gives one independent sample) or "returned"
        (of all evaluations, tuning included, over the samples returned). The page switches between both.
    n_resamples
        Resamples of the repeats behind each band.

    Returns
    -------
    Report

    Raises
    ------
    InvalidInputError
        No store, a damaged one, another accounting, or a page that is a folder.
    MissingExtraError
        moocore is absent: ``pip install 'cdsampler[benchmark]'``.
    """
    if accounting not in ACCOUNTINGS:
        raise InvalidInputError(f"accounting must be one of {', '.join(ACCOUNTINGS)}, got {accounting!r}.")
    page = Path(directory) / "report.html" if out is None else Path(out)
    if page.is_dir():
        raise InvalidInputError(f"The page must be a file, and {page} is a folder: name a file, as report.html.")
    sweep = analyse(directory, n_resamples=n_resamples)
    pictures, lacking = [], []
    for task in sweep.tasks:
        found, missing = sample_pictures(sweep, task)
        pictures += found
        lacking += [missing] if missing else []
    notes = list(sweep.store.notes)
    if lacking:
        notes.append(f"The store has no samples to draw for {', '.join(lacking)}.")
    studies = study_pictures(sweep)
    text = _page(sweep, pictures, studies, notes, accounting)
    page.parent.mkdir(parents=True, exist_ok=True)
    written_tables = []
    for name, rows in tables(sweep.store.records, n_resamples=n_resamples).items():
        written_tables += write_table(rows, page.parent / "tables", name)
    fronts = [front_picture(sweep, task, one) for task in sweep.tasks for one in ACCOUNTINGS]
    written_figures = []
    for picture in [*(front for front in fronts if front is not None), *pictures, *studies]:
        written_figures += _save(picture, page.parent / "figures")
    _replace(page, text)
    return Report(page, tuple(written_figures), tuple(written_tables), tuple(notes))


def _page(sweep: Sweep, pictures: list[Picture], studies: list[Picture], notes: list[str], accounting: str) -> str:
    # Split, not formatted: nothing in a name or a text may be taken for a field.
    template = _asset("page.html").split("{{")
    fields = {
        "title": escaped(sweep.store.name),
        "subtitle": escaped(
            f"{many(len(sweep.labels), 'sampler')} on {many(len(sweep.tasks), 'task')}, "
            f"{many(len(sweep.store.records), 'run')}, cdsampler {sweep.store.version}"
        ),
        "notes": "".join(f'<p class="note" role="note">{escaped(note)}</p>' for note in notes),
        "css": _asset("page.css"),
        "js": _asset("page.js"),
        "accounting": accounting,
        "controls": contents.controls(sweep),
        "body": contents.body(sweep, pictures, studies),
        "data": plot_data(sweep),
    }
    parts = [template[0]]
    for piece in template[1:]:
        name, rest = piece.split("}}", 1)
        parts += [fields[name], rest]
    return "".join(parts)


def _asset(name: str) -> str:
    return resources.files("cdsampler.report.html").joinpath(name).read_text(encoding="utf-8")


def _save(picture: Picture, folder: Path) -> list[Path]:
    png = save_figure(picture.figure, folder / f"{picture.name}.png")
    pdf = png.with_suffix(".pdf")
    picture.figure.savefig(pdf, format="pdf")
    return [png, pdf]


def _replace(path: Path, text: str) -> None:
    """Write a file that appears under its name only when it is complete."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
