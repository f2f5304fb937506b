"""What a fit found: in words, as a table, as a plot, and in `problem.json`, the file that keeps it."""

from __future__ import annotations

import json
import math
import os
import types
import typing
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from accrual.core.arrays import Floats, Ints
from accrual.core.context_value import Winner
from accrual.core.durations import show_length, suiting
from accrual.core.errors import InputError, as_number, need, only, positive, whole
from accrual.core.files import replacing
from accrual.core.groups import group_of
from accrual.core.interval import Interval
from accrual.core.number_text import figure, notebook_html
from accrual.core.pictures import COLOURS
from accrual.logs.early import share_told, told_from
from accrual.policies.age_prior import STEPS, AgePrior, with_history
from accrual.problems.laws import EmpiricalLaw
from accrual.problems.problem import WINDOW_MOST, Problem

FORMAT = "accrual problem"
VERSION = 1
ARMS_SHOWN = 20
WINNERS_SHOWN = 6
AT_ONCE = 1e-9  # of the age watched: what comes by then comes at once
_MOST = 1 << 30  # bytes of a file that is read
_LEVEL = 0.05
_Z = 1.959964
_NAME_MOST = 40  # characters of an arm's name in a table
_HEADS = ("decisions", "closed", "mean", "low", "high", "largest", "most", "cap", "in_ten", "heavy")
_ARMS_DRAWN = 7  # with intervals; more than there are colours would be a tangle
_RISK_NAME = 14  # characters of an arm's name beside them
_BARS_MOST = 40  # points with error bars; beyond that intervals are drawn as bands


