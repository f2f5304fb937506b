"""Which column is what: as told, or guessed from the names; and what can be read from it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from accrual.core.errors import InputError, unknown
from accrual.fit.source import Source, run

DECISION_ROLES = ("id", "arm", "at", "propensity", "window")
PIECE_ROLES = ("decision", "value", "piece_at", "age", "key")
ROLES = (*DECISION_ROLES, *PIECE_ROLES)

# In order of preference. A name counts whatever its case and whatever stands between its words.
_TIMES = ("at", "time", "timestamp", "ts", "datetime", "date", "round", "t")
_GUESSES: dict[str, tuple[str, ...]] = {
    "id": ("id", "decision_id", "decision", "impression_id", "request_id", "session_id"),
    "arm": ("arm", "variant", "action", "treatment", "option", "item", "item_id", "arm_id"),
    "at": ("at", "decided_at", "decision_at", "decision_time", "shown_at", *_TIMES[1:]),
    "propensity": ("propensity", "probability", "prob"),
    "window": ("window",),
    "decision": ("decision", "decision_id", "impression_id", "request_id", "session_id", "id"),
    "value": ("value", "reward", "amount", "revenue", "pay", "payment"),
    "piece_at": ("piece_at", "piece_time", "reward_at", "reward_time", "paid_at", "arrived_at", *_TIMES),
    "age": ("age", "delay", "lag", "elapsed"),
    "key": ("key", "piece_id", "event_id", "piece_key"),
}
_JOINED = {**_GUESSES, "piece_at": _GUESSES["piece_at"][: -len(_TIMES)]}  # there, "time" is the decision's

_NUMBERS = re.compile(
    r"^(U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL(\(.*\))?|U?INT(8|16|32|64|128)|BIGNUM)$"
)
_TIMED = re.compile(r"^(DATE|TIMESTAMP(_S|_MS|_NS)?|DATETIME)$")
_ZONED = re.compile(r"^TIMESTAMP(_NS|_MS|_S)? WITH TIME ZONE$")


def assign(
    source: Source, roles: Iterable[str], told: Mapping[str, str], joined: bool = False
) -> dict[str, int]:
    """The column of each role that `source` has: as told, otherwise by its name."""
    names = [_plain(name) for name in source.names]
    found: dict[str, int] = {}
    for role in roles:
        if role in told:
            found[role] = _exact(source, told[role], role)
    for role in roles:
        for guess in (_JOINED if joined else _GUESSES)[role]:
            if role not in found and guess in names and names.index(guess) not in found.values():
                found[role] = names.index(guess)
    return found


def required(source: Source, found: Mapping[str, int], role: str, meaning: str) -> None:
    """Complain if a table lacks a role."""
    if role not in found:
        names = ", ".join(map(repr, source.names[:30]))
        raise InputError(
            f"{source.label}: no column for {role} ({meaning}); it has {names}; name one with {role}=COLUMN"
        )


def check_told(told: Mapping[str, str]) -> None:
    for role in told:
        if role not in ROLES:
            raise unknown("column role", role, ROLES)


def number_expression(source: Source, column: int, role: str) -> str:
    """SQL for a column as a number; NULL where it is none."""
    kind = source.types[column]
    if kind == "VARCHAR":
        return f"TRY_CAST(c{column} AS DOUBLE)"
    if _NUMBERS.match(kind) or kind == "BOOLEAN":
        return f"CAST(c{column} AS DOUBLE)"
    if kind == "INTERVAL" and role == "age":
        return f"epoch(c{column})"
    raise InputError(
        f"{source.label}: column {source.names[column]!r} ({role}) must hold numbers, not {kind}"
    )


def text_expression(source: Source, column: int, role: str) -> str:
    """SQL for a column as text; NULL where it is empty."""
    kind = source.types[column]
    if kind.endswith(("]", ")")) and not kind.startswith(("DECIMAL", "ENUM")):
        raise InputError(
            f"{source.label}: column {source.names[column]!r} ({role}) must hold text, not {kind}"
        )
    return f"NULLIF(CAST(c{column} AS VARCHAR), '')"


def empty(column: int) -> str:
    """SQL that tells whether a cell is empty."""
    return f"(c{column} IS NULL OR CAST(c{column} AS VARCHAR) = '')"


def is_whole(source: Source, column: int) -> bool:
    return bool(re.match(r"^(U?(TINY|SMALL|BIG)INT|INTEGER|U?INT(8|16|32|64))$", source.types[column]))


class Moments:
    """How a column of times is read.

    Attributes
    ----------
    timestamps : bool
        Otherwise plain numbers.
    tick : str
        SQL for the moment, in microseconds or as the number; NULL where it is none.
    aware : str
        SQL that tells whether it has a time zone of its own.
    """

    def __init__(self, connection: Any, source: Source, column: int, role: str) -> None:
        kind, cell = source.types[column], f"c{column}"
        self.aware = "NULL::BOOLEAN"
        moment = ""
        if kind == "VARCHAR":
            query = f"SELECT {cell} FROM {source.scan} WHERE NOT {empty(column)} LIMIT 1"
            row = run(connection, query, source).fetchone()
            first = row[0] if row else "0"
            if (
                run(connection, "SELECT TRY_CAST($text AS DOUBLE)", _said(source, first)).fetchone()[0]
                is None
            ):
                moment = f"TRY_CAST({cell} AS TIMESTAMPTZ)"
                naive = r"\s*[0-9/.-]+([T ]+[0-9:.,]+)?\s*"
                self.aware = f"NOT regexp_full_match({cell}, '{naive}')"
        elif _TIMED.match(kind) or _ZONED.match(kind):
            moment = f"CAST({cell} AS TIMESTAMPTZ)" if _ZONED.match(kind) else f"CAST({cell} AS TIMESTAMP)"
            self.aware = "true" if _ZONED.match(kind) else "false"
        elif not _NUMBERS.match(kind):
            raise InputError(
                f"{source.label}: column {source.names[column]!r} ({role}) must hold times, not {kind}"
            )
        self.timestamps = bool(moment)
        if moment:
            self.tick = f"CASE WHEN isfinite({moment}) THEN epoch_us({moment}) END"
        else:
            value = number_expression(source, column, role)
            self.tick = f"CASE WHEN isfinite({value}) THEN {value} END"

    @property
    def needed(self) -> str:
        return "a timestamp such as 2024-05-01 12:30:00+00:00" if self.timestamps else "a number"


def _said(source: Source, text: str) -> Source:
    return Source(source.label, (), (), "", {"text": text})


def _exact(source: Source, name: str, role: str) -> int:
    matches = [i for i, own in enumerate(source.names) if own == name]
    if len(matches) != 1:
        found = ", ".join(map(repr, source.names[:30]))
        count = "no" if not matches else f"{len(matches)}"
        raise InputError(f"{source.label}: {count} column {name!r} (for {role}); it has {found}")
    return matches[0]


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()).strip("_")
