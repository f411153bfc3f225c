"""The frame of a page: one file of HTML that needs no other and no network."""

from collections.abc import Sequence
from importlib import resources

from cdsampler.report.html._markup import escaped


def page_text(
    title: str,
    subtitle: str,
    body: str,
    *,
    notes: Sequence[str] = (),
    controls: str = "",
    accounting: str = "",
    data: str = "",
) -> str:
    """Return a page.

    Parameters
    ----------
    title, subtitle, notes
        Text; a note is what makes the page's figures less sure.
    body, controls
        HTML of the sections, and of the bar that stays above them.
    accounting
        What the page shows first, where it can show two.
    data
        JSON for the page's script; without it there is no script.
    """
    bar = f'<nav class="controls" aria-label="Choices">\n{controls}\n</nav>' if controls else ""
    script = ""
    if data:
        json_element = f'<script type="application/json" id="data">{data}</script>'
        script = (
            f'<div id="tip" aria-hidden="true" hidden></div>\n{json_element}\n<script>\n{_asset("page.js")}\n</script>'
        )
    fields = {
        "title": escaped(title),
        "subtitle": escaped(subtitle),
        "notes": "".join(f'<p class="note" role="note">{escaped(note)}</p>' for note in notes),
        "css": _asset("page.css"),
        "accounting": f' data-accounting="{escaped(accounting)}"' if accounting else "",
        "controls": bar,
        "body": body,
        "script": script,
    }
    # Split, not formatted: nothing in a name or a text may be taken for a field.
    template = _asset("page.html").split("{{")
    parts = [template[0]]
    for piece in template[1:]:
        name, rest = piece.split("}}", 1)
        parts += [fields[name], rest]
    return "".join(parts)


def _asset(name: str) -> str:
    return resources.files("cdsampler.report.html").joinpath(name).read_text(encoding="utf-8")
