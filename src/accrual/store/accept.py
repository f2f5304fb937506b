"""What becomes of each request, by the rules that `accrual.store.base.Store.append` states.

For stores that decide in Python. They differ in where a `LogLookup` finds things and in how the rows are
kept; the rules are here, once. PostgreSQL's function has the same rules in SQL. One table of cases tests
both: `accrual.testing.acceptance`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from accrual.store.base import (
    AddArm,
    Answer,
    CloseDecision,
    NewDecisions,
    NewPiece,
    RetireArm,
    Status,
    StoredArm,
    StoreRequest,
    derived_key,
)
from accrual.store.events import (
    ArmRow,
    ChangeRow,
    DecisionRow,
    Event,
    HeadRow,
    Kind,
    PieceRow,
    change_event,
    decision_event,
    event_function,
    maker,
    piece_event,
)

_UNKNOWN = Answer(Status.UNKNOWN)
_CONFLICT = Answer(Status.CONFLICT)
_FUTURE = Answer(Status.FUTURE)
_EARLY = Answer(Status.EARLY)
_STORED, _AGAIN = Status.STORED, Status.AGAIN


_piece_row, _decision_row, _answer = maker(PieceRow), maker(DecisionRow), maker(Answer)


def _piece_answer(status: Status, seq: int, at: float, late: bool, age: float) -> Answer:
    return _answer(status=status, seq=seq, at=at, number=0, arms=(), late=late, age=age, propensities=(),
                   warning="", contexts=None)  # fmt: skip


class LogLookup:
    """What a bandit's log says of the decisions, pieces, batches and arms that requests name.

    Here it is all in memory. A store that keeps it elsewhere overrides the functions that find what is not in
    memory; it fills these tables as it goes.
    """

    def __init__(self) -> None:
        self.decisions: dict[int, tuple[float, float]] = {}  # time and window, 0 once closed by an event
        self.pieces: dict[tuple[int, str], PieceRow] = {}
        self.batches: dict[str, Answer] = {}
        self.changes: dict[tuple[Kind, int], Answer] = {}
        self.arms: list[StoredArm] = []

    def find_decision(self, id: int) -> tuple[float, float] | None:
        return None

    def find_piece(self, decision: int, key: str) -> PieceRow | None:
        return None

    def find_batch(self, key: str) -> Answer | None:
        return None

    def find_change(self, kind: Kind, subject: int) -> Answer | None:
        return None


class NewRows(NamedTuple):
    """The rows to be stored, by table, each in the order of the log."""

    decision: list[DecisionRow]
    piece: list[PieceRow]
    change: list[ChangeRow]
    arm: list[ArmRow]


class Acceptance:
    """Answers requests and collects the rows to be stored; `lookup` then answers as if they were.

    Parameters
    ----------
    lookup : LogLookup
    head : HeadRow
        Where the log ends.
    rounds : bool
        Whether the clock is the number of decisions.
    """

    def __init__(self, lookup: LogLookup, head: HeadRow, rounds: bool) -> None:
        self._lookup = lookup
        self._bandit = head.bandit
        self._seq, self._last, self._decisions = head.seq, head.at, head.decisions
        self._rounds = rounds
        self._at = self._skew = 0.0
        self.rows = NewRows([], [], [], [])

    @property
    def head(self) -> HeadRow:
        """Where the log ends with the new rows."""
        return HeadRow(
            bandit=self._bandit,
            seq=self._seq,
            at=self._last,
            decisions=self._decisions,
            arms=len(self._lookup.arms),
        )

    def begin(self, now: float, skew: float) -> None:
        """Set the time of the requests that follow, by the caller's clock."""
        self._at = self._last if self._rounds or now < self._last else now + 0.0  # 0.0 for -0.0
        self._skew = skew

    def accept(self, requests: Sequence[StoreRequest]) -> list[Answer]:
        """Return an answer for each request."""
        answers = []
        for request in requests:
            if isinstance(request, NewPiece):
                answers.append(self._accept_piece(request))
            elif isinstance(request, NewDecisions):
                answers.append(self._accept_decisions(request))
            elif isinstance(request, CloseDecision):
                answers.append(self._accept_closing(request.decision))
            elif isinstance(request, AddArm):
                answers.append(self._accept_arm(request))
            else:
                answers.append(self._accept_retiring(request.arm))
        return answers

    def _decision(self, id: int) -> tuple[float, float] | None:
        known = self._lookup.decisions.get(id)
        if known is None and 0 <= id < self._decisions:
            known = self._lookup.find_decision(id)
        return known

    def _accept_piece(self, request: NewPiece) -> Answer:
        id_, value, age, key, stream = (
            request.decision, request.value + 0.0, request.age, request.key, request.stream
        )  # fmt: skip
        known = self._decision(id_)
        if known is None:
            return _UNKNOWN
        made, window = known
        at, lookup = self._at, self._lookup
        stated = True
        early = False
        if age is None:
            if request.when is None:
                age = at - made
                stated = False
            else:
                age = request.when - made
                early = age < -self._skew
                age = max(age, 0.0)
        else:
            age += 0.0
        if early:
            return _EARLY
        if stated and made + age > at + self._skew:
            return _FUTURE
        if key is None and stated:
            key = derived_key(id_, value, age, stream)
        if key is not None:
            was = lookup.pieces.get((id_, key)) or lookup.find_piece(id_, key)
            if was is not None:
                same = was.value == value and was.stream == stream
                if same and was.stated == stated and (was.age == age or not stated):
                    return _piece_answer(_AGAIN, was.seq, was.at, bool(was.late), was.age)
                return _CONFLICT
        late = age >= window or at >= made + window
        self._seq = seq = self._seq + 1
        self._last = at
        row = _piece_row(
            bandit=self._bandit, seq=seq, decision=id_, key=key, value=value, age=age, stated=stated, at=at,
            late=late, stream=stream,
        )  # fmt: skip
        self.rows.piece.append(row)
        if key is not None:
            lookup.pieces[id_, key] = row
        return _piece_answer(_STORED, seq, at, late, age)

    def _accept_decisions(self, request: NewDecisions) -> Answer:
        arms, key = request.arms, request.key
        lookup = self._lookup
        for arm in arms:
            if not 0 <= arm < len(lookup.arms):
                return _UNKNOWN
        if key is not None:
            was = lookup.batches.get(key) or lookup.find_batch(key)
            if was is not None:
                same = len(was.arms) == len(arms) and was.contexts == request.contexts
                return was._replace(status=_AGAIN) if same else _CONFLICT
        chances = request.propensities or (None,) * len(arms)
        id_, seq, at = self._decisions, self._seq, self._at
        begins = at if not self._rounds else id_ + 1.0
        answer = _answer(
            status=_STORED, seq=seq + 1, at=begins, number=id_, arms=arms, late=False, age=0.0,
            propensities=request.propensities, warning="", contexts=request.contexts,
        )  # fmt: skip
        for part, arm in enumerate(arms):
            window = request.windows[part]
            seq += 1
            if self._rounds:
                at = id_ + 1.0
            self.rows.decision.append(
                _decision_row(
                    bandit=self._bandit, id=id_, seq=seq, arm=arm, at=at, window=window, seen=request.seen,
                    key=key, part=part, salt=request.salt, propensity=chances[part],
                    context=None if request.contexts is None else request.contexts[part],
                )
            )  # fmt: skip
            lookup.decisions[id_] = (at, window)
            id_ += 1
        self._decisions, self._seq = id_, seq
        self._at = self._last = at
        if key is not None:
            lookup.batches[key] = answer
        return answer

    def _accept_closing(self, id: int) -> Answer:
        known = self._decision(id)
        if known is None:
            return _UNKNOWN
        answer = self._accept_once(Kind.CLOSE, id)
        if answer.status is _STORED:
            self._lookup.decisions[id] = (known[0], 0.0)
        return answer

    def _accept_arm(self, request: AddArm) -> Answer:
        arms = self._lookup.arms
        for number, arm in enumerate(arms):
            if arm.name == request.name:
                if (arm.cap, arm.window, arm.about) != (request.cap, request.window, request.about):
                    return _CONFLICT
                return self._accept_once(Kind.ADD_ARM, number)._replace(number=number)
        number = len(arms)
        arms.append(StoredArm(request.name, request.cap, request.window, False, request.about))
        self.rows.arm.append(
            ArmRow(
                bandit=self._bandit, number=number, name=request.name, cap=request.cap,
                window=request.window, about=request.about,
            )
        )  # fmt: skip
        return self._accept_once(Kind.ADD_ARM, number)._replace(number=number)

    def _accept_retiring(self, arm: int) -> Answer:
        arms = self._lookup.arms
        if not 0 <= arm < len(arms):
            return _UNKNOWN
        arms[arm] = arms[arm]._replace(retired=True)
        return self._accept_once(Kind.RETIRE_ARM, arm)

    def _accept_once(self, kind: Kind, subject: int) -> Answer:
        was = self._lookup.changes.get((kind, subject)) or self._lookup.find_change(kind, subject)
        if was is not None:
            return was._replace(status=_AGAIN)
        self._seq += 1
        self._last = self._at
        self.rows.change.append(
            ChangeRow(bandit=self._bandit, seq=self._seq, kind=int(kind), subject=subject, at=self._at)
        )
        answer = Answer(_STORED, self._seq, self._at)
        self._lookup.changes[kind, subject] = answer
        return answer


