"""What contexts are worth to a live bandit: reward per decision with and without them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from accrual.core.context_value import Winner, context_value
from accrual.core.features import Features, encode_all
from accrual.core.interval import Interval
from accrual.core.number_text import figure
from accrual.core.reward_model import Observed
from accrual.live.config import Config
from accrual.live.contexts import numbers_of
from accrual.live.watch import REWARD
from accrual.store.base import Store, StoredArm
from accrual.store.events import DecisionRow, Events, Kind

# The last closed decisions of a bandit, with what each paid, read from its store alone.

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_CHUNK = 1 << 16  # events read at a time


class ClosedLog(NamedTuple):
    """Decisions one after the other whose windows are over, in the order in which they were made.

    Attributes
    ----------
    arm, total, propensity : ndarray
        Of each decision; the propensity is 0 where none was recorded.
    contexts : ndarray
        Decisions x features, as stored.
    closed : int
        How many decisions of the bandit's own have closed in all.
    """

    arm: Ints
    total: Floats
    propensity: Floats
    contexts: Floats
    closed: int


class Bounds(NamedTuple):
    """How much of a log is read at most."""

    decisions: int
    events: int


def read_closed(
    store: Store, bandit: int, made: range, window: float, features: int, bounds: Bounds
) -> ClosedLog:
    """Read the last closed decisions, as many as `bounds` allows.

    Which they are depends on time alone, not on what was paid: those made a whole window before the last
    event of the log. So they are a fair sample of their time.

    Parameters
    ----------
    store : Store
    bandit : int
        Its number in the store.
    made : range
        The ids of the decisions that may be read.
    window : float
        The bandit's: no arm has a longer one.
    features : int
        How many there are.
    bounds : Bounds
    """

    def row(id: int) -> DecisionRow:
        found = store.decision(bandit, id)
        assert found is not None
        return found

    head = store.head(bandit)
    end = float(store.read(bandit, head - 1, 1).at[-1])
    upto = made.start + bisect_left(made, True, key=lambda id: row(id).at + window > end)
    kept = range(max(made.start, upto - bounds.decisions), upto)
    first = kept.start + bisect_left(kept, True, key=lambda id: row(id).seq > head - bounds.events)
    log = ClosedLog(
        np.zeros(upto - first, np.int64), np.zeros(upto - first), np.zeros(upto - first),
        numbers_of(store.contexts(bandit, first, upto - first), features), upto - made.start,
    )  # fmt: skip
    if first < upto:
        _fill(log, first, _chunks(store, bandit, row(first).seq - 1, head))
    return log


def _chunks(store: Store, bandit: int, after: int, head: int) -> Iterator[Events]:
    while after < head:
        events = store.read(bandit, after, _CHUNK)
        yield events
        after = int(events.seq[-1])


def _fill(log: ClosedLog, first: int, chunks: Iterator[Events]) -> None:
    """Take in what a log says of the decisions from `first` on."""
    count = len(log.arm)
    made, window = np.zeros(count), np.zeros(count)
    shut = np.full(count, np.iinfo(np.int64).max)  # the position from which on nothing is taken any more
    for events in chunks:
        place = events.decision - first
        mine = (place >= 0) & (place < count)
        (new,) = np.nonzero(mine & (events.kind == Kind.DECISION))
        at = place[new]
        log.arm[at], log.propensity[at] = events.arm[new], events.propensity[new]
        made[at], window[at] = events.at[new], events.age[new]
        (over,) = np.nonzero(mine & (events.kind == Kind.CLOSE))
        shut[place[over]] = events.seq[over]
        (paid,) = np.nonzero(mine & (events.kind == Kind.PIECE) & (events.arm == REWARD))
        at = place[paid]
        in_time = (events.age[paid] < window[at]) & (events.at[paid] < made[at] + window[at])
        in_time &= events.seq[paid] < shut[at]
        np.add.at(log.total, at[in_time], events.value[paid[in_time]])


BOUNDS = Bounds(decisions=50_000, events=1_000_000)
_WORK_MOST = 5_000_000  # arms x width**3: about how long it takes to fit the models


class ContextWorth(NamedTuple):
    """What contexts are worth to a bandit.

    It is judged by closed decisions, with the propensities that the bandit gave them. A linear model is
    fitted to decisions and chooses for later ones: for each by its context, and one arm for all. Intervals
    are 95 %, for one look: not for stopping.

    Attributes
    ----------
    more : Interval or None
        By how much a decision pays more if its arm is chosen by context; None where it cannot be told.
    with_contexts, without : Interval or None
        What a decision pays if its arm is chosen by context; and if all get the one arm that pays best.
    single : str
        That arm; several where that changed in the course of the decisions.
    winners : tuple of Winner
        For whom another arm pays more; their intervals hold together with 95 %.
    decisions : int
        How many closed decisions it is judged by: the last ones, of which the first fifth is only
        learned from.
    closed : int
        How many decisions have closed in all.
    effective : float
        How many decisions of equal weight the figures rest on.
    reason : str
        Why it cannot be told; empty where it can.
    sentence : str
        All that in words.
    """

    more: Interval | None
    with_contexts: Interval | None
    without: Interval | None
    single: str
    winners: tuple[Winner, ...]
    decisions: int
    closed: int
    effective: float
    reason: str
    sentence: str


def context_worth(
    store: Store, bandit: int, config: Config, features: Features | None, decisions: int
) -> ContextWorth:
    """Judge what contexts are worth to a bandit, from its store alone.

    Parameters
    ----------
    store : Store
    bandit : int
        Its number in the store.
    config : Config
        The bandit's.
    features : Features or None
        Those that there are now.
    decisions : int
        How many there are, those from an old log included.
    """
    arms = store.arms(bandit)
    reason = _cannot(config, features, arms)
    if reason or features is None:
        return _untold(reason, 0, 0)
    made = range(config.imported, decisions)
    log = read_closed(store, bandit, made, config.window, len(features), BOUNDS)
    known = log.propensity > 0.0
    if not known.any():
        return _untold("no decision with a known propensity has closed yet", 0, log.closed)
    playing = np.array([not arm.retired for arm in arms])
    names = tuple(arm.name for arm in arms)
    found = context_value(_observed(log, known, features, len(arms)), names, features, True, playing)
    count = int(known.sum())
    if found.more is None or found.chosen is None or found.pays is None:
        return _untold(found.reason, count, log.closed)
    sentence = _sentence(found.more, found.chosen, found.pays, found.single)
    return ContextWorth(
        found.more, found.chosen, found.pays, found.single, found.winners, count, log.closed,
        found.effective, "", sentence,
    )  # fmt: skip


def _cannot(config: Config, features: Features | None, arms: list[StoredArm]) -> str:
    """Say why the worth of contexts cannot be told, whatever was paid; nothing where it may be."""
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
        return "so many arms and features take too long here; accrual fit on the store tells it"
    return ""


def _observed(log: ClosedLog, known: npt.NDArray[np.bool_], features: Features, arms: int) -> Observed:
    x = np.zeros((len(log.arm), features.width))
    encode_all(features.encoding, log.contexts, x)
    return Observed(x[known], log.arm[known], log.total[known], log.propensity[known], arms)


def _untold(reason: str, decisions: int, closed: int) -> ContextWorth:
    sentence = f"What contexts are worth cannot be told: {reason}."
    return ContextWorth(None, None, None, "", (), decisions, closed, 0.0, reason, sentence)


def _sentence(more: Interval, chosen: Interval, pays: Interval, single: str) -> str:
    without = f"{figure(pays.value)} with one arm for all ({single})"
    both = f"chosen by context a decision pays {figure(chosen.value)}, and {without}"
    if more.low > 0.0:
        return f"Contexts are worth {figure(more.value)} a decision (95 % {more.between()}): {both}."
    if more.high < 0.0:
        return (
            f"Contexts cost {figure(-more.value)} a decision (95 % {figure(-more.high)} to "
            f"{figure(-more.low)}): {both}."
        )
    return f"No sign that contexts are worth anything: {both}; the difference is {more}."
