"""The two routes that carry the traffic: decisions, and pieces."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from accrual.core.errors import InputError
from accrual.live.commit import BanditRequest, Decide
from accrual.service.bandit_pool import ServedBandit
from accrual.service.json_input import json_reader
from accrual.service.messages import NAME_MOST, WHOLE_MOST, ContextIn
from accrual.service.operations import Operation
from accrual.service.refusals import Refusal
from accrual.store.base import Answer, NewPiece, Status

BATCH_MOST = 1_000
KEY_MOST = 200

_TIME_MOST = 1e12

Id = Annotated[int, Meta(ge=0, le=WHOLE_MOST, description="A decision's id.")]
KeyText = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=KEY_MOST,
        description="Printable ASCII. A request sent again with the same key is stored once.",
        extra_json_schema={"pattern": "^[ -~]+$"},
    ),
]


class DecisionsIn(Struct, forbid_unknown_fields=True):
    """How many decisions, and under which key."""

    n: Annotated[int, Meta(ge=1, le=BATCH_MOST, description="How many decisions.")] = 1
    key: KeyText | None = None
    context: Annotated[
        ContextIn | Annotated[list[ContextIn], Meta(max_length=BATCH_MOST)] | None,
        Meta(
            description="Whom the decision is for: a value for each feature; with n, a list of n of these. "
            "For a bandit with features alone; what is left out is missing, and counted."
        ),
    ] = None


class DecisionOut(Struct, gc=False):
    """A decision."""

    id: int
    arm: str
    at: Annotated[float, Meta(description="Its round, or its time in seconds since 1970.")]
    propensity: Annotated[
        float | None, Meta(description="The probability with which its arm was chosen; null without a floor.")
    ]


class DecisionsOut(Struct):
    """Decisions, in order."""

    decisions: list[DecisionOut]
    again: Annotated[
        bool,
        Meta(
            description="Whether the key had been used before: these are the decisions that were made then."
        ),
    ]


class PieceIn(Struct, forbid_unknown_fields=True, gc=False):
    """A piece of a decision's reward."""

    decision: Id
    value: Annotated[float, Meta(ge=-1e15, le=1e15)]
    age: (
        Annotated[float, Meta(ge=0, le=_TIME_MOST, description="Rounds, or seconds, since the decision.")]
        | None
    ) = None
    at: (
        Annotated[float, Meta(ge=0, le=_TIME_MOST, description="When it was paid, in place of `age`.")] | None
    ) = None
    key: KeyText | None = None
    stream: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=NAME_MOST,
                description="The guardrail that it is of; reward unless given.",
            ),
        ]
        | None
    ) = None


Outcome = Literal["stored", "again", "late", "conflict", "unknown", "future", "early", "invalid"]


class PieceOut(Struct, omit_defaults=True, gc=False):
    """What became of a piece."""

    status: Outcome
    age: Annotated[float, Meta(description="As stored.")] | UnsetType = UNSET
    late: Annotated[bool, Meta(description="Stored and counted, but not learned from.")] | UnsetType = UNSET
    warning: (
        Annotated[str, Meta(description="Present if the decision has paid more in all than its arm's cap.")]
        | UnsetType
    ) = UNSET
    detail: str | UnsetType = UNSET


Pieces = PieceIn | Annotated[list[PieceIn], Meta(min_length=1, max_length=BATCH_MOST)]

_read_pieces = json_reader(Pieces)
_read_decisions = json_reader(DecisionsIn)
_write = msgspec.json.Encoder().encode

_STORED, _AGAIN = Status.STORED, Status.AGAIN
_WRONG: dict[Status, tuple[str, str]] = {  # which problem it is, and what to say
    Status.CONFLICT: ("conflict", "its key has been used for another piece of this decision"),
    Status.UNKNOWN: ("unknown-decision", "no decision has this id"),
    Status.FUTURE: ("future", "its decision has not reached this age"),
    Status.EARLY: ("early", "its time is before that of its decision"),
}

Find = Callable[[str], Awaitable[ServedBandit]]