# The events that an append adds to a log, from the rows it stores or from its requests and their answers.


def events_of_rows(rows: NewRows, arms: Sequence[StoredArm]) -> list[Event]:
    """Return the events of new rows, in the order of the log; `arms` are all there have been."""
    events = [piece_event(row) for row in rows.piece]
    if rows.decision or rows.change:
        events += [decision_event(row) for row in rows.decision]
        events += [change_event(row, arms) for row in rows.change]
        events.sort()
    return events


# An event from a request and its answer: where the columns of its table are in them.
_FROM_REQUEST = "request, answer"
_SAME = {"seq": "answer.seq", "at": "answer.at"}
_EVENTS: dict[type, Callable[..., Event]] = {
    NewPiece: event_function(
        Kind.PIECE,
        _FROM_REQUEST,
        {
            **_SAME,
            "decision": "request.decision",
            "value": "request.value + 0.0",  # 0.0 for -0.0, as it is stored
            "age": "answer.age",
            "stream": "-1 if request.stream is None else request.stream",
        },
    ),
    CloseDecision: event_function(Kind.CLOSE, _FROM_REQUEST, {**_SAME, "subject": "request.decision"}),
    AddArm: event_function(
        Kind.ADD_ARM,
        _FROM_REQUEST,
        {**_SAME, "subject": "answer.number", "arm.cap": "request.cap", "arm.window": "request.window"},
    ),
    RetireArm: event_function(Kind.RETIRE_ARM, _FROM_REQUEST, {**_SAME, "subject": "request.arm"}),
}
_DECISION_EVENT = event_function(
    Kind.DECISION,
    "request, answer, i, step",
    {
        "seq": "answer.seq + i", "at": "answer.at + step * i", "id": "answer.number + i",
        "arm": "answer.arms[i]", "salt": "request.salt", "window": "request.windows[i]",
        "propensity": "answer.propensities[i] or 0.0 if answer.propensities else 0.0",
        "seen": "request.seen",
    },
)  # fmt: skip


def events_of_answers(
    requests: Sequence[StoreRequest], answers: Sequence[Answer], step: float
) -> list[Event]:
    """Return the events that an append has added to the log, from its requests and their answers.

    Parameters
    ----------
    requests, answers : sequence
    step : float
        The time from one decision of a batch to the next: 1 in rounds, 0 by the clock.
    """
    events: list[Event] = []
    for request, answer in zip(requests, answers, strict=True):
        if answer.status is not Status.STORED:
            continue
        if isinstance(request, NewDecisions):
            events += [_DECISION_EVENT(request, answer, i, step) for i in range(len(answer.arms))]
        else:
            events.append(_EVENTS[type(request)](request, answer))
    return events
