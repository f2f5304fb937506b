"""Regret curves as a picture."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from accrual.core.colours import COLOURS
from accrual.core.errors import need
from accrual.core.files import replacing

if TYPE_CHECKING:
    from accrual.engine.result import Result

STYLES = ("-", "-.", ":")  # where there are more lines than colours
DASHES = ((6, 3), (2, 2), (8, 2, 2, 2), (1, 3))  # of the bounds, which are all grey

_FIGURE: dict[str, Any] = {"figsize": (9, 5.5), "layout": "tight"}
_HEADROOM = 1.6  # a bound that ends this many times above the highest curve is not drawn


def draw_regret(
    result: Result,
    path: str | os.PathLike[str] | None,
    bounds: Mapping[str, npt.ArrayLike],
    ax: Any,
) -> Any:
    """Draw `result` (see `Result.plot`)."""
    shown = ax is None and path is None
    if shown:  # pyplot keeps the figure, so that a notebook or a window shows it
        ax = need("matplotlib.pyplot", "plot").figure(**_FIGURE).subplots()
    elif ax is None:
        ax = need("matplotlib.figure", "plot").Figure(**_FIGURE).subplots()
    axis_text = need("matplotlib.ticker", "plot").EngFormatter(sep="")
    mean = result.regret.mean(axis=1)
    runs = result.regret.shape[1]
    band = 2 * result.regret.std(axis=1, ddof=1) / np.sqrt(runs) if runs > 1 else 0 * mean
    # The legend names the curves in the order in which they end, the highest on top.
    order = np.argsort(-mean[:, -1], kind="stable")
    for rank, p in enumerate(order):
        colour = COLOURS[rank % len(COLOURS)]
        style = STYLES[rank // len(COLOURS) % len(STYLES)]
        label = f"{result.labels[p]}   {_short(mean[p, -1])}"
        ax.plot(result.rounds, mean[p], color=colour, linestyle=style, label=label, linewidth=1.8)
        ax.fill_between(result.rounds, mean[p] - band[p], mean[p] + band[p], color=colour, alpha=0.2, lw=0)
    highest = float(mean.max())
    top = 1.05 * highest
    for rank, (name, curve) in enumerate(bounds.items()):
        values = np.asarray(curve, dtype=np.float64)
        label = f"{name}   {_short(values[-1])}"
        dashes = (0, DASHES[rank % len(DASHES)])
        if values[-1] > _HEADROOM * highest:  # it would flatten the curves; the legend has where it ends
            label, values = f"{label}, above", np.full(len(values), np.nan)
        else:
            top = max(top, 1.05 * float(values[-1]))
        ax.plot(result.rounds, values, color="#666666", linestyle=dashes, label=label, linewidth=1.4)
    ax.set(xlabel="round", ylabel="regret (mean, ± 2 s.e.)")
    ax.set(xlim=(0, result.rounds[-1]), ylim=(0, top or 1.0))
    ax.xaxis.set_major_formatter(axis_text)
    ax.yaxis.set_major_formatter(axis_text)
    ax.grid(color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.01, 0.5), handlelength=3)
    if path is not None:
        with replacing(path) as partial:
            ax.figure.savefig(partial, dpi=150, bbox_inches="tight")
    if shown and ax.figure.canvas.required_interactive_framework:  # there are windows
        need("matplotlib.pyplot", "plot").show(block=False)
    return ax


def _short(value: float) -> str:
    """Three digits and a unit: 1.91M, 464k, 2.5."""
    for scale, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 0.9995 * scale:
            return f"{value / scale:.3g}{unit}"
    return f"{value:.3g}"
