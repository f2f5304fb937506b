"""The state of a bandit: what is known about every arm, for any policy."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from accrual.core.arrays import Floats, Ints
from accrual.core.features import BEYOND, MISSING, UNKNOWN, Features, FeatureValue
from accrual.core.number_text import figure, notebook_html
from accrual.live.config import Config
from accrual.live.contexts import about_text
from accrual.live.estimate import Estimate, estimate, shared_spread
from accrual.live.kernels import OLDEST, OpenSums
from accrual.live.ledger import ArmTable
from accrual.live.log_follower import LogFollower
from accrual.live.watch import AlarmState, GuardrailState, Pace, Verdict, Watcher
from accrual.policies.age_cells import CellPolicy
from accrual.policies.age_lin import READY, Stats, average_columns
from accrual.policies.catalog import DEFAULT
from accrual.store.base import Store


@dataclass(frozen=True)
class LevelState:
    """What the policy expects of the arms in play at one level of a feature."""

    level: str
    """For a number, one of the two ends of its range."""
    expected: dict[str, float]
    """By arm, an estimate of what a decision pays in all, if the other features are as they are on
    average."""


@dataclass(frozen=True)
class FeatureState:
    """What is known about a feature."""

    name: str
    unknown: int
    """Decisions with a level that was not declared."""
    missing: int
    """Decisions without a value."""
    beyond: int
    """Decisions with a number out of range, which counts as the nearest end."""
    levels: list[LevelState]
    """Empty while nothing is known, and for every policy but AgeLinTS."""


def by_level(
    features: Features | None,
    oddities: Ints,
    params: Any,
    stats: Any,
    arms: ArmTable,
    name_of: Callable[[int], str],
) -> list[FeatureState]:
    """Return what is known about each feature.

    Parameters
    ----------
    oddities : ndarray
        How many values of each feature were unusual, as `ContextEncoder` counts them.
    params, stats : named tuple
        The policy's params and statistics.
    name_of : callable
        Returns an arm's name.
    """
    if features is None:
        return []
    states = []
    for place, (name, kind) in enumerate(features.kinds.items()):
        odd = oddities[place]
        levels = []
        if isinstance(stats, Stats) and stats.shared[READY]:
            first = int(features.encoding.first[place])
            levels = _levels(params, stats, first, kind, arms, name_of)
        states.append(FeatureState(name, int(odd[UNKNOWN]), int(odd[MISSING]), int(odd[BEYOND]), levels))
    return states


def _levels(
    params: Any, stats: Stats, first: int, kind: Any, arms: ArmTable, name_of: Callable[[int], str]
) -> list[LevelState]:
    if isinstance(kind, list):
        cases = dict(zip(kind, np.eye(len(kind)).tolist(), strict=True))
    elif kind is bool:
        cases = {"False": [0.0], "True": [1.0]}
    else:
        cases = {f"{kind[0]:g}": [0.0], f"{kind[1]:g}": [1.0]}
    states = []
    for level, numbers in cases.items():
        x = average_columns(params, stats, dict(enumerate(numbers, first)))
        expected = {name_of(arm): float(arms.caps[arm] * (stats.estimate[arm] @ x)) for arm in arms.in_play}
        states.append(LevelState(level, expected))
    return states


_SHOWN = 20  # arms of a state that a notebook shows
_Arrays = TypeVar("_Arrays")  # an array, or a tuple of them


@dataclass(frozen=True)
class ArmState:
    """What is known about an arm from the pieces that have arrived.

    The estimate is a sum over ages: at each age, the average pay of the decisions that have reached that age.
    Once a window has closed, it is the average total; if all have closed, the plain mean of the totals. It
    is never cut off at the cap. The interval is cut off there, unless a decision has paid more than the cap.
    """

    name: str
    cap: float
    retired: bool
    decisions: int
    pending: int
    """Decisions whose window has not closed."""
    observed: float
    """Reward that arrived in time."""
    expected: float | None
    """Reward still to come from pending decisions, at all ages up to the window. For ages beyond `reached` it
    is a guess: the arm is assumed to pay as other arms do. At ages that no arm has reached, it is assumed to
    pay evenly, or as the policy's prior says."""
    estimate: float | None
    """An estimate of what one decision pays on average, up to the age `reached`; None while nothing is
    known."""
    interval: tuple[float, float] | None
    """An interval for the estimate. It aims at 95 % and is a heuristic (docs/verdicts.md says what it covered
    in tests). It holds for one look at one arm. Do not stop a test because of it."""
    reached: float
    """The greatest age that a decision of the arm has reached, up to its window."""
    above_cap: int
    """Decisions that have paid more in all than the cap."""
    share: float
    """The arm's share of the last 1,000 decisions."""
    spread: list[float]
    """The shares of the arm's reward at the ages up to each of the state's `ages`."""
    about: dict[str, FeatureValue] | None = None
    """The arm's features; None for a bandit without arm_features."""