@dataclass(frozen=True, repr=False)
class Fitted:
    """What `fit_log` found."""

    unit: str
    window: float
    """In the log's unit of time (`unit`): seconds, or its own numbers."""
    groups: int
    rate: float
    """Decisions per unit of time."""
    open: int
    """Decisions whose window had not closed at the log's end."""
    late: int
    """Pieces that came after the window; left out."""
    log: Mapping[str, Any]
    """What was found in the log: counts, first and end, columns, notes."""
    spread: Shares
    """Of all arms together."""
    arrived: Mapping[str, Sequence[float]]
    """``ages``, and the share of the reward that has come by them (``value``, ``low``, ``high``)."""
    recommended: Recommended
    findings: Sequence[Finding]
    cautions: Sequence[str]
    """Which means and intervals may be wrong, and why."""
    warnings: Sequence[str]
    arms: Sequence[Arm]
    contexts: Personalising | None = None
    """What choosing by context would be worth; None where the fit was given no contexts."""

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Fitted:
        """Read and check a `problem.json`."""
        try:
            if Path(path).stat().st_size > _MOST:
                raise InputError(f"{path}: larger than {_MOST >> 20} MiB; is it a problem.json?")
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None
        except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
            raise InputError(f"{path}: not JSON: {error}") from None
        return _checked(data, str(path))

    def __repr__(self) -> str:
        unit = " s" if self.unit == "seconds" else ""
        log = f"{self.log['decisions']:,} decisions, {self.log['pieces']:,} pieces"
        return f"Fitted({len(self.arms)} arms, {log}, window {self.window:g}{unit} in {self.groups} groups)"

    @property
    def known(self) -> tuple[Arm, ...]:
        """The arms whose mean is known."""
        return tuple(arm for arm in self.arms if arm.mean is not None)

    @property
    def signed(self) -> bool:
        """Whether the log has negative values, such as refunds."""
        return bool(self.log.get("signed"))

    def rounds(self, groups: int | None = None) -> int:
        """Return the window in rounds, one decision to a round: a multiple of the number of groups."""
        groups = groups or self.groups
        return max(groups, groups * round(self.window * self.rate / groups))

    def to_problem(self, window: int | None = None, groups: int | None = None) -> Problem:
        """Make a problem whose decisions pay what logged ones did.

        Where values are negative, what a decision paid back is taken off all its other pay, in
        proportion, and a total below 0 becomes 0; the arms' means are kept as far as that allows.

        Parameters
        ----------
        window : int, optional
            In rounds; `rounds` unless given.
        groups : int, optional
            As fitted unless given; must divide the window.
        """
        groups = self.groups if groups is None else whole("groups", groups, 1)
        window = self.rounds(groups) if window is None else window
        if window > WINDOW_MOST:
            raise InputError(
                f"the window of {self.window:g} is {window:,} rounds at {self.rate:g} decisions per unit of "
                f"time; give a window of at most {WINDOW_MOST:,} rounds"
            )
        caps, laws = [], []
        for arm in self.known:
            assert arm.cap is not None
            rows = _settled(arm.sample.rows(self.window, groups))
            cap = max(arm.cap.used, float(rows.sum(axis=1).max()))
            caps.append(cap)
            laws.append(EmpiricalLaw(rows / cap))
        return Problem(caps, window, groups, laws, arms=[arm.name for arm in self.known])

    def prior(
        self, cap: float | None = None, window: float | None = None, without: Collection[str] = ()
    ) -> AgePrior | None:
        """Make the policy for new arms: AgePrior, which begins with what the log's arms were like.

        A new arm is expected to pay the share of its cap that the log's arms paid of theirs.

        Parameters
        ----------
        cap : float, optional
            The cap of arms for which the fit was given none. Without it such arms are left out: the largest
            total in a log is no cap to compare with.
        window : float, optional
            The window of the new arms, at most the fit's own; the fit's own unless given.
        without : collection of str
            Arms to leave out.

        Returns
        -------
        AgePrior or None
            None where fewer than two arms are left, or none has paid anything.
        """
        window = self.window if window is None else window
        if not 0.0 < as_number(window) <= self.window:
            raise InputError(
                f"window must be above 0 and at most the fit's own, {self.window:g}, not {window!r}"
            )
        if cap is not None:
            positive("cap", cap)
        shares_of_cap = []
        for arm in self.known:
            own = arm.cap.given if arm.cap is not None and arm.cap.given is not None else cap
            if own is not None and arm.name not in without:
                shares_of_cap.append(arm.sample.steps(window, STEPS)[:, :STEPS] / own)
        return with_history(AgePrior(), shares_of_cap)

    def summary(self) -> str:
        """Say in words what was found: what to be careful with, the conclusions, and what they rest on."""
        return "\n".join([*top_lines(self), *conclusions(self), "", *grounds(self)])

    def table(self) -> Any:
        """Return the arms as a pandas frame.

        Its columns: decisions, closed, mean (low, high), totals, cap, `in_ten` (the share of what the arm
        paid that its ten largest decisions paid), and `heavy`: whether so much rests on large decisions that
        the interval of the mean cannot be trusted.
        """
        pandas = need("pandas", "frames")
        names, figures = zip(*arm_rows(self), strict=True)
        frame = pandas.DataFrame(list(figures), index=pandas.Index(names, name="arm"), columns=list(_HEADS))
        return frame.astype({"decisions": "int64", "closed": "int64", "heavy": "bool"})

    def to_frame(self) -> Any:
        """Return the mean cumulative curves as a pandas frame in long form.

        A row says what a decision of an arm has paid on average by an age, with its 95 % interval, how many
        decisions were followed up to that age, and whether the arm's intervals can be trusted (`heavy`).

        Examples
        --------
        >>> import accrual as ac
        >>> import pandas as pd
        >>> rows = pd.DataFrame({
        ...     "id": range(60), "arm": ["a", "b"] * 30, "at": range(60), "value": [1.0, 2.0] * 30, "age": 3,
        ... })
        >>> ac.fit(rows, window=10, groups=2).to_frame()[["arm", "age", "mean", "followed"]].values.tolist()
        [['a', 5.0, 1.0, 30], ['a', 10.0, 1.0, 27], ['b', 5.0, 2.0, 29], ['b', 10.0, 2.0, 27]]
        """
        ages = self.window / self.groups * np.arange(1, self.groups + 1)
        rows = [
            (arm.name, float(age), *point, arm.large_totals.heavy)
            for arm in self.arms if arm.curve and arm.large_totals
            for age, *point in zip(
                ages, arm.curve.value, arm.curve.low, arm.curve.high, arm.curve.followed, strict=True
            )
        ]  # fmt: skip
        columns = ["arm", "age", "mean", "low", "high", "followed", "heavy"]
        return need("pandas", "frames").DataFrame(rows, columns=columns)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw what arms have paid by age, the spread and the course of arrival.

        Return the figure, and write it to `path` if given.
        """
        return _draw(self, path)

    def _repr_html_(self) -> str:
        arms = arm_rows(self)
        rows = [
            [shortened(name), *map(figure, figures), "yes" if heavy else "no"]
            for name, (*figures, heavy) in arms[:ARMS_SHOWN]
        ]
        if len(arms) > ARMS_SHOWN:
            rows.append([f"and {len(arms) - ARMS_SHOWN:,} more arms"])
        return notebook_html([*top_lines(self), *conclusions(self)], ["arm", *_HEADS], rows)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `problem.json`."""
        with replacing(path) as partial:
            partial.write_text(_written(self), encoding="utf-8")


