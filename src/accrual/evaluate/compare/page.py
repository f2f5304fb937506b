"""Write the page of a comparison, with its tables and pictures."""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from accrual.core import pictures
from accrual.core.durations import show_length
from accrual.core.files import replacing
from accrual.core.html_page import boxes, document, figure, table
from accrual.core.interval import Interval
from accrual.core.number_text import figure as figure_text
from accrual.core.pictures import Picture, Shape, axis, render, short
from accrual.evaluate.compare.comparison import RANGES, Comparison, conclusions
from accrual.evaluate.compare.setup import BASELINE, notes
from accrual.logs.fitted import reading_lines, top_lines

PAGE, TABLE = "report.html", "comparison.csv"
_ARMS_DRAWN = 8
_ARMS_LISTED = 50


def write_report(folder: Path, compared: Comparison) -> Path:
    """Write the page, and its pictures beside it as PNG; each file appears whole or not at all."""
    drawn = {picture.name: picture for picture in (_regret(compared), _costs(compared), _arrived(compared))}
    for picture in drawn.values():
        with replacing(folder / f"{picture.name}.png") as partial:
            partial.write_bytes(picture.png)
    with replacing(folder / PAGE) as partial:
        partial.write_text(_page(compared, drawn), encoding="utf-8")
    return folder / PAGE


def _page(compared: Comparison, drawn: dict[str, Picture]) -> str:
    sections = [
        ("conclusions", "What was found", _conclusions(compared)),
        ("arms", "Do arms differ?", _arms(compared)),
        ("policies", "Which policy", _policies(compared, drawn["regret"])),
        ("waiting", "What waiting costs", _waiting(compared, drawn["waiting"])),
        ("arrival", "How reward arrives in the log", _arrival(compared, drawn["arrival"])),
        ("live", "To play it live", f"<pre><code>{escape(compared.live)}</code></pre>"),
        ("simulated", "What was simulated", _simulated(compared)),
        ("reading", "How the log was read", _list(reading_lines(compared.setup.fitted))),
        ("limits", "What this does not tell", _LIMITS),
    ]
    return document("Policies compared on a log", "Policies compared on a log", _opening(compared), sections)


def _opening(compared: Comparison) -> str:
    best, log = compared.best, compared.setup.fitted.log
    saved = compared.waiting.saved
    tiles = [
        (escape(best.policy), "loses least of the policies that can be played"),
        (_digits(best.lost.value), "reward lost per 1000 decisions, against the best arm alone"),
        (f"{best.share.value:.0f}&nbsp;%", "of its decisions are for the best arm"),
        (
            "&ndash;" if saved is None else f"{saved.value:.0f}&nbsp;%",
            "of what waiting for totals costs is saved by using pieces",
        ),
    ]
    horizon, runs = int(compared.result.rounds[-1]), len(compared.result.runs)
    return (
        f"<p>{len(compared.setup.problem.arms)} arms, fitted to {log['decisions']:,} logged decisions and "
        f"{log['pieces']:,} pieces, and played by {len(compared.lines)} policies: {runs:,} runs of "
        f"{horizon:,} decisions, in which every decision pays what a logged decision of its arm paid, at "
        f"the same ages.</p>{boxes(tiles)}"
    )


def _conclusions(compared: Comparison) -> str:
    return _list([*top_lines(compared.setup.fitted), *conclusions(compared)])


