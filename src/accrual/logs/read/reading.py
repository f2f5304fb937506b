"""How the tables of a log are read: the options, and columns with what their cells must hold.

Cells are read so that what cannot be read becomes NULL. Looking for a NULL is cheap; only when one
is found is the source searched again for the row to name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, TypedDict

from accrual.core.durations import unit_seconds
from accrual.core.errors import InputError, unknown
from accrual.logs.log import Log
from accrual.logs.read.columns import NOBODY, is_whole, text_expression
from accrual.logs.read.sources import TableSource, run
from accrual.logs.read.times import TimeOptions

_SHOWN = 60  # characters of a bad cell that are shown
_COMMA = re.compile(r"\s*[+-]?[0-9.]*(,[0-9]+)+(\.[0-9]*)?\s*")
BAD_ROWS = ("refuse", "skip")


class ReadingOptions(TypedDict, total=False):
    """The options of `accrual.logs.open_log.open_log` that say how a log is read."""

    end: float | str | None
    age_unit: str | None
    time_format: str | None
    time_unit: str | None
    timezone: str | None
    skew: float | str | timedelta | None
    na: Sequence[str]
    decimal: str | None
    strict: bool
    allow_negative: bool
    bad_rows: str
    bad_rows_file: str | os.PathLike[str] | None
    bandit: str | None
    memory: str
    context: Sequence[str]
    cluster: str | None
    cap_totals: float | None


@dataclass(frozen=True)
class Reading:
    """How a log is to be read; `accrual.logs.open_log.open_log` explains each option."""

    columns: Mapping[str, str] = field(default_factory=dict)
    end: float | str | None = None
    age_unit: str | None = None
    time_format: str | None = None
    time_unit: str | None = None
    timezone: str | None = None
    skew: float | str | timedelta | None = None
    na: Sequence[str] = ()
    decimal: str | None = None
    strict: bool = False
    allow_negative: bool = False
    bad_rows: str = "refuse"
    bad_rows_file: str | os.PathLike[str] | None = None
    bandit: str | None = None
    memory: str = "2500MB"
    context: Sequence[str] = ()
    cluster: str | None = None
    cap_totals: float | None = None

    @classmethod
    def made(cls, columns: Mapping[str, str] | None, options: Mapping[str, Any]) -> Reading:
        """Check the names of the options, and those that are one of a few words."""
        for name in options:
            if name not in ReadingOptions.__annotations__:
                # Not all functions take all of these.
                others = {"columns", "window", "groups", "cap"} - {name}
                raise unknown("option", name, (*sorted(others), *ReadingOptions.__annotations__))
        made = cls(dict(columns or {}), **options)
        if made.bad_rows not in BAD_ROWS:
            raise unknown("way with bad rows", made.bad_rows, BAD_ROWS)
        if made.age_unit is not None:
            unit_seconds(made.age_unit)
        if isinstance(made.na, str):
            raise InputError(f"na must be a list of words that mean nothing, such as [{made.na!r}]")
        if made.decimal not in (None, ",", "."):
            raise InputError(f"decimal must be a comma or a point, not {made.decimal!r}")
        return made

    def table(self, source: TableSource) -> TableSource:
        """Return a table with the user's words for nothing and decimal sign."""
        return replace(source.without(self.na), decimal=self.decimal or "")

    @property
    def times(self) -> TimeOptions:
        """The options about the times of the log."""
        return TimeOptions(self.time_format, self.time_unit, self.timezone)

    @property
    def skips(self) -> bool:
        """Whether rows that cannot be read are left out."""
        return self.bad_rows == "skip"


@dataclass(frozen=True)
class Tables:
    """The sources of a log and the column of each role in them; one source, if it is joined."""

    decisions: TableSource
    pieces: TableSource
    decision_columns: dict[str, int]
    piece_columns: dict[str, int]
    start_stop: bool = False  # whether they were made from rows of start, stop and status

    @property
    def joined(self) -> bool:
        return self.decisions is self.pieces

    def id_expressions(self) -> tuple[str, str]:
        """Return SQL for the id in decisions and in pieces: whole numbers where both are, otherwise text."""
        one, other = self.decision_columns["id"], self.piece_columns["decision"]
        if is_whole(self.decisions, one) and is_whole(self.pieces, other):
            return f"c{one}", f"c{other}"
        return text_expression(self.decisions, one, "id"), text_expression(self.pieces, other, "decision")


