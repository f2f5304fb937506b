"""Find which column of a table has which role: the user names it, or it is guessed from its name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from accrual.core.errors import InputError, only
from accrual.logs.read.sources import TableSource

DECISION_ROLES = ("id", "arm", "at", "propensity", "window")
PIECE_ROLES = ("decision", "value", "piece_at", "age", "key")
ROLES = (*DECISION_ROLES, *PIECE_ROLES, "start", "stop", "status")

# In order of preference. A name counts whatever its case and whatever separates its words.
_TIMES = ("at", "time", "timestamp", "ts", "datetime", "date", "round", "t")
_GUESSES: dict[str, tuple[str, ...]] = {
    "id": ("decision_id", "decision", "id", "impression_id", "request_id", "session_id"),
    "arm": ("arm", "variant", "action", "treatment", "option", "item", "item_id", "arm_id"),
    "at": ("at", "decided_at", "decision_at", "decision_time", "shown_at", *_TIMES[1:]),
    "propensity": ("propensity", "probability", "prob"),
    "window": ("window",),
    "decision": ("decision_id", "decision", "impression_id", "request_id", "session_id", "id"),
    "value": ("value", "reward", "amount", "revenue", "pay", "payment"),
    "piece_at": ("piece_at", "piece_time", "reward_at", "reward_time", "paid_at", "arrived_at", "event_at",
                 "event_time", *_TIMES),
    "age": ("age", "delay", "lag", "elapsed"),
    "key": ("key", "piece_id", "event_id", "piece_key"),
}  # fmt: skip
_NO_DECISION = {*_GUESSES["arm"], *_GUESSES["key"]}  # names that end in _id and are something else
# In a joined table a row is a piece: "time" is its decision's, and "id" may be its own.
_JOINED = {**_GUESSES, "id": _GUESSES["decision"], "piece_at": _GUESSES["piece_at"][: -len(_TIMES)]}
DECISION_GUESSES = {role: _GUESSES[role] for role in DECISION_ROLES}
PIECE_GUESSES = {role: _GUESSES[role] for role in PIECE_ROLES}
JOINED_GUESSES = {role: likely for role, likely in _JOINED.items() if role != "decision"}
_MEANINGS = {
    "id": "the decision's id", "arm": "what was chosen", "at": "the decision's time",
    "decision": "the decision's id", "value": "what a piece pays", "piece_at": "a piece's time, or else age",
}  # fmt: skip

NOBODY = {"na", "n/a", "null", "none", "nan", "nil", "-", "?", "unknown", "undefined"}
"""Words, in small letters, that often mean that there is nothing."""
NUMBERS = re.compile(
    r"^(U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL(\(.*\))?|U?INT(8|16|32|64|128)|BIGNUM)$"
)
DURATIONS = {f"duration[{unit}]": size for unit, size in (("s", 1e0), ("ms", 1e3), ("us", 1e6), ("ns", 1e9))}
"""Lengths of time that a Parquet file stores as numbers, and how many of them are a second."""
TIMED = re.compile(r"^(DATE|TIMESTAMP(_S|_MS|_NS)?|DATETIME)$")
ZONED = re.compile(r"^TIMESTAMP((_NS|_MS|_S)? WITH TIME ZONE|TZ(_NS)?)$")


def assign(
    source: TableSource, guesses: Mapping[str, tuple[str, ...]], given: Mapping[str, str]
) -> dict[str, int]:
    """Return the column of each role that `source` has: the one that the user gave, or one with a usual name.

    `guesses` are the roles, with the names that a column of each may have; `given` are the user's own and
    always win. A piece has an age or a time; where the user gave one, the other is not looked for. In a table
    of pieces, a column of the name that the user gave for the decision's id is the decision's id there too.
    """
    names = [_plain(name) for name in source.names]
    if "decision" in guesses or "value" in guesses:
        # A row is a piece: where it has an id and another column such as assignment_id, which is the
        # decision's cannot be guessed.
        others = [name for name in names if name.endswith("_id") and name not in _NO_DECISION]
        guesses = {
            role: tuple(n for n in likely if n != "id" or not others) for role, likely in guesses.items()
        }
    columns = {role: column_named(source, given[role], role) for role in guesses if role in given}
    if "decision" in guesses and "decision" not in given and source.names.count(given.get("id", "")) == 1:
        columns["decision"] = source.names.index(given["id"])  # the two tables call it by one name
    if {"age", "piece_at"} <= set(columns):
        raise InputError(f"{source.label}: name a column for age or for piece_at, not for both")
    other = {"age": "piece_at", "piece_at": "age"}
    for role, likely in guesses.items():
        if other.get(role) in given:
            continue
        for guess in likely:
            if role not in columns and guess in names and names.index(guess) not in columns.values():
                columns[role] = names.index(guess)
    return columns


def ambiguous(source: TableSource, columns: Mapping[str, int]) -> str:
    """Say that both an age and a time of pieces were guessed; empty where that is not so."""
    if not {"age", "piece_at"} <= set(columns):
        return ""
    age, moment = (source.names[columns[role]] for role in ("age", "piece_at"))
    return (
        f"{source.label}: column {age!r} may be a piece's age, and column {moment!r} its time: "
        f"say --column {_option('age', age)} or --column {_option('piece_at', moment)}"
    )


def lacking(source: TableSource, columns: Mapping[str, int], roles: Iterable[str]) -> str:
    """Say which `roles` a table lacks, with the options to type; empty where it lacks none."""
    missing = [role for role in roles if role not in columns]
    if not missing:
        return ""
    what = " and ".join(f"{role} ({_MEANINGS[role]})" if role in _MEANINGS else role for role in missing)
    names = ", ".join(
        repr(name) if name else f"#{i + 1} (no name)" for i, name in enumerate(source.names[:30])
    )
    options = " ".join(f"--column {role}=COLUMN" for role in missing)
    python = ", ".join(f"{role!r}: COLUMN" for role in missing)
    return (
        f"{source.label}: no column for {what}; it has {names}; "
        f"name it with {options}, or in Python with columns={{{python}}}"
    )


def _option(role: str, name: str) -> str:
    text = f"{role}={name}"
    return f"'{text}'" if re.search(r"[^\w=.-]", text) else text


def check_roles(given: Mapping[str, str], roles: Iterable[str] = ROLES) -> None:
    """Refuse an unknown role."""
    only("column role", given, roles)


def plain_number(source: TableSource, cell: str) -> str:
    """Return SQL for a number in text, written with a decimal point; NULL where it cannot be one."""
    if not source.decimal:
        return cell
    decimal, other = (",", ".") if source.decimal == "," else (".", ",")
    whole = f"([0-9]+|[0-9]{{1,3}}([{other}][0-9]{{3}})+)"
    return (
        f"CASE WHEN regexp_full_match({cell}, '\\s*[+-]?{whole}([{decimal}][0-9]*)?([eE][+-]?[0-9]+)?\\s*') "
        f"THEN replace(replace({cell}, '{other}', ''), '{decimal}', '.') END"
    )


def number_expression(source: TableSource, column: int, role: str) -> str:
    """Return SQL for a column as a number; NULL where a cell is no number."""
    kind = source.types[column]
    if kind == "VARCHAR":
        return f"TRY_CAST({plain_number(source, f'c{column}')} AS DOUBLE)"
    if NUMBERS.match(kind) or kind == "BOOLEAN":
        return f"CAST(c{column} AS DOUBLE)"
    if kind == "INTERVAL" and role == "age":
        return f"epoch(c{column})"
    if kind in DURATIONS and role == "age":
        return f"c{column} / {DURATIONS[kind]:.1f}"
    raise InputError(
        f"{source.label}: column {source.names[column]!r} ({role}) must hold numbers, not {kind}"
    )


def text_expression(source: TableSource, column: int, role: str) -> str:
    """Return SQL for a column as text; NULL where a cell is empty."""
    kind = source.types[column]
    if kind.endswith(("]", ")")) and not kind.startswith(("DECIMAL", "ENUM")):
        raise InputError(
            f"{source.label}: column {source.names[column]!r} ({role}) must hold text, not {kind}"
        )
    return f"NULLIF(CAST(c{column} AS VARCHAR), '')"


def empty(column: int) -> str:
    """Return SQL that tells whether a cell is empty."""
    return f"(c{column} IS NULL OR CAST(c{column} AS VARCHAR) = '')"


def is_whole(source: TableSource, column: int) -> bool:
    """Return whether a column holds whole numbers by its type."""
    return bool(re.match(r"^(U?(TINY|SMALL|BIG)INT|INTEGER|U?INT(8|16|32|64))$", source.types[column]))


def column_named(source: TableSource, name: str, role: str) -> int:
    """Return the number of the column with this name, or at a position written like #3."""
    place = re.fullmatch(r"#([1-9]\d*)", name)
    if place and name not in source.names:
        if int(place[1]) > len(source.names):
            raise InputError(
                f"{source.label}: no column {name} (for {role}); it has {len(source.names)} columns"
            )
        return int(place[1]) - 1
    matches = [i for i, own in enumerate(source.names) if own == name]
    if len(matches) != 1:
        have = ", ".join(map(repr, source.names[:30]))
        count = "no" if not matches else f"{len(matches)}"
        hint = f"; write #{matches[0] + 1} for the first of them" if matches else ""
        raise InputError(f"{source.label}: {count} column {name!r} (for {role}); it has {have}{hint}")
    return matches[0]


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()).strip("_")
