"""Read the pieces of a log into its tables, joined with their decisions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from accrual.core.durations import unit_seconds
from accrual.core.errors import InputError, need
from accrual.fit.bad_rows import skip_bad_rows
from accrual.fit.columns import empty, number_expression, text_expression
from accrual.fit.moments import TimeColumn
from accrual.fit.oddities import OddityFacts
from accrual.fit.reading import CheckedColumn, Reading, Tables, check_zones
from accrual.fit.source import run
from accrual.fit.tables import TICKS, Log


class _Cells(NamedTuple):
    decision: CheckedColumn
    age: CheckedColumn
    value: CheckedColumn
    aware: str  # SQL: whether the piece's time has a time zone


def load_pieces(log: Log, tables: Tables, reading: Reading) -> OddityFacts:
    """Make the table `paid` (decision, age, value), in the order of decisions; say what may be odd."""
    cells = _cells(log, tables, reading)
    if reading.skips:
        skip_bad_rows(log, (cells.decision, cells.age, cells.value), reading)
    keyed = _read(log, tables, cells, reading)
    facts = OddityFacts()
    _drop_orphans(log, tables, cells, reading, facts)
    cells.age.expect(log, "paid", "age")
    cells.value.expect(log, "paid", "value")
    _drop_repeats(log, tables, keyed, reading)
    facts.ages_untold = "age" in tables.piece_columns and log.timestamps and reading.age_unit is None
    if log.timestamps and reading.age_unit is None:
        lengths = [name for name, here in (("ages", facts.ages_untold), ("windows", log.has_window)) if here]
        if lengths:
            log.notes.append(f"{' and '.join(lengths)} are taken as seconds")
    return facts


def _cells(log: Log, tables: Tables, reading: Reading) -> _Cells:
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
        durations = source.types[columns["age"]] == "INTERVAL"
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
        role, needed = "piece_at", f"{moments.needed} that is not before its decision's time"
    age = CheckedColumn(source, columns[role], role, sql, needed, "{x} >= 0 AND isfinite({x})", join, among)
    good = "isfinite({x})" if reading.allow_negative else "{x} >= 0 AND isfinite({x})"
    least = "" if reading.allow_negative else " of at least 0 (or allow negative values)"
    sql = number_expression(source, columns["value"], "value")
    value = CheckedColumn(
        source, columns["value"], "value", sql, f"a finite number{least}", good, among=among
    )
    return _Cells(decision, age, value, aware)


def _read(log: Log, tables: Tables, cells: _Cells, reading: Reading) -> bool:
    """Make `paid`, orphans last; says whether pieces have keys.

    Sorting is much of the work and wants to stay in memory, so there is no column it can do without,
    and joining is over and done with by then: both at once run out of memory where each does not.
    """
    columns = tables.piece_columns
    keyed = "key" in columns
    zoned = cells.aware not in {"true", "false", "NULL::BOOLEAN"}  # by row, that is, and not by type
    chosen = ["decided.rowid::UINTEGER AS decision", f"{cells.age.sql} AS age", f"{cells.value.sql} AS value"]
    if keyed:
        # A key only ever has to tell the pieces of one decision apart, for which 64 bits are plenty.
        key = text_expression(tables.pieces, columns["key"], "key")
        chosen.append(f"CASE WHEN {key} IS NULL THEN 0 ELSE hash({key}) END AS key")
    if zoned:
        chosen.append(f"{cells.aware} AS aware")
    wanted = [cells.decision.among, reading.in_part(cells.decision.sql)]
    if reading.skips:
        wanted += [
            cells.decision.is_good, f"(decided.id IS NULL OR {cells.age.is_good})", cells.value.is_good
        ]  # fmt: skip
    run(
        log.connection,
        f"CREATE TABLE joined AS SELECT {', '.join(chosen)} FROM {tables.pieces.scan} "
        f"LEFT {cells.age.join} WHERE {' AND '.join(wanted)}",
        tables.pieces,
    )
    order = "decision NULLS LAST, key, age, value" if keyed else "decision NULLS LAST, age, value"
    log.query(f"CREATE TABLE paid AS SELECT * FROM joined ORDER BY {order}")
    log.query("DROP TABLE joined")
    table = "paid" if zoned else f"(SELECT {cells.aware} AS aware)"
    aware, naive = log.query(f"SELECT bool_or(aware), bool_or(NOT aware) FROM {table}")[0]
    check_zones(log, tables.pieces, aware, naive, reading.timezone)
    return keyed


def _drop_orphans(log: Log, tables: Tables, cells: _Cells, reading: Reading, facts: OddityFacts) -> None:
    everything, kept = log.query("SELECT count(*), count(decision) FROM paid")[0]
    log.counts.orphans = everything - kept
    if log.counts.orphans:  # a piece that names no decision at all is a mistake, not an orphan
        cells.decision.expect_source(log)
        facts.alike = _alike(log, cells)
    if log.counts.orphans and reading.strict:
        here = CheckedColumn(
            tables.pieces, cells.decision.column, "decision", "decided.id",
            f"the id of a decision ({log.counts.orphans:,} pieces have none)",
            join=f"LEFT {cells.age.join}", among=cells.decision.among,
        )  # fmt: skip
        here.expect(log, "paid", "decision")
    log.query("DELETE FROM paid WHERE decision IS NULL")


def _alike(log: Log, cells: _Cells) -> int:
    """Count the orphans whose id is a decision's but for spaces around it and capitals."""
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


def _drop_repeats(log: Log, tables: Tables, keyed: bool, reading: Reading) -> None:
    """Count pieces that say what the one before them says; with keys, keep the first of each."""
    counts = log.counts
    pyarrow = need("pyarrow", "fit")
    log.query("CREATE TABLE repeated (place BIGINT)")
    before: tuple[float, ...] = (-1, 0, 0.0, 0.0)
    writer = log.connection.cursor()
    key_sql = "key" if keyed else "0::UBIGINT"
    for place, decision, key, age, value in log.stream(
        f"SELECT rowid, decision, {key_sql}, age, value FROM paid"
    ):
        columns = (decision, key, age, value)
        same = [
            np.concatenate([[x[0] == last], x[1:] == x[:-1]]) for x, last in zip(columns, before, strict=True)
        ]
        before = tuple(x[-1] for x in columns)
        alike = same[2] & same[3]
        if keyed:
            repeat = same[0] & same[1] & (key != 0)
            counts.repeats += int(repeat.sum())
            counts.conflicts += int((repeat & ~alike).sum())
            if repeat.any():
                here = pyarrow.table({"place": place[repeat]})
                writer.register("found", here)
                writer.execute("INSERT INTO repeated SELECT place FROM found")
        counts.identical += int((same[0] & alike & (key == 0)).sum())
    if counts.conflicts and reading.strict:
        name = tables.pieces.names[tables.piece_columns["key"]]
        raise InputError(
            f"{tables.pieces.label}: column {name!r} (key): {counts.conflicts:,} pieces have the decision "
            "and key of another piece but not its value and age"
        )
    if counts.repeats:
        log.query("DELETE FROM paid WHERE rowid IN (SELECT place FROM repeated)")
    log.query("DROP TABLE repeated")
