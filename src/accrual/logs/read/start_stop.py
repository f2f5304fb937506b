"""Read rows of start, stop and status, the counting-process form of survival data, as a log.

A row says that a decision was followed from `start` to `stop`, and by its `status` whether a piece came at
`stop`. The first row of a decision has its arm and its contexts; its last `stop` is the end of its window.
Start and stop are ages that begin at 0, or moments, of which the first start is the decision's time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from accrual.core.errors import InputError
from accrual.logs.log import TICKS, Log
from accrual.logs.read.columns import (
    DECISION_GUESSES,
    JOINED_GUESSES,
    PIECE_GUESSES,
    assign,
    column_named,
    lacking,
    text_expression,
)
from accrual.logs.read.reading import CheckedColumn, Reading, Tables
from accrual.logs.read.sources import TableSource, run
from accrual.logs.read.times import TimeColumn, TimeOptions

START_STOP_ROLES = ("start", "stop", "status")
_GUESSES = {
    "id": PIECE_GUESSES["decision"],
    "arm": DECISION_GUESSES["arm"],
    "at": tuple(name for name in DECISION_GUESSES["at"] if name not in ("time", "t")),
    "propensity": DECISION_GUESSES["propensity"],
    "value": PIECE_GUESSES["value"],
    "start": ("start", "tstart", "start_time", "started_at", "t_start", "time1"),
    "stop": ("stop", "tstop", "stop_time", "stopped_at", "t_stop", "time2", "end"),
    "status": ("status", "event"),
}


def has_start_stop(source: TableSource, given: Mapping[str, str]) -> bool:
    """Return whether a table has rows of start, stop and status: as the user says, or by its columns' names.

    By their names it has not, where it has a time and a value of pieces as well. A column called age does not
    count: beside starts and stops it is a person's.
    """
    if any(role in given for role in START_STOP_ROLES):
        return True
    joined = assign(
        source, JOINED_GUESSES, {role: name for role, name in given.items() if role in JOINED_GUESSES}
    )
    pieces = {"at", "value"} <= set(joined) and ("piece_at" in joined or "age" in given)
    return set(START_STOP_ROLES) <= set(_columns(source, given)) and not pieces


def survival_hint(source: TableSource) -> str:
    """Say what to type for a table that may have a time and a status in each row; empty for others."""
    status = _columns(source, {}).get("status")
    if status is None:
        return ""
    return (
        "if its rows say until when a decision was followed and whether something came then, as survival "
        f"data do, say --column stop=COLUMN --column status={source.names[status]}"
    )


def read_start_stop(log: Log, source: TableSource, reading: Reading) -> tuple[Tables, Reading]:
    """Return the decisions and pieces of a table of starts, stops and statuses, and how to read them."""
    columns = _columns(source, reading.columns)
    if "start" not in columns and "stop" in reading.columns:  # a row for each decision, followed from 0 on
        columns["start"] = len(source.names)
        scan = f"(SELECT *, 0.0::DOUBLE AS c{len(source.names)} FROM {source.scan})"
        source = replace(
            source, names=[*source.names, "0"], types=[*source.types, "DOUBLE"], scan=scan,
            parts=[replace(part, scan=scan) for part in source.parts],
        )  # fmt: skip
    if lacks := lacking(source, columns, ("id", "arm", *START_STOP_ROLES)):
        raise InputError(lacks)
    own_time = "at" in columns and columns["at"] != columns["start"]
    # With a time of the decision, start and stop are ages, however that time is written.
    times = TimeOptions(unit="number") if own_time else reading.times
    start = TimeColumn(log.connection, source, columns["start"], "start", times)
    stop = TimeColumn(log.connection, source, columns["stop"], "stop", times, start.style)
    if start.timestamps != stop.timestamps:
        raise InputError(f"{source.label}: one of start and stop holds timestamps, and the other numbers")
    if start.timestamps and reading.age_unit is not None:
        raise InputError("start and stop are times, which have no unit of age: leave out --age-unit")
    if own_time and reading.age_unit is None:
        at = TimeColumn(log.connection, source, columns["at"], "at", reading.times)
        if at.timestamps:
            raise InputError(
                f"{source.label}: start and stop are ages, beside the time in "
                f"{source.names[columns['at']]!r}: say their unit, such as --age-unit d"
            )
    moments = start.timestamps or columns.get("at") == columns["start"]
    _read_rows(log, source, columns, start, stop)
    _check_rows(log, source, moments)
    log.columns |= {role: source.names[column] for role, column in columns.items()}
    rows, decisions = log.query("SELECT count(*), count(DISTINCT id) FROM follow_up")[0]
    paid = repr(source.names[columns["value"]]) if "value" in columns else "1"
    log.notes.append(
        f"{rows:,} rows of start, stop and status are {decisions:,} decisions: each is followed until its "
        f"last stop, and pays {paid} at every stop whose status is 1"
    )
    if not own_time and not moments:
        log.notes.append(
            "decisions have no times (at), and count as made at 0: accrual compare needs their pace, --rate"
        )
    tables = _tables(source, columns, moments, TICKS if start.timestamps else 1)
    return tables, replace(reading, age_unit="s") if start.timestamps else reading


def _columns(source: TableSource, given: Mapping[str, str]) -> dict[str, int]:
    """Find the column of each role; `decision` may name that of `id`, and `at` that of `start`."""
    ids = {"id": given["decision"]} if "decision" in given and "id" not in given else {}
    own = {role: name for role, name in given.items() if role in _GUESSES and role != "at"} | ids
    guesses = {role: likely for role, likely in _GUESSES.items() if role != "at" or "at" not in given}
    at = {"at": column_named(source, given["at"], "at")} if "at" in given else {}
    return assign(source, guesses, own) | at


def _read_rows(
    log: Log, source: TableSource, columns: Mapping[str, int], start: TimeColumn, stop: TimeColumn
) -> None:
    """Make the table `follow_up` (row, id, arm, start, stop, status)."""
    status = f"lower(CAST(c{columns['status']} AS VARCHAR))"
    status = (
        f"CASE WHEN {status} IN ('1', '1.0', 'true') THEN 1 WHEN {status} IN ('0', '0.0', 'false') THEN 0 END"
    )
    needed = {
        "id": (text_expression(source, columns["id"], "id"), "the decision's id"),
        "arm": (text_expression(source, columns["arm"], "arm"), "an arm's name"),
        "start": (start.tick, start.needed),
        "stop": (stop.tick, stop.needed),
        "status": (status, "1 where a piece came at the row's stop, and 0 elsewhere"),
    }
    chosen = ", ".join(f"{sql} AS {role}" for role, (sql, _) in needed.items())
    query = f"CREATE TABLE follow_up AS SELECT row_number() OVER () AS row, {chosen} FROM {source.scan}"
    run(log.connection, query, source)
    for role, (sql, what) in needed.items():
        CheckedColumn(source, columns[role], role, sql, what).expect(log, "follow_up", role)


def _check_rows(log: Log, source: TableSource, moments: bool) -> None:
    """Refuse decisions that were not followed from their beginning on, without a gap and on one arm."""

    def wrong(condition: str) -> list[tuple[Any, ...]]:
        return log.query(
            "SELECT row, id, start, stop, before FROM (SELECT *, lag(stop) OVER own AS before, "
            "first(arm) OVER own AS first_arm FROM follow_up "
            f"WINDOW own AS (PARTITION BY id ORDER BY start, stop)) WHERE {condition} ORDER BY row LIMIT 1"
        )

    for row, id_, *_ in wrong("stop < start"):
        raise InputError(f"{source.label}: row {row}: the stop of {id_!r} is before its start")
    for row, id_, *_ in wrong("arm <> first_arm"):
        raise InputError(
            f"{source.label}: row {row}: {id_!r} changes its arm; a decision has one arm in all of its rows"
        )
    for row, id_, begins, *_ in [] if moments else wrong("before IS NULL AND start <> 0"):
        raise InputError(
            f"{source.label}: row {row}: the first row of {id_!r} starts at {begins:g}, not at 0: if start "
            "and stop are times and not ages, say --column at=COLUMN with the column of start; a decision "
            "that was not followed from its beginning on cannot be used"
        )
    for row, id_, *_ in wrong("before IS NOT NULL AND start <> before"):
        raise InputError(
            f"{source.label}: row {row}: this row of {id_!r} does not start where the one before stops: the "
            "rows of a decision must follow each other without a gap and must not overlap"
        )


def _tables(source: TableSource, columns: Mapping[str, int], moments: bool, unit: int) -> Tables:
    """Make tables of decisions and pieces; what follows from rows is in two columns after the source's."""
    count = len(source.names)
    own = ", ".join(f"c{i}" for i in range(count))
    numbered = f"(SELECT row_number() OVER () AS row, * FROM {source.scan}) JOIN"
    begins = "min(start)" if moments else "0"
    decided = (
        f"(SELECT arg_min(row, start) AS row, (max(stop) - {begins}) / {unit} AS c{count}, "
        f"0.0::DOUBLE AS c{count + 1} FROM follow_up GROUP BY id)"
    )
    paid = (
        f"(SELECT row, (stop - {begins} OVER (PARTITION BY id)) / {unit} AS c{count}, 1.0::DOUBLE AS "
        f"c{count + 1}, status FROM follow_up)"
    ).replace("0 OVER (PARTITION BY id)", "0")
    more = f"{own}, c{count}, c{count + 1}"
    names, types = [*source.names, source.names[columns["stop"]], "at"], [*source.types, "DOUBLE", "DOUBLE"]
    decisions = replace(
        source,
        names=names,
        types=types,
        scan=f"(SELECT {more} FROM {numbered} {decided} USING (row))",
        parts=(),
    )
    pieces = replace(
        source, names=names, types=types, parts=(),
        scan=f"(SELECT {more} FROM {numbered} {paid} USING (row) WHERE status = 1)",
    )  # fmt: skip
    at = columns["start"] if moments else columns.get("at", count + 1)
    roles = {role: columns[role] for role in ("id", "arm", "propensity") if role in columns}
    return Tables(
        decisions, pieces, {**roles, "at": at, "window": count},
        {"decision": columns["id"], "value": columns.get("value", count + 1), "age": count},
        start_stop=True,
    )  # fmt: skip
