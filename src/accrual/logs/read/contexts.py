"""Contexts of a log: which columns they are, and what kind of feature each is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from accrual.core.arrays import Floats
from accrual.core.errors import InputError
from accrual.core.features import FEATURES_MOST, LEVELS_MOST, WIDTH_MOST, Features, encode_all
from accrual.logs.log import ContextColumn, Log
from accrual.logs.read.columns import column_named, plain_number
from accrual.logs.read.reading import CheckedColumn, Tables

KINDS = ("levels", "number")
_EACH = 10  # decisions for each level, on average; with fewer a column of text is taken for an id


class LogContexts(NamedTuple):
    """The contexts of a log's decisions."""

    features: Features
    """As a bandit would have them."""
    values: Floats
    """Decisions x features, in the numbers that a bandit would store."""
    words: list[str]
    """For each feature, what kind was recognised."""

    def encoded(self) -> Floats:
        """Return the contexts as a policy gets them, decisions x width; the first number of each is 1."""
        numbers = np.zeros((len(self.values), self.features.width))
        encode_all(self.features.encoding, self.values, numbers)
        return numbers


def find_context_columns(tables: Tables, given: Sequence[str]) -> list[tuple[ContextColumn, CheckedColumn]]:
    """Find the columns that the user names as contexts; a name may end in ``:levels`` or ``:number``."""
    if isinstance(given, str):
        raise InputError(f"context must be a list of columns, such as [{given!r}]")
    if len(given) > FEATURES_MOST:
        raise InputError(f"at most {FEATURES_MOST} columns may be contexts, not {len(given)}")
    source, taken = tables.decisions, {column: role for role, column in tables.decision_columns.items()}
    if tables.joined:
        taken |= {column: role for role, column in tables.piece_columns.items()}
    found: list[tuple[ContextColumn, CheckedColumn]] = []
    for text in given:
        name, kind = _split_kind(str(text), source.names)
        column = column_named(source, name, "context")
        if column in taken:
            raise InputError(
                f"{source.label}: column {name!r} is {taken[column]}, so it cannot be a context as well"
            )
        taken[column] = "a context"
        if not re.match(
            r"^(VARCHAR|BOOLEAN|ENUM.*|DECIMAL.*|FLOAT|DOUBLE|U?[A-Z]*INT(EGER)?\d*)$", source.types[column]
        ):
            raise InputError(
                f"{source.label}: column {name!r} (context) must hold text, numbers, or yes and no, not "
                f"{source.types[column]}; for a time, give the hour or the day of the week as a column"
            )
        role = f"context_{len(found)}"
        sql = f"NULLIF(CAST(c{column} AS VARCHAR), '')"
        if source.decimal:
            sql = f"coalesce({plain_number(source, sql)}, {sql})"
        found.append(
            (ContextColumn(role, name, kind), CheckedColumn(source, column, role, sql, "anything", "true"))
        )
    return found


def _split_kind(text: str, names: Sequence[str]) -> tuple[str, str]:
    name, colon, kind = text.rpartition(":")
    return (name, kind) if colon and kind in KINDS and text not in names else (text, "")


