"""Read the decisions and the pieces of a log into its tables, and leave out what cannot be used."""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from accrual.core.durations import exact_duration, parse_length, show_length, unit_seconds
from accrual.core.errors import InputError, need
from accrual.core.files import csv_cell
from accrual.logs.log import TICKS, Log
from accrual.logs.read.columns import DURATIONS, column_named, empty, number_expression, text_expression
from accrual.logs.read.contexts import find_context_columns
from accrual.logs.read.oddity_checks import CONTRADICTING, OddityFacts
from accrual.logs.read.reading import CheckedColumn, Reading, Tables, check_zones
from accrual.logs.read.sources import TableSource, run
from accrual.logs.read.times import TimeColumn

ARMS_MOST = 10_000
_NAMES = {
    "id": "id", "arm": "arm", "at": "tick", "propensity": "propensity", "window": "own_window",
    "cluster": "cluster",
}  # fmt: skip
_AGES_LEAST = 5  # different ages, below which nothing is said about whose they are
_NEAR = 0.1  # of the longest age: near 0
_KINDS_MOST = 0.2  # different keys for each piece; above that they tell pieces apart
_LOOKED_AT = 100_000  # values, to see how numbers are written
_AFTER_END = (1 << 32) - 1  # stands for the decision of a piece after the log's end
_HEAD = ("file", "row", "column", "role", "value", "needed")


def load_decisions(log: Log, tables: Tables, reading: Reading) -> None:
    """Make the table `decided` (id, arm, tick, propensity, own_window, contexts), in order of time."""
    source = tables.decisions
    moments = TimeColumn(log.connection, source, tables.decision_columns["at"], "at", reading.times)
    log.timestamps, log.time_unit, log.time_style = moments.timestamps, moments.unit, moments.style
    log.moment_sql, log.dates = moments.reading("$1"), moments.dates
    if moments.kind:
        log.notes.append(f"{source.names[tables.decision_columns['at']]} (at): {moments.kind}")
    cells = _decision_cells(tables, moments)
    contexts = find_context_columns(tables, reading.context)
    log.contexts = tuple(column for column, _ in contexts)
    cells |= {column.role: cell for column, cell in contexts}
    if reading.cluster:
        log.cluster, place = reading.cluster, column_named(source, reading.cluster, "cluster")
        sql = text_expression(source, place, "cluster")
        cells["cluster"] = CheckedColumn(source, place, "cluster", sql, "anything", "true")
    log.has_propensity, log.has_window = "propensity" in cells, "window" in cells
    if reading.skips:
        skip_bad_rows(log, cells.values(), reading)
    _read_decisions(log, tables, cells, moments.aware, reading)
    for role, cell in cells.items():
        cell.expect(log, "raw", _NAMES.get(role, role))
    aware, naive = log.query("SELECT bool_or(aware), bool_or(naive) FROM raw")[0]
    check_zones(log, source, aware, naive, reading.timezone)
    _check_unique(log, tables, cells)
    _name_arms(log)
    seconds = unit_seconds(reading.age_unit or "s") if log.timestamps else 1.0
    log.query(
        "CREATE TABLE decided AS SELECT raw.id, arms.arm, tick, propensity, "
        f"own_window * {seconds} AS own_window, cluster{log.context_sql} "
        "FROM raw JOIN arms ON raw.arm = arms.name "
        "ORDER BY tick, raw.id"
    )
    log.query("DROP TABLE raw")


def _decision_cells(tables: Tables, moments: TimeColumn) -> dict[str, CheckedColumn]:
    source, columns = tables.decisions, tables.decision_columns
    cells = {
        "id": CheckedColumn(source, columns["id"], "id", tables.id_expressions()[0], "the decision's id"),
        "arm": CheckedColumn(
            source, columns["arm"], "arm", text_expression(source, columns["arm"], "arm"), "an arm's name"
        ),
        "at": CheckedColumn(source, columns["at"], "at", moments.tick, moments.needed),
    }
    for role, good, needed in (
        ("propensity", "{x} > 0 AND {x} <= 1", "a number above 0 and at most 1"),
        ("window", "{x} >= 0 AND isfinite({x})", "a number of at least 0"),
    ):
        if role in columns:
            sql = number_expression(source, columns[role], role)
            cells[role] = CheckedColumn(source, columns[role], role, sql, needed, good)
    return cells