@dataclass(frozen=True)
class BanditState:
    """What is known about a bandit at one position of its log. What a watcher says is under its name."""

    name: str
    position: int
    at: float
    """The time of the last event: a round, or seconds since 1970."""
    decisions: int
    pending: int
    """Decisions whose window has not closed."""
    late: int
    """Pieces that came too late, since the first decision."""
    ages: list[float]
    """The ages at which the parts of a `spread` end."""
    arms: list[ArmState]
    features: list[FeatureState]
    """Empty for a bandit without features."""
    verdict: Verdict
    alarm: AlarmState
    """Whether arms still pay as they did."""
    guardrails: Sequence[GuardrailState] = ()
    """Empty for a bandit without guardrails."""
    duplicates: int = field(default=0, compare=False)  # not of the log, as the others are
    """Requests sent again and counted once, since this process opened the bandit."""
    behind: int = field(default=0, compare=False)
    """Events that other processes stored and that this state does not have yet."""

    def __repr__(self) -> str:
        known = [arm for arm in self.arms if arm.estimate is not None and not arm.retired]
        best = max(known, key=lambda arm: arm.estimate or 0.0, default=None)
        leads = "" if best is None else f"; highest estimate {best.name}, {figure(best.estimate or 0.0)}"
        counts = f"{self.decisions:,} decisions, {self.pending:,} pending, {len(self.arms):,} arms"
        return f"BanditState({self.name!r}: {counts}{leads})"

    def _repr_html_(self) -> str:
        """Return the verdict and the arms, the highest estimate first, as HTML for a notebook."""
        arms = sorted(self.arms, key=lambda arm: math.inf if arm.estimate is None else -arm.estimate)
        rows = [
            [
                f"{arm.name} (retired)" if arm.retired else arm.name,
                "-" if arm.estimate is None else figure(arm.estimate),
                "-" if arm.interval is None else " to ".join(map(figure, arm.interval)),
                f"{100 * arm.share:.1f} %", f"{arm.decisions:,}", f"{arm.pending:,}", figure(arm.observed),
                *([] if arm.about is None else [about_text(arm.about)]),
            ]
            for arm in arms[:_SHOWN]
        ]  # fmt: skip
        if len(arms) > _SHOWN:
            rows.append([f"and {len(arms) - _SHOWN:,} more arms"])
        head = ["arm", "estimate", "about 95 %", "share", "decisions", "pending", "arrived"]
        if any(arm.about is not None for arm in arms):
            head.append("what is known about it")
        changed = [self.alarm.sentence] if self.alarm.arms else []
        return notebook_html([self.verdict.sentence, *changed], head, rows)


class LedgerView(NamedTuple):
    """What a state is computed from, at one position of the log: copies, so that the fold may go on."""

    position: int
    now: float
    decisions: int
    pending: int
    late: int
    oldest: float  # when the oldest decision that still takes pieces was made; NaN if there is none
    arms: ArmTable
    edges: Floats
    params: Any  # the policy's params
    stats: Any  # the policy's statistics; the arrays named in `_STATISTICS` are copies
    sums: OpenSums
    features: Features | None
    oddities: Ints
    watchers: tuple[Watcher, ...]
    watched: tuple[Any, ...]


_STATISTICS = ("pulls", "seen", "paid", "growth", "shared", "centre", "estimate")


def ledger_view(follower: LogFollower) -> LedgerView:
    """Copy what a state is computed from. Its size is arms x groups, however many decisions are pending."""
    ledger = follower.ledger
    pending, stats = ledger.pending_decisions, ledger.stats
    oldest = math.nan
    if ledger.pending:
        row = pending.where[pending.counts[OLDEST] % len(pending.where)]
        oldest = float(pending.queues.rows[row]["at"])
    shown = {name: getattr(stats, name).copy() for name in _STATISTICS if hasattr(stats, name)}
    return LedgerView(
        position=follower.position,
        now=ledger.now if ledger.decisions else 0.0,
        decisions=ledger.decisions,
        pending=ledger.pending,
        late=ledger.late,
        oldest=oldest,
        arms=ledger.arms.copied(),
        edges=ledger.edges,
        params=ledger.params,
        stats=stats._replace(**shown),
        sums=_copies(pending.sums),
        features=ledger.features,
        oddities=ledger.context_encoder.oddities.copy(),
        watchers=ledger.watchers,
        watched=_copies(ledger.watched),
    )


def _copies(arrays: _Arrays) -> _Arrays:
    """Return a tuple of copies of its arrays, and of the arrays of the tuples in it."""
    copies: Any = arrays
    if not isinstance(arrays, tuple):
        copies = copies.copy()
    else:
        parts = map(_copies, arrays)
        copies = type(arrays)._make(parts) if hasattr(arrays, "_make") else tuple(parts)
    return cast(_Arrays, copies)


