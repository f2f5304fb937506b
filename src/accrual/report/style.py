"""One colour and line for each learner, the same in every figure.

The hues are Paul Tol's, which readers with any colour vision can tell apart; the order of a
legend follows the curves' ends, so a line can also be found by its place. Dashes are kept for
bounds.
"""

from __future__ import annotations

from typing import Any

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
    "AgeIMED": {"color": "#0072B2", "linewidth": 2.4},
    "AgeTS": {"color": "#D55E00"},
    "AgeKL": {"color": "#009E73"},
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


def line(kind: str) -> dict[str, Any]:
    """Tell how to draw a learner of this kind."""
    style: dict[str, Any] = {"linewidth": 1.5}
    word, _, value = kind.rstrip(")").partition("(")
    if word in _RAMPS:
        place = _RAMPS[word].index(value)
        return style | {"color": _RAMP[place], "marker": _MARKS[place], "markersize": 4.5}
    return style | (_LINES.get(kind) or _LINES.get(word) or {"color": "#444444"})