def _read_decisions(
    log: Log, tables: Tables, cells: dict[str, CheckedColumn], aware: str, reading: Reading
) -> None:
    names = _NAMES | {column.role: column.role for column in log.contexts}
    columns = [
        f"{cells[role].sql if role in cells else 'NULL::DOUBLE'} AS {name}" for role, name in names.items()
    ]
    rows = f"SELECT {', '.join(columns)}, {aware} AS aware FROM {tables.decisions.scan}"
    if reading.skips:
        rows += f" WHERE {' AND '.join(cell.is_good for cell in cells.values())}"
    if tables.joined:
        # A cell that is missing in one of a decision's rows is missing.
        merged = [
            f"CASE WHEN count({name}) = count(*) THEN min({name}) END AS {name}, "
            f"min({name}) IS DISTINCT FROM max({name}) AS {name}_mixed"
            for name in names.values()
            if name != "id"
        ]
        rows = (
            f"SELECT id, {', '.join(merged)}, bool_or(aware) AS aware, bool_or(NOT aware) AS naive "
            f"FROM ({rows}) GROUP BY id"
        )
    else:
        rows = f"SELECT *, NOT aware AS naive FROM ({rows})"
    run(log.connection, f"CREATE TABLE raw AS {rows}", tables.decisions)


def _check_unique(log: Log, tables: Tables, cells: dict[str, CheckedColumn]) -> None:
    source = tables.decisions
    if not tables.joined:
        rows, ids = log.query("SELECT count(*), count(DISTINCT id) FROM raw")[0]
        if rows > ids:
            log.query("CREATE TABLE once AS SELECT DISTINCT * FROM raw")
            log.query("DROP TABLE raw")
            log.query("ALTER TABLE once RENAME TO raw")
            log.counts.copies = rows - log.query("SELECT count(*) FROM raw")[0][0]
        if rows - log.counts.copies > ids:
            twice = log.query("SELECT id FROM raw GROUP BY id HAVING count(*) > 1 ORDER BY id")
            name, shown = (
                source.names[tables.decision_columns["id"]],
                ", ".join(repr(x) for (x,) in twice[:5]),
            )
            raise InputError(
                f"{source.label}: column {name!r} (id) has {shown}{' and others' if len(twice) > 5 else ''} "
                f"more than once, in rows that contradict each other ({len(twice):,} ids); each decision "
                "must have an id of its own"
            )
        return
    for role, cell in cells.items():
        mixed = role != "id" and log.query(f"SELECT id FROM raw WHERE {_NAMES.get(role, role)}_mixed LIMIT 1")
        if mixed:
            raise InputError(
                f"{source.label}: column {source.names[cell.column]!r} ({role}) has several values for "
                f"decision {mixed[0][0]!r}; they must be the same in all of its rows"
            )


def check_arms(arms: tuple[str, ...], tables: Tables) -> None:
    """Refuse a log with too few arms, or with so many that they cannot be arms."""
    where = (
        f"{tables.decisions.label}: column {tables.decisions.names[tables.decision_columns['arm']]!r} (arm)"
    )
    if len(arms) < 2:
        raise InputError(f"{where} holds only {arms[0]!r}; a choice needs at least two arms")
    if len(arms) > ARMS_MOST:
        raise InputError(f"{where} holds more than {ARMS_MOST:,} different values; is it the arm?")


def in_natural_order(names: Iterable[str]) -> tuple[str, ...]:
    """Sort arms: numbers by size, before words; ranges from the lowest up.

    Examples
    --------
    >>> in_natural_order(["amount from 50", "arm10", "amount below 10", "arm2", "amount 10 to 50", "9"])
    ('9', 'amount below 10', 'amount 10 to 50', 'amount from 50', 'arm2', 'arm10')
    """
    return tuple(sorted(names, key=lambda name: (_natural(name), name)))


def _name_arms(log: Log) -> None:
    names = log.query(f"SELECT DISTINCT arm FROM raw LIMIT {ARMS_MOST + 1}")
    log.arms = in_natural_order(row[0] for row in names)
    log.query(
        "CREATE TABLE arms AS SELECT name, (row_number() OVER () - 1)::INTEGER AS arm "
        "FROM (SELECT unnest($1::VARCHAR[]) AS name)",
        [list(log.arms)],
    )


