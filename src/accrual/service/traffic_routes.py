"""The two routes that carry the traffic: decisions, and pieces."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from accrual.core.errors import InputError
from accrual.live.commit import BanditRequest
from accrual.live.ledger import NO_ARM
from accrual.service.bandit_pool import ServedBandit
from accrual.service.json_input import json_reader
from accrual.service.messages import DecideIn, DecisionOut, DecisionsOut, PieceIn, PieceResultOut, PiecesIn
from accrual.service.operations import Operation
from accrual.service.refusals import Refusal
from accrual.store.base import Answer, NewPiece, Status

_read_pieces = json_reader(PiecesIn)
_read_decisions = json_reader(DecideIn)
_write = msgspec.json.Encoder().encode

_STORED, _AGAIN = Status.STORED, Status.AGAIN
_NOT_STORED: dict[Status, tuple[str, str]] = {  # the kind of problem, and its detail
    Status.CONFLICT: ("conflict", "its key has been used for another piece of this decision"),
    Status.UNKNOWN: ("unknown-decision", "no decision has this id"),
    Status.FUTURE: ("future", "its decision has not reached this age"),
    Status.EARLY: ("early", "its time is before that of its decision"),
}

Find = Callable[[str], Awaitable[ServedBandit]]


class TrafficRoutes:
    """Answer the two routes, from bytes to bytes.

    Parameters
    ----------
    find : callable
        Returns the bandit of a name, or refuses.
    """

    def __init__(self, find: Find) -> None:
        self._find = find

    def operations(self) -> list[Operation]:
        """Return a row for each route, for the API's description."""
        at = "/v1/bandits/{bandit}"
        return [
            Operation("decide", "POST", f"{at}/decisions", "write", self.decisions, DecisionsOut,
                      takes=DecideIn, body_optional=True),
            Operation("observe", "POST", f"{at}/pieces", "write", self.pieces,
                      PieceResultOut | list[PieceResultOut], takes=PiecesIn),
        ]  # fmt: skip

    async def decisions(self, name: str, body: bytes) -> bytes:
        """Make decisions. With a key, the same request sent again returns the same decisions."""
        served = await self._find(name)
        given = _read_decisions(body) if body else DecideIn()
        one = given.n == 1 and not isinstance(given.context, list)
        request = served.bandit.choice(None if one else given.n, given.key, given.context)
        try:
            (answer,) = await served.submit((request,))
        except InputError as error:  # the request was checked above, so the bandit is the cause
            raise Refusal("no-arms" if str(error) == NO_ARM else "not-served", str(error)) from None
        if answer.status is Status.CONFLICT:
            raise Refusal(
                "conflict", "the key has been used for another number of decisions, or other contexts"
            )
        if not served.knows(answer.arms):  # another process has added an arm
            await asyncio.to_thread(served.learn_arms)
        first, at, step = answer.number, answer.at, served.step
        propensities = answer.propensities or (None,) * len(answer.arms)
        decisions = [
            DecisionOut(first + i, served.arm_name(arm), at + step * i, propensities[i])
            for i, arm in enumerate(answer.arms)
        ]
        return _write(DecisionsOut(decisions, answer.status is _AGAIN))

    async def pieces(self, name: str, body: bytes) -> bytes:
        """Store a piece, or a list of up to 1,000 pieces.

        A single piece that cannot be stored is answered with a problem document. In a list, each piece has
        its own status.
        """
        served = await self._find(name)
        given = _read_pieces(body)
        if isinstance(given, list):
            return await self._many(served, given)
        (answer,) = await served.submit((_new_piece(served, given),))
        status = answer.status
        if status in _NOT_STORED:
            raise Refusal(*_NOT_STORED[status])
        return _write(_piece_out(answer))

    async def _many(self, served: ServedBandit, given: Sequence[PieceIn]) -> bytes:
        """Store a list of pieces. One that is refused does not keep the others from being stored."""
        refused: list[PieceResultOut | None] = []
        pieces: list[BanditRequest] = []
        for piece in given:
            try:
                pieces.append(_new_piece(served, piece))
                refused.append(None)
            except InputError as error:
                refused.append(PieceResultOut("invalid", detail=str(error)))
        answers = iter(await served.submit(pieces) if pieces else ())
        return _write([_piece_out(next(answers)) if one is None else one for one in refused])


def _new_piece(served: ServedBandit, piece: PieceIn) -> NewPiece:
    return served.bandit.piece(*msgspec.structs.astuple(piece))


def _piece_out(answer: Answer) -> PieceResultOut:
    status = answer.status
    outcome: Any = status.value
    if status is _STORED or status is _AGAIN:
        if status is _STORED and answer.late:
            outcome = "late"
        return PieceResultOut(outcome, age=answer.age, late=answer.late, warning=answer.warning or UNSET)
    return PieceResultOut(outcome, detail=_NOT_STORED[status][1])