def _settled(rows: Floats) -> Floats:
    """Remove negative pay from rows: it reduces what was paid, in proportion."""
    if (rows >= 0.0).all():
        return rows
    paid = np.maximum(rows, 0.0)
    before = paid.sum(axis=1, keepdims=True)
    after = np.maximum(rows.sum(axis=1, keepdims=True), 0.0)
    return np.asarray(np.divide(paid * after, before, out=np.zeros_like(paid), where=before > 0.0))


@dataclass(frozen=True)
class Arm:
    """What is known about one arm; all but counts are None where fewer than two decisions have closed."""

    name: str
    decisions: int
    closed: int
    mean: Interval | None
    cap: Cap | None
    spread: Shares | None
    sample: Sample = field(repr=False)
    large_totals: LargeTotals | None = None
    """How much of the mean rests on the largest decisions."""
    curve: Curve | None = None
    """What a decision has paid by each age."""
    clusters: int | None = None
    """How many clusters of decisions the arm has; None where the fit was not told of any."""


@dataclass(frozen=True)
class LargeTotals:
    """How much of what an arm paid came from its largest decisions."""

    largest: float
    ten: float
    """`largest` and `ten`: the share of all pay that the largest decision paid, and the ten largest."""
    variance: float
    """The share of the variance of the arm's mean that one decision makes."""
    index: float | None
    """The tail index of totals: about x**-index exceed x, a large number. None where too few paid to tell."""
    heavy: bool
    """Whether the interval of the mean cannot be trusted because of them, or because of those of all arms
    together."""


@dataclass(frozen=True)
class Curve:
    """What a decision has paid on average by the end of each group: the mean cumulative function."""

    value: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    """`low` to `high` is a 95 % interval, each for its own age."""
    followed: Sequence[int]
    """How many decisions were followed up to that age."""


@dataclass(frozen=True)
class Shares:
    """A spread over the groups of the window, with 95 % intervals."""

    value: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    """`value`, `low` and `high` are of each group."""
    rows: Sequence[Sequence[float]]
    """At most ten, of several groups each: the last of them (from 1), their share, low, high."""


@dataclass(frozen=True)
class Cap:
    """The greatest total of one decision of an arm: it cannot be learned from a log."""

    used: float
    """What a problem is made with: the user's own if there is one, otherwise the largest total of a decision,
    closed or open."""
    observed: float
    """The largest total of a closed decision."""
    quantile: float
    """The total that 99.9 % of closed decisions do not exceed."""
    given: float | None
    """The user's own."""


@dataclass(frozen=True)
class Sample:
    """Closed decisions of an arm, with the true ages and values of their pieces."""

    scale: float
    """What to multiply values by, so that the sample's mean is the arm's."""
    lengths: Ints = field(repr=False)
    """How many pieces each decision has; 0 for one that paid nothing."""
    ages: Floats = field(repr=False)
    values: Floats = field(repr=False)
    """`ages` and `values` are of all pieces, decision after decision."""

    def rows(self, window: float, groups: int) -> Floats:
        """Return what each decision paid in each group of the window, scaled: decisions x groups.

        What came after the window counts in the last group.
        """
        rows = self.steps(window, groups)
        rows[:, -2] += rows[:, -1]
        return rows[:, :-1]

    def steps(self, window: float, steps: int) -> Floats:
        """Return what each decision paid in each step of the window and after it: decisions x (steps + 1)."""
        rows = np.zeros((len(self.lengths), steps + 1))
        decision = np.repeat(np.arange(len(self.lengths)), self.lengths)
        np.add.at(rows, (decision, group_of(self.ages, window, steps)), self.values * self.scale)
        return rows


