"""How each sampler looks, the same in every picture and table."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

# Okabe and Ito's palette; their yellow is too pale on white. The last is the colour of text, light or dark.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = ("o", "s", "^", "D")
_DASHES: tuple[tuple[float, ...], ...] = ((), (6, 3), (2, 2), (8, 3, 2, 3))


class Look(NamedTuple):
    """Colour, marker and dashes of a sampler.

    Attributes
    ----------
    colour
        On white.
    marker
        In matplotlib's letters: "o", "s", "^" or "D".
    dashes
        Lengths of strokes and gaps in points; empty for a solid line.
    """

    colour: str
    marker: str
    dashes: tuple[float, ...]

    @property
    def css(self) -> str:
        """The colour on the page, where black is the text's colour."""
        return "var(--ink)" if self.colour == _COLOURS[-1] else self.colour

    @property
    def linestyle(self) -> Any:
        """The dashes in matplotlib's terms."""
        return (0, self.dashes) if self.dashes else "-"


def looks(labels: Sequence[str]) -> dict[str, Look]:
    """Return a look for each label: seven colours, then the same with other markers and dashes."""
    found = {}
    for index, label in enumerate(labels):
        turn = index // len(_COLOURS) % len(_MARKERS)
        found[label] = Look(_COLOURS[index % len(_COLOURS)], _MARKERS[turn], _DASHES[turn])
    return found


def mark_decades(axis: Axis, low: float, high: float) -> None:
    """Put few marks on a logarithmic axis, written out: matplotlib's own overlap between 1 and 2 decades."""
    ratio = high / low
    steps = {5: (1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 7.0), 30: (1.0, 2.0, 5.0), 300: (1.0, 3.0)}
    subs = next((step for most, step in steps.items() if ratio < most), (1.0,))
    axis.set_major_locator(LogLocator(subs=subs, numticks=12))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: _mark(value)))


def _mark(value: float) -> str:
    return f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e") if value < 1e-3 or value >= 1e6 else f"{value:,g}"
