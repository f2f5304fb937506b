"""Draw pictures in two formats: wide for a page or a slide, narrow for a phone."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from accrual.core.errors import need

# Okabe and Ito's colours, which colour-blind readers can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES = ("-", "-.", ":")  # where there are more lines than colours

# One colour and line for each policy or spread, the same in every picture. The hues are Paul Tol's, which
# readers with any colour vision can tell apart. A legend has the order in which the curves end, so a line can
# also be found by its place. Only bounds are dashed.
_LINES: dict[str, dict[str, Any]] = {
    "extreme_begin": {"color": "#332288"},
    "very_begin": {"color": "#4EA3D0"},
    "begin": {"color": "#117733", "linewidth": 2.4},
    "begin_middle": {"color": "#44AA99"},
    "middle": {"color": "#999933"},
    "middle_end": {"color": "#D4AF37"},
    "end": {"color": "#CC6677"},
    "very_end": {"color": "#882255"},
    "TPUCBFR": {"color": "#000000", "linewidth": 2.4},
    "TPUCBEW": {"color": "#8A8A8A"},
    "UCB1": {"color": "#000000", "linestyle": ":"},
    "DelayedUCB1": {"color": "#000000", "linestyle": "-."},
    "GroupKLUCB": {"color": "#0072B2", "linewidth": 2.2},
    "AgePrior": {"color": "#E8480C", "linewidth": 2.8},
    "AgeIMED": {"color": "#0072B2", "linewidth": 2.4},
    "AgeTS": {"color": "#D55E00"},
    "AgeUCB": {"color": "#CC79A7"},
    "TPUCBFRG": {"color": "#117733"},
    "KLUCB": {"color": "#999933"},
    "ThompsonSampling": {"color": "#882255"},
    "IMED(waiting)": {"color": "#4EA3D0", "linestyle": "-."},
    "IMED(immediate)": {"color": "#4EA3D0", "linestyle": ":"},
}
_RAMP = ("#E9A15B", "#D97B29", "#B4571A", "#8A3F12", "#5E290B", "#331505")
_MARKS = ("o", "s", "^", "D", "v", "P")
_RAMPS = {
    "zipf": ("1", "2", "3", "4"),
    "boltzmann": ("1", "0.5", "0.25", "0.125"),
    "hypergeom": ("50", "100", "200", "300", "400", "500"),
}

BOUNDS = (
    {"color": "#555555", "linestyle": "--", "linewidth": 1.6},
    {"color": "#B03060", "linestyle": (0, (7, 2, 2, 2)), "linewidth": 1.6},
)
# Two of these may be one line, so each later one is thinner and lets the earlier show.
LOWER_BOUNDS = (
    {"color": "#B03060", "linestyle": (0, (7, 2, 2, 2)), "linewidth": 1.6},
    {"color": "#E0A030", "linestyle": "--", "linewidth": 3.4},
    {"color": "#555555", "linestyle": "--", "linewidth": 1.3},
)

_RC = {
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.7,
    "axes.axisbelow": True,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "svg.fonttype": "path",
}


class Picture(NamedTuple):
    """A finished figure."""

    name: str
    title: str
    caption: str
    svg: bytes
    narrow: bytes  # SVG for a phone
    png: bytes


class Shape(NamedTuple):
    """What the layout of a figure depends on, in inches."""

    height: float  # of the wide format
    entries: int  # of the legend
    panels: int = 1
    left: float = 0.8  # room for the labels of the vertical axis
    left_narrow: float = 0.72


Draw = Callable[[Any, bool], None]  # (figure, narrow): draws into an empty figure


def render(name: str, title: str, caption: str, draw: Draw, shape: Shape) -> Picture:
    """Draw both formats. The layout is computed here in inches; matplotlib's own search takes longer."""
    matplotlib = need("matplotlib", "plot")
    need("matplotlib.figure", "plot")
    files = []
    # The salt makes a drawing's ids, and so its bytes, the same every time.
    with matplotlib.rc_context(_RC | {"svg.hashsalt": name}):
        for narrow in (False, True):
            key = 0.17 * shape.entries + 0.2  # the height of the legend, which is below a narrow picture
            width, height = (4.1, shape.panels * 3.1 + key) if narrow else (11.0, shape.height)
            figure = matplotlib.figure.Figure(figsize=(width, height))
            left = shape.left_narrow if narrow else shape.left
            right, below = (0.15, key + 0.5) if narrow else (3.05, 0.55)
            figure.subplots_adjust(
                left / width, below / height, 1 - right / width, 1 - 0.35 / height, wspace=0.3, hspace=0.32
            )
            draw(figure, narrow)
            place = (0.5, 0.05 / height) if narrow else (1 - (right - 0.12) / width, 0.5)
            figure.legend(loc="lower center" if narrow else "center left", bbox_to_anchor=place)
            out = io.BytesIO()
            figure.savefig(out, format="svg", metadata={"Date": None})
            files.append(_rounded(out.getvalue()))
            if not narrow:
                out = io.BytesIO()
                figure.savefig(out, format="png", dpi=110)
                png = out.getvalue()
    return Picture(name, title, caption, files[0], files[1], png)


def _rounded(svg: bytes) -> bytes:
    """Round a drawing's coordinates to a hundredth of a point, which halves its size and cannot be seen."""
    return re.sub(rb' d="[^"]*"', lambda path: re.sub(rb"(\.\d\d)\d+", rb"\1", path[0]), svg)


def axis(axis: Any) -> None:
    """Write ticks such as 20k and 1.5M as plain text; typesetting powers of ten takes long."""
    axis.set_major_formatter(lambda value, _: _tick(value))
    axis.set_minor_formatter(lambda value, _: "")


def _tick(value: float) -> str:
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def short(value: float) -> str:
    """Write a number with three digits, for a legend."""
    if value < 1000:
        return f"{value:.3g}"
    power = int(np.floor(np.log10(value)))
    return f"{value / 10**power:.2f}e{power}"


def lines(labels: Sequence[str]) -> list[dict[str, Any]]:
    """Return how to draw the lines of policies with these labels, each unlike the others.

    Examples
    --------
    >>> [line["color"] for line in lines(["TPUCBFRG(50, begin)", "mine"])]
    ['#117733', '#D55E00']
    """
    found: list[dict[str, Any]] = []
    for rank, label in enumerate(labels):
        words = re.findall(r"\w+", label)
        known = next((_LINES[word] for word in (label, *words[2:3], *words[:1]) if word in _LINES), None)
        if known is None or {"linewidth": 1.8} | known in found:
            style = STYLES[rank // len(COLOURS) % len(STYLES)]
            known = {"color": COLOURS[rank % len(COLOURS)], "linestyle": style}
        found.append({"linewidth": 1.8} | known)
    return found


def line(kind: str) -> dict[str, Any]:
    """Return how to draw the line of a policy or spread."""
    style: dict[str, Any] = {"linewidth": 1.5}
    word, _, value = kind.rstrip(")").partition("(")
    if word in _RAMPS:
        place = _RAMPS[word].index(value)
        return style | {"color": _RAMP[place], "marker": _MARKS[place], "markersize": 4.5}
    return style | (_LINES.get(kind) or _LINES.get(word) or {"color": "#444444"})
