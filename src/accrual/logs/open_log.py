"""Open a log: read it into tables, check it, cut it at its end, and note what is known about it."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from scipy import special

from accrual.core.arrays import Ints
from accrual.core.durations import UNITS
from accrual.core.errors import InputError, positive
from accrual.logs.estimate import survey
from accrual.logs.log import Log
from accrual.logs.read import (
    DECISION_GUESSES,
    JOINED_GUESSES,
    PIECE_GUESSES,
    START_STOP_ROLES,
    OddityFacts,
    Reading,
    ReadingOptions,
    Tables,
    TableSource,
    ambiguous,
    assign,
    check_arms,
    check_roles,
    fetch,
    has_start_stop,
    is_url,
    lacking,
    load_decisions,
    load_pieces,
    oddities,
    open_source,
    quoted,
    read_start_stop,
    survival_hint,
)

_CHANGED = 1e-4  # level of the test whether the arms' shares of the decisions changed over time
_EXPECTED_LEAST = 5.0
_PAST = 4e-9  # of a length of time: what lies so far after its end is still at its end, but for rounding
_ENDED = 0.5  # of the decisions that paid


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
        row with empty piece columns for a decision that has none. Or rows of start, stop and status, as in
        survival data: docs/log_format.md says how they are read.
    pieces : path, URL or data frame, optional
    columns : mapping, optional
        Role to column name, or to a position such as ``"#3"``; other roles are guessed from the column
        names. Roles: id, arm, at, propensity, window of decisions; decision, value, piece_at or age,
        key of pieces; start, stop, status of follow-ups.
    end : number or text, optional
        The time up to which the log is complete; what is at that time or after it is left out. The last
        time in the log unless given.
    age_unit : {"s", "min", "h", "d", "w", "y"}, optional
        The unit of ages and of decisions' own windows, in a log with timestamps; seconds unless given.
    time_format : str, optional
        How times are written, such as ``"%d/%m/%Y %H:%M"``; recognised unless given.
    time_unit : {"s", "ms", "us", "ns", "number"}, optional
        The unit of numbers that count since 1970; ``"number"`` for plain numbers. Recognised unless given.
    timezone : str, optional
        The time zone of times that have none, such as ``"Europe/Berlin"``; UTC unless given.
    skew : text, timedelta or number, optional
        How long before its decision a piece may come, because clocks differ, such as ``"5s"``; it counts at
        age 0. Unless given, a piece before its decision is refused.
    na : sequence of str
        Words that mean that a cell is empty, such as ``["NA", "-"]``.
    decimal : {",", "."}, optional
        The decimal sign of numbers in text; the other of the two may then separate thousands. Unless given,
        it is a point, and no sign separates thousands.
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
        How much DuckDB may use before it goes to disk; 2500MB unless given.
    context : sequence of str
        Columns with the context of each decision, such as ``["country", "visits"]``. The kind of
        feature is recognised; ``"zone:levels"`` and ``"visits:number"`` name it.
    cluster : str, optional
        The column that says which decisions belong together, such as ``"user"``: errors allow for decisions
        of one cluster that pay alike.
    cap_totals : float, optional
        Count no more than this of the total of a decision; what comes after it is reached counts as nothing.

    Examples
    --------
    >>> import pandas as pd
    >>> decisions = pd.DataFrame({"id": [1, 2, 3], "arm": ["a", "b", "a"], "at": [0, 1, 2]})
    >>> pieces = pd.DataFrame({"decision": [1, 1, 3], "value": [0.5, 0.25, 1.0], "at": [0, 3, 4]})
    >>> with open_log(decisions, pieces) as log:
    ...     log.query("SELECT decision, age, value FROM pieces ORDER BY ALL")
    [(0, 0.0, 0.5), (0, 3.0, 0.25), (2, 2.0, 1.0)]
    """
    reading = Reading.made(columns, options)
    folder = tempfile.TemporaryDirectory(prefix="accrual-")
    log = Log(folder, reading.memory)
    try:
        reading.times.check(log.connection)
        if reading.timezone:
            log.query(f"SET TimeZone = {quoted(reading.timezone)}")
        tables, reading = _find(log, Path(folder.name), decisions, pieces, reading)
        load_decisions(log, tables, reading)
        end = None if reading.end is None else _given_end(log, reading.end)
        facts = load_pieces(log, tables, reading, end)
        _check_contents(log, tables, facts)
        _describe(log, facts, end)
        if reading.cap_totals is not None:
            _cap_totals(log, reading.cap_totals)
    except BaseException:
        log.close()
        raise
    return log


