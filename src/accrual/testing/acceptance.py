"""Which requests a store accepts, and its answers: one table of cases for every store.

The rules are stated in `accrual.store.base.Store.append` and written in `accrual.store.accept`; `StoreSuite`
tests each store against every case here.
"""

from __future__ import annotations

from typing import NamedTuple

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

JAZZ, ROCK = AddArm("jazz", 1.0, 80.0), AddArm("rock", 2.0, 60.0)
_SOUL = AddArm("soul", 3.0, 40.0)
_KNOWN = AddArm("folk", 3.0, 40.0, about=bytes(8) + b"\xff" * 8)
_ODD_KEYS = ("NULL", "null", '"', "\\", '\\"', "{a,b}", "a", "A", "", " ", "%s $1", "ü")
_STORED, _AGAIN = Status.STORED, Status.AGAIN
_CONFLICT, _UNKNOWN = Answer(Status.CONFLICT), Answer(Status.UNKNOWN)
_FUTURE, _EARLY = Answer(Status.FUTURE), Answer(Status.EARLY)


class Append(NamedTuple):
    """One append, at a time of the caller's clock: its requests, each with the answer that it must get."""

    now: float
    expected: list[tuple[StoreRequest, Answer]]
    skew: float = 0.0


class Case(NamedTuple):
    """Appends to a new bandit that has the arms `JAZZ` and `ROCK`, at positions 1 and 2, at time 0."""

    rounds: bool  # whether its clock is the number of its decisions
    appends: list[Append]


def decide(*arms: int, key: str | None = None, window: float = 80.0) -> NewDecisions:
    """Return a request for decisions of these arms, all with the same window."""
    return NewDecisions(arms, (window,) * len(arms), key=key)


def _stored(seq: int, at: float, late: bool = False, age: float = 0.0) -> Answer:
    return Answer(_STORED, seq, at, late=late, age=age)


def _again(seq: int, at: float, late: bool = False, age: float = 0.0) -> Answer:
    return Answer(_AGAIN, seq, at, late=late, age=age)


def _decided(seq: int, at: float, first: int, *arms: int, status: Status = _STORED) -> Answer:
    return Answer(status, seq, at, first, arms)


def _one(at: float) -> Append:
    """Append one decision with id 0 at position 3, made at this time with a window of 80."""
    return Append(at, [(decide(0), _decided(3, at, 0, 0))])


_LATE_START = Append(
    0.0, [(decide(1, 1, window=60.0), _decided(3, 0.0, 0, 1, 1)), (CloseDecision(1), _stored(5, 0.0))]
)