@dataclass(frozen=True)
class Recommended:
    """A window and a number of groups."""

    window: Interval
    """The age by which 99 % has come of the reward that comes within `watched`."""
    watched: float
    """The age up to which the log shows anything."""
    beyond: Interval
    """The share of all reward that may come after that, if reward goes on fading as it did."""
    faded: bool
    """Whether the log shows reward fading out; if not, a longer log is needed."""
    groups: int


@dataclass(frozen=True)
class Finding:
    """A question, the test that answers it, and whether the answer is yes: p is below 0.05.

    `statistic` and `p` are None where the log cannot tell.
    """

    question: str
    test: str
    statistic: float | None
    p: float | None
    yes: bool


@dataclass(frozen=True)
class Personalising:
    """What choosing by context would be worth; docs/log_contexts.md says how it is found."""

    value: Interval | None
    """By how much a decision would pay more if its arm were chosen by a linear model of the contexts than if
    all got the arm that pays best on average; None where the log cannot tell (`reason`)."""
    pays: Interval | None
    """What a decision of that one arm pays."""
    single: str
    """That arm; several where folds of the log disagree on it."""
    effective: float
    """How many decisions of equal weight the figure rests on."""
    reason: str
    """Why the log cannot tell."""
    winners: Sequence[Winner]
    """The contexts in which another arm pays more."""
    features: Sequence[str]
    """What kind of feature each column was taken for."""
    assumed: str
    """What is assumed of the log's chances of choosing."""
    decisions: int


# In words: what to be careful with, the conclusions, and what they rest on.


def top_lines(fitted: Fitted) -> list[str]:
    """Say which figures may be wrong and what is odd about the log, a line each."""
    return [
        *(f"careful: {line}" for line in fitted.cautions),
        *(f"odd: {line}" for line in fitted.log.get("odd", ())),
    ]


def reading_lines(fitted: Fitted) -> list[str]:
    """Say what was read, guessed and assumed, and what was left out and why, a line each."""
    log = fitted.log
    left_out = {
        "pieces without a decision": log["orphans"],
        f"repeated pieces ({log['conflicts']:,} of them contradicting the first)": log["repeats"],
        "rows of decisions that are copies of another": log.get("copies", 0),
        "decisions and pieces after the end": log["after_end"],
        **{f"rows whose {why}": count for why, count in log.get("rejected", {}).items()},
        "pieces later than the window": fitted.late,
    }
    return [
        f"{log['decisions']:,} decisions and {log['pieces']:,} pieces from {log['first']} to {log['end']}",
        *log["notes"],
        *(f"left out, {what}: {count:,}" for what, count in left_out.items() if count),
    ]


def with_reading(fitted: Fitted, lines: Sequence[str]) -> list[str]:
    """Put what to be careful with and what is odd before `lines`, and how the log was read after them."""
    return [*top_lines(fitted), *lines, "", *reading_lines(fitted)]


def conclusions(fitted: Fitted) -> list[str]:
    """Say how rewards arrive, how long to wait, which arm pays best, and what to do next."""
    return [
        f"How rewards arrive: {_arrival(fitted)}",
        *_early_lines(fitted),
        f"How long to wait: {_waiting(fitted)}",
        f"Which arm pays best: {best_arm(fitted.known)}",
        *personal_lines(fitted.contexts),
        f"What to do next: {_next(fitted)}",
    ]


def grounds(fitted: Fitted) -> list[str]:
    """Say what was read, guessed, left out and tested."""
    log, lines = fitted.log, reading_lines(fitted)
    share = 100 * fitted.open / max(log["decisions"], 1)
    lines.append(
        f"window {time(fitted, fitted.window)} in {fitted.groups} groups: {fitted.open:,} decisions "
        f"({share:.1f} %) were still open at the end; they count as far as they were followed"
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
        f"half of a decision's reward has come {_by(fitted, half)} and 90 % {_by(fitted, most)}, counting "
        f"all that comes up to age {time(fitted, fitted.recommended.watched)}"
    )


