"""Open a log, and refuse in one line what is wrong with it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Unpack

from accrual.core.errors import InputError
from accrual.logs.read import (
    DECISION_GUESSES,
    JOINED_GUESSES,
    PIECE_GUESSES,
    Reading,
    ReadingOptions,
    Tables,
    ambiguous,
    assign,
    check_told,
    fetch,
    is_url,
    lacking,
    load_decisions,
    load_pieces,
    open_source,
    quoted,
)
from accrual.logs.tables import Counts, Log
from accrual.logs.whole_log import (
    LogContents,
    check_contents,
    cut_at_end,
    describe_whole,
    merge_contents,
    read_contents,
)

__all__ = ["Counts", "Log", "open_log"]


def open_log(
    decisions: Any,
    pieces: Any = None,
    columns: Mapping[str, str] | None = None,
    **options: Unpack[ReadingOptions],
) -> Log:
    """Open a log of decisions and pieces.

    Parameters
    ----------
    decisions : path, URL or data frame
        CSV, JSON lines or Parquet (also gzip, bz2, zst or zip), a folder of parts, a pattern such as
        ``"logs/*.csv"``, a table of a database by URL, or a pandas, polars or Arrow frame. Without
        `pieces`, a joined table: a row for each piece with the decision's columns repeated, and one
        row with empty piece columns for a decision that has none.
    pieces : path, URL or data frame, optional
    columns : mapping, optional
        Role to column name, or to a position such as ``"#3"``; what is not told is guessed from the
        names. Roles: id, arm, at, propensity, window of decisions; decision, value, piece_at or age,
        key of pieces.
    end : number or text, optional
        The log is complete up to here; what is at or after it is left out. The last time in the
        log unless given.
    age_unit : {"s", "m", "h", "d", "w", "y"}, optional
        Of ages and of decisions' own windows in a log with timestamps; seconds unless given.
    time_format : str, optional
        How times are written, such as ``"%d/%m/%Y %H:%M"``; recognised unless given.
    time_unit : {"s", "ms", "us", "ns", "number"}, optional
        What numbers count since 1970; ``"number"`` for plain numbers. Recognised unless given.
    timezone : str, optional
        Of times that have none, such as ``"Europe/Berlin"``; UTC unless given.
    strict : bool
        Refuse pieces without a decision, and repeats that contradict each other.
    allow_negative : bool
        Accept negative values; refused otherwise.
    bad_rows : {"refuse", "skip"}
        What to do about a row that cannot be read.
    bad_rows_file : path, optional
        Where to list the rows that were skipped (CSV).
    bandit : str, optional
        The name of a live bandit, where `decisions` is the URL of its store.
    memory : str
        For DuckDB, which goes to disk beyond it; 2500MB unless given.
    context : sequence of str
        Columns of the decisions that say whom each was for, such as ``["country", "visits"]``. What kind of
        feature each is is recognised; ``"zone:levels"`` and ``"visits:number"`` tell it.

    Examples
    --------
    >>> import pandas as pd
    >>> decisions = pd.DataFrame({"id": [1, 2, 3], "arm": ["a", "b", "a"], "at": [0, 1, 2]})
    >>> pieces = pd.DataFrame({"decision": [1, 1, 3], "value": [0.5, 0.25, 1.0], "at": [0, 3, 4]})
    >>> with open_log(decisions, pieces) as log:
    ...     log.query("SELECT decision, age, value FROM pieces")
    [(0, 0.0, 0.5), (0, 3.0, 0.25), (2, 2.0, 1.0)]
    """
    reading = Reading.made(columns, options)
    log, tables, contents = load(decisions, pieces, reading)
    try:
        whole = merge_contents([contents])
        check_contents(whole, tables)
        describe_whole(log, whole, [cut_at_end(log, whole, reading)])
    except BaseException:
        log.close()
        raise
    return log


def load(decisions: Any, pieces: Any, reading: Reading) -> tuple[Log, Tables, LogContents]:
    """Read a log, or the part of it that `reading` names, into tables of our own."""
    folder = tempfile.TemporaryDirectory(prefix="accrual-")
    log = Log(folder, reading.memory)
    try:
        reading.times.check(log.connection)
        if reading.timezone:
            log.query(f"SET TimeZone = {quoted(reading.timezone)}")
        tables = _find(log, Path(folder.name), decisions, pieces, reading)
        load_decisions(log, tables, reading)
        facts = load_pieces(log, tables, reading)
        if reading.end is None:
            log.notes.append("no end is told: the log is taken to be complete up to its last time")
        return log, tables, read_contents(log, facts)
    except BaseException:
        log.close()
        raise


def _find(log: Log, folder: Path, decisions: Any, pieces: Any, reading: Reading) -> Tables:
    """Open the sources, and find out which of their columns is what."""
    told = reading.columns
    check_told(told)
    decisions, pieces, labels = _fetched(decisions, pieces, folder, reading)
    first = open_source(log.connection, decisions, "decisions", folder, labels.get("decisions"))
    if pieces is None:
        ids = {"id": told["decision"]} if "decision" in told and "id" not in told else {}
        one = {role: name for role, name in told.items() if role != "decision"}
        columns = assign(first, JOINED_GUESSES, one | ids)
        columns["decision"] = columns.get("id", -1)
        tables = Tables(first, first, columns, columns)
    else:
        second = open_source(log.connection, pieces, "pieces", folder, labels.get("pieces"))
        tables = Tables(
            first, second, assign(first, DECISION_GUESSES, told), assign(second, PIECE_GUESSES, told)
        )
    paid_when = () if "age" in tables.piece_columns else ("piece_at",)
    lacks = [lacking(first, tables.decision_columns, ("id", "arm", "at"))]
    if tables.joined:
        lacks = [lacking(first, columns, ("id", "arm", "at", "value", *paid_when))]
    else:
        lacks.append(lacking(tables.pieces, tables.piece_columns, ("decision", "value", *paid_when)))
    lacks.append(ambiguous(tables.pieces, tables.piece_columns))
    if any(lacks):
        raise InputError("; ".join(filter(None, lacks)))
    for roles, source in (
        (tables.decision_columns, tables.decisions), (tables.piece_columns, tables.pieces)
    ):  # fmt: skip
        log.columns |= {role: source.names[column] for role, column in roles.items()}
    guessed = [f"{role} = {name}" for role, name in log.columns.items() if role not in told]
    if guessed:
        log.notes.append(f"columns guessed from their names: {', '.join(guessed)}")
    return tables


def _fetched(decisions: Any, pieces: Any, folder: Path, reading: Reading) -> tuple[Any, Any, dict[str, str]]:
    """Copy what is in a database, and give the copies in its place; and what a person calls them."""
    given = {"decisions": decisions, "pieces": pieces}
    if reading.bandit is not None and not is_url(decisions):
        raise InputError(
            "a bandit is read from its store: give the store's address, such as sqlite:///plays.db"
        )
    labels: dict[str, str] = {}
    for role in ("decisions", "pieces"):
        if not is_url(given[role]):
            continue
        copies = fetch(given[role], role, folder, reading.bandit)
        if role == "decisions" and "pieces" in copies and pieces is not None:
            raise InputError("the address has pieces of its own: leave out PIECES")
        given |= {name: one.path for name, one in copies.items()}
        labels |= {name: one.label for name, one in copies.items()}
    return given["decisions"], given["pieces"], labels