def _natural(name: str) -> tuple[float, list[str | float], float]:
    """Return what an arm is sorted by: numbers by size, then words with numbers by size; ranges rising."""
    value = _number(name)
    if value is not None:
        return value, [], 0.0
    lower = 0.0
    cut = re.fullmatch(r"(.+) (?:below (\S+)|from (\S+)|(\S+) to (\S+))", name)
    bounds = [_number(bound) for bound in cut.groups()[1:] if bound] if cut else []
    if cut and None not in bounds:
        lower = -math.inf if cut[2] else bounds[0] or 0.0
        name = cut[1]
    words: list[str | float] = [
        float(part) if i % 2 else part for i, part in enumerate(re.split(r"(\d+)", name))
    ]
    return math.inf, words, lower


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return None if math.isnan(value) else value


class _Cells(NamedTuple):
    decision: CheckedColumn
    age: CheckedColumn
    value: CheckedColumn
    aware: str  # SQL: whether the piece's time has a time zone


def load_pieces(log: Log, tables: Tables, reading: Reading, end: float | None = None) -> OddityFacts:
    """Make the table `paid` (decision, age, value), in the order of decisions; say what may be odd.

    Pieces at `end` (in ticks) or after it are counted and left out.
    """
    _check_key(log, tables, reading)
    cells = _piece_cells(log, tables, reading)
    if reading.skips:
        skip_bad_rows(log, (cells.decision, cells.age, cells.value), reading)
    keyed = _read_pieces(log, tables, cells, reading, end)
    facts = OddityFacts(start_stop=tables.start_stop)
    _drop_orphans(log, tables, cells, reading, facts)
    _expect_ages(log, cells.age)
    ages = tables.piece_columns.get("age")
    if ages is not None and "age" not in reading.columns and not tables.start_stop:
        _check_age(log, tables)
    cells.value.expect(log, "paid", "value")
    _drop_repeats(log, tables, keyed, reading)
    facts.ages_without_unit = (
        ages is not None and log.timestamps and reading.age_unit is None
        and tables.pieces.types[ages] not in ("INTERVAL", *DURATIONS)
    )  # fmt: skip
    facts.joined, facts.thousands = tables.joined, _thousands(log, tables)
    if log.timestamps and reading.age_unit is None:
        lengths = [
            name for name, here in (("ages", facts.ages_without_unit), ("windows", log.has_window)) if here
        ]
        if lengths:
            log.notes.append(f"{' and '.join(lengths)} are taken as seconds")
    return facts


def _piece_cells(log: Log, tables: Tables, reading: Reading) -> _Cells:
    """Say how a piece is read; an age may refer to its decision's row in `decided`."""
    source, columns = tables.pieces, tables.piece_columns
    if reading.age_unit is not None and not log.timestamps:
        raise InputError("a unit of age goes with timestamps; this log's times are plain numbers")
    among = "true"
    if tables.joined:
        paid = columns.get("age", columns.get("piece_at", 0))
        among = f"NOT ({empty(columns['value'])} AND {empty(paid)})"
    own = tables.id_expressions()[1]
    decision = CheckedColumn(source, columns["decision"], "decision", own, "the decision's id", among=among)
    join = f"JOIN decided ON {own} = decided.id"
    aware = "NULL::BOOLEAN"
    if "age" in columns:
        durations = source.types[columns["age"]] in ("INTERVAL", *DURATIONS)
        if durations and not log.timestamps:
            raise InputError(
                f"{source.label}: column {source.names[columns['age']]!r} (age) holds durations, "
                "but the decisions' times are plain numbers"
            )
        seconds = unit_seconds(reading.age_unit or "s") if log.timestamps and not durations else 1.0
        sql = f"{number_expression(source, columns['age'], 'age')} * {seconds}"
        role, needed = "age", "a number of at least 0"
    else:
        moments = TimeColumn(
            log.connection, source, columns["piece_at"], "piece_at", reading.times, log.time_style
        )
        if moments.timestamps != log.timestamps:
            kinds = {True: "timestamps", False: "numbers"}
            raise InputError(
                f"{source.label}: column {source.names[columns['piece_at']]!r} (piece_at) holds "
                f"{kinds[moments.timestamps]}, but the decisions' times are {kinds[log.timestamps]}"
            )
        if reading.timezone and moments.dates != log.dates:
            which = ("the pieces'", "the decisions'")[log.dates]
            raise InputError(
                f"{source.label}: {which} times are dates and the others have a time of day: --timezone "
                "would move one and not the other; write all of them with a time of day, or leave it out"
            )
        if moments.unit and log.time_unit and moments.unit != log.time_unit:
            raise InputError(
                f"{source.label}: column {source.names[columns['piece_at']]!r} (piece_at) counts "
                f"{moments.unit} since 1970, and the decisions' times count {log.time_unit}; "
                "give both in one unit"
            )
        if moments.kind:
            log.notes.append(f"{source.names[columns['piece_at']]} (piece_at): {moments.kind}")
        aware = moments.aware
        sql = f"({moments.tick} - decided.tick) / {TICKS if log.timestamps else 1}"
        role, needed = "piece_at", moments.needed
    below = "is below 0" if role == "age" else "is before its decision's time"
    if reading.skew is not None:
        sql = _forgive(log, source, sql, join, reading)
    age = CheckedColumn(
        source, columns[role], role, sql, needed, "{x} >= 0 AND isfinite({x})", join, among, below
    )
    good = "isfinite({x})" if reading.allow_negative else "{x} >= 0 AND isfinite({x})"
    sql = number_expression(source, columns["value"], "value")
    value = CheckedColumn(
        source, columns["value"], "value", sql, "a finite number", good, among=among,
        below="is below 0: say --allow-negative if these are refunds, which would count",
    )  # fmt: skip
    return _Cells(decision, age, value, aware)