def _early_lines(fitted: Fitted) -> list[str]:
    """Say from which ages on most of a total can be told from what has come."""
    samples = [arm.sample for arm in fitted.known]
    share = share_told([sample.steps(fitted.window, STEPS)[:, :STEPS] for sample in samples])
    if share is None:
        return []
    half, most = (time(fitted, (told_from(share, level) + 1) / STEPS * fitted.window) for level in (0.5, 0.8))
    count = sum(len(sample.lengths) for sample in samples)
    return [
        f"What early pieces tell: by age {half}, what has come explains half of the variance of totals "
        f"between decisions of the same arm, and by age {most} 80 % (from {count:,} closed decisions, "
        "without an interval)"
    ]


def _by(fitted: Fitted, age: float) -> str:
    """Write by which age something has come; an age that nobody can tell from 0 is none."""
    return "at once" if age < AT_ONCE * fitted.recommended.watched else f"by age {time(fitted, age)}"


def _waiting(fitted: Fitted) -> str:
    advice = fitted.recommended
    low, high = time(fitted, advice.window.low), time(fitted, advice.window.high)
    advised = (
        f"a window of {time(fitted, advice.window.value)} catches 99 % of that "
        f"(95 % interval {low} to {high}); cut it into {advice.groups} groups"
    )
    if _by(fitted, advice.window.value) == "at once":
        advised = (
            f"99 % of that comes at once (95 % interval: {_by(fitted, advice.window.high)} at the latest)"
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
    rivals = [arm for arm in ranked[1:] if _chance(_mean(best), _mean(arm)) * (len(arms) - 1) >= _LEVEL]
    if not rivals:
        second = f"{ranked[1].name}, {_mean(ranked[1])}"
        return f"{pays}; every other arm pays less (95 % sure), the next {second}"
    names = ", ".join(arm.name for arm in rivals[:5]) + (" and others" if len(rivals) > 5 else "")
    count = f"{len(rivals)} of the {len(ranked) - 1} others"
    return f"perhaps {pays}; but the log cannot tell it from {count} ({names})"


def personal_lines(found: Personalising | None) -> list[str]:
    """Say whether the best arm depends on the context, and where another arm pays more."""
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
            f"Another arm pays more for: {one.part} ({one.decisions:,} decisions), where {one.arm} pays "
            f"{one.more} more than {one.than}"
        )
    if len(found.winners) > WINNERS_SHOWN:
        lines.append(f"and {len(found.winners) - WINNERS_SHOWN} more such parts (in problem.json)")
    return lines


def _mean(arm: Arm) -> Interval:
    assert arm.mean is not None
    return arm.mean


def _chance(one: Interval, other: Interval) -> float:
    """Return the p-value of a difference, by the normal law."""
    error = math.hypot(one.value - one.low, other.high - other.value) / _Z
    if error == 0.0:
        return 0.0 if one.value > other.value else 1.0
    return math.erfc((one.value - other.value) / error / math.sqrt(2.0))


def _next(fitted: Fitted) -> str:
    if fitted.log.get("odd"):
        return "fix or explain what is odd above, and fit again"
    if not fitted.recommended.faded:
        return "follow decisions for longer before you settle on a window"
    return "save this with -o problem.json and ask accrual compare problem.json which policy to use"


def _finding(finding: Any) -> str:
    figures = "too little to tell"
    if finding.p is not None:
        chance = "< 0.0001" if finding.p < 1e-4 else f"= {finding.p:.4f}"
        figures = f"{finding.statistic:.3g}, p {chance}"
    return f"{finding.question} {'yes' if finding.yes else 'no sign of it'} ({finding.test}: {figures})"


def time(fitted: Fitted, value: float) -> str:
    """Write a length of time in the unit that suits the window, or in its own where it is longer."""
    return show_length(value, fitted.unit == "seconds", like=max(fitted.window, value))


