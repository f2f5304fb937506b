"""Events read from PostgreSQL a column at a time: the query, and the columns that it returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from accrual.store.events import EVENT_COLUMNS, NONE, PACKED, Events, Kind

_HEADER = 20  # bytes before the elements of an array of one dimension
_TYPES = {"i": "BIGINT", "f": "FLOAT8"}  # by the kind of numpy's type


def event_query() -> str:
    """Return the query for a part of the log: an array, in binary form, for each column of `Events`."""
    kinds: dict[str, list[Kind]] = {}
    for kind, (table, _) in EVENT_COLUMNS.items():
        kinds.setdefault(table, []).append(kind)
    parts = []
    for table, own in kinds.items():
        columns = ", ".join(
            f'({_source(column, own)})::{_TYPES[PACKED[column].kind]} AS "{column}"'
            for column in Events._fields
        )
        arm = "LEFT JOIN arm ON arm.bandit = t.bandit AND arm.number = t.subject" if table == "change" else ""
        where = "t.bandit = $1 AND t.seq > $2 ORDER BY t.seq LIMIT $3"
        parts.append(f"(SELECT {columns} FROM {table} t {arm} WHERE {where})")
    sent = ", ".join(f'array_send(array_agg("{column}")) AS "{column}"' for column in Events._fields)
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


def events_of_columns(sent: Sequence[bytes | None]) -> Events:
    """Return the events that the row of the query `event_query` holds."""
    return Events._make(
        _column(array, PACKED[name].kind) for name, array in zip(Events._fields, sent, strict=True)
    )


def _column(sent: bytes | None, kind: str) -> npt.NDArray[Any]:
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
