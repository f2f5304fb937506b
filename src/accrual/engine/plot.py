"""Regret curves as a picture."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from accrual.core.errors import need

if TYPE_CHECKING:
    from accrual.engine.result import Result

# Okabe and Ito's colours, which colour-blind readers can tell apart; line styles go on from there.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES = ("-", "-.", ":")


def draw_regret(
    result: Result,
    path: str | os.PathLike[str] | None,
    bounds: Mapping[str, npt.ArrayLike],
    ax: Any,
) -> Any:
    """Draw `result` (see `Result.plot`)."""
    if ax is None:
        figure = need("matplotlib.figure", "plot").Figure(figsize=(9, 5.5), layout="tight")
        ax = figure.subplots()
    mean = result.regret.mean(axis=1)
    runs = result.regret.shape[1]
    band = 2 * result.regret.std(axis=1, ddof=1) / np.sqrt(runs) if runs > 1 else 0 * mean
    # Curves are named at their right end, worst on top, in the order in which the eye meets them.
    order = np.argsort(-mean[:, -1])
    for rank, p in enumerate(order):
        colour = COLOURS[rank % len(COLOURS)]
        style = STYLES[rank // len(COLOURS) % len(STYLES)]
        label = f"{result.labels[p]}  {mean[p, -1]:.3g}"
        ax.plot(result.rounds, mean[p], color=colour, linestyle=style, label=label, linewidth=1.6)
        ax.fill_between(result.rounds, mean[p] - band[p], mean[p] + band[p], color=colour, alpha=0.2, lw=0)
    top = 1.08 * float(mean.max())
    for rank, (label, curve) in enumerate(bounds.items()):
        values = np.asarray(curve, dtype=np.float64)
        ax.plot(
            result.rounds,
            values,
            "--",
            color="#777777",
            lw=1 + 0.6 * rank,
            label=f"{label}  {values[-1]:.3g}",
        )
        top = max(top, 1.08 * float(values[-1]))
    ax.set(xlabel="round", ylabel="regret (mean, ± 2 s.e.)", xlim=(0, result.rounds[-1]), ylim=(0, top))
    ax.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    ax.spines[["top", "right"]].set_visible(False)
    if path is not None:
        ax.figure.savefig(path, dpi=150, bbox_inches="tight")
    return ax
