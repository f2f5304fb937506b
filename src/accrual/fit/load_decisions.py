"""Read the decisions of a log into its tables."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from accrual.core.durations import unit_seconds
from accrual.core.errors import InputError
from accrual.fit.bad_rows import skip_bad_rows
from accrual.fit.columns import number_expression, text_expression
from accrual.fit.context_columns import find_context_columns
from accrual.fit.moments import TimeColumn
from accrual.fit.reading import CheckedColumn, Reading, Tables, check_zones
from accrual.fit.source import run
from accrual.fit.tables import Log

ARMS_MOST = 10_000
_NAMES = {"id": "id", "arm": "arm", "at": "tick", "propensity": "propensity", "window": "own_window"}


def load_decisions(log: Log, tables: Tables, reading: Reading) -> None:
    """Make the table `decided` (id, arm, tick, propensity, own_window, contexts), in order of time."""
    source = tables.decisions
    moments = TimeColumn(log.connection, source, tables.decision_columns["at"], "at", reading.times)
    log.timestamps, log.time_unit, log.time_style = moments.timestamps, moments.unit, moments.style
    log.moment_sql = moments.reading("$1")
    if moments.kind:
        log.notes.append(f"{source.names[tables.decision_columns['at']]} (at): {moments.kind}")
    cells = _cells(tables, moments)
    contexts = find_context_columns(tables, reading.context)
    log.contexts = tuple(told for told, _ in contexts)
    cells |= {told.role: cell for told, cell in contexts}
    log.has_propensity, log.has_window = "propensity" in cells, "window" in cells
    if reading.skips:
        skip_bad_rows(log, cells.values(), reading)
    _read(log, tables, cells, moments.aware, reading)
    for role, cell in cells.items():
        cell.expect(log, "raw", _NAMES.get(role, role))
    aware, naive = log.query("SELECT bool_or(aware), bool_or(naive) FROM raw")[0]
    check_zones(log, source, aware, naive, reading.timezone)
    _check_unique(log, tables, cells)
    _name_arms(log)
    seconds = unit_seconds(reading.age_unit or "s") if log.timestamps else 1.0
    log.query(
        "CREATE TABLE decided AS SELECT raw.id, arms.arm, tick, propensity, "
        f"own_window * {seconds} AS own_window{log.context_sql} FROM raw JOIN arms ON raw.arm = arms.name "
        "ORDER BY tick, raw.id"
    )
    log.query("DROP TABLE raw")


def _cells(tables: Tables, moments: TimeColumn) -> dict[str, CheckedColumn]:
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


def _read(log: Log, tables: Tables, cells: dict[str, CheckedColumn], aware: str, reading: Reading) -> None:
    names = _NAMES | {told.role: told.role for told in log.contexts}
    columns = [
        f"{cells[role].sql if role in cells else 'NULL::DOUBLE'} AS {name}" for role, name in names.items()
    ]
    rows = f"SELECT {', '.join(columns)}, {aware} AS aware FROM {tables.decisions.scan}"
    wanted = [reading.in_part(cells["id"].sql)]
    wanted += [cell.is_good for cell in cells.values()] if reading.skips else []
    rows += f" WHERE {' AND '.join(wanted)}"
    if tables.joined:
        # A cell that is missing in one of a decision's rows is missing.
        kept = [
            f"CASE WHEN count({name}) = count(*) THEN min({name}) END AS {name}, "
            f"min({name}) IS DISTINCT FROM max({name}) AS {name}_mixed"
            for name in names.values()
            if name != "id"
        ]
        rows = (
            f"SELECT id, {', '.join(kept)}, bool_or(aware) AS aware, bool_or(NOT aware) AS naive "
            f"FROM ({rows}) GROUP BY id"
        )
    else:
        rows = f"SELECT *, NOT aware AS naive FROM ({rows})"
    run(log.connection, f"CREATE TABLE raw AS {rows}", tables.decisions)


def _check_unique(log: Log, tables: Tables, cells: dict[str, CheckedColumn]) -> None:
    source = tables.decisions
    if not tables.joined:
        twice = log.query("SELECT id FROM raw GROUP BY id HAVING count(*) > 1 LIMIT 1")
        if twice:
            name = source.names[tables.decision_columns["id"]]
            raise InputError(
                f"{source.label}: column {name!r} (id) has {twice[0][0]!r} more than once; "
                "each decision must have an id of its own"
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
    """Give what to sort an arm by: numbers by size, then words with their numbers by size; ranges rising."""
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
