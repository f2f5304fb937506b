"""Sweeps: policies over a grid of parameters, from a TOML file.

`read` reads the file, whose format docs/cli.md describes: wherever it has ``{a}``, in the problem or in a
policy, each value of the parameter `a` takes its place. `Sweep.cells` cuts the work. From the results,
`lines` makes the table and `draw` the picture.
"""

from __future__ import annotations

import itertools
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from accrual.core.arrays import Floats
from accrual.core.errors import InputError, need, unknown, whole
from accrual.core.files import replacing
from accrual.core.pictures import COLOURS, STYLES
from accrual.core.random import ROUND_MOST, RUN_MOST, SEED_MOST
from accrual.engine.result import Result
from accrual.engine.simulate import check_plays
from accrual.policies.base import Policy
from accrual.problems.problem import Problem
from accrual.runs.cells import Cell, cost, cut, on_device
from accrual.studies.problem_files import (
    anything,
    listed,
    number,
    policy_of,
    problem_of,
    read_toml,
    table,
    with_yardsticks,
)

HORIZON, RUNS = 100_000, 20
POINTS_MOST = 100_000
_POLICIES = 16  # in a cell; they share their draws, which would be most of the work for one policy
_WORK = 50_000_000  # policy-rounds in a cell, roughly: some five seconds on one core ...
_USUAL_COST = 2.0  # ... if they cost as much as in Setting 1
_RUNS_MOST = 100  # in a cell
_ON_GPU = 1024  # policies and runs in a cell on a GPU, which plays them all at once
_CHECKPOINTS = 10  # few, because a sweep compares the regret at the horizon

_TICKS = (1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100, 1000)  # of a heat map's colours
_NAMED = 15  # with at most this many values of a parameter, its axis names all
_WRITTEN = 200  # a heat map with at most this many squares shows their numbers

_PARAMETER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Point:
    """One policy at one place of the grid."""

    case: dict[str, Any]  # the values of the parameters in [each]
    # The values of the parameters in [grid] on which it depends: none for a policy to compare with.
    place: dict[str, Any]
    row: int  # which [[policy]] it is; yardsticks have the numbers after the last
    block: str  # the name of its problem, which its cells have too
    label: str
    yardstick: bool = False  # whether it is there to judge the others by, as on problems with contexts