@contextmanager
def opened(
    source: Any, columns: Mapping[str, str] | None = None, **options: Unpack[ReadingOptions]
) -> Iterator[Log]:
    """Open a log for the length of a block; a log that is open already stays open after it.

    Parameters
    ----------
    source : path, data frame, pair of them, or Log
        One table, a pair of decisions and pieces, or what `open_log` returned.
    **options
        As for `open_log`, and `columns` too; none for a log that is open already.
    """
    if isinstance(source, Log):
        refuse_options("the log is open already", columns, options)
        yield source
        return
    decisions, pieces = source if isinstance(source, tuple) else (source, None)
    with open_log(decisions, pieces, columns, **options) as log:
        yield log


def refuse_options(why: str, columns: Mapping[str, str] | None, options: Mapping[str, Any]) -> None:
    """Refuse what says how a log is read, where none is."""
    given = [*(["columns"] if columns else []), *(name for name, value in options.items() if value)]
    if given:
        raise InputError(f"{why}: give {given[0]} to accrual.open_log or accrual.fit")


def _find(log: Log, folder: Path, decisions: Any, pieces: Any, reading: Reading) -> tuple[Tables, Reading]:
    """Open the sources, and find the role of each of their columns."""
    given = reading.columns
    check_roles(given)
    decisions, pieces, labels = _fetched(decisions, pieces, folder, reading)

    def opened_table(table: Any, what: str) -> TableSource:
        return reading.table(open_source(log.connection, table, what, folder, labels.get(what)))

    first = opened_table(decisions, "decisions")
    if pieces is None and has_start_stop(first, given):
        tables, reading = read_start_stop(log, first, reading)
    else:
        tables = _with_roles(log, first, None if pieces is None else opened_table(pieces, "pieces"), given)
    guessed = [f"{role} = {name}" for role, name in log.columns.items() if role not in given]
    if guessed:
        log.notes.append(f"columns guessed from their names: {', '.join(guessed)}")
    return tables, reading


def _with_roles(log: Log, first: TableSource, second: TableSource | None, given: Mapping[str, str]) -> Tables:
    """Find the role of each column of decisions and pieces, which are one table where `second` is None."""
    if second is None:
        ids = {"id": given["decision"]} if "decision" in given and "id" not in given else {}
        one = {role: name for role, name in given.items() if role != "decision"}
        columns = assign(first, JOINED_GUESSES, one | ids)
        columns["decision"] = columns.get("id", -1)
        tables = Tables(first, first, columns, columns)
    else:
        if any(role in given for role in START_STOP_ROLES):
            raise InputError("start, stop and status are columns of one table: leave out the pieces")
        tables = Tables(
            first, second, assign(first, DECISION_GUESSES, given), assign(second, PIECE_GUESSES, given)
        )
    paid_when = () if "age" in tables.piece_columns else ("piece_at",)
    lacks = [lacking(first, tables.decision_columns, ("id", "arm", "at"))]
    if tables.joined:
        lacks = [lacking(first, columns, ("id", "arm", "at", "value", *paid_when))]
        lacks += [survival_hint(first)] if any(lacks) else []
    else:
        lacks.append(lacking(tables.pieces, tables.piece_columns, ("decision", "value", *paid_when)))
    lacks.append(ambiguous(tables.pieces, tables.piece_columns))
    if any(lacks):
        raise InputError("; ".join(filter(None, lacks)))
    for roles, source in (
        (tables.decision_columns, tables.decisions), (tables.piece_columns, tables.pieces)
    ):  # fmt: skip
        log.columns |= {role: source.names[column] for role, column in roles.items()}
    return tables


def _fetched(decisions: Any, pieces: Any, folder: Path, reading: Reading) -> tuple[Any, Any, dict[str, str]]:
    """Copy tables of a database or of the web; return the copies, and what a person calls the tables."""
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


