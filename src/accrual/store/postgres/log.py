"""A bandit's log in PostgreSQL: what the rules need of it is read, and new rows are written.

The rules themselves are in `accrual.store.accept`. Whatever their number, requests need one query for what
pieces and closings name, one for batches of decisions, two for arms, and one statement for each table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from accrual.core.errors import InputError
from accrual.store.accept import Acceptance, LogLookup, known_batch, stated_age
from accrual.store.base import (
    NUMBERS_END,
    Answer,
    Answers,
    CloseDecision,
    NewDecisions,
    NewPiece,
    Status,
    StoredArm,
    StoreRequest,
    derived_key,
)
from accrual.store.events import TABLES, DecisionRow, HeadRow, Kind, PieceRow, column_types, quoted

_LOCK = f"""
SELECT {", ".join(f"head.{name}" for name in HeadRow._fields)}, bandit.rounds
FROM head JOIN bandit ON bandit.number = head.bandit WHERE head.bandit = $1 FOR UPDATE OF head
"""
_SET_HEAD = (
    f"UPDATE head SET {', '.join(f'{name} = ${place}' for place, name in enumerate(HeadRow._fields, 1))} "
    "WHERE bandit = $1"
)
# For each decision that is named, perhaps with the key of a piece: what is known of it, and that piece.
_NAMED = f"""
SELECT d.id, d.at, d."window", c.seq, c.at, {", ".join(f'p."{name}"' for name in PieceRow._fields)}
FROM unnest($2::BIGINT[], $3::TEXT[]) AS named (decision, key)
JOIN decision d ON d.bandit = $1 AND d.id = named.decision
LEFT JOIN change c ON c.bandit = $1 AND c.kind = {int(Kind.CLOSE)} AND c.subject = named.decision
LEFT JOIN piece p ON p.bandit = $1 AND p.key = named.key AND p.decision = named.decision
"""
_BATCHES = f"""
SELECT {quoted(DecisionRow._fields)} FROM decision
WHERE bandit = $1 AND key = ANY($2::TEXT[]) ORDER BY key, part
"""
ARMS = f"""
SELECT a.name, a.cap, a."window", c.seq IS NOT NULL AS retired, a.about
FROM arm a
LEFT JOIN change c ON c.bandit = a.bandit AND c.kind = {int(Kind.RETIRE_ARM)} AND c.subject = a.number
WHERE a.bandit = $1 ORDER BY a.number
"""
_ARM_CHANGES = f"SELECT kind, subject, seq, at FROM change WHERE bandit = $1 AND kind <> {int(Kind.CLOSE)}"

_TYPES = {int: "BIGINT", float: "DOUBLE PRECISION", str: "TEXT", bool: "BOOLEAN", bytes: "BYTEA"}


def _insert(table: str) -> str:
    """Return the statement that adds rows to a table: its values are an array for each column."""
    arrays = []
    for place, found in enumerate(column_types(table).values(), 1):
        (name,) = {name for type_, name in _TYPES.items() if found in (type_, type_ | None)}
        arrays.append(f"${place}::{name}[]")
    return f"INSERT INTO {table} ({quoted(TABLES[table]._fields)}) SELECT * FROM unnest({', '.join(arrays)})"


_INSERT = {table: _insert(table) for table in ("arm", "decision", "piece", "change")}


def array(values: Iterable[Any]) -> str:
    r"""Return values as PostgreSQL writes an array; the driver's own way takes several times as long.

    Examples
    --------
    >>> print(array([1, 0.5, None, True, 'a"b', b"\x00\xff"]))
    {1,0.5,NULL,True,"a\"b","\\x00ff"}
    """
    return "{" + ",".join([_element(value) for value in values]) + "}"


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return rf'"\\x{value.hex()}"' if isinstance(value, bytes) else str(value)


def append(
    connection: Any, bandit: int, requests: Sequence[StoreRequest], now: float, skew: float
) -> tuple[Answers, bool]:
    """Append to the log of a bandit, in a transaction that has begun; return whether anything was stored too.

    The head row is locked first, until the transaction ends: so events get their positions in the order in
    which they are committed, and what is read after that is what earlier holders of the lock committed.
    """
    locked = connection.execute(_LOCK, [bandit], binary=True)
    lookup = _LookupOfRequests(connection, bandit, requests)
    found = locked.fetchone()
    if found is None:
        raise InputError(f"no bandit has the number {bandit}")
    head = HeadRow._make(found[:-1])
    lookup.fill()
    acceptance = Acceptance(lookup, head, rounds=found[-1])
    acceptance.begin(now, skew)
    answers = acceptance.accept(requests)
    for table, rows in acceptance.rows._asdict().items():
        if rows:
            connection.execute(_INSERT[table], [array(column) for column in zip(*rows, strict=True)])
    stored = acceptance.seq > head.seq
    if stored:
        connection.execute(_SET_HEAD, acceptance.head)
    return answers, stored


class _LookupOfRequests(LogLookup):
    """What the log says about all that some requests name, read before the first of them is answered.

    The queries are sent at once, and `fill` waits for what they return: in pipeline mode of the connection,
    they and the statement before them take one round trip.
    """

    def __init__(self, connection: Any, bandit: int, requests: Sequence[StoreRequest]) -> None:
        super().__init__()
        self._connection = connection
        self._bandit = bandit
        named: list[tuple[int, str | None]] = []
        self._dated: list[NewPiece] = []
        batches = []
        arms = False
        for request in requests:
            if isinstance(request, NewPiece):
                named.append((request.decision, _key(request, None)))
                if request.key is None and request.age is None and request.when is not None:
                    self._dated.append(request)
            elif isinstance(request, CloseDecision):
                named.append((request.decision, None))
            elif isinstance(request, NewDecisions):
                if request.key is not None:
                    batches.append(request.key)
            else:
                arms = True
        self._named = self._ask_for(named)
        self._batches = self._ask(_BATCHES, array(batches)) if batches else ()
        self._arms = self._ask(ARMS) if arms else ()
        self._changes = self._ask(_ARM_CHANGES) if arms else ()

    def _ask(self, query: str, *values: Any) -> Iterable[Any]:
        rows: Iterable[Any] = self._connection.execute(query, [self._bandit, *values], binary=True)
        return rows

    def _ask_for(self, named: Sequence[tuple[int, str | None]]) -> Iterable[Any]:
        """Ask for decisions, each perhaps with the key of a piece."""
        pairs = [pair for pair in named if 0 <= pair[0] < NUMBERS_END]
        return self._ask(_NAMED, *map(array, zip(*pairs, strict=True))) if pairs else ()

    def fill(self) -> None:
        """Take what the queries return."""
        self._take(self._named)
        dated = [(piece, self.decisions.get(piece.decision)) for piece in self._dated]
        self._take(
            self._ask_for([(piece.decision, _key(piece, made[0])) for piece, made in dated if made])
        )  # a second round trip, for pieces with a time and no key
        for key, rows in groupby(map(DecisionRow._make, self._batches), attrgetter("key")):
            self.batches[key] = known_batch(list(rows))
        self.arms += map(StoredArm._make, self._arms)
        for kind, subject, seq, at in self._changes:
            self.changes[Kind(kind), subject] = Answer(Status.STORED, seq, at)

    def _take(self, rows: Iterable[Any]) -> None:
        for id_, at, window, closed_seq, closed_at, *found in rows:
            self.decisions[id_] = (at, window if closed_seq is None else 0.0)
            if closed_seq is not None:
                self.changes[Kind.CLOSE, id_] = Answer(Status.STORED, closed_seq, closed_at)
            piece = PieceRow._make(found)
            if piece.key is not None:
                self.pieces[id_, piece.key] = piece


def _key(piece: NewPiece, made: float | None) -> str | None:
    """Return the key of a piece; None if it has none, or one that follows from when its decision was made."""
    if piece.key is not None:
        return piece.key
    if (piece.age is None and made is None) or not 0 <= piece.decision < NUMBERS_END:
        return None
    age = stated_age(piece, made or 0.0)
    return None if age is None else derived_key(piece.decision, piece.value, age, piece.stream)
