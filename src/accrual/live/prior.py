"""What a new bandit takes from an old log.

The closed decisions of its own arms are stored like its own, and marked. From the log's other arms AgePrior
learns what new arms are like, and that is kept as settings of the policy.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from accrual.core.durations import exact_duration
from accrual.core.errors import InputError, unknown
from accrual.live.config import Config
from accrual.live.request_checks import is_finite
from accrual.policies.age_prior import AgePrior
from accrual.store.base import CloseDecision, NewDecisions, NewPiece, Requests

IMPORTED_MOST = 20_000  # decisions; of more, so many are taken, evenly
_PIECES_AT_ONCE = 20_000
_BEFORE_CLOSING = 1e-6  # of a window: how long before a decision closes its imported pieces are stored

ClosedDecisions = Mapping[str, Sequence[Sequence[tuple[float, float]]]]


class SampledDecisions(Protocol):
    """Decisions of one arm: how many pieces each has, and the ages and values of all, one after another."""

    @property
    def lengths(self) -> npt.NDArray[np.int64]: ...
    @property
    def ages(self) -> npt.NDArray[np.float64]: ...
    @property
    def values(self) -> npt.NDArray[np.float64]: ...


class FittedArm(Protocol):
    """An arm of a fit."""

    @property
    def name(self) -> str: ...
    @property
    def sample(self) -> SampledDecisions: ...


class Fit(Protocol):
    """What `accrual.fit` returns, as far as it matters here."""

    @property
    def unit(self) -> str: ...
    @property
    def window(self) -> float: ...
    @property
    def arms(self) -> Sequence[FittedArm]: ...
    def prior(
        self, cap: float | None = None, window: float | None = None, without: Collection[str] = ()
    ) -> AgePrior | None: ...


class Imported(NamedTuple):
    """What is stored of a prior."""

    begins: float  # the time at which its decisions are dated
    config: Config  # which says how many decisions it has, and what the policy knows of other arms
    history: list[Requests]


def imported(prior: Fit | ClosedDecisions, config: Config, now: float) -> Imported:
    """Return what is to be stored of a prior at `now`, when its decisions have all been closed.

    All are dated one window ago, and their pieces have their true ages: nothing that a policy learns depends
    on the day.

    Parameters
    ----------
    prior : Fit or mapping
        A fit, or for each arm its closed decisions, each a list of (age, value).
    config : Config
        The bandit's. From arms of a fit that it does not have, AgePrior learns what new arms are like, unless
        it was told by its own `history`.
    now : float
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
        # A piece past the window is stored as late; `skew` lets it in though its age lies ahead.
        history.append(Requests(pieces[first : first + _PIECES_AT_ONCE], last, skew=longest + 1.0))
    # An event of this moment, at which all their windows are over; it says what is known of one of them.
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
    """Refuse ages and values that the bandit would not take as a piece."""
    most = config.ledger().arms.value_most
    for arm, decisions in closed.items():
        for age, value in itertools.chain.from_iterable(decisions):
            if not is_finite(age) or age < 0:
                raise InputError(f"the prior of {arm!r}: a piece's age must be 0 or more, not {age!r}")
            if not is_finite(value) or abs(value) > most:
                raise InputError(
                    f"the prior of {arm!r}: a piece's value must be a number of at most {most:g} in size, "
                    f"not {value!r}"
                )
            if value < 0 and not config.allow_negative:
                raise InputError(
                    f"the prior of {arm!r}: a piece must not be negative, as {value!r} is, unless the bandit "
                    "has allow_negative=True"
                )


def _thinned(rows: list[Any], closed: Mapping[str, Sequence[Any]]) -> list[Any]:
    """Leave out decisions, evenly, where there are too many in all."""
    total = sum(map(len, closed.values()))
    keep = len(rows) if total <= IMPORTED_MOST else max(1, len(rows) * IMPORTED_MOST // total)
    return [rows[i * len(rows) // keep] for i in range(min(keep, len(rows)))]


def _interleaved(closed: Mapping[str, Sequence[Any]]) -> list[tuple[str, Any]]:
    """Put the decisions of all arms into one order in which no arm has a stretch of its own."""
    placed = [
        ((place + 0.5) / len(rows), arm, row)
        for arm, rows in closed.items()
        for place, row in enumerate(rows)
    ]
    return [(arm, row) for _, arm, row in sorted(placed, key=lambda one: one[0])]
