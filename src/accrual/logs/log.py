"""The tables of an opened log: validated decisions and pieces in DuckDB, under our own names.

Decisions and pieces are tables in a temporary database on disk, so that a log may be larger than memory. No
source stays open. `pieces` is in the order of its decisions, so that whatever is computed decision by
decision is one pass over it.
"""

from __future__ import annotations

import datetime
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from accrual.core.errors import InputError, need

TICKS = 1_000_000  # of a timestamp, in a second

ROWS = 1 << 20  # in a batch: 8 MB a column


class ContextColumn(NamedTuple):
    """A column that the user names as a context."""

    role: str  # its name in the table `decisions`
    name: str  # its name in the source
    kind: str  # "levels" or "number" where the user says so, otherwise ""


@dataclass
class Counts:
    """How many of what were found in a log."""

    # decisions, pieces: what is in the log's tables.
    decisions: int = 0
    pieces: int = 0
    orphans: int = 0  # pieces of no decision in the log; left out
    repeats: int = 0  # pieces with a decision and key that an earlier one has; left out
    conflicts: int = 0  # of the repeats, those that do not say the same as the first
    # Pieces without a key that are equal to another; kept, because they may be two payments
    # alike.
    identical: int = 0
    after_end: int = 0  # decisions and pieces at or after a given end; left out
    # Decisions that were followed for no time at all; they count as decisions and tell nothing.
    unfollowed: int = 0
    copies: int = 0  # rows of decisions that are the same as another in all that is read; left out
    early: int = 0  # pieces before their decision, by no more than clocks may differ; they count at age 0
    bad_rows: int = 0  # rows that could not be used; left out, and counted by reason in `Log.rejected`


