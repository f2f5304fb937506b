"""Checks of the requests to a bandit: each returns the request in plain numbers, or raises `InputError`."""

from __future__ import annotations

import math
import operator
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from accrual.core.durations import parse_duration
from accrual.core.errors import InputError, as_number, unknown, whole
from accrual.live.commit import BanditRequest, Decide
from accrual.live.config import NAME_MOST, Config, cap_of, name_of
from accrual.live.contexts import checked_about, checked_contexts, stored_contexts
from accrual.live.ledger import VALUE_MOST, Decision
from accrual.live.log_follower import LogFollower
from accrual.live.watch import REWARD
from accrual.store.base import AddArm, CloseDecision, NewPiece, RetireArm, Status

Age = float | str | timedelta  # rounds or seconds, or a length of time such as "1d"
Time = float | str | datetime  # a round, seconds since 1970, or a time with its zone
ARMS_MOST = 1_000  # that a bandit can have by adding arms; with more, a state takes seconds
DECISIONS_MOST = 100_000  # in one call
TIME_MOST = 1e12  # an age or a time; in seconds some 31,700 years
_ID_MOST = 2**53  # JSON can write every whole number up to this one
UNKNOWN_DECISION = "no decision has the id {id!r}; nothing was stored"
REFUSED_PIECES = {  # the message for each status of a refused piece
    Status.CONFLICT: "the key {key!r} was used for another piece of decision {id}; give this one its own",
    Status.UNKNOWN: UNKNOWN_DECISION,
    Status.FUTURE: "decision {id} has not reached the age of that piece; nothing was stored",
    Status.EARLY: "that piece is from before decision {id} was made; nothing was stored",
}


class RequestChecks:
    """Checks of the requests to one bandit.

    Parameters
    ----------
    config : Config
        The bandit's.
    follower : LogFollower
        Has the bandit's ledger.
    lock : lock
        Held while the ledger is read.
    read_names : callable
        Reads the names of the arms from the store.
    """

    def __init__(
        self,
        config: Config,
        follower: LogFollower,
        lock: threading.RLock,
        read_names: Callable[[], list[str]],
    ) -> None:
        self._config = config
        self._follower = follower
        self._lock = lock
        self._read_names = read_names
        self._streams = {name: number for number, (name, _) in enumerate(config.streams)}

    def requests(self, requests: Sequence[BanditRequest]) -> list[BanditRequest]:
        """Check what `Bandit.submit` takes."""
        checked = [self._request(request) for request in requests]
        if AddArm in set(map(type, checked)):
            self._check_number_of_arms(checked)
        if len(checked) > 1:
            _refuse_decisions_after_arms(checked)
        return checked

    def _request(self, request: BanditRequest) -> BanditRequest:
        if isinstance(request, NewPiece):
            return self.piece(*request)
        if isinstance(request, Decide):
            if request.key is not None:
                check_key(request.key)
            n = whole("n", request.n, 1, DECISIONS_MOST)
            features, contexts = self._follower.ledger.features, request.contexts
            if contexts is None:
                return Decide(n, request.key, stored_contexts(features, None, n))
            return Decide(n, request.key, checked_contexts(features, contexts, n))
        if isinstance(request, AddArm):
            about = checked_about(self._config.arm_features, request.about)
            name = name_of("an arm", request.name)
            arm = request._replace(
                name=name, cap=cap_of(request.cap, f"the cap of arm {name!r}"), about=about
            )
            with self._lock:
                self._follower.ledger.check_arm(arm.cap, arm.window, about)
            return arm._replace(window=float(arm.window))
        if isinstance(request, RetireArm):
            return RetireArm(_arm_number(request.arm))
        if isinstance(request, CloseDecision):
            return CloseDecision(decision_number(request.decision))
        raise InputError(
            f"submit takes Decide, NewPiece, CloseDecision, AddArm and RetireArm, not {request!r}"
        )

    def piece(
        self,
        decision: int,
        value: float,
        age: Age | None = None,
        at: Time | None = None,
        key: str | None = None,
        stream: int | None = None,
    ) -> NewPiece:
        """Check a piece; `stream` is the number of a stream, or None for the reward."""
        largest = self._follower.ledger.arms.value_most
        if stream is not None:
            if stream not in self._streams.values():
                raise InputError(f"there is no stream number {stream!r}; there are {len(self._streams)}")
            largest = VALUE_MOST * self._config.streams[stream][1].cap
        check_value(value, largest, self._config.allow_negative)
        if age is not None:
            if at is not None:
                raise InputError("say when a piece came by age= or by at=, not both")
            if isinstance(age, str | timedelta):
                self._check_counts_time("age", age)
                age = parse_duration(age, "a piece's age", least=0.0)
            check_age(age)
            age = float(age)
        elif at is not None:
            if isinstance(at, str | datetime):
                self._check_counts_time("time", at)
                at = seconds_since_1970(at)
            if not math.isfinite(as_number(at)):
                raise InputError(f"a piece's time must be a finite number, not {at!r}")
            if not 0 <= at <= TIME_MOST:
                raise InputError(f"a piece's time must be from 0 to {TIME_MOST:g}, not {at!r}")
            at = float(at)
        if key is not None:
            check_key(key)
        number = decision_number(decision)
        return NewPiece(number, float(value), age, at, key, stream)

    def _check_counts_time(self, what: str, given: Any) -> None:
        if self._config.rounds:
            raise InputError(f"the bandit counts rounds: a piece's {what} must be a number, not {given!r}")

    def stream(self, name: str | None) -> int | None:
        """Return the number of a stream; None for the reward, which may be named or left out."""
        if name is None or name == REWARD:
            return None
        number = self._streams.get(name) if isinstance(name, str) else None
        if number is None:
            raise unknown("stream", str(name), (REWARD, *self._streams))
        return number

    def _check_number_of_arms(self, requests: Sequence[BanditRequest]) -> None:
        """Refuse arms beyond the most that a bandit may have. An arm that is there already is not counted.

        Each worker that shares a store counts for itself: together the workers may exceed the limit by a few.
        """
        names = [request.name for request in requests if isinstance(request, AddArm)]
        if len(self._follower.ledger.arms) + len(names) <= ARMS_MOST:
            return
        known = self._read_names()
        if len(known) + len(set(names) - set(known)) > max(ARMS_MOST, len(known)):
            raise InputError(
                f"a bandit has at most {ARMS_MOST:,} arms, including retired ones, and this one has "
                f"{len(known):,}; make a new bandit with the arms that you still need"
            )