CASES: dict[str, Case] = {
    "in rounds a decision's time is its number from 1 on, and a piece has that of the last": Case(True, [
        Append(1e9, [
            (decide(0, 1, 0), _decided(3, 1.0, 0, 0, 1, 0)),
            (NewPiece(0, 0.5), _stored(6, 3.0, age=2.0)),
            (decide(1), _decided(7, 4.0, 3, 1)),
        ]),
    ]),
    "time does not go back, whatever the caller's clock says": Case(False, [
        Append(50.0, [(decide(0), _decided(3, 50.0, 0, 0))]),
        Append(40.0, [(decide(0), _decided(4, 50.0, 1, 0))]),
        Append(60.0, [(decide(0), _decided(5, 60.0, 2, 0))]),
        Append(70.0, [(NewPiece(9, 1.0), _UNKNOWN)]),  # nothing happened then
        Append(65.0, [(decide(0), _decided(6, 65.0, 3, 0))]),
    ]),
    "a key makes a batch idempotent: as many decisions are the same batch, whatever their arms": Case(True, [
        Append(0.0, [(decide(0, 1, key="k"), _decided(3, 1.0, 0, 0, 1))]),
        Append(0.0, [
            (decide(1, 1, key="k"), _decided(3, 1.0, 0, 0, 1, status=_AGAIN)),
            (decide(1, key="k"), _CONFLICT),
        ]),
        Append(0.0, [
            (decide(0, key="x"), _decided(5, 3.0, 2, 0)),
            (decide(1, key="x"), _decided(5, 3.0, 2, 0, status=_AGAIN)),
            (decide(0, key="y"), _decided(6, 4.0, 3, 0)),
        ]),
    ]),
    "a batch with an unknown arm is refused, and a refused one keeps no key": Case(True, [
        Append(0.0, [(decide(2), _UNKNOWN), (decide(-1), _UNKNOWN), (decide(0, 2, key="k"), _UNKNOWN)]),
        Append(0.0, [(decide(0, key="k"), _decided(3, 1.0, 0, 0))]),
    ]),
    "the same key with the same piece is the same piece, with another piece a conflict": Case(False, [
        Append(0.0, [(decide(0, 1), _decided(3, 0.0, 0, 0, 1))]),
        Append(2.0, [(NewPiece(0, 0.5, age=1.0, key="k"), _stored(5, 2.0, age=1.0))]),
        Append(9.0, [
            (NewPiece(0, 0.5, age=1.0, key="k"), _again(5, 2.0, age=1.0)),
            (NewPiece(0, 0.6, age=1.0, key="k"), _CONFLICT),
            (NewPiece(0, 0.5, age=2.0, key="k"), _CONFLICT),
            (NewPiece(0, 0.5, key="k"), _CONFLICT),
            (NewPiece(1, 0.5, age=1.0, key="k"), _stored(6, 9.0, age=1.0)),  # of another decision
        ]),
    ]),
    "a piece of a guardrail is another than one of the reward, and a key is for one of them": Case(False, [
        _one(0.0),
        Append(2.0, [
            (NewPiece(0, 0.5, age=1.0), _stored(4, 2.0, age=1.0)),
            (NewPiece(0, 0.5, age=1.0, stream=0), _stored(5, 2.0, age=1.0)),
            (NewPiece(0, 0.5, age=1.0, stream=1), _stored(6, 2.0, age=1.0)),
            (NewPiece(0, 0.5, age=1.0, stream=0), _again(5, 2.0, age=1.0)),
            (NewPiece(0, 0.5, age=1.0, key="k", stream=1), _stored(7, 2.0, age=1.0)),
            (NewPiece(0, 0.5, age=1.0, key="k"), _CONFLICT),
        ]),
        Append(3.0, [
            (NewPiece(0, 0.5, age=1.0, key="k", stream=1), _again(7, 2.0, age=1.0)),
            (NewPiece(0, 0.5, age=1.0, key="k", stream=0), _CONFLICT),
            (NewPiece(0, 0.5, age=1.0), _again(4, 2.0, age=1.0)),
        ]),
    ]),
    "a piece that states no age is the same whenever it comes again": Case(False, [
        _one(0.0),
        Append(2.0, [(NewPiece(0, 0.5, key="k"), _stored(4, 2.0, age=2.0))]),
        Append(99.0, [(NewPiece(0, 0.5, key="k"), _again(4, 2.0, age=2.0))]),
    ]),
    "without a key the same value at the same stated age, or time, is the same piece": Case(False, [
        _one(10.0),
        Append(20.0, [
            (NewPiece(0, 0.5, age=3.0), _stored(4, 20.0, age=3.0)),
            (NewPiece(0, 0.5, when=13.0), _again(4, 20.0, age=3.0)),
            (NewPiece(0, 0.5, age=3.0, key="k"), _stored(5, 20.0, age=3.0)),
            (NewPiece(0, 0.5, age=4.0), _stored(6, 20.0, age=4.0)),
        ]),
        Append(21.0, [
            (NewPiece(0, 0.5, when=14.0), _again(6, 20.0, age=4.0)),
            (NewPiece(0, 0.5, when=15.0), _stored(7, 21.0, age=5.0)),
        ]),
        Append(22.0, [
            (NewPiece(0, 0.5, age=5.0), _again(7, 21.0, age=5.0)),
            (NewPiece(0, 0.5, when=15.0), _again(7, 21.0, age=5.0)),
        ]),
    ]),
    "a key is compared character by character, whatever the characters mean elsewhere": Case(False, [
        _one(0.0),
        Append(0.0, [
            (NewPiece(0, 0.5, 0.0, key=key), _stored(seq, 0.0)) for seq, key in enumerate(_ODD_KEYS, 4)
        ]),
        Append(0.0, [
            (NewPiece(0, 0.5, 0.0, key=key), _again(seq, 0.0)) for seq, key in enumerate(_ODD_KEYS, 4)
        ]),
        Append(0.0, [
            (decide(0, key=key), _decided(seq, 0.0, id_, 0))
            for id_, (seq, key) in enumerate(enumerate(_ODD_KEYS, 4 + len(_ODD_KEYS)), 1)
        ]),
        Append(0.0, [
            (decide(0, key=key), _decided(seq, 0.0, id_, 0, status=_AGAIN))
            for id_, (seq, key) in enumerate(enumerate(_ODD_KEYS, 4 + len(_ODD_KEYS)), 1)
        ]),
    ]),
    "without a key and a stated age every piece is its own, even at one moment": Case(False, [
        _one(0.0),
        Append(1.0, [(NewPiece(0, 0.5), _stored(seq, 1.0, age=1.0)) for seq in (4, 5, 6)]),
    ]),
    "a piece of an unknown decision is refused, and the others are stored": Case(False, [
        _one(0.0),
        Append(0.0, [
            (NewPiece(1, 0.5), _UNKNOWN),
            (NewPiece(0, 0.5), _stored(4, 0.0)),
            (NewPiece(-1, 0.5), _UNKNOWN),
            (CloseDecision(7), _UNKNOWN),
        ]),
    ]),
    "an id that no column can hold is unknown, and the others are stored": Case(False, [
        _one(0.0),
        Append(0.0, [
            (NewPiece(2**63, 0.5), _UNKNOWN),
            (NewPiece(-(2**63) - 1, 0.5, age=0.0), _UNKNOWN),
            (NewPiece(2**200, 0.5, key="k"), _UNKNOWN),
            (NewPiece(0, 0.5), _stored(4, 0.0)),
            (CloseDecision(2**63), _UNKNOWN),
            (RetireArm(2**63), _UNKNOWN),
            (decide(0, 2**63), _UNKNOWN),
            (NewPiece(2**63 - 1, 0.5), _UNKNOWN),
            (decide(0), _decided(5, 0.0, 1, 0)),
        ]),
    ]),
    "0.0 and -0.0 are one number": Case(False, [
        _one(0.0),
        Append(0.0, [
            (NewPiece(0, -0.0, age=-0.0, key="k"), _stored(4, 0.0)),
            (NewPiece(0, 0.0, age=0.0, key="k"), _again(4, 0.0)),
            (NewPiece(0, 0.0, age=0.0), _stored(5, 0.0)),
            (NewPiece(0, -0.0, age=-0.0), _again(5, 0.0)),
            (NewPiece(0, -0.0, when=-0.0), _again(5, 0.0)),
        ]),
    ]),
    "a stated age that the decision has not reached is refused until it has, but for the skew": Case(False, [
        _one(10.0),
        Append(12.0, [(NewPiece(0, 0.5, age=3.0, key="a"), _FUTURE), (NewPiece(0, 0.5, when=13.0), _FUTURE)]),
        Append(12.0, [
            (NewPiece(0, 0.5, age=3.0, key="a"), _stored(4, 12.0, age=3.0)),
            (NewPiece(0, 0.5, when=13.0), _stored(5, 12.0, age=3.0)),
        ], skew=1.0),
        Append(13.0, [(NewPiece(0, 0.5, age=4.0, key="c"), _FUTURE)]),
        Append(14.0, [(NewPiece(0, 0.5, age=4.0, key="c"), _stored(6, 14.0, age=4.0))]),
    ]),
    "a piece from before its decision is refused; within the skew its age is 0": Case(False, [
        _one(10.0),
        Append(12.0, [(NewPiece(0, 0.5, when=8.0), _EARLY)]),
        Append(12.0, [(NewPiece(0, 0.5, when=8.0), _stored(4, 12.0, age=0.0))], skew=2.0),
    ]),
    "in time until the window ends": Case(False, [
        _LATE_START,
        Append(59.0, [(NewPiece(0, 0.5, age=59.0), _stored(6, 59.0, age=59.0))]),
        Append(59.9, [(NewPiece(0, 0.5), _stored(7, 59.9, age=59.9))]),
    ]),
    "late once the window has ended, by the clock": Case(False, [
        _LATE_START,
        Append(60.0, [
            (NewPiece(0, 0.5, age=59.0), _stored(6, 60.0, late=True, age=59.0)),
            (NewPiece(0, 0.5, key="k"), _stored(7, 60.0, late=True, age=60.0)),
        ]),
        Append(500.0, [(NewPiece(0, 0.5, key="k"), _again(7, 60.0, late=True, age=60.0))]),
    ]),
    "late by its stated age, as far as the skew allows one in the future": Case(False, [
        _LATE_START,
        Append(59.0, [(NewPiece(0, 0.5, age=60.0), _stored(6, 59.0, late=True, age=60.0))], skew=5.0),
    ]),
    "late once its decision was closed": Case(False, [
        _LATE_START,
        Append(5.0, [(NewPiece(1, 0.5, age=1.0), _stored(6, 5.0, late=True, age=1.0))]),
    ]),
    "each request finds what those before it in the same append left": Case(True, [
        Append(0.0, [
            (decide(0), _decided(3, 1.0, 0, 0)),
            (NewPiece(0, 0.1), _stored(4, 1.0)),
            (CloseDecision(0), _stored(5, 1.0)),
            (NewPiece(0, 0.2), _stored(6, 1.0, late=True)),
            (CloseDecision(0), _again(5, 1.0)),
            (NewPiece(0, 0.1, key="k"), _stored(7, 1.0, late=True)),
        ]),
    ]),
    "of pieces with one key in an append the first that can be stored is": Case(False, [
        _one(10.0),
        Append(20.0, [
            (NewPiece(0, 0.5, age=99.0, key="k"), _FUTURE),
            (NewPiece(0, 0.5, age=1.0, key="k"), _stored(4, 20.0, age=1.0)),
            (NewPiece(0, 0.5, age=1.0, key="k"), _again(4, 20.0, age=1.0)),
            (NewPiece(0, 0.7, age=1.0, key="k"), _CONFLICT),
            (NewPiece(0, 0.7, age=1.0, key="j"), _stored(5, 20.0, age=1.0)),
        ]),
    ]),
    "an arm is added once and retired once": Case(True, [
        Append(0.0, [
            (_SOUL, Answer(_STORED, 3, 0.0, 2)),
            (_SOUL, Answer(_AGAIN, 3, 0.0, 2)),
            (_SOUL._replace(cap=4.0), _CONFLICT),
            (RetireArm(0), _stored(4, 0.0)),
            (RetireArm(3), _UNKNOWN),
        ]),
        Append(0.0, [(RetireArm(0), _again(4, 0.0)), (decide(2), _decided(5, 1.0, 0, 2))]),
    ]),
    "an arm added again is the same only if what is known about it is, to the byte": Case(True, [
        Append(0.0, [
            (_KNOWN, Answer(_STORED, 3, 0.0, 2)),
            (_KNOWN, Answer(_AGAIN, 3, 0.0, 2)),
            (_KNOWN._replace(about=bytes(16)), _CONFLICT),
            (_SOUL, Answer(_STORED, 4, 0.0, 3)),
            (_SOUL._replace(about=bytes(8)), _CONFLICT),
        ]),
        Append(0.0, [
            (_KNOWN._replace(about=None), _CONFLICT),
            (_KNOWN._replace(about=bytes(8)), _CONFLICT),
            (_SOUL._replace(about=b""), _CONFLICT),
            (_KNOWN, Answer(_AGAIN, 3, 0.0, 2)),
            (_SOUL, Answer(_AGAIN, 4, 0.0, 3)),
            (JAZZ._replace(about=bytes(8)), _CONFLICT),
            (decide(2, 3), _decided(5, 1.0, 0, 2, 3)),
        ]),
    ]),
}  # fmt: skip