def read_contexts(log: Log) -> LogContexts:
    """Read the contexts of an opened log, in the order of its decisions; refuse what cannot be a context."""
    kinds: dict[str, Any] = {}
    columns, words = [], []
    counts = {column.role: count_cells(log, column) for column in log.contexts}
    width = WIDTH_MOST - 1 - len(counts)
    for column in log.contexts:
        kind, said = _kind(log, column, counts[column.role], max(width // len(counts), 2))
        kinds[column.name] = kind
        words.append(f"{column.name}: {said}")
        columns.append(_values(log, column, kind))
    return LogContexts(Features(kinds), np.stack(columns, axis=1), words)


class ContextCounts(NamedTuple):
    """How many cells of a context column are of each kind."""

    decisions: int
    given: int
    different: int
    numbers: int
    padded: int
    truths: int
    whole: int


def count_cells(log: Log, column: ContextColumn) -> ContextCounts:
    """Count the kinds of cells in a context column."""
    x = column.role
    number = f"TRY_CAST({x} AS DOUBLE)"
    return ContextCounts(
        *log.query(
            f"SELECT count(*), count({x}), count(DISTINCT {x}), count({number}), "
            f"count(*) FILTER (regexp_matches({x}, '^-?0[0-9]')), "
            f"count(*) FILTER (lower({x}) IN ('true', 'false')), "
            f"count(*) FILTER ({number} = floor({number})) FROM decisions"
        )[0]
    )


def _kind(log: Log, column: ContextColumn, found: ContextCounts, most: int) -> tuple[Any, str]:
    """Decide what kind of feature a column is, and say so."""
    if found.different < 2:
        raise InputError(f"context {column.name!r} has fewer than two values: nothing can depend on it")
    missing = found.decisions - found.given
    empty = f"; missing in {missing:,} decisions" if missing else ""
    if not column.kind and found.truths == found.given:
        return bool, f"yes or no{empty}"
    numeric = found.numbers == found.given and not found.padded
    if column.kind == "number" and found.numbers < found.given:
        raise InputError(
            f"context {column.name!r} is given as a number, but some of its cells are not numbers"
        )
    if column.kind == "number" or (numeric and column.kind != "levels"):
        return _range(log, column, found, empty)
    if found.different > LEVELS_MOST and found.different > found.given / _EACH:
        raise InputError(
            f"context {column.name!r} has {found.different:,} different values in {found.given:,} decisions: "
            "an id says nothing about the next decision; give a column whose values many decisions share"
        )
    levels = [
        row[0]
        for row in log.query(
            f"SELECT {column.role} FROM decisions "
            f"WHERE {column.role} IS NOT NULL AND len({column.role}) <= 200 "
            f"GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT {min(most, LEVELS_MOST)}"
        )
    ]
    rest = found.different - len(levels)
    others = f"; the {rest:,} others, which are rarer, count as one" if rest else ""
    return levels, f"{len(levels)} levels{others}{empty}"


def _range(log: Log, column: ContextColumn, found: ContextCounts, empty: str) -> tuple[Any, str]:
    if not column.kind and found.whole == found.given and found.different > max(LEVELS_MOST, found.given / 2):
        raise InputError(
            f"context {column.name!r} has {found.different:,} different whole numbers in {found.given:,} "
            f"decisions: is it an id? say {column.name}:number if it is a quantity"
        )
    number = f"TRY_CAST({column.role} AS DOUBLE)"
    finite = f"FROM decisions WHERE isfinite({number})"
    low, high, least, most = log.query(
        f"SELECT quantile_cont({number}, 0.005), quantile_cont({number}, 0.995), min({number}), "
        f"max({number}) {finite}"
    )[0]
    if low == high:
        low, high = least, most
    if low is None or low == high:
        raise InputError(f"context {column.name!r} has fewer than two values: nothing can depend on it")
    hint = (
        ""
        if column.kind or found.different > 20 or found.whole < found.given
        else (f" (if it is a code, say {column.name}:levels)")
    )
    return (low, high), f"a number from {least:.6g} to {most:.6g}{hint}{empty}"


def _values(log: Log, column: ContextColumn, kind: Any) -> Floats:
    x = column.role
    sql = f"TRY_CAST({x} AS DOUBLE)"
    if kind is bool:
        sql = f"CASE WHEN {x} IS NULL THEN NULL WHEN lower({x}) = 'true' THEN 1.0 ELSE 0.0 END"
    elif isinstance(kind, list):
        log.query(
            f"CREATE OR REPLACE TABLE levels_{x} AS SELECT unnest($1::VARCHAR[]) AS level, "
            "unnest(range(len($1::VARCHAR[])))::DOUBLE AS place",
            [kind],
        )
        sql = f"CASE WHEN {x} IS NULL THEN NULL ELSE coalesce(place, -1.0) END"
    join = f" LEFT JOIN levels_{x} ON {x} = level" if isinstance(kind, list) else ""
    rows = [batch[0] for batch in log.stream(f"SELECT {sql} AS x FROM decisions{join} ORDER BY decision")]
    numbers = np.concatenate(rows).astype(np.float64)
    return np.where(np.isfinite(numbers), numbers, np.nan)
