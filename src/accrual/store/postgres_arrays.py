"""Items and answers as the arrays that PostgreSQL's `accrual_append` takes and gives."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from accrual.store.base import (
    AddArm,
    Answer,
    CloseDecision,
    Kind,
    NewDecisions,
    NewPiece,
    Status,
    StoreRequest,
)

_STATUSES = (Status.STORED, Status.AGAIN, Status.CONFLICT, Status.UNKNOWN, Status.FUTURE, Status.EARLY)
_HEADER = 20  # bytes before the elements of an array of one dimension

Columns = tuple[list[Any], ...]


def encode(requests: Sequence[StoreRequest]) -> Columns:
    """The arguments `kinds` to `windows`."""
    kinds: list[int] = []
    subjects: list[int] = []
    amounts: list[float] = []
    ages: list[float | None] = []
    whens: list[float | None] = []
    names: list[str | None] = []
    counts: list[int] = []
    arms: list[int] = []
    windows: list[float] = []
    for type_, run in groupby(requests, type):
        if type_ is NewPiece:  # many in a row, as a rule: a column at a time
            decisions, values, stated, when, keys = zip(*run, strict=True)
            n = len(decisions)
            kinds += [Kind.PIECE] * n
            subjects += decisions
            amounts += values
            ages += stated
            whens += when
            names += keys
            counts += [0] * n
            continue
        for request in run:
            kind, subject, amount, age, name, count = Kind.DECISION, 0, 0.0, None, None, 0
            if isinstance(request, NewDecisions):
                subject, name, count, amount = (
                    request.seen,
                    request.key,
                    len(request.arms),
                    float(request.salt),
                )
                arms += request.arms
                windows += request.windows
            elif isinstance(request, CloseDecision):
                kind, subject = Kind.CLOSE, request.decision
            elif isinstance(request, AddArm):
                kind, name, amount, age = Kind.ADD_ARM, request.name, request.cap, request.window
            else:
                kind, subject = Kind.RETIRE_ARM, request.arm  # type: ignore[union-attr]
            kinds.append(kind)
            subjects.append(subject)
            amounts.append(amount)
            ages.append(age)
            whens.append(None)
            names.append(name)
            counts.append(count)
    return kinds, subjects, amounts, ages, whens, names, counts, arms, windows


def decode(requests: Sequence[StoreRequest], row: Sequence[Any]) -> list[Answer]:
    """The answers that a row of `accrual_append` holds."""
    statuses, seqs, ats, numbers, lates, ages, again = row
    answers = []
    taken = 0
    for request, code, seq, at, number, late, age in zip(
        requests, statuses, seqs, ats, numbers, lates, ages, strict=True
    ):
        arms: tuple[int, ...] = ()
        if type(request) is NewDecisions and code < 2:
            arms = request.arms
            if code == 1:
                arms = tuple(again[taken : taken + len(arms)])
                taken += len(arms)
        answers.append(Answer(_STATUSES[code], seq, at, number, arms, late, age))
    return answers


def column(sent: bytes | None, code: str) -> npt.NDArray[Any]:
    """The elements, none of them null, of an array in PostgreSQL's binary form.

    Parameters
    ----------
    sent : bytes or None
        What `array_send` gives; None for no elements.
    code : str
        Their type as numpy writes it, without the byte order: "i8" or "f8".
    """
    if sent is None:
        return np.zeros(0, code)
    element = np.dtype([("length", ">i4"), ("value", ">" + code)])
    return np.frombuffer(sent, element, offset=_HEADER)["value"].astype(code)
