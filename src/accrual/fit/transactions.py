"""A table of transactions as a log: a customer's first purchase is the decision, the later ones its pieces.

What a customer buys at the moment of the first row is the first purchase, in however many rows it
stands. Its arm is the value of a column in the first of those rows that has one, or the range of a
number: of the amount, that of the whole first purchase.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from accrual.core.errors import InputError
from accrual.fit.columns import (
    assign,
    check_told,
    column_named,
    lacking,
    number_expression,
    text_expression,
)
from accrual.fit.moments import TimeColumn, TimeOptions, quoted
from accrual.fit.reading import CheckedColumn, check_zones
from accrual.fit.source import TableSource, open_source, run
from accrual.fit.tables import Log

_GUESSES: dict[str, tuple[str, ...]] = {
    "customer": ("customer", "customer_id", "customerid", "user", "user_id", "client", "client_id", "buyer"),
    "time": ("time", "at", "date", "timestamp", "datetime", "invoice_date", "invoicedate", "order_date"),
    "amount": ("amount", "value", "total", "revenue", "price"),
}


@dataclass(frozen=True)
class AmountRanges:
    """Ranges of a number as arms.

    Examples
    --------
    >>> AmountRanges.parse("amount=10,50").names
    ['amount below 10', 'amount 10 to 50', 'amount from 50']
    """

    column: str
    bounds: tuple[float, ...]

    @classmethod
    def parse(cls, text: str) -> AmountRanges:
        """Read ranges from ``COLUMN=NUMBER,NUMBER,...``."""
        column, _, numbers = text.rpartition("=")
        try:
            bounds = tuple(float(number) for number in numbers.split(","))
        except ValueError:
            bounds = ()
        rising = all(map(math.isfinite, bounds)) and all(a < b for a, b in pairwise(bounds))
        if not (column and bounds and rising):
            raise InputError(f"a cut must be written like amount=10,50, with rising numbers, not {text!r}")
        return cls(column, bounds)

    @property
    def names(self) -> list[str]:
        """The arms, from the lowest range up."""
        shown = [f"{bound:g}" for bound in self.bounds]
        between = [f"{a} to {b}" for a, b in pairwise(shown)]
        return [f"{self.column} {part}" for part in (f"below {shown[0]}", *between, f"from {shown[-1]}")]


def convert(
    given: Any,
    arm: str | AmountRanges,
    columns: Mapping[str, str] | None = None,
    times: TimeOptions | None = None,
) -> tuple[Any, Any, list[str]]:
    """Make decisions and pieces as Arrow tables, and say what was guessed or left out.

    Parameters
    ----------
    given : path or data frame
        CSV (also gzipped), Parquet, a folder of parts, or a data frame.
    arm : str or AmountRanges
        The column whose value is the arm, or ranges of a number.
    columns : mapping, optional
        Of customer, time and amount, to column names; guessed from the names unless told.
    times : TimeOptions, optional
        How times are written, what they count, and their time zone; recognised unless told.

    Examples
    --------
    >>> import pandas as pd
    >>> sales = pd.DataFrame({
    ...     "customer": ["a", "a", "b", "a"], "time": [0, 5, 6, 9], "amount": [20.0, 3.0, 70.0, 4.0],
    ... })
    >>> decisions, pieces, _ = convert(sales, AmountRanges.parse("amount=50"))
    >>> decisions.to_pylist()
    [{'id': 'a', 'arm': 'amount below 50', 'at': 0.0}, {'id': 'b', 'arm': 'amount from 50', 'at': 6.0}]
    >>> pieces.to_pylist()
    [{'decision': 'a', 'at': 5.0, 'value': 3.0}, {'decision': 'a', 'at': 9.0, 'value': 4.0}]
    """
    with tempfile.TemporaryDirectory(prefix="accrual-") as folder:
        log = Log(tempfile.TemporaryDirectory(prefix="accrual-"), "2GB")
        with log:
            times = times or TimeOptions()
            times.check(log.connection)
            if times.zone:
                log.query(f"SET TimeZone = {quoted(times.zone)}")
            source = open_source(log.connection, given, "decisions", Path(folder))
            return _convert(log, source, arm, dict(columns or {}), times)


def _convert(
    log: Log, source: TableSource, arm: str | AmountRanges, told: dict[str, str], times: TimeOptions
) -> tuple[Any, Any, list[str]]:
    check_told(told, _GUESSES)
    columns = assign(source, _GUESSES, told)
    if lacks := lacking(source, columns, _GUESSES):
        raise InputError(lacks)
    notes = [
        "columns guessed from their names: "
        + ", ".join(
            f"{role} = {source.names[column]}" for role, column in columns.items() if role not in told
        )
    ]
    _read(log, source, columns, arm, times)
    rows, nobody = log.query("SELECT count(*), count(*) FILTER (customer IS NULL) FROM raw")[0]
    if rows == nobody:
        raise InputError(f"{source.label}: it has no row with a customer")
    if nobody:
        notes.append(f"{nobody:,} of {rows:,} rows have no customer and are left out")
    log.query(
        "CREATE TABLE first AS SELECT customer, min(tick) AS tick FROM raw "
        "WHERE customer IS NOT NULL GROUP BY customer"
    )
    _name(log, source, columns, arm)
    at = "tick::DOUBLE"
    if log.timestamps:
        at = "make_timestamp(tick::BIGINT)" + (" AT TIME ZONE 'UTC'" if log.zone == "given" else "")
    decisions = log.connection.sql(
        f"SELECT customer AS id, arm, {at} AS at FROM decided ORDER BY tick, customer"
    ).to_arrow_table()
    pieces = log.connection.sql(
        f"SELECT raw.customer AS decision, {at.replace('tick', 'raw.tick')} AS at, amount AS value FROM raw "
        "JOIN first ON raw.customer = first.customer WHERE raw.tick > first.tick "
        "ORDER BY raw.tick, raw.customer, row"
    ).to_arrow_table()
    if not len(pieces):
        raise InputError(f"{source.label}: no customer comes back, so there are no pieces to learn from")
    return decisions, pieces, [note for note in [*log.notes, *notes] if not note.endswith(": ")]


def _read(
    log: Log, source: TableSource, columns: Mapping[str, int], arm: str | AmountRanges, times: TimeOptions
) -> None:
    """Make the table `raw`: row, customer, tick, amount, and what the arm is made of."""
    moments = TimeColumn(log.connection, source, columns["time"], "time", times)
    log.timestamps = moments.timestamps
    if moments.kind:
        log.notes.append(f"{source.names[columns['time']]} (time): {moments.kind}")
    customer = text_expression(source, columns["customer"], "customer")
    someone = f"{customer} IS NOT NULL"
    cells = {
        "tick": CheckedColumn(source, columns["time"], "time", moments.tick, moments.needed, among=someone),
        "amount": CheckedColumn(
            source, columns["amount"], "amount", number_expression(source, columns["amount"], "amount"),
            "a finite number", "isfinite({x})", among=someone,
        ),
    }  # fmt: skip
    column = column_named(source, arm.column if isinstance(arm, AmountRanges) else arm, "arm")
    made_of = (
        number_expression(source, column, "cut")
        if isinstance(arm, AmountRanges)
        else text_expression(source, column, "arm")
    )
    run(
        log.connection,
        f"CREATE TABLE raw AS SELECT row_number() OVER () AS row, {customer} AS customer, "
        f"{cells['tick'].sql} AS tick, {cells['amount'].sql} AS amount, {made_of} AS made_of, "
        f"{moments.aware} AS aware FROM {source.scan}",
        source,
    )
    if not log.query("SELECT count(*) FROM raw")[0][0]:
        raise InputError(f"{source.label}: it has a header and no rows; transactions are needed")
    for name, cell in cells.items():
        cell.expect(log, "(SELECT * FROM raw WHERE customer IS NOT NULL)", name)
    aware, naive = log.query("SELECT bool_or(aware), bool_or(NOT aware) FROM raw WHERE customer IS NOT NULL")[
        0
    ]
    check_zones(log, source, aware, naive, times.zone)


def _name(log: Log, source: TableSource, columns: Mapping[str, int], arm: str | AmountRanges) -> None:
    """Make the table `decided`: customer, tick, arm."""
    whole = isinstance(arm, AmountRanges) and column_named(source, arm.column, "arm") == columns["amount"]
    log.query(
        f"CREATE TABLE valued AS SELECT first.customer, first.tick, "
        f"{'sum(amount)' if whole else 'arg_min(made_of, row)'} AS made_of FROM raw JOIN first "
        "ON raw.customer = first.customer AND raw.tick = first.tick GROUP BY first.customer, first.tick"
    )
    column = arm.column if isinstance(arm, AmountRanges) else arm
    lacking = log.query("SELECT customer FROM valued WHERE made_of IS NULL LIMIT 1")
    if lacking:
        kind = "a number" if isinstance(arm, AmountRanges) else "a value"
        raise InputError(
            f"{source.label}: column {column!r} (arm) needs {kind} in the first purchase of "
            f"customer {lacking[0][0]!r}"
        )
    name, parameters = "made_of", []
    if isinstance(arm, AmountRanges):
        name = "list_extract($1::VARCHAR[], 1 + len(list_filter($2::DOUBLE[], lambda x: made_of >= x)))"
        parameters = [arm.names, list(arm.bounds)]
    log.query(f"CREATE TABLE decided AS SELECT customer, tick, {name} AS arm FROM valued", parameters)
