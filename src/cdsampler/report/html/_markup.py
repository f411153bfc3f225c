"""Pieces of HTML."""

import html
from collections.abc import Sequence

from cdsampler.report._format import count
from cdsampler.report.html._look import Look

_SHAPES = {
    "o": '<circle cx="14" cy="6" r="3.6"/>',
    "s": '<rect x="10.6" y="2.6" width="6.8" height="6.8"/>',
    "^": '<path d="M14 1.6 18.2 9.4H9.8z"/>',
    "D": '<path d="M14 1.2 18.4 6 14 10.8 9.6 6z"/>',
}


def escaped(text: object) -> str:
    """Return text that is safe in an element and in a quoted attribute."""
    return html.escape(str(text), quote=True)


def many(n: int, what: str) -> str:
    """Return how many of something, in words."""
    return f"{count(n)} {what}{'' if n == 1 else 's'}"


def swatch(look: Look) -> str:
    """Return a small picture of a sampler's line and marker."""
    dashes = f' stroke-dasharray="{" ".join(f"{length:g}" for length in look.dashes)}"' if look.dashes else ""
    line = f'<path d="M1 6H27" stroke="{look.css}" stroke-width="2"{dashes}/>'
    shape = f'<g fill="{look.css}">{_SHAPES[look.marker]}</g>'
    return f'<svg class="swatch" viewBox="0 0 28 12" aria-hidden="true">{line}{shape}</svg>'


def table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    caption: str,
    n_texts: int = 1,
    groups: Sequence[tuple[str, int]] = (),
) -> str:
    """Return a table; the first cell of each row is its header.

    Parameters
    ----------
    heads, rows
        HTML of the cells.
    caption
        Text, for those who cannot see it and above the table.
    n_texts
        How many of the first columns are text; the rest is aligned as numbers.
    groups
        HTML above the heads, each with the number of columns that it is for.
    """
    kinds = ["text" if column < n_texts else "num" for column in range(len(heads))]
    head = "".join(f'<th scope="col" class="{kind}">{cell}</th>' for kind, cell in zip(kinds, heads, strict=True))
    lines = []
    for row in rows:
        cells = [f'<td class="{kind}">{cell}</td>' for kind, cell in zip(kinds[1:], row[1:], strict=True)]
        lines.append(f'<tr><th scope="row" class="text">{row[0]}</th>{"".join(cells)}</tr>')
    body = "\n".join(lines)
    above = "".join(
        f'<th scope="colgroup" colspan="{n}" class="over">{cell}</th>'
        if cell
        else f'<td colspan="{n}" class="over"></td>'
        for cell, n in groups
    )
    return (
        f'<div class="scroll"><table><caption>{escaped(caption)}</caption>'
        f"<thead>{f'<tr>{above}</tr>' if above else ''}<tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>"
    )


def section(anchor: str, title: str, lead: str, *parts: str) -> str:
    """Return a section with its one sentence of what is shown and how to read it."""
    body = "\n".join(part for part in parts if part)
    return (
        f'<section id="{anchor}" aria-labelledby="{anchor}-title"><h2 id="{anchor}-title">{escaped(title)}</h2>\n'
        f'<p class="lead">{lead}</p>\n{body}</section>'
    )


def details(summary: str, *parts: str) -> str:
    """Return what is only shown when it is asked for."""
    body = "\n".join(part for part in parts if part)
    return f"<details><summary>{escaped(summary)}</summary>{body}</details>" if body else ""


def small(text: str) -> str:
    """Return a paragraph of small print."""
    return f'<p class="small">{text}</p>'


def both(accounting: str, content: str) -> str:
    """Return what is only shown in one accounting."""
    return f'<div class="accounting" data-accounting="{accounting}">{content}</div>'