def check_value(value: Any, largest: float, allow_negative: bool) -> None:
    """Refuse a piece's value that is not a number, is too large, or is negative where that is not allowed."""
    if not math.isfinite(as_number(value)):
        raise InputError(f"a piece's value must be a finite number, not {value!r}")
    if abs(float(value)) > largest:
        raise InputError(
            f"a piece's value must be at most {largest:g} in size, a billion times the largest cap, "
            f"not {value!r}"
        )
    if value < 0 and not allow_negative:
        raise InputError(
            f"a piece must not be negative, as {value!r} is, unless the bandit has allow_negative=True"
        )


def seconds_since_1970(time: str | datetime) -> float:
    """Read a time that is not a number.

    Examples
    --------
    >>> seconds_since_1970("2026-11-18T12:30:00Z")
    1795005000.0
    >>> seconds_since_1970("2026-11-18 12:30")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    accrual.core.errors.InputError: a piece's time must be a time with its zone, such as 2026-11-18T...
    """
    try:
        moment = datetime.fromisoformat(time) if isinstance(time, str) else time
        zoned = moment.utcoffset() is not None
    except ValueError:
        zoned = False
    if not zoned:
        raise InputError(
            f"a piece's time must be a time with its zone, such as 2026-11-18T12:30:00Z, not {str(time)!r}"
        )
    return moment.timestamp()


def check_age(age: Any) -> None:
    """Refuse a piece's age that is not a number, is negative or is beyond all times."""
    if not 0 <= as_number(age) < math.inf:
        raise InputError(f"a piece's age must be 0 or more, not {age!r}")
    if age > TIME_MOST:
        raise InputError(f"a piece's age must be at most {TIME_MOST:g}, not {age!r}")


def check_key(key: Any) -> None:
    """Refuse the key of a decision or a piece that a person could not read in a log."""
    if not (isinstance(key, str) and 0 < len(key) <= NAME_MOST and key.isprintable()):
        shown = f"{len(key)} characters" if isinstance(key, str) and len(key) > 40 else repr(key)
        raise InputError(f"a key must be printable text of 1 to {NAME_MOST} characters, not {shown}")


def decision_number(id: Any) -> int:
    """Return a decision's id as a plain number."""
    if type(id) is int and 0 <= id <= _ID_MOST:  # the common case, fast
        return id
    if isinstance(id, Decision):
        raise InputError(f"give the id of a decision, not the decision: {id.id}, not {id!r}")
    with suppress(TypeError):
        number = operator.index(id)
        if 0 <= number <= _ID_MOST:
            return number
    raise InputError(UNKNOWN_DECISION.format(id=id))


def _arm_number(arm: Any) -> int:
    """Return an arm's number as a plain number."""
    try:
        number = operator.index(arm)
    except TypeError:
        raise InputError(f"an arm is retired by its number, from 0 on, not {arm!r}") from None
    return number if number < 2**31 else -1  # no bandit has that many: the store answers that it is unknown


def _refuse_decisions_after_arms(requests: Sequence[BanditRequest]) -> None:
    """Refuse a decision behind an arm that is added or retired: arms are chosen before either is stored."""
    changed = False
    for request in requests:
        if isinstance(request, AddArm | RetireArm):
            changed = True
        elif changed and isinstance(request, Decide):
            raise InputError(
                "a decision cannot follow an arm that is added or retired in the same submit: it would be "
                "made as if that arm had not changed; submit the decision first, or in a call of its own"
            )
