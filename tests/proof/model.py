"""A bandit's log, the plain way: what every store must answer, written from the protocol's words alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from accrual.store.base import (
    AddArm,
    Answer,
    CloseDecision,
    NewDecisions,
    NewPiece,
    RetireArm,
    Status,
    StoreRequest,
)
from accrual.store.events import Kind


@dataclass
class Event:
    """One event; `answer` is what the caller was told."""

    kind: Kind
    at: float
    decision: int = -1
    arm: int = -1
    value: float = 0.0
    age: float = 0.0
    window: float = 0.0  # a decision's, or an arm's
    cap: float = 0.0
    salt: int = 0
    stated: float | None = None  # the age, if it was stated
    about: bytes | None = None  # what is known about an arm
    answer: Answer = field(default=Answer(Status.STORED), compare=False)


class Model:
    """The log of one bandit, in memory. Positions are 1, 2, ... without gaps."""

    def __init__(self, rounds: bool, arms: Sequence[AddArm], now: float) -> None:
        self.rounds = rounds
        self.log: list[Event] = []
        self.keys: dict[Any, list[Event]] = {}  # what was stored under a key: a batch, or one event
        self.append(arms, now)

    def of(self, kind: Kind) -> list[Event]:
        """All events of a kind."""
        return [event for event in self.log if event.kind == kind]

    def append(self, items: Sequence[StoreRequest], now: float, skew: float = 0.0) -> list[Answer]:
        """What the store must answer; the log grows by what is new."""
        return [self._one(item, self._time(now), skew) for item in items]

    def _time(self, now: float) -> float:
        if self.rounds:
            return len(self.of(Kind.DECISION))
        return max([now, *(event.at for event in self.log[-1:])])

    def _one(self, item: StoreRequest, time: float, skew: float) -> Answer:
        if isinstance(item, NewDecisions):
            return self._choose(item, time)
        if isinstance(item, NewPiece):
            return self._pay(item, time, skew)
        if isinstance(item, AddArm):
            return self._add_arm(item, time)
        return self._end(item, time)

    def _add_arm(self, item: AddArm, time: float) -> Answer:
        arm = len(self.of(Kind.ADD_ARM))
        event = Event(Kind.ADD_ARM, time, arm=arm, window=item.window, cap=item.cap, about=item.about)
        first = self.keys.get(("arm", item.name), [event])[0]
        if (first.cap, first.window, first.about) != (item.cap, item.window, item.about):
            return Answer(Status.CONFLICT)
        return self._add(("arm", item.name), [event], Answer(Status.STORED, number=arm))

    def _end(self, item: CloseDecision | RetireArm, time: float) -> Answer:
        """Of a decision, or of an arm."""
        number, of = (
            (item.decision, Kind.DECISION) if isinstance(item, CloseDecision) else (item.arm, Kind.ADD_ARM)
        )
        if not 0 <= number < len(self.of(of)):
            return Answer(Status.UNKNOWN)
        if of == Kind.DECISION:
            event = Event(Kind.CLOSE, time, decision=number)
        else:
            event = Event(Kind.RETIRE_ARM, time, arm=number)
        return self._add((event.kind, number), [event], Answer(Status.STORED))

    def _choose(self, item: NewDecisions, time: float) -> Answer:
        if not all(0 <= arm < len(self.of(Kind.ADD_ARM)) for arm in item.arms):
            return Answer(Status.UNKNOWN)
        first = self.keys.get(("choose", item.key))
        if item.key is not None and first and len(first) != len(item.arms):
            return Answer(Status.CONFLICT)
        made = len(self.of(Kind.DECISION))
        batch = [
            Event(Kind.DECISION, id_ + 1 if self.rounds else time, id_, arm, window=window, salt=item.salt)
            for id_, (arm, window) in enumerate(zip(item.arms, item.windows, strict=True), made)
        ]
        return self._add(
            ("choose", item.key or object()), batch, Answer(Status.STORED, number=made, arms=item.arms)
        )

    def _pay(self, item: NewPiece, time: float, skew: float) -> Answer:
        decisions = self.of(Kind.DECISION)
        if not 0 <= item.decision < len(decisions):
            return Answer(Status.UNKNOWN)
        decision = decisions[item.decision]
        age, stated = time - decision.at, None
        if item.age is not None:
            age = stated = item.age
        elif item.when is not None:
            age = item.when - decision.at
            age = stated = 0.0 if -skew <= age < 0 else age
        if age < 0:
            return Answer(Status.EARLY)
        if stated is not None and decision.at + stated > time + skew:
            return Answer(Status.FUTURE)
        body = (item.value, stated)
        key = ("pay", item.decision, item.key or (object() if stated is None else body))
        if key in self.keys and (self.keys[key][0].value, self.keys[key][0].stated) != body:
            return Answer(Status.CONFLICT)
        closed = (Kind.CLOSE, item.decision) in self.keys
        late = closed or age >= decision.window or time >= decision.at + decision.window
        event = Event(Kind.PIECE, time, item.decision, value=item.value, age=age, stated=stated)
        return self._add(key, [event], Answer(Status.STORED, late=late, age=age))

    def _add(self, key: Any, events: list[Event], answer: Answer) -> Answer:
        if key in self.keys:
            return self.keys[key][0].answer._replace(status=Status.AGAIN)
        self.keys[key] = events
        events[0].answer = answer._replace(seq=len(self.log) + 1, at=events[0].at)
        self.log += events
        return events[0].answer
