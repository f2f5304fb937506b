"""The figures of the paper."""

from __future__ import annotations

from typing import Any

import numpy as np

from accrual.core import pictures
from accrual.core.pictures import Picture, Shape, axis, render, short
from accrual.runs.rows import FigureCurve
from accrual.studies.paper.results import LearnerRows, PaperResults, SettingRows
from accrual.studies.paper.settings import ALTERNATIVES, BEGINS

# Of Setting 2's twelve experiments, which look alike, those that the paper draws.
DRAWN = (
    "setting2/c2/early",
    "setting2/c3/late",
    "setting2/c3/early",
    "setting2/c4/late",
    "setting2/c4/early",
)


def paper_figures(data: PaperResults) -> list[Picture]:
    """Draw all figures that the stored rows allow, in the order of the page."""
    made = [_regret(setting) for setting in data.starting("setting1")]
    made += [_regret(data.settings[id]) for id in DRAWN if id in data.settings]
    if all(f"setting2/c2/{scenario}" in data.settings for scenario in ("uniform", "late", "early")):
        made.append(_differences(data))
    made += [_spotify(setting) for setting in data.starting("spotify")]
    for name in ALTERNATIVES:
        made += [_alternatives(setting) for setting in data.starting(name)]
    made += [_audit(setting) for setting in data.starting("audit")]
    made += [
        _spreads(figure, curves) for figure, curves in data.spreads.items() if figure != "spread/named50"
    ]
    return made


def _name(id: str) -> str:
    return id.replace("/", "-")


