"""What becomes of each request, by the rules that `accrual.store.base.Store.append` states.

The rules are here, once, for every store. Stores differ in where a `LogLookup` finds things and in how they
store rows. One table of cases tests them all: `accrual.testing.acceptance`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from accrual.store.base import (
    AddArm,
    Answer,
    Answers,
    CloseDecision,
    NewDecisions,
    NewPiece,
    Status,
    StoredArm,
    StoreRequest,
    derived_key,
    known_propensities,
)
from accrual.store.events import (
    ArmAdded,
    ArmRetired,
    ArmRow,
    ChangeRow,
    DecisionClosed,
    DecisionMade,
    DecisionRow,
    Event,
    HeadRow,
    Kind,
    PieceArrived,
    PieceRow,
    stream_number,
)

_UNKNOWN = Answer(Status.UNKNOWN)
_CONFLICT = Answer(Status.CONFLICT)
_FUTURE = Answer(Status.FUTURE)
_EARLY = Answer(Status.EARLY)
_STORED, _AGAIN = Status.STORED, Status.AGAIN


class LogLookup:
    """What a bandit's log says about the decisions, pieces, batches and arms that requests name.

    Here the whole log is in memory. A store whose log is elsewhere fills these tables with what the requests
    name before they are answered, or overrides the functions that find what is not in memory. `arms` is read
    only for requests that add or retire one.
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


def stated_age(piece: NewPiece, made: float) -> float | None:
    """Return the age that a piece of a decision made at `made` states, by `age` or by `when`; else None."""
    if piece.age is not None:
        return piece.age + 0.0  # 0.0 for -0.0
    return None if piece.when is None else max(piece.when - made, 0.0)


def known_batch(rows: Sequence[DecisionRow]) -> Answer:
    """Return the answer that the decisions of a stored batch, in order, were given."""
    first = rows[0]
    return Answer(
        Status.STORED, first.seq, first.at, first.id, tuple([row.arm for row in rows]),
        propensities=known_propensities([row.propensity for row in rows]),
        contexts=None if first.context is None else tuple([row.context for row in rows]),
    )  # fmt: skip


class NewRows(NamedTuple):
    """The rows to be stored, by table, each in the order of the log."""

    decision: list[DecisionRow]
    piece: list[PieceRow]
    change: list[ChangeRow]
    arm: list[ArmRow]