@dataclass(frozen=True)
class CheckedColumn:
    """A column of a source, the SQL that reads it, and what its cells must hold.

    `good` is a condition in SQL on the cell, which it writes as `{x}`. `join` is what reading the column
    needs beside the source, and `among` is the condition for a row to count.
    """

    source: TableSource
    column: int
    role: str
    sql: str
    needed: str
    good: str = "{x} IS NOT NULL"
    join: str = ""
    among: str = "true"
    below: str = "is below 0"  # what is wrong where the cell can be read and is negative

    def expect(self, log: Log, table: str, name: str) -> None:
        """Refuse the first row whose cell is not `good`, if `table`'s column `name` has one."""
        if log.query(f"SELECT 1 FROM {table} WHERE {self._bad(name)} LIMIT 1"):
            self.expect_source(log)
            column = self.source.names[self.column]
            raise InputError(f"{self.source.label}: column {column!r} ({self.role}) must be {self.needed}")

    def expect_source(self, log: Log) -> None:
        """Refuse the first row of the source whose cell is not `good`."""
        for label, row, text, why in self.bad_rows(log, " LIMIT 1"):
            what = f"is {text[:_SHOWN]!r}" if text else "is empty"
            wrong = f"which {why}" if text and why == self.below else f"not {self.needed}"
            if text and text.strip().lower() in NOBODY:
                wrong += f" (if it means that the cell is empty, say --na {text.strip()})"
            elif text and not self.source.decimal and _COMMA.fullmatch(text):
                wrong += " (if a comma is the decimal sign, say --decimal ,; if it separates thousands, .)"
            column = self.source.names[self.column]
            raise InputError(f"{label}: row {row}: column {column!r} ({self.role}) {what}, {wrong}")

    def bad_rows(self, log: Log, most: str = "") -> Iterator[tuple[str, int, str, str]]:
        """Yield file, row (from 1), text and what is wrong, for each cell that is not `good`."""
        for part in self.source.parts or [self.source]:
            query = (
                f"SELECT row, CAST(c{self.column} AS VARCHAR), TRY_CAST(({self.sql}) AS DOUBLE) < 0 FROM "
                f"(SELECT row_number() OVER () AS row, * FROM {part.scan}) {self.join} "
                f"WHERE {self.among} AND NOT {self.is_good} ORDER BY row{most}"
            )
            for row, text, below in run(log.connection, query, part).fetchall():
                why = "is empty" if text in {None, ""} else self.below if below else f"is not {self.needed}"
                yield part.label, row, text, why

    @property
    def is_good(self) -> str:
        """SQL that tells whether a row of the source has what is needed."""
        return f"coalesce({self.good.replace('{x}', f'({self.sql})')}, false)"

    def _bad(self, sql: str) -> str:
        return f"NOT coalesce({self.good.replace('{x}', sql)}, false)"


def check_zones(
    log: Log, source: TableSource, aware: bool | None, naive: bool | None, timezone: str | None = None
) -> None:
    """Note what was done about time zones, or refuse a mixture."""
    if aware and naive:
        raise InputError(
            f"{source.label}: some times have a time zone and some have none; give all of them one, or none"
        )
    zone = "given" if aware else "assumed" if naive else ""
    if zone and log.zone and zone != log.zone:
        has, have = ("a", "none") if aware else ("no", "one")
        raise InputError(
            f"{source.label}: its times have {has} time zone and those of the decisions have {have}; "
            "give all of them one, or none"
        )
    if zone and not log.zone:
        log.zone = zone
        if not aware:
            log.notes.append(f"times have no time zone: taken as {timezone or 'UTC'}")
        elif timezone:
            raise InputError(f"{source.label}: its times have a time zone of their own: leave out --timezone")
        else:
            log.notes.append("times have a time zone: converted to UTC")
