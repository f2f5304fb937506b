"""What becomes of each request, by the rules that `accrual.store.base.Store.append` states.

For stores that decide in Python. They differ in where a `Book` looks things up and in how the rows
are kept; the rules are here, once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from accrual.store.base import (
    AddArm,
    Answer,
    ArmRow,
    CloseDecision,
    Kind,
    NewDecisions,
    NewPiece,
    Status,
    StoreRequest,
    derived_key,
)

Row = tuple[Any, ...]

_UNKNOWN = Answer(Status.UNKNOWN)
_CONFLICT = Answer(Status.CONFLICT)
_FUTURE = Answer(Status.FUTURE)
_EARLY = Answer(Status.EARLY)
_STORED, _AGAIN = Status.STORED, Status.AGAIN


class Head(NamedTuple):
    """Where a log ends."""

    seq: int
    at: float
    decisions: int


class Piece(NamedTuple):
    """A piece, as it is kept."""

    seq: int
    decision: int
    key: str | None
    value: float
    age: float
    stated: bool
    at: float
    late: bool


class Book:
    """What a bandit's log says of the things that requests speak of.

    Here it is all in memory. A store that keeps it elsewhere fills these tables as it goes, and
    overrides the functions that are asked for what they lack.
    """

    def __init__(self) -> None:
        self.decisions: dict[int, tuple[float, float]] = {}  # time and window, 0 once closed by an event
        self.pieces: dict[tuple[int, str], Piece] = {}
        self.batches: dict[str, Answer] = {}
        self.changes: dict[tuple[Kind, int], Answer] = {}
        self.arms: list[ArmRow] = []

    def find_decision(self, id: int) -> tuple[float, float] | None:
        return None

    def find_piece(self, decision: int, key: str) -> Piece | None:
        return None

    def find_batch(self, key: str) -> Answer | None:
        return None

    def find_change(self, kind: Kind, subject: int) -> Answer | None:
        return None


class Rows(NamedTuple):
    """What is to be kept, in the order of the log."""

    decisions: list[Row]  # id, seq, arm, at, window, seen, key, part, salt
    pieces: list[Piece]
    changes: list[Row]  # seq, kind, subject, at
    arms: list[Row]  # number, name, cap, window


class Acceptance:
    """Goes over requests; `book` then says what it would if the rows were kept.

    Parameters
    ----------
    book : Book
    head : Head
        Where the log ends.
    rounds : bool
        Whether the clock is the number of decisions.
    """

    def __init__(self, book: Book, head: Head, rounds: bool) -> None:
        self._book = book
        self._seq, self._last, self._decisions = head
        self._rounds = rounds
        self._at = self._skew = 0.0
        self.rows = Rows([], [], [], [])

    @property
    def head(self) -> Head:
        """Where the log ends with the rows."""
        return Head(self._seq, self._last, self._decisions)

    def begin(self, now: float, skew: float) -> None:
        """What follows happens at this time of the caller's clock."""
        self._at = self._last if self._rounds or now < self._last else now
        self._skew = skew

    def accept(self, requests: Sequence[StoreRequest]) -> list[Answer]:
        """An answer for each request."""
        answers = []
        for request in requests:
            if isinstance(request, NewPiece):
                answers.append(self._pay(request))
            elif isinstance(request, NewDecisions):
                answers.append(self._choose(request))
            elif isinstance(request, CloseDecision):
                answers.append(self._close(request.decision))
            elif isinstance(request, AddArm):
                answers.append(self._add(request))
            else:
                answers.append(self._retire(request.arm))
        return answers

    def _decision(self, id: int) -> tuple[float, float] | None:
        known = self._book.decisions.get(id)
        if known is None and 0 <= id < self._decisions:
            known = self._book.find_decision(id)
        return known

    def _pay(self, request: NewPiece) -> Answer:
        id_, value, age, when, key = request
        known = self._decision(id_)
        if known is None:
            return _UNKNOWN
        made, window = known
        at, book = self._at, self._book
        stated = True
        early = False
        if age is None:
            if when is None:
                age = at - made
                stated = False
            else:
                age = when - made
                early = age < -self._skew
                age = max(age, 0.0)
        if early:
            return _EARLY
        if stated and made + age > at + self._skew:
            return _FUTURE
        if key is None and stated:
            key = derived_key(id_, value, age)
        if key is not None:
            was = book.pieces.get((id_, key)) or book.find_piece(id_, key)
            if was is not None:
                if was.value == value and was.stated == stated and (was.age == age or not stated):
                    return Answer(_AGAIN, was.seq, was.at, 0, (), bool(was.late), was.age)
                return _CONFLICT
        late = age >= window or at >= made + window
        self._seq = seq = self._seq + 1
        self._last = at
        row = Piece(seq, id_, key, value, age, stated, at, late)
        self.rows.pieces.append(row)
        if key is not None:
            book.pieces[id_, key] = row
        return Answer(_STORED, seq, at, 0, (), late, age)

    def _choose(self, request: NewDecisions) -> Answer:
        arms, windows, seen, key, salt = request
        book = self._book
        for arm in arms:
            if not 0 <= arm < len(book.arms):
                return _UNKNOWN
        if key is not None:
            was = book.batches.get(key) or book.find_batch(key)
            if was is not None:
                return was._replace(status=_AGAIN) if len(was.arms) == len(arms) else _CONFLICT
        id_, seq, at = self._decisions, self._seq, self._at
        begins = at if not self._rounds else id_ + 1.0
        answer = Answer(_STORED, seq + 1, begins, id_, arms)
        for part, arm in enumerate(arms):
            window = windows[part]
            seq += 1
            if self._rounds:
                at = id_ + 1.0
            self.rows.decisions.append((id_, seq, arm, at, window, seen, key, part, salt))
            book.decisions[id_] = (at, window)
            id_ += 1
        self._decisions, self._seq = id_, seq
        self._at = self._last = at
        if key is not None:
            book.batches[key] = answer
        return answer

    def _close(self, id: int) -> Answer:
        known = self._decision(id)
        if known is None:
            return _UNKNOWN
        answer = self._change(Kind.CLOSE, id)
        if answer.status is _STORED:
            self._book.decisions[id] = (known[0], 0.0)
        return answer

    def _add(self, request: AddArm) -> Answer:
        arms = self._book.arms
        for number, arm in enumerate(arms):
            if arm.name == request.name:
                if (arm.cap, arm.window) != (request.cap, request.window):
                    return _CONFLICT
                return self._change(Kind.ADD_ARM, number)._replace(number=number)
        number = len(arms)
        arms.append(ArmRow(*request, retired=False))
        self.rows.arms.append((number, *request))
        return self._change(Kind.ADD_ARM, number)._replace(number=number)

    def _retire(self, arm: int) -> Answer:
        arms = self._book.arms
        if not 0 <= arm < len(arms):
            return _UNKNOWN
        arms[arm] = arms[arm]._replace(retired=True)
        return self._change(Kind.RETIRE_ARM, arm)

    def _change(self, kind: Kind, subject: int) -> Answer:
        was = self._book.changes.get((kind, subject)) or self._book.find_change(kind, subject)
        if was is not None:
            return was._replace(status=_AGAIN)
        self._seq += 1
        self._last = self._at
        self.rows.changes.append((self._seq, int(kind), subject, self._at))
        answer = Answer(_STORED, self._seq, self._at)
        self._book.changes[kind, subject] = answer
        return answer
