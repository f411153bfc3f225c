"""The page, put together and written with its figures and tables."""

from pathlib import Path
from typing import NamedTuple

from cdsampler.benchmark.fronts import ACCOUNTINGS, N_RESAMPLES, tables, write_table
from cdsampler.errors import InvalidInputError
from cdsampler.report.html import _contents as contents
from cdsampler.report.html._files import write_whole
from cdsampler.report.html._front_picture import front_picture
from cdsampler.report.html._markup import many
from cdsampler.report.html._picture import Picture
from cdsampler.report.html._pictures import sample_pictures
from cdsampler.report.html._plot_data import plot_data
from cdsampler.report.html._study import study_pictures
from cdsampler.report.html._sweep import Sweep, analyse
from cdsampler.report.html._template import page_text


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
    notes = [*sweep.store.notes, *([sweep.gaps] if sweep.gaps else [])]
    if lacking:
        notes.append(f"The store has no samples to draw for {', '.join(lacking)}.")
    studies = study_pictures(sweep)
    write_whole(page, _page(sweep, pictures, studies, notes, accounting).encode("utf-8"))
    written_tables = []
    for name, rows in tables(sweep.store.records, sweep.analyses).items():
        written_tables += write_table(rows, page.parent / "tables", name)
    fronts = [front_picture(sweep, task, one) for task in sweep.tasks for one in ACCOUNTINGS]
    written_figures = []
    for picture in [*(front for front in fronts if front is not None), *pictures, *studies]:
        written_figures += picture.save(page.parent / "figures")
    return Report(page, tuple(written_figures), tuple(written_tables), tuple(notes))


def _page(sweep: Sweep, pictures: list[Picture], studies: list[Picture], notes: list[str], accounting: str) -> str:
    runs = f"{many(len(sweep.labels), 'sampler')} on {many(len(sweep.tasks), 'task')}, "
    runs += f"{many(len(sweep.store.records), 'run')}, cdsampler {sweep.store.version}"
    return page_text(
        sweep.store.name,
        runs,
        contents.body(sweep, pictures, studies),
        notes=notes,
        controls=contents.controls(sweep),
        accounting=accounting,
        data=plot_data(sweep),
    )
