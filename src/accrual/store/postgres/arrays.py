"""Requests, answers and events as arrays, which PostgreSQL takes and returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from accrual.store.base import (
    NUMBERS_END,
    AddArm,
    Answer,
    CloseDecision,
    NewDecisions,
    NewPiece,
    Status,
    StoreRequest,
    known_propensities,
)
from accrual.store.events import EVENT_COLUMNS, NONE, PACKED, Events, Kind

_STATUSES = (Status.STORED, Status.AGAIN, Status.CONFLICT, Status.UNKNOWN, Status.FUTURE, Status.EARLY)
_HEADER = 20  # bytes before the elements of an array of one dimension

_TYPES = {"i": "BIGINT", "f": "FLOAT8"}  # by the kind of numpy's type

Columns = tuple[list[Any], ...]

# What `accrual_append` takes before the columns that `encode` makes, and those.
_FIRST = ("to_bandit", "clock", "skew")
_ARRAYS = (
    "kinds",
    "subjects",
    "amounts",
    "ages",
    "whens",
    "names",
    "counts",
    "arms",
    "windows",
    "propensities",
)


def append_query() -> str:
    """Return the query for an append: its arguments are bandit, clock, skew and what `encode` returns."""
    arguments = ", ".join(f"{name} => ${place}" for place, name in enumerate((*_FIRST, *_ARRAYS), 1))
    return f"SELECT * FROM accrual_append({arguments})"


def event_query() -> str:
    """Return the query for a part of the log: an array, in binary form, for each column of `Events`."""
    kinds: dict[str, list[Kind]] = {}
    for kind, (table, _) in EVENT_COLUMNS.items():
        kinds.setdefault(table, []).append(kind)
    parts = []
    for table, own in kinds.items():
        columns = ", ".join(
            f"({_source(column, own)})::{_TYPES[PACKED[column].kind]} AS {column}"
            for column in Events._fields
        )
        arm = "LEFT JOIN arm ON arm.bandit = t.bandit AND arm.number = t.subject" if table == "change" else ""
        where = "t.bandit = $1 AND t.seq > $2 ORDER BY t.seq LIMIT $3"
        parts.append(f"(SELECT {columns} FROM {table} t {arm} WHERE {where})")
    sent = ", ".join(f"array_send(array_agg({column})) AS {column}" for column in Events._fields)
    return f"SELECT {sent} FROM ({' UNION ALL '.join(parts)} ORDER BY seq LIMIT $3) AS event"


def _source(column: str, kinds: Sequence[Kind]) -> str:
    """Return where a column of `Events` comes from in the table, called t, that holds these kinds."""
    if column in ("seq", "at") or (column == "kind" and len(kinds) > 1):
        return f"t.{column}"
    if column == "kind":
        return str(int(kinds[0]))
    sources = {}
    for kind in kinds:
        name = EVENT_COLUMNS[kind][1].get(column)
        owner, _, own = (name or "").rpartition(".")
        sources[kind] = str(NONE[column]) if name is None else f'{owner or "t"}."{own}"'
        if name in ("propensity", "stream"):  # NULL where none was recorded, and for the reward
            sources[kind] = f"coalesce({sources[kind]}, {NONE[column]})"
    if len(kinds) == 1:
        return sources[kinds[0]]
    return f"CASE t.kind {' '.join(f'WHEN {int(kind)} THEN {text}' for kind, text in sources.items())} END"


def encode(requests: Sequence[StoreRequest]) -> Columns:
    """Return the arguments of `accrual_append` from `kinds` to `propensities`."""
    lists: dict[str, list[Any]] = {name: [] for name in _ARRAYS}
    for type_, run in groupby(requests, type):
        if type_ is NewPiece:  # many in a row, as a rule: a column at a time
            pieces: Any = NewPiece._make(zip(*run, strict=True))  # a tuple of values in each field
            n = len(pieces.decision)
            lists["kinds"] += [Kind.PIECE] * n
            lists["subjects"] += map(_known, pieces.decision)
            lists["amounts"] += [value + 0.0 for value in pieces.value]  # 0.0 for -0.0
            lists["ages"] += [None if age is None else age + 0.0 for age in pieces.age]
            lists["whens"] += pieces.when
            lists["names"] += pieces.key
            lists["counts"] += [0 if stream is None else stream + 1 for stream in pieces.stream]
            continue
        for request in run:
            for name, value in _arguments(request).items():
                lists[name].append(value)
            if isinstance(request, NewDecisions):
                lists["arms"] += map(_known, request.arms)
                lists["windows"] += request.windows
                lists["propensities"] += request.propensities or [None] * len(request.arms)
    return tuple(lists.values())


def _known(number: int) -> int:
    """Return the number of a decision or an arm; -1, which none has, if no column can hold the number."""
    return number if 0 <= number < NUMBERS_END else -1


def _arguments(request: StoreRequest) -> dict[str, Any]:
    """Return what a request that is no piece adds to each array but `arms`, `windows` and `propensities`."""
    values: dict[str, Any] = {
        "kinds": Kind.RETIRE_ARM, "subjects": 0, "amounts": 0.0, "ages": None, "whens": None, "names": None,
        "counts": 0,
    }  # fmt: skip
    if isinstance(request, NewDecisions):
        return values | {
            "kinds": Kind.DECISION, "subjects": request.seen, "amounts": float(request.salt),
            "names": request.key, "counts": len(request.arms),
        }  # fmt: skip
    if isinstance(request, CloseDecision):
        return values | {"kinds": Kind.CLOSE, "subjects": _known(request.decision)}
    if isinstance(request, AddArm):
        return values | {
            "kinds": Kind.ADD_ARM, "amounts": request.cap, "ages": request.window, "names": request.name
        }  # fmt: skip
    return values | {"subjects": _known(request.arm)}  # type: ignore[union-attr]


def decode(requests: Sequence[StoreRequest], row: Mapping[str, Any]) -> list[Answer]:
    """Return the answers that a row of `accrual_append` holds."""
    again, again_propensities = row["again"], row["again_propensities"]
    answers = []
    taken = 0
    columns = (row["statuses"], row["seqs"], row["ats"], row["numbers"], row["lates"], row["stored_ages"])
    for request, code, seq, at, number, late, age in zip(requests, *columns, strict=True):
        arms: tuple[int, ...] = ()
        propensities: tuple[float | None, ...] = ()
        if type(request) is NewDecisions and code < 2:
            arms = request.arms
            propensities = request.propensities
            if code == 1:
                arms = tuple(again[taken : taken + len(arms)])
                propensities = known_propensities(again_propensities[taken : taken + len(arms)])
                taken += len(arms)
        answers.append(Answer(_STATUSES[code], seq, at, number, arms, late, age, propensities))
    return answers


def column(sent: bytes | None, kind: str) -> npt.NDArray[Any]:
    """Return the elements, none of them null, of an array in PostgreSQL's binary form.

    Parameters
    ----------
    sent : bytes or None
        What `array_send` returns; None for no elements.
    kind : str
        What they are: "i" for integers, "f" for floating-point numbers; of eight bytes each.
    """
    if sent is None:
        return np.zeros(0, f"{kind}8")
    element = np.dtype([("length", ">i4"), ("value", f">{kind}8")])
    return np.frombuffer(sent, element, offset=_HEADER)["value"].astype(f"{kind}8")