class Log:
    """An opened log, from `accrual.logs.open_log.open_log`; close it, or use it in a ``with`` statement.

    Its tables, for `query` and `stream`:

    - ``decisions(decision, id, arm, at, propensity, own_window, followed)``: `decision` counts from 0
      in the order of time, `arm` is an index into `arms`, `followed` is how long the log has seen the
      decision: until its end, or until the decision's own window was over. `propensity` and
      `own_window` are NULL where the log has none. Contexts are further columns, as text: see `contexts`.
      `decided`, from which it is made, also has `cluster`, NULL where the log has none.
    - ``pieces(decision, age, value)``, in the order of decisions.
    """

    def __init__(self, folder: tempfile.TemporaryDirectory[str], memory: str) -> None:
        self.arms: tuple[str, ...] = ()
        self.timestamps = False  # times are seconds since 1970 in UTC; otherwise plain numbers, as they were
        self.zone = ""  # whether timestamps had time zones: "given", "assumed", or "" for plain numbers
        self.time_unit = ""  # what decisions' times count since 1970, where they are such numbers
        self.time_style = ""  # the format by which decisions' times are read, where there is one
        self.moment_sql = ""  # SQL that reads ``$1``, a time that is written as the decisions' times are
        self.first = 0.0  # the first decision's time
        self.end = 0.0  # the time up to which (not including it) the log is complete
        self.resolution = 0.0  # what all times are multiples of, such as a day; 0 where that is not known
        self.columns: dict[str, str] = {}  # role to column name
        self.counts = Counts()
        self.rejected: dict[str, int] = {}  # rows that were left out, by reason
        self.dates = False  # whether decisions' times are dates without a time of day
        self.notes: list[str] = []  # what was guessed or assumed
        self.odd: list[str] = []  # what is odd about the log, and what to do about it
        self.has_propensity = self.has_window = False
        # The smallest propensity, where those of some arm differ from decision to decision.
        self.least_propensity: float | None = None
        self.shares_changed = False  # whether the arms' shares of the decisions changed over time
        self.contexts: tuple[ContextColumn, ...] = ()  # columns with the context of a decision
        self.cluster = ""  # the column that says which decisions belong together, such as user
        self.cap_totals: float | None = None  # what the total of a decision is capped at
        self.capped = ""  # what that changed, in words
        self.signed = False  # whether some value is negative
        self.rate = 0.0  # decisions per unit of time, from the first to the last
        self.largest_value = 0.0  # of the pieces, in size
        self.longest_window: float | None = None
        self.blocks: list[Any] = []  # of decisions and pieces, where all of them are kept in memory
        self._folder = folder
        duckdb = need("duckdb", "fit")
        need("pyarrow", "fit")
        try:
            self.connection: Any = duckdb.connect(
                str(Path(folder.name) / "log.duckdb"),
                config={
                    "memory_limit": memory,
                    "temp_directory": str(Path(folder.name) / "spill"),
                    "autoinstall_known_extensions": "false",
                },
            )
        except duckdb.Error as error:
            folder.cleanup()
            raise InputError(f"cannot open a temporary database: {' '.join(str(error).split())}") from None
        self.connection.execute("SET TimeZone = 'UTC'")
        # In a notebook without ipywidgets the progress bar is off, and setting it is an error.
        if self.query("SELECT 1 WHERE current_setting('enable_progress_bar')"):
            self.query("SET enable_progress_bar = false")
        # This optimizer makes TRY_CAST on a CSV file raise where it should give NULL (duckdb issue 23818).
        if self.query("SELECT 1 FROM duckdb_optimizers() WHERE name = 'type_pushdown'"):
            self.query("SET disabled_optimizers = 'type_pushdown'")

    def __enter__(self) -> Log:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Delete the temporary database."""
        self.connection.close()
        self._folder.cleanup()

    def query(self, sql: str, parameters: list[Any] | None = None) -> list[tuple[Any, ...]]:
        """Run a query and return all its rows."""
        duckdb = need("duckdb", "fit")
        try:
            rows: list[tuple[Any, ...]] = self.connection.execute(sql, parameters or []).fetchall()
        except duckdb.OutOfMemoryException as error:
            raise MemoryError(str(error)) from None
        except duckdb.Error as error:  # numbers or times beyond what can be computed with, say
            raise InputError(f"the log cannot be read: {str(error).splitlines()[0]}") from None
        return rows

    def stream(self, sql: str, rows: int = ROWS) -> Iterator[tuple[npt.NDArray[Any], ...]]:
        """Yield the columns of a query as arrays, batch after batch of about `rows` rows, in order."""
        with self.connection.cursor() as cursor:  # of its own, so that several can be read side by side
            for batch in cursor.sql(sql).to_arrow_reader(rows):
                yield tuple(column.to_numpy(zero_copy_only=False) for column in batch.columns)

    def whole_columns(self, sql: str) -> list[npt.NDArray[Any]]:
        """Return the columns of a query as arrays."""
        return [np.concatenate(parts) for parts in zip(*self.stream(sql), strict=True)]

    @property
    def context_sql(self) -> str:
        """Name the columns of contexts in SQL, each with a comma before it."""
        return "".join(f", {column.role}" for column in self.contexts)

    @property
    def unit(self) -> int:
        """Ticks in the log's unit of time: microseconds in a second, or one."""
        return TICKS if self.timestamps else 1

    def moment(self, at: float) -> str:
        """Write a time for a person to read."""
        if not self.timestamps:
            return f"{at:.10g}"
        start = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
        try:
            shown = start + datetime.timedelta(seconds=at)
        except OverflowError:
            return f"{at:.0f} s after 1970"
        return shown.isoformat(sep=" ", timespec="seconds")

    def describe(self) -> dict[str, Any]:
        """Describe the log in plain values, for `problem.json`."""
        return {
            **asdict(self.counts),
            "rejected": dict(self.rejected),
            "first": self.moment(self.first),
            "end": self.moment(self.end),
            "unit": "seconds" if self.timestamps else "the log's own",
            "columns": dict(self.columns),
            "signed": self.signed,
            "notes": list(self.notes),
            "odd": list(self.odd),
        }