class Acceptance:
    """Answers requests and collects the rows to be stored; `lookup` then answers as if they were stored.

    Parameters
    ----------
    head : HeadRow
        Where the log ends.
    rounds : bool
        Whether the clock is the number of decisions.
    """

    def __init__(self, lookup: LogLookup, head: HeadRow, rounds: bool) -> None:
        self._lookup = lookup
        self._bandit = head.bandit
        self.seq, self._last, self._decisions, self._arms = head.seq, head.at, head.decisions, head.arms
        self._rounds = rounds
        self._at = self._skew = 0.0
        self.rows = NewRows([], [], [], [])
        self._events: list[Event] = []

    @property
    def head(self) -> HeadRow:
        """Where the log ends with the new rows."""
        return HeadRow(
            bandit=self._bandit, seq=self.seq, at=self._last, decisions=self._decisions, arms=self._arms
        )

    def begin(self, now: float, skew: float) -> None:
        """Set the time of the requests that follow, by the caller's clock."""
        self._at = self._last if self._rounds or now < self._last else now + 0.0  # 0.0 for -0.0
        self._skew = skew

    def accept(self, requests: Sequence[StoreRequest]) -> Answers:
        """Return an answer for each request, and their events."""
        answers, self._events = [], []
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
        return Answers(answers, self._events)

    def _decision(self, id: int) -> tuple[float, float] | None:
        known = self._lookup.decisions.get(id)
        if known is None and 0 <= id < self._decisions:
            known = self._lookup.find_decision(id)
        return known

    def _accept_piece(self, request: NewPiece) -> Answer:
        id_, value, key, stream = request.decision, request.value + 0.0, request.key, request.stream
        known = self._decision(id_)
        if known is None:
            return _UNKNOWN
        made, window = known
        at, lookup = self._at, self._lookup
        if request.when is not None and request.age is None and request.when - made < -self._skew:
            return _EARLY
        age = stated_age(request, made)
        stated = age is not None
        if age is None:
            age = at - made
        elif made + age > at + self._skew:
            return _FUTURE
        if key is None and stated:
            key = derived_key(id_, value, age, stream)
        if key is not None:
            was = lookup.pieces.get((id_, key)) or lookup.find_piece(id_, key)
            if was is not None:
                same = was.value == value and was.stream == stream
                if same and was.stated == stated and (was.age == age or not stated):
                    return Answer(_AGAIN, was.seq, was.at, 0, (), bool(was.late), was.age)
                return _CONFLICT
        late = age >= window or at >= made + window
        self.seq = seq = self.seq + 1
        self._last = at
        # Not by keyword: that takes twice as long, and a log has millions of pieces.
        row = PieceRow(self._bandit, seq, id_, key, value, age, stated, at, late, stream)
        self.rows.piece.append(row)
        if key is not None:
            lookup.pieces[id_, key] = row
        self._events.append(PieceArrived(seq, at, id_, stream_number(stream), value, age))
        return Answer(_STORED, seq, at, 0, (), late, age)

    def _accept_decisions(self, request: NewDecisions) -> Answer:
        arms, key = request.arms, request.key
        lookup = self._lookup
        for arm in arms:
            if not 0 <= arm < self._arms:
                return _UNKNOWN
        if key is not None:
            was = lookup.batches.get(key) or lookup.find_batch(key)
            if was is not None:
                same = len(was.arms) == len(arms) and was.contexts == request.contexts
                return was._replace(status=_AGAIN) if same else _CONFLICT
        chances = request.propensities or (None,) * len(arms)
        id_, seq, at = self._decisions, self.seq, self._at
        begins = at if not self._rounds else id_ + 1.0
        answer = Answer(
            _STORED, seq + 1, begins, number=id_, arms=arms, propensities=request.propensities,
            contexts=request.contexts,
        )  # fmt: skip
        for part, arm in enumerate(arms):
            window = request.windows[part]
            seq += 1
            if self._rounds:
                at = id_ + 1.0
            self.rows.decision.append(
                DecisionRow(
                    bandit=self._bandit, id=id_, seq=seq, arm=arm, at=at, window=window, seen=request.seen,
                    key=key, part=part, salt=request.salt, propensity=chances[part],
                    context=None if request.contexts is None else request.contexts[part],
                )
            )  # fmt: skip
            self._events.append(
                DecisionMade(seq, at, id_, arm, window, request.salt, chances[part] or 0.0, request.seen)
            )
            lookup.decisions[id_] = (at, window)
            id_ += 1
        self._decisions, self.seq = id_, seq
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
        number = self._arms
        self._arms += 1
        cap, window = request.cap + 0.0, request.window + 0.0  # 0.0 for -0.0
        arms.append(StoredArm(request.name, cap, window, False, request.about))
        self.rows.arm.append(
            ArmRow(
                bandit=self._bandit, number=number, name=request.name, cap=cap, window=window,
                about=request.about,
            )
        )  # fmt: skip
        return self._accept_once(Kind.ADD_ARM, number)._replace(number=number)

    def _accept_retiring(self, arm: int) -> Answer:
        if not 0 <= arm < self._arms:
            return _UNKNOWN
        arms = self._lookup.arms
        arms[arm] = arms[arm]._replace(retired=True)
        return self._accept_once(Kind.RETIRE_ARM, arm)

    def _accept_once(self, kind: Kind, subject: int) -> Answer:
        was = self._lookup.changes.get((kind, subject)) or self._lookup.find_change(kind, subject)
        if was is not None:
            return was._replace(status=_AGAIN)
        self.seq += 1
        self._last = self._at
        self.rows.change.append(
            ChangeRow(bandit=self._bandit, seq=self.seq, kind=int(kind), subject=subject, at=self._at)
        )
        if kind == Kind.CLOSE:
            self._events.append(DecisionClosed(self.seq, self._at, subject))
        elif kind == Kind.ADD_ARM:
            arm = self._lookup.arms[subject]
            self._events.append(ArmAdded(self.seq, self._at, subject, arm.cap, arm.window))
        else:
            self._events.append(ArmRetired(self.seq, self._at, subject))
        answer = self._lookup.changes[kind, subject] = Answer(_STORED, self.seq, self._at)
        return answer