def _list(lines: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"


def _arms(compared: Comparison) -> str:
    body = "".join(
        f"<tr><td>{escape(line.arm)}</td><td>{line.decisions:,}</td><td>{_span(line.log)}</td>"
        f"<td>{_span(line.mean)}</td><td>{line.best:.2f}</td></tr>"
        for line in compared.arms[:_ARMS_LISTED]
    )
    head = "".join(
        f"<th>{name}</th>"
        for name in ("arm", "decisions", "mean in the log", "shrunk mean", "best with probability")
    )
    more = len(compared.arms) - _ARMS_LISTED
    left = f"<p>{more:,} more arms are not listed.</p>" if more > 0 else ""
    return (
        f"{table(head, body)}{left}<p>A shrunk mean is pulled towards the average of all arms, "
        "more strongly the more uncertain it is: of many arms, those that look best were also lucky. The "
        "policies below were played on means drawn from what this leaves possible.</p>"
    )


def _policies(compared: Comparison, drawn: Picture) -> str:
    body = "".join(
        f"<tr><td>{escape(line.policy)}</td>"
        + "".join(f"<td>{_span(value)}</td>" for value in (line.regret, line.lost, line.share))
        + f"<td>{'' if line.policy == BASELINE else _span(line.more, signed=True)}</td></tr>"
        for line in compared.lines
    )
    head = "".join(
        f"<th>{name}</th>"
        for name in ("policy", "regret", "lost per 1000", "best arm, %", f"per 1000 against {BASELINE}")
    )
    return (
        f"{figure(drawn)}{table(head, body)}"
        "<p>Regret is how much more the best arm alone would have paid, on average. In brackets: ranges, "
        "which include the log's uncertainty about the arms' means and the simulation's randomness. "
        f"{escape(RANGES)} "
        f"Differences to {BASELINE} are taken run by run, on the same draws.</p>"
    )


def _waiting(compared: Comparison, drawn: Picture) -> str:
    body = "".join(
        f"<tr><td>{escape(cost.way)}</td><td>{escape(cost.policy)}</td><td>{_span(cost.lost)}</td>"
        f"<td>{_span(cost.more, signed=True) if i else ''}</td></tr>"
        for i, cost in enumerate(compared.waiting.costs)
    )
    head = "<th>what is seen</th><th>policy</th><th>lost per 1000</th><th>against at once</th>"
    return (
        f"<p>One learner ({BASELINE}) gets rewards in three ways. The first is not possible in "
        "practice; the difference between the other two is what is gained by using pieces before a decision "
        f"is complete.</p>{figure(drawn)}{table(head, body)}"
    )


def _arrival(compared: Comparison, drawn: Picture) -> str:
    setup = compared.setup
    body = "".join(
        f"<tr><td>{escape(arm.name)}</td><td>{arm.decisions:,}</td><td>{arm.closed:,}</td>"
        f"<td>{_span(arm.mean)}</td><td>{arm.cap.used:.4g}</td></tr>"
        for arm in setup.fitted.known[:_ARMS_LISTED]
        if arm.mean is not None and arm.cap is not None
    )
    head = "<th>arm</th><th>decisions</th><th>closed</th><th>mean total</th><th>cap</th>"
    return figure(drawn) + table(head, body)


def _simulated(compared: Comparison) -> str:
    return f"{_list(notes(compared.setup))}<pre><code>{escape(compared.command)}</code></pre>"


_LIMITS = (
    "<ul><li>The future is assumed to be like the log. The intervals include the uncertainty of the arms' "
    "means, and nothing else that the log may not show.</li>"
    "<li>Decisions are drawn independently: no season, no trend, no visitor who comes back.</li>"
    "<li>Caps are taken as known. A cap cannot be learned from a log, and a policy's regret may depend on "
    "it.</li><li>One decision is made per round: where traffic comes in bursts, more is pending than "
    "here.</li></ul>"
)


def _regret(compared: Comparison) -> Picture:
    result = compared.result
    order = [result.labels.index(line.policy) for line in reversed(compared.lines)]

    def draw(figure: Any, narrow: bool) -> None:
        ax = figure.subplots()
        for p in order:
            mean = result.regret[p].mean(axis=0)
            drawn = pictures.line(result.labels[p])
            ax.plot(result.rounds, mean, label=f"{result.labels[p]}  {short(float(mean[-1]))}", **drawn)
            if len(result.runs) > 1:
                error = result.regret[p].std(axis=0, ddof=1) / math.sqrt(len(result.runs))
                ax.fill_between(
                    result.rounds, mean - 2 * error, mean + 2 * error, color=drawn["color"], alpha=0.18, lw=0
                )
        ax.axvline(compared.setup.problem.window, color="#888888", lw=0.9, ls="--", label="one window")
        ax.set(xlim=(0, result.rounds[-1]), ylim=(0, None), xlabel="decisions", ylabel="regret")
        axis(ax.xaxis)
        axis(ax.yaxis)

    caption = (
        "Mean regret over the runs, bands of two standard errors; the figure beside each name is the regret "
        "at the last decision. The dashed line is one window: before it no total is known."
    )
    return render("regret", "Regret as decisions are made", caption, draw, Shape(4.6, len(order) + 1))


def _costs(compared: Comparison) -> Picture:
    costs = compared.waiting.costs
    colours = ("#4EA3D0", "#0072B2", "#CC6677")

    def draw(figure: Any, narrow: bool) -> None:
        ax = figure.subplots()
        for row, (cost, colour) in enumerate(zip(costs, colours, strict=True)):
            error = [[cost.lost.value - cost.lost.low], [cost.lost.high - cost.lost.value]]
            label = f"{cost.way}  {short(cost.lost.value)}"
            ax.barh(
                row, cost.lost.value, 0.62, color=colour, label=label,
                xerr=None if math.isnan(cost.lost.low) else error, error_kw={"lw": 1.0, "ecolor": "#222222"},
            )  # fmt: skip
        ax.set_yticks(range(len(costs)), [cost.way for cost in costs])
        ax.invert_yaxis()
        ax.grid(axis="y", visible=False)
        ax.set(xlabel="reward lost per 1000 decisions", xlim=(0, None))
        axis(ax.xaxis)

    caption = f"What is lost against playing the best arm alone, with ranges. {RANGES}"
    return render(
        "waiting", "One learner that gets rewards in three ways", caption, draw,
        Shape(2.7, len(costs), left=1.1, left_narrow=0.95),
    )  # fmt: skip


def _arrived(compared: Comparison) -> Picture:
    fitted = compared.setup.fitted
    ages = np.asarray(fitted.arrived["ages"], dtype=np.float64)
    unit = 86400.0 if fitted.unit == "seconds" and fitted.window > 2 * 86400 else 1.0
    name = "days" if unit > 1 else "seconds" if fitted.unit == "seconds" else "the log's unit of time"
    paying = [arm for arm in fitted.known if arm.spread is not None]
    arms = sorted(paying, key=lambda arm: -arm.decisions)[:_ARMS_DRAWN]
    colours = ("#332288", "#4EA3D0", "#44AA99", "#117733", "#999933", "#D4AF37", "#CC6677", "#882255")

    def draw(figure: Any, narrow: bool) -> None:
        ax = figure.subplots()
        low, mid, high = (100 * np.asarray(fitted.arrived[key]) for key in ("low", "value", "high"))
        ax.fill_between(ages / unit, low, high, color="#222222", alpha=0.15, lw=0)
        ax.plot(ages / unit, mid, color="#222222", lw=2.4, label="all arms")
        edges = np.linspace(0, fitted.window / unit, fitted.groups + 1)
        for arm, colour in zip(arms, colours, strict=False):
            assert arm.spread is not None
            by_edge = 100 * np.concatenate([[0.0], np.cumsum(arm.spread.value)])
            ax.plot(edges, by_edge, color=colour, lw=1.4, label=arm.name)
        ax.set(xlabel=f"age, {name}", ylabel="arrived, %", ylim=(0, 103), xlim=(0, fitted.window / unit))

    window = show_length(fitted.window, fitted.unit == "seconds")
    caption = (
        f"The share of a decision's reward that has arrived by an age, within the window of {window}: of all "
        f"arms, with its 95 % interval, and of each arm at the ends of the {fitted.groups} groups."
    )
    return render("arrival", "When reward arrives", caption, draw, Shape(4.2, len(arms) + 1))


def _span(value: Interval, signed: bool = False) -> str:
    """Write an interval as HTML: the estimate, with the interval's ends in brackets."""
    shown = [_digits(one, signed) for one in (value.value, value.low, value.high)]
    if math.isnan(value.low):
        return shown[0]
    return f"{shown[0]} <small>[{shown[1]}, {shown[2]}]</small>"


def _digits(value: float, signed: bool = False) -> str:
    return figure_text(value, 3, "+" if signed else "").replace("-", "−")
