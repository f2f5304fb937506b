"""Make a log from another table, of transactions or of music sessions, and write it.

Transactions: the first purchase of a customer is the decision, the later ones are its pieces. All rows at the
time of the first are the first purchase. Its arm is the value of a column in the first of those rows that has
one, or the range of a number: of the amount, that of the whole first purchase.

Music sessions, in the tables of the Music Streaming Sessions Dataset: a session is a decision. Each of up
to twenty songs pays 1 for every quarter heard, a piece each. The four skip flags are nested (very briefly,
briefly, most of it, not to the end), so they cut a song into five levels: 0, 1, 2, 3 or 4 quarters. Songs
after the end of the session pay nothing. The arm of a session is the value of a column in its first song.
"""

from __future__ import annotations

import csv
import gzip
import math
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accrual.core.errors import InputError, need, unknown
from accrual.core.files import replacing
from accrual.logs.log import Log
from accrual.logs.read import (
    CheckedColumn,
    TableSource,
    TimeColumn,
    TimeOptions,
    assign,
    check_roles,
    check_zones,
    column_named,
    lacking,
    number_expression,
    open_source,
    quoted,
    run,
    text_expression,
)

DECISIONS, PIECES = "decisions.parquet", "pieces.parquet"
SONGS = 20
QUARTERS = 4
ROUNDS = SONGS * QUARTERS  # of a session, one for each quarter of a song

FLAGS = ("skip_1", "skip_2", "skip_3", "not_skipped")
NEEDED = ("session_id", "session_position", "session_length", *FLAGS)

Levels = npt.NDArray[np.int8]
_GUESSES: dict[str, tuple[str, ...]] = {
    "customer": ("customer", "customer_id", "customerid", "user", "user_id", "client", "client_id", "buyer"),
    "time": ("time", "at", "date", "timestamp", "datetime", "invoice_date", "invoicedate", "order_date"),
    "amount": ("amount", "value", "total", "revenue", "price"),
}


_SEVERAL = re.compile(r"(^|[\W_])(quantity|qty|units?|count|items|pieces)($|[\W_])", re.IGNORECASE)


def write(folder: Path, decisions: Any, pieces: Any) -> None:
    """Write both Arrow tables into `folder`, each file whole or not at all."""
    parquet = need("pyarrow.parquet", "fit")
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in ((PIECES, pieces), (DECISIONS, decisions)):
        with replacing(folder / name) as partial:
            parquet.write_table(table, partial)


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


