"""A sweep's table and picture."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from accrual.core.colours import COLOURS
from accrual.core.errors import need
from accrual.core.files import replacing
from accrual.engine.plot import STYLES
from accrual.engine.result import Result
from accrual.experiments.sweep import Point, Sweep

Floats = npt.NDArray[np.float64]

_TICKS = (1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100, 1000)  # of a heat map's colours
_NAMED = 15  # values of a parameter that are all named on its axis
_WRITTEN = 200  # a heat map of at most so many squares has its figures written in


class SweepLine(NamedTuple):
    """One point, with its regret at the horizon."""

    point: Point
    runs: int
    mean: float
    se: float
    over_best: float  # the difference to the best point of its case, taken run by run, in the mean
    over_best_se: float


def lines(sweep: Sweep, results: Mapping[str, Result]) -> list[list[SweepLine]]:
    """Give the points of each case, the best first; `results` are by block.

    The best is the point of the grid with the least mean. Policies that use no parameter of the
    grid stand in their order too, and may be better than it; so may yardsticks.
    """
    cases: dict[str, list[Point]] = {}
    for point in sweep.points:
        cases.setdefault(repr(point.case), []).append(point)
    return [_compare(points, results) for points in cases.values()]


def _compare(points: Sequence[Point], results: Mapping[str, Result]) -> list[SweepLine]:
    finals = [_final(results[point.block], point.label) for point in points]
    on_grid = [i for i, point in enumerate(points) if ranked(point)] or range(len(points))
    best = finals[min(on_grid, key=lambda i: finals[i].mean())]
    made = [
        SweepLine(
            point,
            len(final),
            float(final.mean()),
            _error(final),
            float((final - best).mean()),
            _error(final - best),
        )
        for point, final in zip(points, finals, strict=True)
    ]
    return sorted(made, key=lambda line: line.mean)


def best(case: Sequence[SweepLine]) -> SweepLine:
    """Give the best point of the grid."""
    return next((line for line in case if ranked(line.point)), case[0])


def ranked(point: Point) -> bool:
    """Tell whether a point is of the grid: not there to compare with."""
    return bool(point.place) and not point.yardstick


def csv_rows(sweep: Sweep, cases: Sequence[Sequence[SweepLine]]) -> Iterator[list[Any]]:
    """Give the head and all points as rows of a CSV file."""
    each = list(cases[0][0].point.case)
    yield [*each, *sweep.grid, "policy", *SweepLine._fields[1:]]
    for line in (line for case in cases for line in case):
        point = line.point
        places = (point.place.get(key, "") for key in sweep.grid)
        yield [*(point.case[key] for key in each), *places, point.label, *line[1:]]


def title(case: Mapping[str, Any]) -> str:
    """Write a case in words: ``alpha = 20, spread = begin``."""
    return ", ".join(f"{key} = {value}" for key, value in case.items())


def draw(path: str | os.PathLike[str], sweep: Sweep, cases: Sequence[Sequence[SweepLine]]) -> None:
    """Draw regret over the one or two parameters of the grid, with a panel for each case.

    Two parameters make a heat map for each policy that uses both.
    """
    panels = _heat_panels(cases) if len(sweep.grid) == 2 else [(case, None) for case in cases]
    wide = min(len(panels), 2)
    tall = -(-len(panels) // wide)
    figure = need("matplotlib.figure", "plot").Figure(figsize=(6.6 * wide, 5.2 * tall), layout="constrained")
    axes = figure.subplots(tall, wide, squeeze=False).ravel()
    for ax, (case, row) in zip(axes, panels, strict=False):
        if row is None:
            _curves(ax, sweep, case)
        else:
            _heat(figure, ax, sweep, [line for line in case if line.point.row == row])
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    with replacing(path) as partial:
        figure.savefig(partial, dpi=150)


def _heat_panels(cases: Sequence[Sequence[SweepLine]]) -> list[tuple[Sequence[SweepLine], int | None]]:
    rows = sorted({line.point.row for case in cases for line in case if len(line.point.place) == 2})
    return [(case, row) for case in cases for row in rows]


def _heat(figure: Any, ax: Any, sweep: Sweep, case: Sequence[SweepLine]) -> None:
    """Draw mean regret over the best's, with frames around the best and those within two standard errors."""
    (x_name, xs), (y_name, ys) = sweep.grid.items()
    first = case[0]
    ratio = np.full((len(ys), len(xs)), np.nan)
    near = []
    for line in case:
        y, x = ys.index(line.point.place[y_name]), xs.index(line.point.place[x_name])
        ratio[y, x] = line.mean / first.mean if first.mean > 0 else 1.0
        if line is not first and line.over_best <= 2 * line.over_best_se + first.over_best:
            near.append((x, y))
    norm = need("matplotlib.colors", "plot").LogNorm(1.0, max(float(np.nanmax(ratio)), 1.01))
    image = ax.imshow(ratio, origin="lower", aspect="auto", cmap="viridis_r", norm=norm)
    if ratio.size <= _WRITTEN:
        for (y, x), value in np.ndenumerate(ratio):
            dark = norm(value) > 0.55
            ax.text(
                x, y, _ratio(value), ha="center", va="center", fontsize=7, color="white" if dark else "black"
            )
    x, y = xs.index(first.point.place[x_name]), ys.index(first.point.place[y_name])
    frame = need("matplotlib.patches", "plot").Rectangle
    for place in near:
        ax.add_patch(frame((place[0] - 0.46, place[1] - 0.46), 0.92, 0.92, fill=False, ec="#D55E00", lw=1.0))
    ax.add_patch(frame((x - 0.48, y - 0.48), 0.96, 0.96, fill=False, ec="#D55E00", lw=3.0))
    ax.set_xticks(range(len(xs)), [str(value) for value in xs], fontsize=8)
    ax.set_yticks(range(len(ys)), [str(value) for value in ys], fontsize=8)
    ax.set(xlabel=x_name, ylabel=y_name)
    best_is = f"best {first.point.label}\n{first.mean:,.0f} ± {first.se:,.0f} (s.e.)"
    ax.set_title(": ".join(filter(None, [title(first.point.case), best_is])), fontsize=10)
    bar = figure.colorbar(image, ax=ax, label="mean regret over the best's")
    apart = [1.0]  # no two in one place
    for tick in _TICKS:
        if tick <= norm.vmax and norm(tick) - norm(apart[-1]) > 0.05:
            apart.append(tick)
    bar.ax.minorticks_off()
    bar.set_ticks(apart, labels=[f"{tick:g}" for tick in apart])


