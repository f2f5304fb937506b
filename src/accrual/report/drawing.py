"""Draw pictures in two formats: wide for a page or a slide, narrow for a phone."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from accrual.core.errors import need

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

    height: float  # of the wide cut
    entries: int  # of the legend
    panels: int = 1
    left: float = 0.8  # room for the labels of the vertical axis
    left_narrow: float = 0.72


Draw = Callable[[Any, bool], None]  # (figure, narrow): draws into an empty figure


def render(name: str, title: str, caption: str, draw: Draw, shape: Shape) -> Picture:
    """Draw both cuts. The layout is worked out here in inches: searching for one takes longer."""
    matplotlib = need("matplotlib", "plot")
    need("matplotlib.figure", "plot")
    files = []
    # The salt makes a drawing's ids, and so its bytes, the same every time.
    with matplotlib.rc_context(_RC | {"svg.hashsalt": name}):
        for narrow in (False, True):
            key = 0.17 * shape.entries + 0.2  # the legend's height, which a narrow cut has below
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
    """Write ticks such as 20k and 1.5M: plain text, where powers of ten would be typeset at some cost."""
    axis.set_major_formatter(lambda value, _: _tick(value))
    axis.set_minor_formatter(lambda value, _: "")


def _tick(value: float) -> str:
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def short(value: float) -> str:
    """Write a figure in three digits, for a legend."""
    if value < 1000:
        return f"{value:.3g}"
    power = int(np.floor(np.log10(value)))
    return f"{value / 10**power:.2f}e{power}"
