"""What contexts are worth to a live bandit: reward per decision with and without them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from accrual.core.arrays import Floats, Ints
from accrual.core.context_value import ContextValue, Winner, context_value
from accrual.core.features import Features, encode_all
from accrual.core.interval import Interval
from accrual.core.number_text import figure
from accrual.core.reward_model import Observed
from accrual.live.config import Config
from accrual.live.contexts import numbers_of
from accrual.live.watch import NO_STREAM
from accrual.store.base import Store, StoredArm
from accrual.store.events import DecisionRow, Events, Kind

_CHUNK = 1 << 16  # events read at a time


class ClosedLog(NamedTuple):
    """Consecutive decisions whose windows are over, in the order in which they were made."""

    arm: Ints
    total: Floats
    propensity: Floats
    """`arm`, `total` and `propensity` are of each decision; a propensity of 0 was not recorded."""
    contexts: Floats
    """Decisions x features, as stored."""
    closed: int
    """How many decisions of the bandit have closed in all, without imported ones."""


class Bounds(NamedTuple):
    """How much of a log is read at most."""

    decisions: int
    events: int


def read_closed(
    store: Store, bandit: int, made: range, window: float, features: int, bounds: Bounds
) -> ClosedLog:
    """Read the last closed decisions, as many as `bounds` allows.

    A decision is closed here if it was made a whole window before the last event of the log. That depends on
    time alone and not on what was paid, so the decisions are a fair sample of their time.

    Parameters
    ----------
    bandit : int
        Its number in the store.
    made : range
        The ids of the decisions that may be read.
    window : float
        The bandit's: no arm has a longer one.
    features : int
        The number of features.
    """

    def row(id: int) -> DecisionRow:
        found = store.decision(bandit, id)
        assert found is not None
        return found

    head = store.head(bandit)
    end = float(store.read(bandit, head - 1, 1).at[-1])
    upto = made.start + bisect_left(made, True, key=lambda id: row(id).at + window > end)
    last = range(max(made.start, upto - bounds.decisions), upto)
    first = last.start + bisect_left(last, True, key=lambda id: row(id).seq > head - bounds.events)
    log = ClosedLog(
        arm=np.zeros(upto - first, np.int64),
        total=np.zeros(upto - first),
        propensity=np.zeros(upto - first),
        contexts=numbers_of(store.contexts(bandit, first, upto - first), features),
        closed=upto - made.start,
    )
    if first < upto:
        _fill(log, first, _chunks(store, bandit, row(first).seq - 1, head))
    return log


def _chunks(store: Store, bandit: int, after: int, head: int) -> Iterator[Events]:
    while after < head:
        events = store.read(bandit, after, _CHUNK)
        yield events
        after = int(events.seq[-1])


def _fill(log: ClosedLog, first: int, chunks: Iterator[Events]) -> None:
    """Fill in what events say about the decisions from `first` on."""
    count = len(log.arm)
    made, window = np.zeros(count), np.zeros(count)
    shut = np.full(count, np.iinfo(np.int64).max)  # from this position on no piece is taken
    for events in chunks:
        place = events.decision - first
        mine = (place >= 0) & (place < count)
        (new,) = np.nonzero(mine & (events.kind == Kind.DECISION))
        at = place[new]
        log.arm[at], log.propensity[at] = events.arm[new], events.propensity[new]
        made[at], window[at] = events.at[new], events.window[new]
        (over,) = np.nonzero(mine & (events.kind == Kind.CLOSE))
        shut[place[over]] = events.seq[over]
        (paid,) = np.nonzero(mine & (events.kind == Kind.PIECE) & (events.stream == NO_STREAM))
        at = place[paid]
        in_time = (events.age[paid] < window[at]) & (events.at[paid] < made[at] + window[at])
        in_time &= events.seq[paid] < shut[at]
        np.add.at(log.total, at[in_time], events.value[paid[in_time]])


BOUNDS = Bounds(decisions=50_000, events=1_000_000)
_WORK_MOST = 5_000_000  # arms x width**3: about how long it takes to fit the models


@dataclass(frozen=True)
class ContextWorth:
    """What contexts are worth to a bandit.

    The estimate uses closed decisions and their propensities. A linear model is fitted to earlier decisions
    and chooses for later ones: once for each by its context, and once the same arm for all. Intervals are
    95 %, for one look: they are not for stopping.
    """

    more: Interval | None
    """How much more a decision pays if its arm is chosen by context; None if it cannot be told."""
    with_contexts: Interval | None
    """What a decision pays if its arm is chosen by context."""
    without: Interval | None
    """What a decision pays if every decision gets the one arm that pays best."""
    single: str
    """The one arm that pays best; several arms if that changed in the course of the decisions."""
    winners: tuple[Winner, ...]
    """The contexts for which another arm pays more; their intervals hold together with 95 %."""
    decisions: int
    """How many closed decisions are used: the last ones, of which the first fifth only trains the model."""
    closed: int
    """How many decisions have closed in all."""
    effective: float
    """How many decisions of equal weight would give figures as certain as these."""
    reason: str
    """Why nothing can be told; empty if it can."""
    sentence: str
    """The result in words."""


def context_worth(
    store: Store, bandit: int, config: Config, features: Features | None, decisions: int
) -> ContextWorth:
    """Estimate what contexts are worth to a bandit, from its store alone.

    Parameters
    ----------
    bandit : int
        Its number in the store.
    config : Config
        The bandit's.
    features : Features or None
        Of contexts.
    decisions : int
        How many decisions there are, including imported ones.
    """
    arms = store.arms(bandit)
    reason = _cannot(config, features, arms)
    if reason or features is None:
        return _worth(ContextValue(reason=reason), 0, 0)
    made = range(config.imported, decisions)
    log = read_closed(store, bandit, made, config.window, len(features), BOUNDS)
    known = log.propensity > 0.0
    if not known.any():
        nothing = ContextValue(reason="no decision with a known propensity has closed yet")
        return _worth(nothing, 0, log.closed)
    playing = np.array([not arm.retired for arm in arms])
    names = tuple(arm.name for arm in arms)
    found = context_value(_observed(log, known, features, len(arms)), names, features, True, playing)
    return _worth(found, int(known.sum()), log.closed)


def _cannot(config: Config, features: Features | None, arms: list[StoredArm]) -> str:
    """Return why the worth of contexts cannot be told, whatever was paid; empty if it may be told."""
    if features is None:
        return "the bandit has no features"
    playing = np.array([not arm.retired for arm in arms])
    if playing.sum() < 2:
        return "there is nothing to choose, with fewer than two arms in play"
    if not config.limits.shares(playing).least[playing].min() > 0.0:
        return (
            "there is no floor, so the chance with which an arm was chosen is not known; a bandit with "
            "floor=0.05, for example, can tell"
        )
    if len(arms) * features.width**3 > _WORK_MOST:
        return "this many arms and features take too long here; use accrual fit on the store"
    return ""


def _observed(log: ClosedLog, known: npt.NDArray[np.bool_], features: Features, arms: int) -> Observed:
    x = np.zeros((len(log.arm), features.width))
    encode_all(features.encoding, log.contexts, x)
    return Observed(x[known], log.arm[known], log.total[known], log.propensity[known], arms)


def _worth(found: ContextValue, decisions: int, closed: int) -> ContextWorth:
    return ContextWorth(
        found.more, found.chosen, found.pays, found.single, found.winners, decisions, closed,
        found.effective, found.reason, _sentence(found),
    )  # fmt: skip


def _sentence(found: ContextValue) -> str:
    more, chosen, pays = found.more, found.chosen, found.pays
    if more is None or chosen is None or pays is None:
        return f"What contexts are worth cannot be told: {found.reason}."
    without = f"{figure(pays.value)} with one arm for all ({found.single})"
    both = f"chosen by context a decision pays {figure(chosen.value)}, and {without}"
    if more.low > 0.0:
        return f"Contexts are worth {figure(more.value)} a decision (95 % {more.between()}): {both}."
    if more.high < 0.0:
        return (
            f"Contexts cost {figure(-more.value)} a decision (95 % {figure(-more.high)} to "
            f"{figure(-more.low)}): {both}."
        )
    return f"No sign that contexts are worth anything: {both}; the difference is {more}."