def arm_rows(fitted: Fitted) -> list[tuple[str, list[float]]]:
    """Return for each arm: decisions, closed, mean and its interval, largest total, 99.9 %, cap, ten largest.

    The last is 1 where the interval cannot be trusted because of large totals, and else 0.
    """
    rows = []
    for arm in fitted.arms:
        figures = [float(arm.decisions), float(arm.closed), *[math.nan] * 7, 0.0]
        if arm.mean is not None and arm.cap is not None and arm.large_totals is not None:
            own = math.nan if arm.cap.given is None else arm.cap.given
            figures[2:] = [
                arm.mean.value, arm.mean.low, arm.mean.high, arm.cap.observed, arm.cap.quantile, own,
                arm.large_totals.ten, float(arm.large_totals.heavy),
            ]  # fmt: skip
        rows.append((arm.name, figures))
    return rows


def shortened(name: str) -> str:
    """Shorten an arm's name for a table."""
    return name if len(name) <= _NAME_MOST else name[: _NAME_MOST - 1] + "…"


# The file problem.json.


def _written(fitted: Fitted) -> str:
    """Write the file's text: an object's fields one to a line, a list of numbers on one line."""
    data: dict[str, Any] = {"format": FORMAT, "version": VERSION}
    data |= _plain(fitted)
    samples = [{"arm": arm["name"]} | arm.pop("sample") for arm in data["arms"]]
    return _lines(data | {"samples": samples}, "") + "\n"


def _plain(value: Any) -> Any:
    """Convert a value to what JSON has."""
    if is_dataclass(value):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(one) for one in (value.tolist() if isinstance(value, np.ndarray) else value)]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    return value


def to_ten_digits(value: Any) -> Any:
    """Round every float in what a fit found to ten digits, which is more than a log can tell.

    Digits beyond that depend on the order of sums. A fit and its file have the same ones, so that a
    simulation of either makes the same choices.

    Examples
    --------
    >>> to_ten_digits({"rate": 1 / 3, "ages": (0.5, 200 / 3)})
    {'rate': 0.3333333333, 'ages': (0.5, 66.66666667)}
    """
    if isinstance(value, float):
        return float(f"{value:.10g}")
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{one.name: to_ten_digits(getattr(value, one.name)) for one in fields(value)})
    if isinstance(value, Mapping):
        return {key: to_ten_digits(one) for key, one in value.items()}
    if isinstance(value, np.ndarray):
        return np.array([to_ten_digits(one) for one in value.tolist()], value.dtype)
    if isinstance(value, (list, tuple)):
        return type(value)(to_ten_digits(one) for one in value)
    return value