def _expect_ages(log: Log, ages: CheckedColumn) -> None:
    """Refuse ages that cannot be read, and pieces before their decision: say how many, and by how much."""
    count, most = log.query("SELECT count(*), -min(age) FROM paid WHERE age < 0 AND isfinite(age)")[0]
    if count:
        enough = exact_duration(math.ceil(most)) if log.timestamps else f"{most:.17g}"
        many = f"({count:,} pieces are so, by up to {show_length(most, log.timestamps)}"
        ages = replace(ages, below=f"{ages.below} {many}; if clocks differ, say --skew {enough})")
    ages.expect(log, "paid", "age")


def _forgive(log: Log, source: TableSource, age: str, join: str, reading: Reading) -> str:
    """Return SQL for an age that is 0 where a piece comes a little before its decision; count such pieces."""
    assert reading.skew is not None
    most = parse_length(reading.skew, log.timestamps, "skew")
    early = f"({age}) BETWEEN {-most!r} AND -1e-300"
    count = f"SELECT count(*) FROM {source.scan} {join} WHERE {early}"
    log.counts.early = run(log.connection, count, source).fetchone()[0]
    if log.counts.early:
        length = show_length(most, log.timestamps)
        log.notes.append(
            f"{log.counts.early:,} pieces come up to {length} before their decision: they count at age 0"
        )
    return f"CASE WHEN {early} THEN 0.0 ELSE {age} END"


def _read_pieces(log: Log, tables: Tables, cells: _Cells, reading: Reading, end: float | None) -> bool:
    """Make `paid`, orphans last, and return whether pieces have keys.

    Sorting is much of the work, so pieces are sorted by as little as possible: by decision, where they have
    no keys.
    """
    columns = tables.piece_columns
    keyed = "key" in columns
    zoned = cells.aware not in {"true", "false", "NULL::BOOLEAN"}  # by row, that is, and not by type
    number = "decided.rowid::UINTEGER"
    if end is not None:  # what is to be left out is sorted to the end of the table, where it is quickly found
        late = f"decided.tick + ({cells.age.sql}) * {log.unit} >= {end!r}"
        number = f"CASE WHEN {late} THEN {_AFTER_END}::UINTEGER ELSE {number} END"
    chosen = [f"{number} AS decision", f"{cells.age.sql} AS age", f"{cells.value.sql} AS value"]
    if keyed:
        # A key need only distinguish the pieces of one decision, for which 64 bits are plenty.
        key = text_expression(tables.pieces, columns["key"], "key")
        chosen.append(f"CASE WHEN {key} IS NULL THEN 0 ELSE hash({key}) END AS key")
    if zoned:
        chosen.append(f"{cells.aware} AS aware")
    wanted = [cells.decision.among]
    if reading.skips:
        wanted += [
            cells.decision.is_good, f"(decided.id IS NULL OR {cells.age.is_good})", cells.value.is_good
        ]  # fmt: skip
    rows = f"SELECT {', '.join(chosen)} FROM {tables.pieces.scan} LEFT {cells.age.join} "
    rows += f"WHERE {' AND '.join(wanted)}"
    order = "decision NULLS LAST" + (", key, age, value" if keyed else "")
    try:
        run(log.connection, f"CREATE TABLE paid AS {rows} ORDER BY {order}", tables.pieces)
    except MemoryError:
        # Joining and sorting each need less memory than both at once.
        run(log.connection, f"CREATE TABLE joined AS {rows}", tables.pieces)
        log.query(f"CREATE TABLE paid AS SELECT * FROM joined ORDER BY {order}")
        log.query("DROP TABLE joined")
    table = "paid" if zoned else f"(SELECT {cells.aware} AS aware)"
    aware, naive = log.query(f"SELECT bool_or(aware), bool_or(NOT aware) FROM {table}")[0]
    check_zones(log, tables.pieces, aware, naive, reading.timezone)
    return keyed