def _band(ax: Any, learner: LearnerRows, label: str) -> None:
    drawn = pictures.line(learner.kind)
    every = max(1, len(learner.rounds) // 10)
    ax.plot(learner.rounds, learner.mean, label=label, markevery=every, **drawn)
    if np.isfinite(learner.error).all():
        low, high = learner.mean - 2 * learner.error, learner.mean + 2 * learner.error
        ax.fill_between(learner.rounds, low, high, color=drawn["color"], alpha=0.18, lw=0)


def _plain(ax: Any, learners: list[LearnerRows], title: str = "") -> None:
    """Draw regret against rounds on plain axes; the legend has the order in which the curves end."""
    for learner in sorted(learners, key=lambda one: -one.final):
        _band(ax, learner, f"{learner.label}  {short(learner.final)}")
    top = 1.05 * max(float(learner.mean.max()) for learner in learners)
    ax.set(xlim=(0, learners[0].rounds[-1]), ylim=(0, top), xlabel="round", ylabel="regret", title=title)
    axis(ax.xaxis)
    axis(ax.yaxis)


def _logarithmic(ax: Any, learners: list[LearnerRows], curves: tuple[FigureCurve, ...], title: str) -> None:
    """Draw regret and bounds on logarithmic axes, from where every learner has some regret."""
    last = int(learners[0].rounds[-1])
    first = max(100, last // 1000)
    for learner in sorted(learners, key=lambda one: -one.final):
        _band(ax, learner, "")
    for curve, drawn in zip(curves, pictures.BOUNDS, strict=False):
        ax.plot(curve.x, curve.y, label=f"{curve.label}  {short(float(curve.y[-1]))}", **drawn)
    low = min(learner.at(first) for learner in learners)
    high = max(*(float(curve.y[-1]) for curve in curves), *(learner.final for learner in learners))
    ax.set(xscale="log", yscale="log", xlim=(first, last), ylim=(0.7 * max(low, 1e-3), 1.6 * high))
    ax.set(xlabel="round", ylabel="regret", title=title)
    axis(ax.xaxis)
    axis(ax.yaxis)


def _regret(setting: SettingRows) -> Picture:
    learners = list(setting.learners.values())

    def draw(figure: Any, narrow: bool) -> None:
        axes = figure.subplots(2, 1) if narrow else figure.subplots(1, 2)
        _plain(axes[0], learners, "plain axes")
        _logarithmic(axes[1], learners, setting.curves, "log axes, with bounds")

    caption = (
        "Mean regret over the runs, bands of two standard errors. The figure beside each name is the "
        "regret at the last round. Dashed: Theorem 2's upper bound at the problem's own α, for the even "
        "spread (α-smooth) and for the spread of what the problem pays on average (β-spread)."
    )
    return render(_name(setting.id), setting.title, caption, draw, Shape(4.6, len(learners) + 2, panels=2))


def _spotify(setting: SettingRows) -> Picture:
    shown = [one for one in setting.learners.values() if one.kind in (*BEGINS, "TPUCBFR")]
    synthetic = setting.data == "synthetic"

    def draw(figure: Any, narrow: bool) -> None:
        ax = figure.subplots()
        _plain(ax, shown)
        if synthetic:
            note = {"fontsize": 15, "weight": "bold", "color": "#B03060", "alpha": 0.8}
            ax.text(0.02, 0.97, "synthetic data", transform=ax.transAxes, va="top", **note)

    caption = "Begin-oriented learners, as in the paper's figure. " + (
        "SYNTHETIC DATA: the real data set cannot be shipped; this is a seeded sample in its schema."
        if synthetic
        else "From the data set that --spotify names."
    )
    return render("spotify", setting.title, caption, draw, Shape(4.4, len(shown)))


def _alternatives(setting: SettingRows) -> Picture:
    shown = list(setting.learners.values())

    def draw(figure: Any, narrow: bool) -> None:
        _plain(figure.subplots(), shown)

    caption = "The alternative spreads (brown, with marks) beside the begin-oriented beta-binomial ones."
    return render(_name(setting.id), setting.title, caption, draw, Shape(4.6, len(shown)))


def _audit(setting: SettingRows) -> Picture:
    (learner,) = setting.learners.values()

    def draw(figure: Any, narrow: bool) -> None:
        ax = figure.subplots()
        _band(ax, learner, f"{learner.label}  {short(learner.final)}")
        for curve, drawn in zip(setting.curves, pictures.LOWER_BOUNDS, strict=True):
            ax.plot(curve.x, curve.y, label=f"{curve.label}  {short(float(curve.y[-1]))}", **drawn)
        last = int(learner.rounds[-1])
        top = 1.1 * max(float(curve.y[-1]) for curve in setting.curves)
        ax.set(xscale="log", xlim=(10, last), ylim=(0, top), xlabel="round", ylabel="regret (in caps)")
        axis(ax.xaxis)

    caption = (
        "Regret of KL-UCB that takes each group to have a chance of its own, with bands of two standard "
        "errors. A lower bound says how steep regret must be in the end, not how high: on this axis, how "
        "steep a straight line. Free chances: for policies that are efficient whatever chance each group "
        "has, as this one is. One chance: for policies that need be efficient only where all groups of an "
        "arm have the same chance. With all reward in one group these two are one."
    )
    return render(_name(setting.id), setting.title, caption, draw, Shape(4.2, 4))


def _differences(data: PaperResults) -> Picture:
    late, even, early = (data.settings[f"setting2/c2/{name}"] for name in ("late", "uniform", "early"))
    pairs = (("2.1 - 2.2", late, early, "#332288"), ("2.1 - uniform", late, even, "#CC6677"),
             ("uniform - 2.2", even, early, "#117733"))  # fmt: skip
    labels = list(late.learners)

    def draw(figure: Any, narrow: bool) -> None:
        ax = figure.subplots()
        for row, (name, first, second, colour) in enumerate(pairs):
            change = [
                first.learners[label].regret[:, -1] - second.learners[label].regret[:, -1] for label in labels
            ]
            mean = [float(part.mean()) for part in change]
            error = [
                2 * float(part.std(ddof=1)) / np.sqrt(len(part)) if len(part) > 1 else 0.0 for part in change
            ]
            place = np.arange(len(labels)) + 0.27 * (row - 1)
            ax.barh(place, mean, 0.25, xerr=error, color=colour, label=name.replace("-", "−"),
                    error_kw={"lw": 0.9, "ecolor": "#222222"})  # fmt: skip
        ax.set_yticks(
            np.arange(len(labels)),
            [
                label.replace("TPUCBFRG(50, ", "").rstrip(")") if narrow and "G(" in label else label
                for label in labels
            ],
        )
        ax.invert_yaxis()
        ax.axvline(0, color="#222222", lw=0.8)
        ax.set_xlabel("difference in final regret (± 2 s.e.)")
        axis(ax.xaxis)

    caption = (
        "Setting 2 at τ_max = 100, α = 50: how much the time at which reward arrives changes the final "
        "regret. "
        "Differences are taken run by run on the same uniform draws."
    )
    return render(
        "differences",
        "Differences between scenarios",
        caption,
        draw,
        Shape(5.4, 3, panels=2, left=2.5, left_narrow=1.35),
    )


def _spreads(figure_id: str, curves: list[FigureCurve]) -> Picture:
    family = figure_id.removeprefix("spread/")
    titles = {"named": "The eight beta-binomial spreads", "zipf": "Zipf spreads",
              "boltzmann": "Boltzmann spreads", "hypergeometric": "Hypergeometric spreads"}  # fmt: skip

    def draw(figure: Any, narrow: bool) -> None:
        ax = figure.subplots()
        for curve in curves:
            drawn = {"marker": "o", "markersize": 3.5} | pictures.line(curve.label)
            ax.plot(curve.x, curve.y, label=curve.label, **drawn)
        ax.set(xlabel="group", ylabel="share of the cap", ylim=(0, None), xlim=(0.5, len(curves[0].x) + 0.5))

    caption = f"Shares of the cap over {len(curves[0].x)} groups."
    return render(_name(figure_id), titles[family], caption, draw, Shape(4.0, len(curves)))
