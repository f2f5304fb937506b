"""What both tables of a log are read with: cells and what they must hold, and the row that breaks it.

Cells are read so that what cannot be read becomes NULL. Looking for a NULL is cheap; only when one
is found is the source searched again for the row to name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from accrual.core.errors import InputError
from accrual.fit.columns import is_whole, text_expression
from accrual.fit.source import Source, run
from accrual.fit.tables import Log

TICKS = 1_000_000  # of a timestamp, in a second
_SHOWN = 60  # characters of a bad cell


@dataclass(frozen=True)
class Reading:
    """How a log is to be read; see `open_log`."""

    columns: Mapping[str, str]
    end: float | str | None
    age_unit: str | None
    strict: bool
    allow_negative: bool


@dataclass(frozen=True)
class Tables:
    """The sources of a log and the column of each role in them; one source, if it is joined."""

    decisions: Source
    pieces: Source
    decision_columns: dict[str, int]
    piece_columns: dict[str, int]

    @property
    def joined(self) -> bool:
        return self.decisions is self.pieces

    def id_expressions(self) -> tuple[str, str]:
        """SQL for the id in decisions and in pieces: as it is where both are whole numbers, else as text."""
        one, other = self.decision_columns["id"], self.piece_columns["decision"]
        if is_whole(self.decisions, one) and is_whole(self.pieces, other):
            return f"c{one}", f"c{other}"
        return text_expression(self.decisions, one, "id"), text_expression(self.pieces, other, "decision")


@dataclass(frozen=True)
class Cell:
    """A column of a source, how it is read, and what must hold of it (of `{x}`, in SQL).

    `join` is what reading it needs beside the source, and `among` says which rows count.
    """

    source: Source
    column: int
    role: str
    sql: str
    needed: str
    good: str = "{x} IS NOT NULL"
    join: str = ""
    among: str = "true"

    def expect(self, log: Log, table: str, name: str) -> None:
        """Complain of the first row whose cell is not `good`, if `table`'s column `name` has one."""
        if log.query(f"SELECT 1 FROM {table} WHERE {self._bad(name)} LIMIT 1"):
            self.expect_source(log)
            column = self.source.names[self.column]
            raise InputError(f"{self.source.label}: column {column!r} ({self.role}) must be {self.needed}")

    def expect_source(self, log: Log) -> None:
        """Complain of the first row of the source whose cell is not `good`."""
        for part in self.source.parts or [self.source]:
            rows = run(
                log.connection,
                f"SELECT row, CAST(c{self.column} AS VARCHAR) FROM "
                f"(SELECT row_number() OVER () AS row, * FROM {part.scan}) {self.join} "
                f"WHERE {self.among} AND {self._bad(f'({self.sql})')} ORDER BY row LIMIT 1",
                part,
            ).fetchall()
            if rows:
                row, text = rows[0]
                found = "is empty" if text in {None, ""} else f"is {text[:_SHOWN]!r}"
                column = self.source.names[self.column]
                raise InputError(
                    f"{part.label}: row {row}: column {column!r} ({self.role}) {found}, not {self.needed}"
                )

    def _bad(self, sql: str) -> str:
        return f"NOT coalesce({self.good.replace('{x}', sql)}, false)"


def check_zones(log: Log, source: Source, aware: bool | None, naive: bool | None) -> None:
    """Note what was done about time zones, or complain of a mixture."""
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
        log.notes.append(
            "times have a time zone: converted to UTC" if aware else "times have no time zone: taken as UTC"
        )
