"""A figure with its place: drawn once, for its file and for the page."""

import base64
import io
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from matplotlib.figure import Figure
from PIL import Image, features  # matplotlib needs it, too

from cdsampler.report.html._files import write_whole
from cdsampler.report.html._markup import escaped

_DPI = 150
_QUALITY = 80
_PIXELS = 94  # of the page for an inch of the figure


@dataclass(frozen=True)
class Picture:
    """A figure with its place.

    Attributes
    ----------
    name
        Of its file, without ending.
    figure
        Free of pyplot.
    title
        Above it on the page; may be empty.
    text
        What it shows, for those who cannot see it.
    note
        Below it on the page; by default the text.
    """

    name: str
    figure: Figure
    title: str
    text: str
    note: str | None = None

    @cached_property
    def png(self) -> bytes:
        """The figure as PNG."""
        buffer = io.BytesIO()
        self.figure.savefig(buffer, format="png", dpi=_DPI)
        # Placing many panels takes as long as drawing them, and they stay where they are.
        self.figure.set_layout_engine("none")
        return buffer.getvalue()

    def html(self) -> str:
        """Return the figure as part of a page, with what it shows in words."""
        kind, content = _small(self.png)
        data = base64.b64encode(content).decode("ascii")
        text = escaped(self.text)
        caption = f"<figcaption>{escaped(self.title)}</figcaption>" if self.title else ""
        # Letters are of one size in all figures, as far as the page is wide enough.
        width = round(_PIXELS * self.figure.get_figwidth())
        return (
            f'<figure>{caption}<img src="data:image/{kind};base64,{data}" width="{width}" alt="{text}">'
            f'<p class="small">{text if self.note is None else escaped(self.note)}</p></figure>'
        )

    def save(self, folder: Path) -> list[Path]:
        """Write the figure as PNG and PDF."""
        buffer = io.BytesIO()
        png = write_whole(folder / f"{self.name}.png", self.png)
        self.figure.savefig(buffer, format="pdf")
        return [png, write_whole(png.with_suffix(".pdf"), buffer.getvalue())]


def _small(png: bytes) -> tuple[str, bytes]:
    """Return the smallest of some ways to write a picture: lines suit one, clouds of dots another."""
    if not features.check("webp"):
        return "png", png
    written = []
    with Image.open(io.BytesIO(png)) as image:
        for options in ({"lossless": True}, {"quality": _QUALITY}):
            buffer = io.BytesIO()
            image.convert("RGB").save(buffer, "webp", **options)
            written.append(buffer.getvalue())
    return "webp", min(written, key=len)
