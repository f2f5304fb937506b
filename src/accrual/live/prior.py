"""What a new bandit takes from an old log.

The closed decisions of the bandit's arms are stored like its own, and marked. From the log's other arms
AgePrior learns what new arms are like; the bandit stores that as settings of the policy.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from accrual.core.durations import exact_duration
from accrual.core.errors import InputError, unknown
from accrual.live.config import ClosedDecisions, Config, Fit
from accrual.live.request_checks import check_age, check_value
from accrual.policies.age_prior import AgePrior
from accrual.store.base import CloseDecision, NewDecisions, NewPiece, Requests

IMPORTED_MOST = 20_000  # decisions; from more, this many are taken, evenly
_PIECES_AT_ONCE = 20_000
_BEFORE_CLOSING = 1e-6  # of a window: how long before a decision closes its imported pieces are stored


class Imported(NamedTuple):
    """The part of a prior that a new bandit stores."""

    begins: float  # the time of its decisions
    config: Config  # with the number of its decisions, and what the policy knows of other arms
    history: list[Requests]


def imported(prior: Fit | ClosedDecisions, config: Config, now: float) -> Imported:
    """Return what a bandit that is made at `now` stores of a prior.

    All decisions of the prior are dated one window ago, so that they are closed now. Their pieces have their
    true ages: nothing that a policy learns depends on the day.

    Parameters
    ----------
    prior : Fit or mapping
        A fit, or for each arm its closed decisions, each a list of (age, value).
    config : Config
        The bandit's. From arms of a fit that the bandit does not have, AgePrior learns what new arms are
        like, unless the policy was given a `history`.
    """
    if config.rounds:
        raise InputError(
            "a prior is for a bandit whose window is a time, such as '60d', not a number of rounds"
        )
    arms, window = [arm.name for arm in config.arms], config.window
    if isinstance(prior, Mapping):
        closed = _given(prior, arms)
    else:
        closed = _of_fit(prior, arms, window)
        config = _knowing_old_arms(config, prior)
        if not closed and not config.old_arms:
            others = ", ".join(arm.name for arm in prior.arms)
            raise InputError(f"the prior knows none of the bandit's arms; it has {others}")
    if not closed:
        return Imported(now, config, [])
    _check(closed, config)
    chosen = _interleaved({arm: _thinned(rows, closed) for arm, rows in closed.items()})
    begins = now - window
    decisions = NewDecisions(tuple(arms.index(arm) for arm, _ in chosen), (window,) * len(chosen))
    pieces = [
        NewPiece(id_, float(value), float(age), key=f"imported-{place}")
        for id_, (_, row) in enumerate(chosen)
        for place, (age, value) in enumerate(row)
    ]
    last = begins + window * (1.0 - _BEFORE_CLOSING)
    longest = max((piece.age or 0.0 for piece in pieces), default=0.0)
    history = [Requests([decisions], begins)]
    for first in range(0, len(pieces), _PIECES_AT_ONCE):
        # A piece past the window is stored as late; `skew` admits it though its age is in the future.
        history.append(Requests(pieces[first : first + _PIECES_AT_ONCE], last, skew=longest + 1.0))
    # An event at this moment, when all windows are over. It closes a decision whose window is over anyway.
    history.append(Requests([CloseDecision(len(chosen) - 1)], begins + window))
    return Imported(begins, config._replace(imported=len(chosen)), history)


def _of_fit(fit: Fit, arms: Sequence[str], window: float) -> dict[str, list[list[tuple[float, float]]]]:
    """Return the closed decisions that a fit has kept of these arms."""
    if not hasattr(fit, "arms") or not hasattr(fit, "window"):
        raise InputError(
            f"prior must be a fit, as accrual.fit returns, or closed decisions by arm, not {fit!r}"
        )
    if fit.unit != "seconds":
        raise InputError("a prior must be fitted to a log with times; this one counts in numbers of its own")
    if fit.window < window:
        raise InputError(
            f"the prior was followed for {exact_duration(fit.window)} only, less than the bandit's window of "
            f"{exact_duration(window)}; fit the log with that window, or make the bandit's shorter"
        )
    closed = {}
    for arm in fit.arms:
        if arm.name in arms and len(arm.sample.lengths):
            ends = np.cumsum(arm.sample.lengths)
            ages, values = arm.sample.ages.tolist(), arm.sample.values.tolist()
            closed[arm.name] = [
                list(zip(ages[end - count : end], values[end - count : end], strict=True))
                for count, end in zip(arm.sample.lengths.tolist(), ends.tolist(), strict=True)
            ]
    return closed


def _knowing_old_arms(config: Config, fit: Fit) -> Config:
    """Return the configuration whose AgePrior begins with what the fit's other arms were like."""
    policy = config.policy
    if not isinstance(policy, AgePrior) or policy.history:
        return config
    caps = {arm.cap for arm in config.arms}
    common = caps.pop() if len(caps) == 1 else None
    known = fit.prior(common, config.window, [arm.name for arm in config.arms])
    if known is None:
        return config
    policy = dataclasses.replace(policy, history=known.history, spread=known.spread)
    return config._replace(policy=policy, old_arms=True)


def _given(prior: ClosedDecisions, arms: Sequence[str]) -> dict[str, list[list[tuple[float, float]]]]:
    """Return closed decisions from what a user gives."""
    closed: dict[str, list[list[tuple[float, float]]]] = {}
    for arm, decisions in prior.items():
        if arm not in arms:
            raise unknown("arm", arm, arms)
        try:
            closed[arm] = [[(age, value) for age, value in decision] for decision in decisions]
        except (TypeError, ValueError):
            raise InputError(
                f"the prior of {arm!r} must be closed decisions, each a list of (age in seconds, value), "
                "such as [[(3600, 0.5)], []]"
            ) from None
    if not any(closed.values()):
        raise InputError("a prior needs at least one closed decision")
    return closed


def _check(closed: Mapping[str, list[list[tuple[float, float]]]], config: Config) -> None:
    """Refuse ages and values that the bandit would refuse in a piece."""
    most = config.ledger().arms.value_most
    for arm, decisions in closed.items():
        for age, value in itertools.chain.from_iterable(decisions):
            try:
                check_age(age)
                check_value(value, most, config.allow_negative)
            except InputError as wrong:
                raise InputError(f"the prior of {arm!r}: {wrong}") from None


def _thinned(rows: list[Any], closed: Mapping[str, Sequence[Any]]) -> list[Any]:
    """Leave out decisions, evenly, if there are too many in all."""
    total = sum(map(len, closed.values()))
    keep = len(rows) if total <= IMPORTED_MOST else max(1, len(rows) * IMPORTED_MOST // total)
    return [rows[i * len(rows) // keep] for i in range(min(keep, len(rows)))]


def _interleaved(closed: Mapping[str, Sequence[Any]]) -> list[tuple[str, Any]]:
    """Put the decisions of all arms into one order in which the arms alternate."""
    placed = [
        ((place + 0.5) / len(rows), arm, row)
        for arm, rows in closed.items()
        for place, row in enumerate(rows)
    ]
    return [(arm, row) for _, arm, row in sorted(placed, key=lambda one: one[0])]
