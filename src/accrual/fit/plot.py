"""Draw what a fit found: the spread of every arm, and how much of the reward has come by each age."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from accrual.core.colours import COLOURS
from accrual.core.durations import suiting
from accrual.core.errors import need
from accrual.core.files import replacing
from accrual.fit.summary import shortened

if TYPE_CHECKING:
    from accrual.fit.schema import Fitted

_ARMS_MOST = 7  # with intervals; more than there are colours would be a tangle
_BARS_MOST = 40  # points with error bars; beyond that intervals are drawn as bands


def draw(fitted: Fitted, path: str | os.PathLike[str] | None = None) -> Any:
    """Draw the spread per arm, and the share of the reward that has come by each age, with intervals.

    Gives the figure, and writes it to `path` if there is one.
    """
    scale, unit = 1.0, "age in the log's units"
    if fitted.unit == "seconds":
        scale, _, name = suiting(fitted.window)
        unit = f"age in {name}"
    figure = need("matplotlib.figure", "plot").Figure(figsize=(11, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    paying = [arm for arm in fitted.arms if arm.spread is not None]
    length = fitted.window / fitted.groups / scale
    middles = (np.arange(fitted.groups) + 0.5) * length
    shown = paying[:_ARMS_MOST]
    for rank, arm in enumerate(shown):
        assert arm.spread is not None
        value, low, high = (np.array(x) for x in (arm.spread.value, arm.spread.low, arm.spread.high))
        colour = COLOURS[rank % len(COLOURS)]
        if fitted.groups * len(shown) > _BARS_MOST:
            left.fill_between(middles, low, high, color=colour, alpha=0.15, linewidth=0)
            left.plot(middles, value, color=colour, linewidth=1.4, label=shortened(arm.name))
            continue
        offset = length * 0.7 * ((rank + 0.5) / len(shown) - 0.5)
        left.errorbar(
            middles + offset, value, yerr=np.maximum([value - low, high - value], 0.0), fmt="o", markersize=3,
            linewidth=1.2, color=colour, label=shortened(arm.name),
        )  # fmt: skip
    left.stairs(fitted.spread.value, np.arange(fitted.groups + 1) * length, color="#999999", label="all arms")
    others = f"; {len(shown)} of {len(paying)} arms" if len(shown) < len(paying) else ""
    left.set(xlabel=unit, ylabel="share of the reward in each group", xlim=(0, fitted.window / scale))
    left.set_title(f"Spread, with 95 % intervals{others}", fontsize=10, loc="left")
    left.set_ylim(bottom=0)
    left.legend(frameon=False, fontsize=8)

    ages = np.array([0.0, *fitted.arrived["ages"]]) / scale
    value, low, high = (np.array([0.0, *fitted.arrived[name]]) for name in ("value", "low", "high"))
    right.fill_between(ages, low, high, color=COLOURS[0], alpha=0.2, linewidth=0)
    right.plot(ages, value, color=COLOURS[0], linewidth=1.5)
    right.axhline(0.99, color="#999999", linewidth=0.8, linestyle=":")
    advice = fitted.recommended.window
    right.axvspan(advice.low / scale, advice.high / scale, color=COLOURS[1], alpha=0.2, linewidth=0)
    right.axvline(advice.value / scale, color=COLOURS[1], linewidth=1.2, label="99 % has come, 95 % interval")
    right.axvline(fitted.window / scale, color="#000000", linewidth=1.0, linestyle="--", label="window")
    end = min(fitted.recommended.watched, 1.25 * max(fitted.window, advice.high)) / scale
    right.set(xlabel=unit, ylabel="share of the reward that has come", xlim=(0, end), ylim=(0, 1.03))
    right.set_title("All arms together", fontsize=10, loc="left")
    right.legend(frameon=False, fontsize=8, loc="lower center")
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    if path is not None:
        with replacing(path) as partial:
            figure.savefig(partial, dpi=150)
    return figure