def _check_contents(log: Log, tables: Tables, facts: OddityFacts) -> None:
    """Refuse a log from which nothing can be learned."""
    if not log.query("SELECT 1 FROM decided LIMIT 1"):
        raise InputError(f"{tables.decisions.label}: it has a header and no rows; decisions are needed")
    check_arms(log.arms, tables)
    if log.query("SELECT 1 FROM paid LIMIT 1"):
        return
    if not log.counts.orphans:
        raise InputError(f"{tables.pieces.label}: no pieces: there is nothing to learn a spread from")
    column = tables.pieces.names[tables.piece_columns["decision"]]
    why = "they differ by spaces or capitals" if facts.alike else "is it the right one?"
    where = f"{tables.pieces.label}: column {column!r} (decision)"
    raise InputError(f"{where} has no id that is a decision's; {why}")


def _describe(log: Log, facts: OddityFacts, given_end: float | None) -> None:
    """Cut a log at its end, make its views, and note what is known about it."""
    unit, counts = log.unit, log.counts
    first, last = log.query("SELECT min(tick), max(tick) FROM decided")[0]
    log.resolution = _resolution(log)
    if given_end is None:
        log.notes.append("no end is given: the log is taken to be complete up to its last time")
        paid = f"SELECT max(tick + age * {unit}) FROM paid JOIN decided ON paid.decision = decided.rowid"
        end = max(last, log.query(paid)[0][0])
        if facts.start_stop:
            end = max(end, log.query(f"SELECT max(tick + own_window * {unit}) FROM decided")[0][0])
        end, through = end + log.resolution * unit, end + max(log.resolution * unit, _PAST * (end - first))
    else:
        end = through = given_end
        counts.after_end += log.query("DELETE FROM decided WHERE tick >= $1", [end])[0][0]
    log.first, log.end = first / unit, end / unit
    _include_ends(log, facts.start_stop)
    _make_views(log, through)
    counts.decisions, latest, longest = log.query("SELECT count(*), max(tick), max(own_window) FROM decided")[
        0
    ]
    counts.pieces, least, most = log.query("SELECT count(*), min(value), max(value) FROM paid")[0]
    counts.unfollowed = log.query("SELECT count(*) FROM decisions WHERE followed <= 0")[0][0]
    for what, number in (("decision", counts.decisions), ("piece", counts.pieces)):
        if not number:
            raise InputError(f"no {what} is before the end, {log.moment(log.end)}")
    log.longest_window = longest or 0.0 if log.has_window else None
    log.signed, log.largest_value = least < 0, max(abs(least), abs(most))
    span = latest / unit - log.first + log.resolution
    intervals = counts.decisions - (log.resolution == 0.0)  # without steps, the gaps between decisions
    log.rate = intervals / span if span > 0.0 else float(intervals)
    halves = np.zeros((len(log.arms), 2), np.int64)
    smallest, largest = np.full(len(log.arms), math.inf), np.zeros(len(log.arms))
    for arm, early, late, low, high in log.query(
        "SELECT arm, count(*) FILTER (tick <= $1), count(*) FILTER (tick > $1), "
        "coalesce(min(propensity), 1), coalesce(max(propensity), 1) FROM decided GROUP BY arm",
        [(first + last) / 2.0],
    ):
        halves[arm], smallest[arm], largest[arm] = (early, late), low, high
    log.least_propensity = float(smallest.min()) if (largest > smallest).any() else None
    log.shares_changed = _changed(halves)
    found = survey(log)
    facts.payers, facts.longest_age = found.payers, found.longest
    if "key" not in log.columns:
        counts.identical = found.identical
    facts.last_decision, facts.last_piece = last / unit, found.last / unit
    log.odd += oddities(log, facts)


def _cap_totals(log: Log, cap: float) -> None:
    """Cut from every decision what it paid beyond a cap, the last pieces first."""
    positive("cap_totals", cap)
    log.query(
        "CREATE TABLE cut AS SELECT place, decision, value, "
        "least(total, $1) - least(total - value, $1) AS kept FROM "
        "(SELECT rowid AS place, decision, value, sum(value) OVER "
        "(PARTITION BY decision ORDER BY age, value ROWS UNBOUNDED PRECEDING) AS total FROM paid) "
        "WHERE total > $1 OR total - value > $1",
        [float(cap)],
    )
    over, less = log.query("SELECT count(DISTINCT decision), coalesce(sum(value - kept), 0) FROM cut")[0]
    paid = log.query("SELECT sum(value) FROM paid")[0][0]
    log.query("UPDATE paid SET value = kept FROM cut WHERE paid.rowid = place")
    log.query("DROP TABLE cut")
    log.cap_totals, log.blocks = float(cap), []
    log.capped = (
        f"totals are capped at {cap:g}, as asked: {over:,} decisions had more at some age, and {less:.6g} of "
        f"the {paid:.6g} paid in all is left out; means, spread and window below are those of capped totals"
    )