def _drop_orphans(log: Log, tables: Tables, cells: _Cells, reading: Reading, facts: OddityFacts) -> None:
    everything, kept = log.query("SELECT count(*), count(decision) FROM paid")[0]
    log.counts.orphans = everything - kept
    log.counts.after_end = log.query(f"SELECT count(*) FROM paid WHERE decision = {_AFTER_END}")[0][0]
    if log.counts.orphans:  # a piece without any id is a mistake, not an orphan
        cells.decision.expect_source(log)
        facts.alike = _alike(log, cells)
    if log.counts.orphans and reading.strict:
        here = CheckedColumn(
            tables.pieces, cells.decision.column, "decision", "decided.id",
            f"the id of a decision ({log.counts.orphans:,} pieces have none)",
            join=f"LEFT {cells.age.join}", among=cells.decision.among,
        )  # fmt: skip
        here.expect(log, "paid", "decision")
    log.query(f"DELETE FROM paid WHERE decision IS NULL OR decision = {_AFTER_END}")


def _alike(log: Log, cells: _Cells) -> int:
    """Count the orphans whose id differs from a decision's only by spaces around it or by capitals."""
    plain = "lower(trim(CAST({} AS VARCHAR)))"
    own = cells.decision.sql
    return int(
        run(
            log.connection,
            f"SELECT count(*) FROM (SELECT {own} AS own FROM {cells.decision.source.scan} "
            f"WHERE {cells.decision.among}) AS given ANTI JOIN decided ON given.own = decided.id "
            f"WHERE {plain.format('given.own')} IN (SELECT {plain.format('id')} FROM decided)",
            cells.decision.source,
        ).fetchone()[0]
    )


def _check_age(log: Log, tables: Tables) -> None:
    """Ask about a column called age that looks like a person's: never near 0, and one in each decision."""
    least, most, different = log.query("SELECT min(age), max(age), approx_count_distinct(age) FROM paid")[0]
    if not different or different < _AGES_LEAST or least < _NEAR * most:
        return
    several, varied, whole = log.query(
        "SELECT count(*) FILTER (n > 1), count(*) FILTER (low < high), bool_and(low = floor(low)) FROM "
        "(SELECT count(*) AS n, min(age) AS low, max(age) AS high FROM paid GROUP BY decision)"
    )[0]
    if varied or not (several or whole):
        return
    name = tables.pieces.names[tables.piece_columns["age"]]
    raise InputError(
        f"{tables.pieces.label}: column {name!r} is never near 0 and the same in all pieces of a decision, "
        f"so it may be a person's age: say --column age={name} if it is how long after its decision a piece "
        "came, or --column piece_at=COLUMN for the time when it came"
    )


