"""What a fit found, in words: the conclusions first."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from accrual.core.durations import show_length
from accrual.core.errors import need
from accrual.core.figures import figure, notebook_html

if TYPE_CHECKING:
    from accrual.core.interval import Interval
    from accrual.fit.schema import Arm, Fitted, Personalising

LEVEL = 0.05
ARMS_SHOWN = 20
WINNERS_SHOWN = 6
_NAME_MOST = 40  # characters of an arm's name in a table
_Z = 1.959964
_HEADS = ("decisions", "closed", "mean", "low", "high", "largest", "most", "cap")


def time(fitted: Fitted, value: float) -> str:
    """Write a length of time with its unit: all of them in the unit that suits the window."""
    return show_length(value, fitted.unit == "seconds", like=fitted.window)


def summary(fitted: Fitted) -> str:
    """Say what was found, in lines: what is odd, the conclusions, and what they rest on."""
    return "\n".join([*odd_lines(fitted), *conclusions(fitted), "", *grounds(fitted)])


def odd_lines(fitted: Fitted) -> list[str]:
    """Say what is odd about the log, a line each."""
    return [f"odd: {line}" for line in fitted.log.get("odd", ())]


def conclusions(fitted: Fitted) -> list[str]:
    """Say how rewards arrive, how long to wait, which arm pays best, and what to do next."""
    return [
        f"How rewards arrive: {_arrival(fitted)}",
        f"How long to wait: {_waiting(fitted)}",
        f"Which arm pays best: {best_arm(fitted.known)}",
        *personal_lines(fitted.contexts),
        f"What to do next: {_next(fitted)}",
    ]


def grounds(fitted: Fitted) -> list[str]:
    """Say what was read, guessed, left out and tested."""
    log = fitted.log
    lines = [
        f"{log['decisions']:,} decisions and {log['pieces']:,} pieces from {log['first']} to {log['end']}"
    ]
    lines += log["notes"]
    left_out = {
        "pieces without a decision": log["orphans"],
        f"repeated pieces ({log['conflicts']:,} of them contradicting the first)": log["repeats"],
        "decisions and pieces after the end": log["after_end"],
        "rows that cannot be read": log.get("bad_rows", 0),
        "pieces later than the window": fitted.late,
    }
    lines += [f"left out, {what}: {count:,}" for what, count in left_out.items() if count]
    share = 100 * fitted.open / max(log["decisions"], 1)
    lines.append(
        f"window {time(fitted, fitted.window)} in {fitted.groups} groups: {fitted.open:,} decisions "
        f"({share:.1f} %) were still open at the end; they count in the groups that they completed"
    )
    if log.get("unfollowed"):
        lines.append(f"decisions that were followed for no time at all: {log['unfollowed']:,}")
    lines += [_finding(finding) for finding in fitted.findings]
    if fitted.contexts is not None:
        lines += [f"context {words}" for words in fitted.contexts.features]
    return [*lines, *(f"note: {warning}" for warning in fitted.warnings)]


def _arrival(fitted: Fitted) -> str:
    ages = np.array([0.0, *fitted.arrived["ages"]])
    arrived = np.maximum.accumulate([0.0, *fitted.arrived["value"]])
    half, most = (float(np.interp(share, arrived, ages)) for share in (0.5, 0.9))
    return (
        f"half of a decision's reward has come by age {time(fitted, half)} and 90 % by age "
        f"{time(fitted, most)}, counting all that comes up to age {time(fitted, fitted.recommended.watched)}"
    )


def _waiting(fitted: Fitted) -> str:
    advice = fitted.recommended
    low, high = time(fitted, advice.window.low), time(fitted, advice.window.high)
    advised = (
        f"a window of {time(fitted, advice.window.value)} catches 99 % of that "
        f"(95 % interval {low} to {high}); cut it into {advice.groups} groups"
    )
    share, least, most = (
        f"{100 * x:.2f}" for x in (advice.beyond.value, advice.beyond.low, advice.beyond.high)
    )
    watched = time(fitted, advice.watched)
    if advice.faded:
        more = f"another {share} % ({least} to {most}) may come after {watched}"
        return f"{advised}; {more}, if reward goes on fading"
    return (
        f"{advised}; but this is too short: the reward has not faded by age {watched}, up to which at least "
        f"a tenth of the decisions were followed, and {share} % of it ({least} to {most}) may come later"
    )


def best_arm(arms: tuple[Arm, ...]) -> str:
    """Say which arm's mean is the largest, and whether that can be told from chance.

    The largest is compared with each of the others by the intervals of their means; the error of all
    these comparisons together is held at 5 % by Bonferroni's correction.
    """
    ranked = sorted(arms, key=lambda arm: -_mean(arm).value)
    best = ranked[0]
    pays = f"{best.name}, {_mean(best)} a decision"
    rivals = [arm for arm in ranked[1:] if _chance(_mean(best), _mean(arm)) * (len(arms) - 1) >= LEVEL]
    if not rivals:
        second = f"{ranked[1].name}, {_mean(ranked[1])}"
        return f"{pays}; every other arm pays less (95 % sure), the next {second}"
    names = ", ".join(arm.name for arm in rivals[:5]) + (" and others" if len(rivals) > 5 else "")
    count = f"{len(rivals)} of the {len(ranked) - 1} others"
    return f"perhaps {pays}; but the log cannot tell it from {count} ({names})"


def personal_lines(found: Personalising | None) -> list[str]:
    """Say whether the best arm depends on the context, and for whom another one pays more."""
    if found is None:
        return []
    question = "Does the best arm depend on the context:"
    if found.value is None or found.pays is None:
        return [f"{question} this log cannot tell: {found.reason}"]
    worth, alone = found.value, f"always {found.single}, which pays {figure(found.pays.value)}"
    if worth.low == worth.high == 0.0:
        said = f"no sign of it; a linear model of the context would choose {found.single} for everybody"
    else:
        word = "yes" if worth.low > 0.0 else "no sign of it"
        more = worth.more_or_less()
        said = f"{word}; chosen by a linear model of the context, a decision would pay {more} than {alone}"
    lines = [f"{question} {said}. {found.assumed}"]
    for one in found.winners[:WINNERS_SHOWN]:
        lines.append(
            f"For whom another arm pays more: {one.part} ({one.decisions:,} decisions), where {one.arm} pays "
            f"{one.more} more than {one.than}"
        )
    if len(found.winners) > WINNERS_SHOWN:
        lines.append(f"and {len(found.winners) - WINNERS_SHOWN} more such parts (in problem.json)")
    return lines


def _mean(arm: Arm) -> Interval:
    assert arm.mean is not None
    return arm.mean


def _chance(one: Interval, other: Interval) -> float:
    """Give the p-value of a difference, by the normal law."""
    error = math.hypot(one.value - one.low, other.high - other.value) / _Z
    if error == 0.0:
        return 0.0 if one.value > other.value else 1.0
    return math.erfc((one.value - other.value) / error / math.sqrt(2.0))


def _next(fitted: Fitted) -> str:
    if fitted.log.get("odd"):
        return "mend or explain what is odd above, and fit again"
    if not fitted.recommended.faded:
        return "follow decisions for longer before you settle on a window"
    return "save this with -o problem.json and ask accrual compare problem.json which policy to use"


def _finding(finding: Any) -> str:
    figures = "too little to tell"
    if finding.p is not None:
        chance = "< 0.0001" if finding.p < 1e-4 else f"= {finding.p:.4f}"
        figures = f"{finding.statistic:.3g}, p {chance}"
    return f"{finding.question} {'yes' if finding.yes else 'no sign of it'} ({finding.test}: {figures})"


def arm_rows(fitted: Fitted) -> list[tuple[str, list[float]]]:
    """Give the figures of each arm: decisions, closed, mean and its interval, largest total, 99.9 %, cap."""
    rows = []
    for arm in fitted.arms:
        figures = [float(arm.decisions), float(arm.closed), *[math.nan] * 6]
        if arm.mean is not None and arm.cap is not None:
            own = math.nan if arm.cap.given is None else arm.cap.given
            figures[2:] = [
                arm.mean.value, arm.mean.low, arm.mean.high, arm.cap.observed, arm.cap.quantile, own
            ]  # fmt: skip
        rows.append((arm.name, figures))
    return rows


def frame(fitted: Fitted) -> Any:
    """Give the arms as a pandas frame."""
    pandas = need("pandas", "frames")
    names, figures = zip(*arm_rows(fitted), strict=True)
    made = pandas.DataFrame(list(figures), index=pandas.Index(names, name="arm"), columns=list(_HEADS))
    return made.astype({"decisions": "int64", "closed": "int64"})


def shortened(name: str) -> str:
    """Shorten an arm's name for a table."""
    return name if len(name) <= _NAME_MOST else name[: _NAME_MOST - 1] + "…"


def as_html(fitted: Fitted) -> str:
    """Give the conclusions and the arms as HTML, for a notebook."""
    arms = arm_rows(fitted)
    rows = [[shortened(name), *map(figure, figures)] for name, figures in arms[:ARMS_SHOWN]]
    if len(arms) > ARMS_SHOWN:
        rows.append([f"and {len(arms) - ARMS_SHOWN:,} more arms"])
    return notebook_html([*odd_lines(fitted), *conclusions(fitted)], ["arm", *_HEADS], rows)
