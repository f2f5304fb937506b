"""The report page on the paper: `build` writes it from the folder of a run."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

from accrual.core.html_page import boxes, document, figure, table
from accrual.core.pictures import Picture
from accrual.runs import rows
from accrual.studies.paper.checks import (
    TOLERANCE,
    PaperLine,
    Statement,
    csv_text,
    disagreements,
    line,
    lines,
    printed,
    statements,
)
from accrual.studies.paper.figures import paper_figures
from accrual.studies.paper.results import PaperResults, SettingRows, load
from accrual.studies.paper.settings import ALTERNATIVES

PAGE = "report.html"
TABLES = "tables.csv"
FIGURES = "figures"
_SYNTHETIC = '<strong class="synthetic">synthetic data</strong>'

# How the paper is read here and where it is corrected, as the page shows it.

READINGS: tuple[tuple[str, str], ...] = (
    (
        "Caps are τ_max · ζ.",
        "The text gives 100 ζ and an appendix 100 i. At τ_max = 100 the first is the same as τ_max · ζ; "
        "at τ_max = 200 only τ_max · ζ gives the printed regrets, so that is what is used.",
    ),
    (
        "A decision pays from its own round on.",
        "Its first piece arrives in the round of the decision and its last τ_max − 1 rounds later. A "
        "policy that decides at round t knows every piece up to round t − 1.",
    ),
    (
        "Within a group, reward is paid evenly.",
        "The paper does not say how a group's total is divided over its rounds. Even payment and payment "
        "all at the group's first round both reproduce the tables; even payment is used.",
    ),
    (
        "Regret counts true means.",
        "It is the sum over decisions of how far the chosen arm's mean falls short of the best arm's: no "
        "reward noise is in it, so a hundred runs are enough for half a percent.",
    ),
    (
        "Ties and the first rounds.",
        "Each arm is tried once, in order; after that the greatest index wins, and among equals the "
        "lowest arm.",
    ),
    (
        "UCB1 has no delay.",
        "It gets a decision's whole reward at once, which is impossible here; it is a yardstick. "
        "DelayedUCB1 uses the same index on the decisions whose window has closed, and tries arms without "
        "one first.",
    ),
    (
        "TPUCBEW is a reconstruction.",
        "The paper names it, reports two of its properties and prints no formula. Here each group's mean "
        "is estimated from the decisions that have finished that group, the means are added, and the "
        "bonus is the sum of the groups' own; a group never seen counts as its cap. Both properties come "
        "out (see the statements).",
    ),
    (
        "Scenarios 2.1 and 2.2.",
        "Late means shapes a = 2, 4, 6, … up to α and then constant, with b the mirror image; early "
        "exchanges the two. The environment and the learners share the configuration's α.",
    ),
    (
        "The bounds that are drawn.",
        "An upper bound belongs to the problem, not to a learner's guess: both are computed at the "
        "problem's own α. The β-spread one takes the spread of what the problem pays on average.",
    ),
    (
        "Spotify.",
        "A decision recommends a context; its reward is one logged session of it. Each of up to 20 songs "
        "is a group of four rounds and pays one for each quarter heard: the four nested skip flags give "
        "0, 1, 2, 3 or 4. A session belongs to the context of its first song; the six contexts with the "
        "most songs are the arms. The horizon is not printed; 100,000 rounds are used as everywhere else.",
    ),
)

CORRECTIONS: tuple[tuple[str, str], ...] = (
    (
        "The proof of Theorem 1 fails where its factor exceeds one.",
        "It multiplies the α-smooth lower bound by c = (2 E[Y] / (α + 1)) · α · Σ B(k)². The step that "
        "fails is P(E₂) → 1. E₂ says that the log-likelihood ratio between the problem and its rival "
        "stays below (1 − ε/2) ln t while the arm has fewer than f_t / α decisions. By the law of large "
        "numbers that ratio tends to c (1 − ε) ln t if all groups have a share; so for c > 1 and small ε, "
        "P(E₂) → 0. (If only m groups have a share it tends to m/α of that, and the step fails for c > "
        "α/m.) And not only the proof: with all reward in the last group the printed bound is 2 α / (α + "
        "1) times the Lai–Robbins constant, which delayed KL-UCB attains.",
    ),
    (
        "What is true instead depends on the class of problems.",
        "A lower bound holds for the policies that are uniformly efficient on a class of problems: the "
        "larger the class, the greater the bound. Where all groups of an arm pay with one chance, a "
        "decision carries one observation for each group with a share, whatever its size: the factor is "
        "one, and the number of those groups stands for α. Where every group has a chance p_k of its own, "
        "the constant is Δ divided by the least Σ kl(p_k, q_k) with Σ B(k) q_k ≥ μ* (in caps); for small "
        "gaps that is α Σ B(k)² times the α-smooth bound. So the coincidence Σ B(k)² belongs there, and "
        "E[Y], when the groups come, does not: for small gaps the printed bound is too great for every "
        "spread later than the even one, and no greater than this one for every earlier spread. With "
        "very_begin at α = 20 and chances 0.5 and 0.35 the three are 0.164 for one chance, 0.199 as "
        "printed, and 0.986 for free chances.",
    ),
    (
        "A lower bound is a limit.",
        "It is about regret divided by ln T as T grows, and at any one horizon regret may be below it. "
        "So the audit measures what regret gains per unit of ln t over the last tenfold of rounds, with "
        "its standard error, and sets it beside what each bound gains.",
    ),
    (
        "The gains are those of a heuristic.",
        "The rewards of Settings 1 and 2 are α-smooth: every group may pay R / α. With begin, TPUCBFRG "
        "assumes caps for the late groups that the rewards exceed, so Theorem 2 does not cover the "
        "learners whose gains are reported. They are real in these experiments, and no theorem promises "
        "them elsewhere.",
    ),
    (
        "Slips in the proofs.",
        "In the Hoeffding display the 2 belongs outside the square (t⁻⁴ is right); the step for arms "
        "estimated too high keeps √(2 ln t / (α s)) where the index of coincidence is meant; R* and R_i "
        "are mixed up in places; and the β-spread definition needs the groups to be independent, which it "
        "leaves out.",
    ),
    (
        "Two sets of percentages.",
        "For α_est = 5, 20 and 50 the text gives gains of 4.5, 22.1 and 36.1 %, the table 4.6, 21.6 and "
        "35.6 %. The table's follow from its own regrets.",
    ),
)


@dataclass(frozen=True)
class Report:
    """What was written, and what it says."""

    page: Path
    printed: list[PaperLine]
    disagreements: list[str]
    statements: list[Statement]


def build(folder: Path) -> Report:
    """Write ``report.html``, ``tables.csv`` and ``figures/`` from the rows in `folder`."""
    data = load(folder)
    drawn = paper_figures(data)
    checked = statements(data)
    figures = folder / FIGURES
    figures.mkdir(exist_ok=True)
    names = {f"{picture.name}.{ending}" for picture in drawn for ending in ("svg", "png")}
    for old in figures.iterdir():  # figures of settings that are no longer requested
        if old.name not in names:
            old.unlink()
    for picture in drawn:
        rows.write(figures / f"{picture.name}.svg", picture.svg)
        rows.write(figures / f"{picture.name}.png", picture.png)
    rows.write(folder / TABLES, csv_text(data).encode())
    tools = {name: version(name) for name in ("matplotlib", "pyarrow")}
    rows.write(folder / PAGE, page(data, drawn, checked, tools).encode())
    return Report(folder / PAGE, printed(data), disagreements(data), checked)


def page(data: PaperResults, pictures: list[Picture], checked: list[Statement], tools: dict[str, str]) -> str:
    """Write the whole page as HTML."""
    drawn = {picture.name: picture for picture in pictures}
    sections = [
        ("numbers", "The printed numbers", _numbers(data)),
        ("setting1", "Setting 1: rewards that arrive evenly", _group(data, drawn, "setting1")),
        ("setting2", "Setting 2: late and early rewards", _setting2(data, drawn)),
        ("spotify", "Spotify", _spotify(data, drawn)),
        ("alternatives", "Other spreads", "".join(_group(data, drawn, name) for name in ALTERNATIVES)),
        ("audit", "Theorem 1 audited", _audit(data, drawn)),
        ("statements", "What the paper says in words", _statements(checked)),
        (
            "spreads",
            "The spreads",
            "".join(figure(drawn[name]) for name in drawn if name.startswith("spread-")),
        ),
        ("readings", "How the paper is read here", _definitions(READINGS)),
        ("corrections", "Where it is corrected", _definitions(CORRECTIONS)),
        ("made", "How this page was made", _made(data, tools)),
    ]
    title = "The paper, reproduced: generalized temporally-partitioned rewards"
    heading = "Bandits with generalized temporally-partitioned rewards: the paper, reproduced"
    return document(title, heading, _opening(data, checked), sections)


def _opening(data: PaperResults, checked: list[Statement]) -> str:
    compared = printed(data)
    agree = sum(one.agrees is True for one in compared)
    tiles = [
        (f"{agree} of {len(compared)}", "printed regrets agree")
        if compared
        else ("none", "printed regrets to compare"),
        (f"{sum(one.holds for one in checked)} of {len(checked)}", "statements of the text hold"),
        (f"{data.manifest['runs']:,}", f"runs of {data.manifest['horizon']:,} rounds"),
        (f"{len(lines(data))}", f"learners in {len(data.settings)} settings"),
    ]
    note = ""
    if any(setting.data == "synthetic" for setting in data.settings.values()):
        note = f"<p>The Spotify setting below uses {_SYNTHETIC}: the real data set cannot be shipped.</p>"
    return (
        "<p>Every table and figure of <em>Multi-Armed Bandits with Generalized Temporally-Partitioned "
        "Rewards</em> (van den Broek, Litjens, Sagis, Siecker, Verbeeke and Gajane), simulated again with "
        "<strong>accrual</strong> and set beside what the paper prints. A printed number agrees if ours is "
        f"within {100 * TOLERANCE:g}&nbsp;% of it.</p>"
        f"{boxes(tiles)}{note}"
    )


def _numbers(data: PaperResults) -> str:
    compared = printed(data)
    if not compared:
        return ""
    body = ""
    last = ""
    for one in compared:
        if one.title != last:
            body += f'<tr class="group"><td colspan="6">{escape(one.title)}</td></tr>'
            last = one.title
        body += _row(one)
    return (
        "<p>Final regret, mean over the runs. The paper's figures have three digits and its own averages "
        f"carry about half a percent of noise.</p>{_table(body)}{_gains(data)}"
    )


def _table(body: str) -> str:
    head = "".join(
        f"<th>{name}</th>" for name in ("learner", "paper", "ours", "± s.e.", "difference", "agrees")
    )
    return table(head, body)


def _row(one: PaperLine) -> str:
    agrees = {True: '<td class="yes">yes</td>', False: '<td class="no">no</td>', None: "<td></td>"}[
        one.agrees
    ]
    if one.paper is not None and not one.comparable:
        agrees = '<td class="synthetic">synthetic</td>'
    cells = (
        "" if one.paper is None else _figures(one.paper, 3),
        _figures(one.ours, 4),
        "" if math.isnan(one.error) else _figures(one.error, 2),
        "" if one.difference is None else _percent(one.difference),
    )
    return f"<tr><td>{escape(one.learner)}</td>{''.join(f'<td>{cell}</td>' for cell in cells)}{agrees}</tr>"


def _percent(share: float) -> str:
    text = f"{100 * share:+.1f}"
    return f"{'0.0' if text[1:] == '0.0' else text.replace('-', '−')}&nbsp;%"


def _figures(value: float, digits: int) -> str:
    """Write a number with this many significant digits, as the paper writes it but shorter: 1.34e6."""
    if abs(value) < 1000:
        return f"{float(f'{value:.{digits}g}'):g}"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def _gains(data: PaperResults) -> str:
    body = ""
    for setting in data.settings.values():
        known = [one for one in setting.learners.values() if one.printed is not None]
        if setting.data is not None or len(known) != 2:
            continue
        base, better = known
        assert base.printed is not None
        assert better.printed is not None
        paper, ours = (
            100 * (1 - b / a) for a, b in ((base.printed, better.printed), (base.final, better.final))
        )
        body += (
            f"<tr><td>{escape(setting.title)}</td><td>{escape(better.kind)}</td>"
            f"<td>{paper:.1f}&nbsp;%</td><td>{ours:.1f}&nbsp;%</td></tr>"
        )
    head = "<th>setting</th><th>spread</th><th>paper</th><th>ours</th>"
    return (
        "<h3>The gain of TPUCBFRG over TPUCBFR</h3><p>Follows from the regrets above; the paper's column is "
        "worked out from its rounded figures.</p>"
        f"{table(head, body)}"
    )


def _all_learners(setting: SettingRows) -> str:
    ordered = sorted(setting.learners.values(), key=lambda one: one.final)
    body = "".join(_row(line(setting, one)) for one in ordered)
    return f"<details><summary>All learners, best first</summary>{_table(body)}</details>"


def _group(data: PaperResults, drawn: dict[str, Picture], stem: str) -> str:
    settings = data.starting(stem)
    if stem == "setting1":  # the paper's main figure first
        settings.sort(key=lambda one: -int(one.id.removeprefix("setting1/alpha")))
    return "".join(_experiment(one, drawn.get(one.id.replace("/", "-"))) for one in settings)


def _experiment(setting: SettingRows, picture: Picture | None) -> str:
    head = f"<h3>{escape(setting.title)}</h3>" if picture is None else figure(picture)
    return head + _all_learners(setting)


def _setting2(data: PaperResults, drawn: dict[str, Picture]) -> str:
    figures = _group(data, drawn, "setting2")
    if not figures:
        return ""
    differences = figure(drawn["differences"]) if "differences" in drawn else ""
    return (
        "<p>The same ten arms, with groups that pay late (2.1), early (2.2) or evenly. When reward arrives "
        "hardly changes the regret; how finely the learner divides the window does.</p>"
        f"{differences}{figures}"
    )


def _spotify(data: PaperResults, drawn: dict[str, Picture]) -> str:
    setting = data.settings.get("spotify")
    if setting is None:
        return ""
    body = "".join(_row(line(setting, one)) for one in setting.learners.values() if one.printed is not None)
    note = (
        f"<p>Here: {_SYNTHETIC}. The Music Streaming Sessions Dataset cannot be shipped. These rows come "
        "from a seeded sample in its schema, whose listening decays over a session and differs between six "
        "contexts; the differences are chosen so that regret has the paper's order of size. The order of "
        "the learners is reported as it came out. With the real files: "
        "<code>accrual paper --only spotify --spotify PATH</code>.</p>"
        if setting.data == "synthetic"
        else "<p>From the data set given with <code>--spotify</code>.</p>"
    )
    return f"{note}{figure(drawn['spotify'])}{_table(body)}{_all_learners(setting)}"


def _audit(data: PaperResults, drawn: dict[str, Picture]) -> str:
    settings = data.starting("audit")
    if not settings:
        return ""
    body = ""
    for setting in settings:
        (learner,) = setting.learners.values()
        slope, error = learner.growth()
        bounds = [f"{curve.per_log:.3g}" for curve in setting.curves]
        cells = (f"{learner.final:.3g} ± {learner.final_error:.2g}", f"{slope:.3g} ± {error:.2g}", *bounds)
        title = escape(setting.title.split(": ")[-1])
        body += f"<tr><td>{title}</td>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
    head = (
        "<th>spread</th><th>final regret ± s.e.</th><th>regret per ln t ± s.e.</th>"
        "<th>Theorem 1 as printed</th><th>free chances</th><th>one chance</th>"
    )
    figures = "".join(figure(drawn[one.id.replace("/", "-")]) for one in settings)
    return (
        "<p>Theorem 1 says that in the long run the regret of no uniformly efficient policy grows more "
        "slowly, per unit of ln t, than its printed bound. It fails on both of these problems, which have "
        "two arms and scaled Bernoulli groups: <a href='#corrections'>why, and what is true instead</a>. "
        "The policy here is KL-UCB that knows the groups' caps and takes each group to have a chance of its "
        "own, so it is uniformly efficient on all problems with independent groups and these caps. Its "
        "regret per ln t is measured over the last tenfold of rounds; the last three columns are what the "
        "bounds say of it: as printed, for policies efficient wherever every group has a chance of its own "
        "(as this one is), and for policies that need be efficient only where all groups of an arm have one "
        "chance.</p>"
        f"{table(head, body)}{figures}"
    )


def _statements(checked: list[Statement]) -> str:
    body = "".join(
        f'<tr><td class="text">{escape(one.text)}</td><td class="text">{escape(one.found)}</td>'
        + ('<td class="yes">holds</td>' if one.holds else '<td class="no">does not hold</td>')
        + "</tr>"
        for one in checked
    )
    head = '<th class="text">the paper, in our words</th><th class="text">the rows</th><th></th>'
    return table(head, body)


def _definitions(items: Iterable[tuple[str, str]]) -> str:
    return f"<dl>{''.join(f'<dt>{escape(name)}</dt><dd>{escape(text)}</dd>' for name, text in items)}</dl>"


def _made(data: PaperResults, tools: dict[str, str]) -> str:
    manifest: dict[str, Any] = data.manifest
    versions = ", ".join(f"{name} {version}" for name, version in {**manifest["versions"], **tools}.items())
    cells = sum(len(names) for names in manifest["blocks"].values())
    return (
        f"<pre><code>{escape(manifest['command'])}</code></pre>"
        f"<p>{cells} result files, seed {manifest['seed']}; the page only reads them. The same command "
        f"gives the same bytes. Versions: {escape(versions)}. Hash of the simulator's source: "
        f"<code>{manifest['code'][:16]}</code>. The same figures are beside this page as SVG and PNG, and "
        "every number in <code>tables.csv</code>.</p>"
    )