def transaction_log(
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
        Of customer, time and amount, to column names; guessed from the names unless given.
    times : TimeOptions, optional
        How times are written, what they count, and their time zone; recognised unless given.

    Examples
    --------
    >>> import pandas as pd
    >>> sales = pd.DataFrame({
    ...     "customer": ["a", "a", "b", "a"], "time": [0, 5, 6, 9], "amount": [20.0, 3.0, 70.0, 4.0],
    ... })
    >>> decisions, pieces, _ = transaction_log(sales, AmountRanges.parse("amount=50"))
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
            return _transaction_log(log, source, arm, dict(columns or {}), times)


def _transaction_log(
    log: Log, source: TableSource, arm: str | AmountRanges, roles: dict[str, str], times: TimeOptions
) -> tuple[Any, Any, list[str]]:
    check_roles(roles, _GUESSES)
    columns = assign(source, _GUESSES, roles)
    if lacks := lacking(source, columns, _GUESSES):
        raise InputError(lacks)
    amount, several = source.names[columns["amount"]], [n for n in source.names if _SEVERAL.search(n)]
    if "amount" not in roles and several and "price" in amount.lower():
        raise InputError(
            f"{source.label}: column {amount!r} may be the price of one, and {several[0]!r} how many were "
            "bought: give a column with what was paid (--column amount=COLUMN), or say --column "
            f"amount={amount}"
        )
    notes = [
        "columns guessed from their names: "
        + ", ".join(
            f"{role} = {source.names[column]}" for role, column in columns.items() if role not in roles
        )
    ]
    _read_transactions(log, source, columns, arm, times)
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


def _read_transactions(
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


def read_sessions(path: str | Path, column: str = "context_type") -> dict[str, Levels]:
    """Read the sessions by value of `column`: sessions x songs, the quarters heard, -1 where none was played.

    Parameters
    ----------
    path : path
        A CSV file (plain or .gz), or a folder of them.
    column : str
        Whose values are the arms.
    """
    sessions: dict[str, list[Levels]] = {}
    for file in _files(Path(path)):
        for value, levels in _read_session_file(file, column).items():
            sessions.setdefault(value, []).append(levels)
    return {value: np.concatenate(parts) for value, parts in sessions.items()}


def session_log(sessions: dict[str, Levels]) -> tuple[Any, Any, int]:
    """Make decisions and pieces as Arrow tables, and return the round at which the log ends.

    Sessions have no clock that says which came first. So they take turns, arm by arm, one a round, and a
    quarter of a song takes a round.
    """
    pa = need("pyarrow", "fit")
    arms = sorted(sessions)
    arm = np.repeat(np.arange(len(arms)), [len(sessions[name]) for name in arms])
    turn = np.concatenate([np.arange(len(sessions[name])) for name in arms])
    order = np.lexsort((arm, turn))
    levels = np.concatenate([sessions[name] for name in arms])[order]
    session, song = np.nonzero(levels > 0)
    heard = levels[session, song]
    first = np.cumsum(heard) - heard
    quarter = np.arange(heard.sum()) - np.repeat(first, heard)
    decisions = pa.table(
        {
            "id": np.arange(len(arm)),
            "arm": np.array(arms, dtype=object)[arm[order]],
            "at": np.arange(len(arm)),
        }
    )
    pieces = pa.table(
        {
            "decision": np.repeat(session, heard),
            "value": np.ones(len(quarter)),
            "age": QUARTERS * np.repeat(song, heard) + quarter,
        }
    )
    return decisions, pieces, len(arm) + ROUNDS


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.name.endswith((".csv", ".csv.gz")))
        if not files:
            raise InputError(f"{path} holds no .csv or .csv.gz file")
        return files
    if not path.is_file():
        raise InputError(f"there is no file or folder {path}")
    return [path]


def _read_session_file(file: Path, column: str) -> dict[str, Levels]:
    """Read the sessions of one file by value of `column`: sessions x songs, -1 where none was played."""
    pa, arrow_csv = need("pyarrow", "frames"), need("pyarrow.csv", "frames")
    names = _header(file)
    for name in NEEDED:
        if name not in names:
            raise InputError(f"{file}: column {name!r} is missing (it has: {', '.join(names)})")
    if column not in names:
        raise InputError(f"{file}: {unknown('column', column, names)}")
    wanted = [*NEEDED, column]
    try:
        table = arrow_csv.read_csv(
            file,
            read_options=arrow_csv.ReadOptions(use_threads=False),  # errors then name the row
            parse_options=arrow_csv.ParseOptions(ignore_empty_lines=False),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=wanted, column_types=dict.fromkeys(wanted, pa.string())
            ),
        )
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{file}: {' '.join(str(error).split())}") from error
    if table.num_rows == 0:
        raise InputError(f"{file} has a header and no rows")
    text = {name: np.asarray(table.column(name).to_numpy(), dtype=object) for name in wanted}
    position = _numbers(file, "session_position", text, 1, SONGS)
    length = _numbers(file, "session_length", text, 1, SONGS)
    _refuse(file, "session_position", text, position > length, "beyond the session's length")
    flag = {name: _flags(file, name, text) for name in FLAGS}
    level = np.select(
        [flag["skip_1"], flag["skip_2"], flag["skip_3"], ~flag["not_skipped"]], [0, 1, 2, 3], QUARTERS
    )
    ids, session = np.unique(text["session_id"].astype(str), return_inverse=True)
    place = session * SONGS + position - 1
    _, first = np.unique(place, return_index=True)
    again = np.ones(len(place), bool)
    again[first] = False
    _refuse(file, "session_position", text, again, "given twice in its session")
    levels = np.full((len(ids), SONGS), -1, np.int8)
    levels.reshape(-1)[place] = level
    # A session's arm is that of its first song.
    order = np.lexsort((position, session))
    opening = order[np.searchsorted(session[order], np.arange(len(ids)))]
    arm = text[column][opening].astype(str)
    return {str(value): levels[arm == value] for value in np.unique(arm)}


def _header(file: Path) -> list[str]:
    opened: Any = gzip.open if file.name.endswith(".gz") else open
    try:
        with opened(file, "rt", encoding="utf-8-sig", newline="") as lines:
            return next(csv.reader(lines), [])
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{file} is not readable as CSV: {error}") from error


def _numbers(file: Path, name: str, text: dict[str, Any], least: int, most: int) -> npt.NDArray[np.int64]:
    known = {str(n): n for n in range(least, most + 1)}
    numbers = np.array([known.get(value, -1) for value in text[name]], np.int64)
    _refuse(file, name, text, numbers < 0, f"not a whole number from {least} to {most}")
    return numbers


def _flags(file: Path, name: str, text: dict[str, Any]) -> npt.NDArray[np.bool_]:
    known = {"true": 1, "false": 0, "1": 1, "0": 0}
    flags = np.array([known.get(str(value).lower(), -1) for value in text[name]], np.int64)
    _refuse(file, name, text, flags < 0, "neither true nor false")
    return np.asarray(flags == 1)


def _refuse(file: Path, name: str, text: dict[str, Any], bad: npt.NDArray[np.bool_], why: str) -> None:
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InputError(f"{file}, row {row + 2} (the header is row 1), column {name!r}: "
                         f"{text[name][row]!r} is {why}")  # fmt: skip