@dataclass(frozen=True)
class Sweep:
    """What a file describes: points, and what to simulate for them."""

    horizon: int
    runs: int
    seed: int
    grid: dict[str, list[Any]]
    points: list[Point]
    problems: dict[str, Problem]  # by block
    policies: dict[str, dict[str, Policy]]  # by block and label

    def cells(self, device: str = "cpu") -> dict[str, list[Cell]]:
        """Cut each block into cells."""
        return {block: on_device(self._cut(block, device), device) for block in self.problems}

    def _cut(self, block: str, device: str) -> list[Cell]:
        problem = self.problems[block]
        work = _POLICIES * self.horizon * cost(problem) / _USUAL_COST  # of one run
        size = max(1, min(_RUNS_MOST, int(_WORK / work)))
        most, size = (_POLICIES, size) if device == "cpu" else (_ON_GPU, _ON_GPU)
        rounds = [max(1, self.horizon * mark // _CHECKPOINTS) for mark in range(1, _CHECKPOINTS + 1)]
        return [
            cell
            for part in _batches(self.policies[block], most)
            for cell in cut(block, problem, part, self.horizon, self.runs, size, self.seed, rounds)
        ]


def read(path: str | os.PathLike[str], runs: int | None = None, horizon: int | None = None) -> Sweep:
    """Read the sweep that a TOML file describes; `runs` and `horizon` override the file's.

    Examples
    --------
    >>> import tempfile
    >>> text = '''
    ... problem = "setting1"
    ... grid = {a = [1, 2], b = {from = 1, to = 4, steps = 3, log = true}}
    ... policy = [{name = "TPUCBFRG", alpha = 20, spread = "betabinom({a}, {b})"}]
    ... '''
    >>> with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
    ...     _ = file.write(text)
    ...     file.flush()
    ...     sweep = read(file.name)
    >>> sweep.grid["b"], len(sweep.points), sweep.points[-1].label
    ([1, 2, 4], 6, 'TPUCBFRG(20, begin_middle)')
    """
    data = read_toml(path)
    given = {key: value for key, value in (("runs", runs), ("horizon", horizon)) if value is not None}
    try:
        return _sweep(Path(path).stem, {**data, **given})
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _sweep(name: str, data: dict[str, Any]) -> Sweep:
    top = table(
        "the file",
        data,
        {
            "problem": anything, "policy": listed(anything), "grid": _axes, "each": _axes,
            "horizon": anything, "runs": anything, "seed": anything,
        },
        ["problem", "policy", "grid"],
    )  # fmt: skip
    grid, each = top["grid"], top.get("each", {})
    if not grid:
        raise InputError("[grid] needs a parameter, as in: a = [1, 2, 4]")
    for key in grid.keys() & each.keys():
        raise InputError(f"{key} is in [grid] and in [each]; it can be in one of them")
    count = math.prod(len(values) for values in (*grid.values(), *each.values())) * len(top["policy"])
    if not 1 <= count <= POINTS_MOST:
        raise InputError(f"a sweep needs 1 to {POINTS_MOST:,} points, not {count:,}")

    made = _Made(name)
    points: dict[str, Point] = {}
    used: set[str] = set()
    for case, place in itertools.product(_products(each), _products(grid)):
        values = {**case, **place}
        said, problem_uses = fill(top["problem"], values)
        block = made.block(said)
        for row, template in enumerate(top["policy"]):
            filled, uses = fill(template, values)
            label = made.label(block, row, filled)
            uses |= problem_uses
            used |= uses
            point = Point(case, {key: place[key] for key in grid if key in uses}, row, block, label)
            points.setdefault(repr(point), point)  # one that does not use all parameters comes again
        for row, label in enumerate(made.yardsticks(block), len(top["policy"])):
            at = {key: place[key] for key in grid if key in problem_uses}
            point = Point(case, at, row, block, label, yardstick=True)
            points.setdefault(repr(point), point)
    for key in (*grid, *each):
        if key not in used:
            raise InputError(f"no problem and no policy has a {{{key}}} where the values of {key} could go")
    return Sweep(
        horizon=whole("horizon", top.get("horizon", HORIZON), 1, ROUND_MOST),
        runs=whole("runs", top.get("runs", RUNS), 1, RUN_MOST),
        seed=whole("seed", top.get("seed", 0), 0, SEED_MOST),
        grid=grid,
        points=list(points.values()),
        problems=made.problems,
        policies={
            block: with_yardsticks(made.problems[block], found) for block, found in made.policies.items()
        },
    )


class _Made:
    """The problems and policies of a sweep, each made once."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._blocks: dict[str, str] = {}
        self.problems: dict[str, Problem] = {}
        self.policies: dict[str, dict[str, Policy]] = {}

    def block(self, said: Any) -> str:
        """Return the block of a problem, given as the file describes it; make the problem if it is new."""
        block = self._blocks.setdefault(repr(said), f"{self._name}/{len(self._blocks) + 1}")
        if block not in self.problems:
            self.problems[block], self.policies[block] = problem_of("problem", said), {}
        return block

    def label(self, block: str, row: int, said: Any) -> str:
        """Return the label of a policy, given as the file describes it, and add the policy to the block."""
        label, policy = policy_of(f"policy[{row}]", said)
        if self.policies[block].setdefault(label, policy) != policy:
            raise InputError(f"two policies are labelled {label!r}; give one a label of its own")
        check_plays(policy, self.problems[block])
        return label

    def yardsticks(self, block: str) -> list[str]:
        """Return the labels of the yardsticks on the block's problem."""
        return list(with_yardsticks(self.problems[block], {}))


def fill(value: Any, values: Mapping[str, Any]) -> tuple[Any, set[str]]:
    """Return `value` with every ``{name}`` replaced, and the names that it has.

    Examples
    --------
    >>> fill({"alpha": "{k}", "spread": "zipf({s})"}, {"k": 20, "s": 1.5}) == (
    ...     {"alpha": 20, "spread": "zipf(1.5)"}, {"k", "s"})
    True
    """
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        parts = [(key, *fill(item, values)) for key, item in items]
        names = {name for _, _, part in parts for name in part}
        filled = {key: part for key, part, _ in parts}
        return (filled if isinstance(value, dict) else list(filled.values())), names
    if not isinstance(value, str):
        return value, set()
    names = set(_PARAMETER.findall(value))
    for name in sorted(names - values.keys()):
        raise unknown("parameter", name, values)
    whole_text = _PARAMETER.fullmatch(value)
    # If the text is nothing but {name}, it becomes the value itself: a number stays a number.
    return (
        values[whole_text[1]] if whole_text else _PARAMETER.sub(lambda found: str(values[found[1]]), value)
    ), names


def _axes(name: str, value: Any) -> dict[str, list[Any]]:
    """Read parameters and their values."""
    if not isinstance(value, dict):
        raise InputError(f"{name} must be a table of parameters, not {value!r}")
    for key in value:
        if not re.fullmatch(r"\w+", key):
            raise InputError(f"a parameter's name is letters, figures and underscores, not {key!r}")
    return {key: _axis(key, given) for key, given in value.items()}


def _axis(name: str, value: Any) -> list[Any]:
    if isinstance(value, dict):
        return _steps(name, value)
    values: list[Any] = listed(_value)(name, value)
    if not values or any(values.count(one) > 1 for one in values):
        raise InputError(f"{name} needs values, each once, not {value!r}")
    return values


def _value(name: str, value: Any) -> Any:
    return value if isinstance(value, str | list) else number(name, value)


def _steps(name: str, value: dict[str, Any]) -> list[Any]:
    """Read values from one number to another, with even steps or (log) with even ratios."""
    given = table(
        name,
        value,
        {"from": number, "to": number, "steps": anything, "log": anything},
        ["from", "to", "steps"],
    )
    first, last, log = float(given["from"]), float(given["to"]), given.get("log", False)
    steps = whole(f"the steps of {name}", given["steps"], 2, POINTS_MOST)
    if not isinstance(log, bool) or not first < last or (log and first <= 0):
        raise InputError(
            f"{name} goes from a number up to a greater one (from above 0 if log = true), not {value!r}"
        )
    values = np.geomspace(first, last, steps) if log else np.linspace(first, last, steps)
    digits = 3 if log else 6  # enough to tell values apart, and short in labels
    short = [float(f"{one:.{digits}g}") for one in values]
    if len({*short}) < steps:
        raise InputError(f"{name} has steps too small to tell apart: {value!r}")
    return [int(one) if one == int(one) else one for one in short]


def _products(axes: Mapping[str, list[Any]]) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


def _batches(policies: Mapping[str, Policy], most: int) -> Iterator[dict[str, Policy]]:
    labels = list(policies)
    for first in range(0, len(labels), most):
        yield {label: policies[label] for label in labels[first : first + most]}


class SweepLine(NamedTuple):
    """One point, with its regret at the horizon."""

    point: Point
    runs: int
    mean: float
    se: float
    over_best: float  # the mean over runs of the difference to the best point of its case
    over_best_se: float


def lines(sweep: Sweep, results: Mapping[str, Result]) -> list[list[SweepLine]]:
    """Return the points of each case, in the order of their mean regret; `results` are by block.

    The best point of a case is the point of the grid with the least mean. Policies that use no parameter of
    the grid, and yardsticks, are in the same order and may have less regret than the best point.
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
            point=point,
            runs=len(final),
            mean=float(final.mean()),
            se=_error(final),
            over_best=float((final - best).mean()),
            over_best_se=_error(final - best),
        )
        for point, final in zip(points, finals, strict=True)
    ]
    return sorted(made, key=lambda line: line.mean)


def best(case: Sequence[SweepLine]) -> SweepLine:
    """Return the best point of the grid."""
    return next((line for line in case if ranked(line.point)), case[0])


def ranked(point: Point) -> bool:
    """Return whether a point is of the grid, and not only there to compare with."""
    return bool(point.place) and not point.yardstick


def csv_rows(sweep: Sweep, cases: Sequence[Sequence[SweepLine]]) -> Iterator[list[Any]]:
    """Yield the rows of a CSV file: the head, and all points."""
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
    """Draw mean regret divided by the best point's; frame the best and those within two standard errors."""
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
    apart = [1.0]  # ticks that do not overlap
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