def _check_key(log: Log, tables: Tables, reading: Reading) -> None:
    """Forget a key that was guessed, where it tells kinds of pieces apart and not pieces."""
    if "key" not in tables.piece_columns or "key" in reading.columns:
        return
    key = text_expression(tables.pieces, tables.piece_columns["key"], "key")
    rows, different = run(
        log.connection,
        f"SELECT count({key}), approx_count_distinct({key}) FROM {tables.pieces.scan}",
        tables.pieces,
    ).fetchone()
    if different > _KINDS_MOST * rows:
        return
    own, value = tables.id_expressions()[1], tables.piece_columns["value"]
    when = tables.piece_columns.get("age", tables.piece_columns.get("piece_at"))
    pieces, keys = run(
        log.connection,
        f"SELECT sum(n), count(*) FROM (SELECT count(DISTINCT (c{value}, c{when})) AS n FROM "
        f"{tables.pieces.scan} WHERE {key} IS NOT NULL GROUP BY {own}, {key})",
        tables.pieces,
    ).fetchone()
    if pieces is None or pieces - keys <= CONTRADICTING * pieces:
        return
    name = tables.pieces.names[tables.piece_columns.pop("key")]
    log.columns.pop("key", None)
    log.odd.append(
        f"{name!r} is not taken for the key of pieces, as {pieces - keys:,} of {pieces:,} would contradict "
        f"another with the same decision and {name}: if it is the key, say --column key={name}"
    )


def _thousands(log: Log, tables: Tables) -> str:
    """Return a value in which a point may separate thousands: in each it stands before three digits."""
    source, x = tables.pieces, f"c{tables.piece_columns['value']}"
    if source.types[tables.piece_columns["value"]] != "VARCHAR" or source.decimal:
        return ""
    some = f"SELECT trim({x}) AS x FROM {source.scan} WHERE {x} <> '' LIMIT {_LOOKED_AT}"
    example, plain = run(
        log.connection,
        f"SELECT min(x) FILTER (x LIKE '%.%'), count(*) FILTER (x NOT LIKE '%.%') FROM ({some}) "
        "HAVING bool_and(regexp_full_match(x, '-?(0|[1-9][0-9]{0,2}(\\.[0-9]{3})*)'))",
        source,
    ).fetchone() or ("", 0)
    return (example or "") if plain else ""


def _drop_repeats(log: Log, tables: Tables, keyed: bool, reading: Reading) -> None:
    """Keep the first of the pieces with the same key, and count the others."""
    if not keyed:
        return
    counts = log.counts
    pyarrow = need("pyarrow", "fit")
    log.query("CREATE TABLE repeated (place BIGINT)")
    before: tuple[float, ...] = (-1, 0, 0.0, 0.0)
    writer = log.connection.cursor()
    for place, *columns in log.stream("SELECT rowid, decision, key, age, value FROM paid"):
        same = [
            np.concatenate([[x[0] == last], x[1:] == x[:-1]]) for x, last in zip(columns, before, strict=True)
        ]
        before = tuple(x[-1] for x in columns)
        alike, repeat = same[2] & same[3], same[0] & same[1] & (columns[1] != 0)
        counts.repeats += int(repeat.sum())
        counts.conflicts += int((repeat & ~alike).sum())
        counts.identical += int((same[0] & alike & (columns[1] == 0)).sum())
        if repeat.any():
            here = pyarrow.table({"place": place[repeat]})
            writer.register("found", here)
            writer.execute("INSERT INTO repeated SELECT place FROM found")
    if counts.conflicts and reading.strict:
        name = tables.pieces.names[tables.piece_columns["key"]]
        raise InputError(
            f"{tables.pieces.label}: column {name!r} (key): {counts.conflicts:,} pieces have the decision "
            "and key of another piece but not its value and age"
        )
    if counts.repeats:
        log.query("DELETE FROM paid WHERE rowid IN (SELECT place FROM repeated)")
    log.query("DROP TABLE repeated")


def skip_bad_rows(log: Log, cells: Iterable[CheckedColumn], reading: Reading) -> None:
    """Count the rows with a cell that cannot be read, and list those cells in the reading's file."""
    bad_cells = []
    reasons: dict[tuple[str, int], str] = {}  # of a row, the first
    for cell in cells:
        name = cell.source.names[cell.column]
        for label, row, text, why in cell.bad_rows(log):
            bad_cells.append((label, row, name, cell.role, text, cell.needed))
            reasons.setdefault((label, row), f"{name} ({cell.role}) {why}")
    log.counts.bad_rows += len(reasons)
    for why, count in Counter(reasons.values()).most_common():
        log.rejected[why] = log.rejected.get(why, 0) + count
    if reading.bad_rows_file is None or not bad_cells:
        return
    path = Path(reading.bad_rows_file)
    begun = log.counts.bad_rows > len(reasons)  # by the decisions' rows
    with path.open("a" if begun else "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        if not begun:
            writer.writerow(_HEAD)
        writer.writerows([csv_cell(value) for value in line] for line in sorted(bad_cells))