def _curves(ax: Any, sweep: Sweep, case: Sequence[SweepLine]) -> None:
    """Draw mean regret against the one parameter, with bands of two standard errors."""
    [(name, values)] = sweep.grid.items()
    rows = sorted({line.point.row for line in case if line.point.place})
    numeric = all(isinstance(value, int | float) for value in values)
    for rank, row in enumerate(rows):
        by_value = {repr(line.point.place[name]): line for line in case if line.point.row == row}
        mine = [by_value[repr(value)] for value in values]
        x = np.array(values, dtype=float) if numeric else np.arange(len(values))
        mean, band = (np.array([getattr(line, part) for line in mine]) for part in ("mean", "se"))
        colour, style = COLOURS[rank % len(COLOURS)], STYLES[rank // len(COLOURS) % len(STYLES)]
        least = min(mine, key=lambda line: line.mean).point.label
        label = least if len({line.point.label for line in mine}) == 1 else f"best: {least}"
        ax.plot(x, mean, color=colour, linestyle=style, marker="o", markersize=4, label=label)
        ax.fill_between(x, mean - 2 * band, mean + 2 * band, color=colour, alpha=0.2, lw=0)
    for line in case:
        if not line.point.place:
            ax.axhline(line.mean, color="#666666", linestyle="--", linewidth=1.2)
            ax.annotate(line.point.label, (1, line.mean), xycoords=("axes fraction", "data"), ha="right",
                        va="bottom", fontsize=8, color="#444444")  # fmt: skip
    if numeric and min(values) > 0 and max(values) / min(values) > 20:
        ax.set_xscale("log")
        ax.minorticks_off()
    if not numeric or len(values) <= _NAMED:
        ax.set_xticks(values if numeric else range(len(values)), [str(value) for value in values], fontsize=8)
    ax.set_ylim(bottom=0)
    ax.set(xlabel=name, ylabel="regret (mean, ± 2 s.e.)", title=title(case[0].point.case))
    ax.yaxis.set_major_formatter(need("matplotlib.ticker", "plot").EngFormatter(sep=""))
    ax.grid(color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=9)


def _final(result: Result, label: str) -> Floats:
    return np.asarray(result.final_regret[result.labels.index(label)])


def _error(values: Floats) -> float:
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


def _ratio(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"