class StateReader:
    """Computes states. Estimates need statistics of every age: the policy's, or those of a second ledger.

    Parameters
    ----------
    bandit : int
        Its number in the store.
    follower : LogFollower
        The bandit's.
    """

    def __init__(self, store: Store, bandit: int, config: Config, follower: LogFollower) -> None:
        self._store = store
        self._bandit = bandit
        self._config = config
        self._follower = follower
        self._cells = isinstance(config.policy, CellPolicy)
        self._second: LogFollower | None = None
        self._about: list[dict[str, Any] | None] = []
        self._lock = threading.Lock()  # held while a state is computed

    def state(
        self, name: str, name_of: Callable[[int], str], take_view: Callable[[], LedgerView]
    ) -> BanditState:
        """Return the state now. If the policy does not learn every age, this first reads the log.

        `take_view` copies what is needed of the bandit's ledger; decisions wait for that alone.
        """
        with self._lock:
            view = take_view()
            return self._state(view, self._estimates_view(view), name, name_of)

    def _state(
        self, view: LedgerView, by_age: LedgerView, name: str, name_of: Callable[[int], str]
    ) -> BanditState:
        table = view.arms
        pending = view.sums.waiting.sum(axis=1)
        last = table.recent[: view.decisions]
        recent = np.bincount(last, minlength=len(table)) / max(len(last), 1)
        about = self._known_about(len(table))
        shared = shared_spread(by_age.stats, by_age.edges)
        arms = []
        for arm in range(len(table)):
            cap = float(table.caps[arm])
            found = estimate(by_age.stats, shared, arm)
            above = int(table.above[arm])
            mean = interval = None
            expected = None if pending[arm] else 0.0
            reached = 0.0
            if found is not None:
                mean = cap * found.mean
                low, high = (-np.inf, np.inf) if self._config.allow_negative else (0.0, cap)
                if above or mean > high:  # the declared cap is wrong
                    high = np.inf
                interval = (max(cap * found.interval[0], low), min(cap * found.interval[1], high))
                reached = float(by_age.edges[found.reached - 1])
                expected = _to_come(found, cap, by_age.sums, arm)
            arms.append(
                ArmState(
                    name=name_of(arm),
                    cap=cap,
                    retired=not table.playing[arm],
                    decisions=int(view.stats.pulls[arm]),
                    pending=int(pending[arm]),
                    observed=float(table.observed[arm]),
                    expected=expected,
                    estimate=mean,
                    interval=interval,
                    reached=reached,
                    above_cap=above,
                    share=float(recent[arm]),
                    spread=[] if found is None else found.spread.tolist(),
                    about=about[arm],
                )
            )
        return BanditState(
            name=name,
            position=view.position,
            at=view.now,
            decisions=view.decisions,
            pending=view.pending,
            late=view.late,
            ages=by_age.edges.tolist(),
            arms=arms,
            features=by_level(view.features, view.oddities, view.params, view.stats, table, name_of),
            **self._said(view, name_of),
        )

    def _known_about(self, arms: int) -> list[dict[str, Any] | None]:
        """Return the values of each arm's features, which cannot change after the arm is added."""
        features = self._config.arm_features
        if len(self._about) < arms:
            self._about = [
                None if features is None or arm.about is None else features.read_back_bytes(arm.about)
                for arm in self._store.arms(self._bandit)
            ]
        return self._about

    def _said(self, view: LedgerView, name_of: Callable[[int], str]) -> dict[str, Any]:
        """Return what each watcher says, by its name."""
        per_time = None
        if self._config.rounds:
            per_time = 1.0
        elif view.pending > 1 and view.now > view.oldest:
            per_time = (view.pending - 1) / (view.now - view.oldest)
        pace = Pace(view.pending, per_time, self._config.window)
        said: dict[str, Any] = {}
        for watcher, arrays in zip(view.watchers, view.watched, strict=True):
            said[watcher.name] = watcher.say(arrays, view.arms.in_play, name_of, pace, said)
        return said

    def _estimates_view(self, view: LedgerView) -> LedgerView:
        """Return the view for the estimates: `view`, or one of a second ledger, which learns every age."""
        if self._cells:
            return view
        if self._second is None:
            config = self._config
            self._second = LogFollower(
                self._store, self._bandit, lambda: config.ledger(DEFAULT), view.position
            )
        self._second.catch_up(view.position)
        return ledger_view(self._second)

    def save_snapshot(self) -> None:
        """Save a snapshot of the second ledger, if there is one."""
        with self._lock:
            if self._second is not None:
                self._second.save_snapshot(now=True)


def _to_come(found: Estimate, cap: float, sums: OpenSums, arm: int) -> float:
    """Return what an arm's pending decisions are expected to pay from now on.

    That is the expected pay of their unfinished groups, up to the ends of their windows, less what these
    groups have paid by now.
    """
    known = float(found.spread[: found.reached].sum())
    total = cap * (found.mean / known if known > 0.0 else found.mean)
    paid = np.append(0.0, np.cumsum(found.spread))  # by the end of this many groups
    share = sums.windows[arm] @ paid + sums.parts[arm, :-1] @ found.spread - sums.waiting[arm] @ paid[:-1]
    return max(float(total * share - sums.ahead[arm].sum()), 0.0)