def _lines(value: Any, indent: str) -> str:
    inner = indent + "  "
    if isinstance(value, dict) and value:
        rows = (f"{inner}{json.dumps(key)}: {_lines(one, inner)}" for key, one in value.items())
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(one, dict) for one in value):
        return "[\n" + ",\n".join(inner + _lines(one, inner) for one in value) + f"\n{indent}]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _checked(data: Any, path: str) -> Fitted:
    """Check the JSON value of a file and make a `Fitted` of it."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InputError(f"{path}: not a problem.json: its format must be {FORMAT!r}")
    if data.get("version") != VERSION:
        raise InputError(
            f"{path}: version {data.get('version')!r} of the format; this reads version {VERSION}"
        )
    given = {key: value for key, value in data.items() if key not in ("format", "version", "samples")}
    samples = _read_fields(list[dict[str, Any]], data.get("samples"), path, "samples")
    arms = _read_fields(list[dict[str, Any]], data.get("arms"), path, "arms")
    owners = [sample.pop("arm", None) for sample in samples]
    if owners != [arm.get("name") for arm in arms]:
        raise InputError(f"{path}: samples: one for each arm is needed, in their order and with its name")
    given["arms"] = [{**arm, "sample": sample} for arm, sample in zip(arms, samples, strict=True)]
    fitted: Fitted = _read_fields(Fitted, {"contexts": None} | given, path)
    for problem in _disagreements(fitted):
        raise InputError(f"{path}: {problem}")
    return fitted


def _disagreements(fitted: Fitted) -> Iterator[str]:
    if fitted.window <= 0 or fitted.rate <= 0 or fitted.groups < 1:
        yield "window, rate and groups must be above 0"
    names = [arm.name for arm in fitted.arms]
    if len(set(names)) != len(names) or len(fitted.known) < 2:
        yield "arms: at least two of different names, with a mean, are needed"
    for name, shares in [
        ("spread", fitted.spread),
        *((f"arm {arm.name!r}", arm.spread) for arm in fitted.arms),
    ]:
        if shares and {len(shares.value), len(shares.low), len(shares.high)} != {fitted.groups}:
            yield f"{name}: a spread must have {fitted.groups} shares, as there are groups"
    lengths = {key: len(values) for key, values in fitted.arrived.items()}
    if set(lengths) != {"ages", "value", "low", "high"} or len(set(lengths.values())) != 1:
        yield "arrived: ages, value, low and high are needed, all of one length"
    for arm in fitted.known:
        yield from _sample_disagreements(f"samples of {arm.name!r}", arm.sample, fitted.window)
        if arm.cap is None or arm.cap.used <= 0:
            yield f"arm {arm.name!r}: a cap above 0 is needed"


def _sample_disagreements(name: str, sample: Sample, window: float) -> Iterator[str]:
    if len(sample.lengths) == 0:
        yield f"{name}: at least one decision is needed"
    if not sample.lengths.sum() == len(sample.ages) == len(sample.values):
        yield f"{name}: ages and values must be as many as lengths add up to"
    if ((sample.ages < 0) | (sample.ages >= window)).any():
        yield f"{name}: ages must be within the window"
    if sample.scale < 0:
        yield f"{name}: scale must not be negative"


def _read_fields(kind: Any, value: Any, path: str, where: str = "") -> Any:
    """Return `value` as what a field is declared to be; errors name the file's `path` and `where` in it.

    msgspec would do this too, but it ignores unknown keys of dataclasses, and an install may have no msgspec.
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)

    def wrong(needed: str) -> InputError:
        return InputError(f"{path}: {where or 'it'} must be {needed}, not {repr(value)[:60]}")

    read: Callable[..., Any]
    if origin in {types.UnionType, typing.Union}:
        return None if value is None else _read_fields(arguments[0], value, path, where)
    if is_dataclass(kind):
        if not isinstance(value, dict):
            raise wrong("an object")
        hints = typing.get_type_hints(kind)
        prefix = f"{where}." if where else ""
        names = [one.name for one in fields(kind)]
        only(f"key of {where or 'the file'} in {path}", value, names)
        for name in names:
            if name not in value:
                raise InputError(f"{path}: {prefix}{name} is missing")
        read = typing.cast(Callable[..., Any], kind)
        return read(**{name: _read_fields(hints[name], value[name], path, prefix + name) for name in names})
    if origin in {Sequence, list}:
        if not isinstance(value, list):
            raise wrong("a list")
        return tuple(_read_fields(arguments[0], one, path, f"{where}[{i}]") for i, one in enumerate(value))
    if origin in {Mapping, dict}:
        if not isinstance(value, dict):
            raise wrong("an object")
        return {key: _read_fields(arguments[1], one, path, f"{where}.{key}") for key, one in value.items()}
    return _array(arguments, value, wrong) if origin is np.ndarray else _scalar(kind, value, wrong)


