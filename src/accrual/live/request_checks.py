"""Checks of what a bandit is asked to store."""

from __future__ import annotations

import math
import operator
import threading
from collections.abc import Sequence
from typing import Any

from accrual.core.errors import InputError, unknown, whole
from accrual.live.commit import Ask, Decide
from accrual.live.config import Config, cap_of, name_of
from accrual.live.contexts import checked_about, checked_contexts, stored_contexts
from accrual.live.ledger import ARMS_MOST, VALUE_MOST, ArmNames, Decision
from accrual.live.log_follower import LogFollower
from accrual.store.base import AddArm, CloseDecision, NewPiece, RetireArm, Status

DECISIONS_MOST = 100_000  # in one call
UNKNOWN_DECISION = "no decision has the id {id!r}; nothing was stored"
REFUSED_PIECES = {  # what becomes of a piece, and what is then said
    Status.CONFLICT: "the key {key!r} was used for another piece of decision {id}; give this one its own",
    Status.UNKNOWN: UNKNOWN_DECISION,
    Status.FUTURE: "decision {id} has not reached the age of that piece; nothing was stored",
    Status.EARLY: "that piece is from before decision {id} was made; nothing was stored",
}


class AskChecks:
    """Checks of what one bandit is asked: each returns the request in plain numbers, or complains.

    Parameters
    ----------
    config : Config
        The bandit's.
    follower : LogFollower
        Has the bandit's ledger.
    turn : lock
        Held while the ledger is looked at.
    names : ArmNames
    """

    def __init__(self, config: Config, follower: LogFollower, turn: threading.RLock, names: ArmNames) -> None:
        self._config = config
        self._follower = follower
        self._turn = turn
        self._names = names
        self._streams = {name: number for number, (name, _) in enumerate(config.guardrails)}

    def check_piece(
        self, value: float, age: float | None, at: float | None, key: str | None, stream: int | None
    ) -> None:
        """Complain of a piece that cannot be; `stream` is the number of a guardrail, None for the reward."""
        largest = self._follower.ledger.arms.value_most
        if stream is not None:
            if stream not in self._streams.values():
                raise InputError(f"there is no guardrail number {stream!r}; there are {len(self._streams)}")
            largest = VALUE_MOST * self._config.guardrails[stream][1].cap
        if not is_finite(value):
            raise InputError(f"a piece's value must be a finite number, not {value!r}")
        if abs(float(value)) > largest:
            raise InputError(
                f"a piece's value must be at most {largest:g} in size, a billion times the largest cap, "
                f"not {value!r}"
            )
        if value < 0 and not self._config.allow_negative:
            raise InputError(
                f"a piece must not be negative, as {value!r} is, unless the bandit has allow_negative=True"
            )
        if age is not None:
            if at is not None:
                raise InputError("say when a piece came by age= or by at=, not both")
            if not is_finite(age) or age < 0:
                raise InputError(f"a piece's age must be 0 or more, not {age!r}")
        elif at is not None and not is_finite(at):
            raise InputError(f"a piece's time must be a finite number, not {at!r}")
        if key is not None:
            name_of("a piece", key)

    def piece(self, piece: NewPiece) -> NewPiece:
        """Check a piece that did not come from `Bandit.piece`, and return it in plain numbers."""
        self.check_piece(piece.value, piece.age, piece.when, piece.key, piece.stream)
        return piece._replace(
            decision=decision_number(piece.decision),
            value=float(piece.value),
            age=None if piece.age is None else float(piece.age),
            when=None if piece.when is None else float(piece.when),
        )

    def stream(self, name: str) -> int:
        """Return the number of a guardrail."""
        number = self._streams.get(name) if isinstance(name, str) else None
        if number is None:
            raise unknown("stream", str(name), self._streams)
        return number

    def new_arms(self, asks: Sequence[Ask]) -> None:
        """Complain of arms beyond the most that a bandit may have; one that is there already is no new one.

        Workers that share a store count for themselves: together they may exceed the limit by a few.
        """
        names = [ask.name for ask in asks if isinstance(ask, AddArm)]
        if len(self._follower.ledger.arms) + len(names) <= ARMS_MOST:
            return
        known = self._names.read()
        if len(known) + len(set(names) - set(known)) > max(ARMS_MOST, len(known)):
            raise InputError(
                f"a bandit has at most {ARMS_MOST:,} arms, with those that have retired, and this one has "
                f"{len(known):,}; make a new bandit with the arms that are still wanted"
            )

    def ask(self, ask: Ask) -> Ask:
        """Check anything that `Bandit.submit` takes."""
        if isinstance(ask, NewPiece):
            return self.piece(ask)
        if isinstance(ask, Decide):
            if ask.key is not None:
                name_of("a decision", ask.key)
            n = whole("n", ask.n, 1, DECISIONS_MOST)
            features = self._follower.ledger.visitors.features
            contexts = stored_contexts(features, None, n) if ask.contexts is None else ask.contexts
            return Decide(n, ask.key, checked_contexts(features, contexts, n))
        if isinstance(ask, AddArm):
            about = checked_about(self._config.arm_features, ask.about)
            arm = ask._replace(name=name_of("an arm", ask.name), cap=cap_of(ask.cap), about=about)
            with self._turn:
                self._follower.ledger.check_arm(arm.cap, arm.window, about)
            return arm._replace(window=float(arm.window))
        if isinstance(ask, RetireArm):
            return RetireArm(arm_number(ask.arm))
        if isinstance(ask, CloseDecision):
            return CloseDecision(decision_number(ask.decision))
        raise InputError(f"submit takes Decide, NewPiece, CloseDecision, AddArm and RetireArm, not {ask!r}")


def decision_number(id: Any) -> int:
    """Return a decision's id as a plain number."""
    if isinstance(id, Decision):
        raise InputError(f"give the id of a decision, not the decision: {id.id}, not {id!r}")
    try:
        return operator.index(id)
    except TypeError:
        raise InputError(UNKNOWN_DECISION.format(id=id)) from None


def arm_number(arm: Any) -> int:
    """Return an arm's number as a plain number."""
    try:
        number = operator.index(arm)
    except TypeError:
        raise InputError(f"an arm is retired by its number, from 0 on, not {arm!r}") from None
    return number if number < 2**31 else -1  # no bandit has so many: the store answers that it is unknown


def refuse_decisions_after_arms(asks: Sequence[Ask]) -> None:
    """Complain of a decision behind an arm that is added or retired: arms are chosen before either."""
    changed = False
    for ask in asks:
        if isinstance(ask, AddArm | RetireArm):
            changed = True
        elif changed and isinstance(ask, Decide):
            raise InputError(
                "a decision cannot follow an arm that is added or retired in the same submit: it would be "
                "made as if that arm had not changed; submit the decision first, or in a call of its own"
            )


def is_finite(value: Any) -> bool:
    """Return whether this is a number, and neither infinite nor a NaN."""
    try:
        return math.isfinite(value)
    except (TypeError, OverflowError):
        return False