def _include_ends(log: Log, always: bool) -> None:
    """Follow decisions through the end of their own windows, where pieces were recorded at that very age.

    A log may stop following a decision because of a piece: at the event, as clinical logs do.
    """
    if not log.has_window:
        return
    # A window of 0 may say only that the arm was chosen. In survival data it says that all was seen at 0.
    some = "own_window >= 0" if always else "own_window > 0"
    at_end, after, payers, ended = log.query(
        "SELECT count(*) FILTER (age = own_window), count(*) FILTER (age > own_window), "
        "count(DISTINCT decision), count(DISTINCT decision) FILTER (age = own_window) "
        f"FROM paid JOIN decided ON paid.decision = decided.rowid WHERE {some}"
    )[0]
    if at_end <= after and not always:
        return
    longer = (
        f"own_window + {log.resolution}"
        if log.resolution
        else f"greatest(own_window * {1.0 + _PAST}, 1e-300)"
    )
    log.query(f"UPDATE decided SET own_window = {longer} WHERE {some}")
    if at_end:
        log.notes.append(f"{at_end:,} pieces come exactly when their decision's own window ends; they count")
    if ended > _ENDED * payers:
        log.odd.append(
            f"the follow-up of {ended:,} of the {payers:,} decisions that paid ends at a piece: if nothing "
            "can come after it, as after a death, the means below are too high, because they count what "
            "others would still have paid"
        )


def _make_views(log: Log, end: float) -> None:
    log.query("CREATE TABLE ended AS SELECT CAST($1 AS DOUBLE) AS tick", [end])
    log.query(
        "CREATE VIEW decisions AS SELECT decided.rowid AS decision, CAST(id AS VARCHAR) AS id, arm, "
        f"decided.tick / {log.unit} AS at, propensity, own_window, "
        f"least((ended.tick - decided.tick) / {log.unit}, coalesce(own_window, 'inf'::DOUBLE)) AS followed"
        f"{log.context_sql} "
        "FROM decided, ended"
    )
    log.query("CREATE VIEW pieces AS SELECT decision::BIGINT AS decision, age, value FROM paid")


def _changed(halves: Ints) -> bool:
    """Test by chi-square whether the arms' shares differ between the two halves of the log's time."""
    table = halves[halves.sum(axis=1) > 0].astype(np.float64)
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    large = expected.min(axis=1) >= _EXPECTED_LEAST
    if large.sum() < 2:
        return False
    distance = float(((table - expected) ** 2 / expected)[large].sum())
    return bool(special.chdtrc(int(large.sum()) - 1, distance) < _CHANGED)


def _resolution(log: Log) -> float:
    """Find what all times and ages are multiples of: 1 for numbers; a second, minute, hour or day; else 0."""
    resolution = 0.0
    for step in [UNITS[unit] for unit in ("s", "min", "h", "d")] if log.timestamps else [1.0]:
        for table, name, size in (("decided", "tick", step * log.unit), ("paid", "age", step)):
            if log.query(f"SELECT 1 FROM {table} WHERE {name} <> floor({name} / {size}) * {size} LIMIT 1"):
                return resolution
        resolution = step
    return resolution


def _given_end(log: Log, given: float | str) -> float:
    moment = "TRY_CAST($1 AS DOUBLE)"
    if log.timestamps:
        moment = f"coalesce({log.moment_sql}, epoch_us(TRY_CAST($1 AS TIMESTAMPTZ)))"
    tick: float | None = log.query(f"SELECT {moment}", [str(given)])[0][0]
    if tick is None or not math.isfinite(tick):
        needed = "a timestamp such as 2024-05-01 12:30:00" if log.timestamps else "a number"
        raise InputError(f"end must be {needed}, as the log's times are, not {str(given)!r}")
    return tick