def _scalar(kind: Any, value: Any, wrong: Callable[[str], InputError]) -> Any:
    if kind in {float, int} and (isinstance(value, bool) or not isinstance(value, (int, float))):
        raise wrong("a number")
    if kind is float and not _finite(value):
        raise wrong("a finite number")
    if kind is int and (not isinstance(value, int) or value < 0):
        raise wrong("a whole number of at least 0")
    if kind in {str, bool} and not isinstance(value, kind):
        raise wrong({str: "text", bool: "true or false"}[kind])
    return float(value) if kind is float else value


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _array(arguments: Any, value: Any, wrong: Any) -> Any:
    whole = "int" in str(arguments[1])
    try:
        array = np.array(value if isinstance(value, list) else None, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise wrong("a list of numbers") from None
    if array.ndim != 1 or not np.isfinite(array).all():
        raise wrong("a list of finite numbers")
    if whole and ((array < 0) | (array != np.floor(array)) | (array > 2**53)).any():
        raise wrong("a list of whole numbers of at least 0")
    return array.astype(np.int64) if whole else array


def _draw(fitted: Fitted, path: str | os.PathLike[str] | None = None) -> Any:
    """Draw what arms have paid by age, their spread, and the share of the reward that has come by each age.

    Return the figure, and write it to `path` if there is one.
    """
    scale, unit = 1.0, "age in the log's units"
    if fitted.unit == "seconds":
        scale, _, name = suiting(fitted.window)
        unit = f"age in {name}"
    figure = need("matplotlib.figure", "plot").Figure(figsize=(11, 9), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=[1.1, 1.0], hspace=0.05)
    _draw_curves(fitted, above.subplots(), scale, unit)
    left, right = below.subplots(1, 2)
    paying = [arm for arm in fitted.arms if arm.spread is not None]
    length = fitted.window / fitted.groups / scale
    middles = (np.arange(fitted.groups) + 0.5) * length
    shown = paying[:_ARMS_DRAWN]
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
    end = max(end, 1.03 * fitted.window / scale)  # so that the line of the window lies within
    right.set(xlabel=unit, ylabel="share of the reward that has come", xlim=(0, end), ylim=(0, 1.03))
    right.set_title("All arms together", fontsize=10, loc="left")
    right.legend(frameon=False, fontsize=8, loc="lower center")
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    if path is not None:
        with replacing(path) as partial:
            figure.savefig(partial, dpi=150)
    return figure


def _draw_curves(fitted: Fitted, ax: Any, scale: float, unit: str) -> None:
    """Draw what a decision of each arm has paid by each age, with the numbers followed below."""
    drawn = [arm for arm in fitted.arms if arm.curve is not None]
    shown = drawn[:_ARMS_DRAWN]
    ages = np.arange(fitted.groups + 1) * (fitted.window / fitted.groups / scale)
    for rank, arm in enumerate(shown):
        assert arm.curve is not None
        assert arm.large_totals is not None
        value, low, high = (np.array([0.0, *row]) for row in (arm.curve.value, arm.curve.low, arm.curve.high))
        colour = COLOURS[rank % len(COLOURS)]
        mark = " (interval not to be trusted: large decisions)" if arm.large_totals.heavy else ""
        ax.fill_between(ages, low, high, color=colour, alpha=0.15, linewidth=0)
        ax.plot(ages, value, color=colour, linewidth=1.6, label=f"{shortened(arm.name)}{mark}")
    places = risk_places(fitted.groups)
    rows = [
        [f"{arm.decisions:,}", *(f"{arm.curve.followed[place]:,}" for place in places)]
        for arm in shown if arm.curve is not None
    ]  # fmt: skip
    at = [0.0, *(ages[place + 1] for place in places)]
    for row, (arm, counts) in enumerate(zip(shown, rows, strict=True)):
        colour, y = COLOURS[row % len(COLOURS)], -0.27 - 0.075 * row
        name = arm.name if len(arm.name) <= _RISK_NAME else arm.name[: _RISK_NAME - 1] + "…"
        ax.text(
            -0.03, y, name, transform=ax.transAxes, ha="right", va="center", fontsize=8, color=colour
        )  # fmt: skip
        for age, count in zip(at, counts, strict=True):
            ax.text(
                age, y, count, transform=ax.get_xaxis_transform(), ha="center", va="center", fontsize=8,
                color=colour,
            )  # fmt: skip
    ax.text(
        0.0,
        -0.195,
        "numbers at risk: decisions followed up to this age",
        transform=ax.transAxes,
        fontsize=8,
        color="#555555",
    )
    others = f"; {len(shown)} of {len(drawn)} arms" if len(shown) < len(drawn) else ""
    ax.set(xlabel=unit, ylabel="paid by a decision so far, on average", xlim=(0, ages[-1] * 1.01))
    ax.set_title(f"What arms have paid by age, with 95 % intervals{others}", fontsize=10, loc="left")
    if not any((arm.sample.values < 0.0).any() for arm in shown):
        ax.set_ylim(bottom=0)
    ax.legend(frameon=False, fontsize=8, loc="best")
    ax.spines[["top", "right"]].set_visible(False)


def risk_places(groups: int, most: int = 5) -> list[int]:
    """Return the groups at whose ends curves are written: the last, and others evenly before it.

    Examples
    --------
    >>> risk_places(60), risk_places(3)
    ([11, 23, 35, 47, 59], [0, 1, 2])
    """
    count = min(groups, most)
    return [-(-groups * (place + 1) // count) - 1 for place in range(count)]