class TrafficRoutes:
    """Answer the two routes.

    Parameters
    ----------
    find : callable
        Finds a bandit by its name, or refuses.
    """

    def __init__(self, find: Find) -> None:
        self._find = find

    def operations(self) -> list[Operation]:
        """Return a row for each route, for the API's description."""
        at = "/v1/bandits/{bandit}"
        return [
            Operation("decide", "POST", f"{at}/decisions", "write", self.decisions, DecisionsOut,
                      takes=DecisionsIn, body_optional=True),
            Operation("observe", "POST", f"{at}/pieces", "write", self.pieces, PieceOut | list[PieceOut],
                      takes=Pieces),
        ]  # fmt: skip

    async def decisions(self, name: str, body: bytes) -> bytes:
        """Make decisions. With a key, the same request again gives the same decisions."""
        served = await self._find(name)
        given = _read_decisions(body) if body else DecisionsIn()
        if given.key is not None:
            check_key(given.key)
        try:
            one = given.n == 1 and not isinstance(given.context, list)
            contexts = served.bandit.stored_contexts(given.context, None if one else given.n)
        except InputError as error:
            raise Refusal("invalid", str(error)) from None
        try:
            (answer,) = await served.queue.submit((Decide(given.n, given.key, contexts),))
        except Refusal as refusal:
            if refusal.kind != "invalid":
                raise
            raise Refusal("no-arms", str(refusal)) from None  # all else has been checked
        if answer.status is Status.CONFLICT:
            raise Refusal(
                "conflict", "the key has been used for another number of decisions, or other contexts"
            )
        if not served.knows(answer.arms):  # another process has added some
            await asyncio.to_thread(served.learn_arms)
        first, at, step = answer.number, answer.at, served.step
        chances = answer.propensities or (None,) * len(answer.arms)
        made = [
            DecisionOut(first + i, served.arm_name(arm), at + step * i, chances[i])
            for i, arm in enumerate(answer.arms)
        ]
        return _write(DecisionsOut(made, answer.status is _AGAIN))

    async def pieces(self, name: str, body: bytes) -> bytes:
        """Store pieces: one, or a list of up to 1,000.

        One that cannot be stored is a problem; in a list, each has its own status.
        """
        served = await self._find(name)
        given = _read_pieces(body)
        if isinstance(given, list):
            return await self._many(served, given)
        if given.key is not None:
            check_key(given.key)
        (answer,) = await served.queue.submit((_pay(served, given),))
        status = answer.status
        if status in _WRONG:
            raise Refusal(*_WRONG[status])
        return _write(_told(answer))

    async def _many(self, served: ServedBandit, given: Sequence[PieceIn]) -> bytes:
        """Store a list of pieces, each stored or refused for itself."""
        told: list[PieceOut | None] = []
        pays: list[BanditRequest] = []
        for piece in given:
            if piece.key is not None:
                check_key(piece.key)
            try:
                pays.append(_pay(served, piece))
                told.append(None)
            except Refusal as refusal:
                told.append(PieceOut("invalid", detail=str(refusal)))
        answers = iter(await served.queue.submit(pays) if pays else ())
        return _write([_told(next(answers)) if one is None else one for one in told])


def check_key(key: str) -> None:
    """Refuse a key that a log or a database might not take."""
    if not (key.isascii() and key.isprintable()):
        raise Refusal("invalid", "a key must be of printable ASCII characters")


def _pay(served: ServedBandit, piece: PieceIn) -> NewPiece:
    try:
        return served.bandit.piece(piece.decision, piece.value, piece.age, piece.at, piece.key, piece.stream)
    except InputError as error:
        raise Refusal("invalid", str(error)) from None


def _told(answer: Answer) -> PieceOut:
    status = answer.status
    outcome: Any = status.value
    if status is _STORED or status is _AGAIN:
        if status is _STORED and answer.late:
            outcome = "late"
        return PieceOut(outcome, answer.age, answer.late, answer.warning or UNSET)
    return PieceOut(outcome, detail=_WRONG[status][1])
