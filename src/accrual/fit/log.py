"""Opening a log: where everything that can be wrong with one is found and said."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accrual.fit.cells import Reading, Tables
from accrual.fit.columns import DECISION_ROLES, PIECE_ROLES, ROLES, assign, check_told, required
from accrual.fit.load_decisions import load_decisions
from accrual.fit.load_pieces import load_pieces
from accrual.fit.source import open_source
from accrual.fit.tables import Counts, Log

__all__ = ["Counts", "Log", "open_log"]


def open_log(
    decisions: Any,
    pieces: Any = None,
    columns: Mapping[str, str] | None = None,
    end: float | str | None = None,
    age_unit: str | None = None,
    strict: bool = False,
    allow_negative: bool = False,
    memory: str = "2500MB",
) -> Log:
    """Open a log of decisions and pieces.

    Parameters
    ----------
    decisions : path or data frame
        CSV (also gzipped), Parquet, a folder of parts, or a pandas, polars or Arrow frame. Without
        `pieces`, a joined table: a row for each piece with the decision's columns repeated, and one
        row with empty piece columns for a decision that has none.
    pieces : path or data frame, optional
    columns : mapping, optional
        Role to column name; what is not told is guessed from the names. Roles: id, arm, at,
        propensity, window of decisions; decision, value, piece_at or age, key of pieces.
    end : number or text, optional
        The log is complete up to here; what is at or after it is left out. The last time in the
        log unless given.
    age_unit : {"s", "m", "h", "d"}, optional
        Of ages and of decisions' own windows in a log with timestamps; seconds unless given.
    strict : bool
        Refuse pieces without a decision, and repeats that contradict each other.
    allow_negative : bool
        Accept negative values; refused otherwise.
    memory : str
        For DuckDB, which goes to disk beyond it.

    Examples
    --------
    >>> import pandas as pd
    >>> decisions = pd.DataFrame({"id": [1, 2, 3], "arm": ["a", "b", "a"], "at": [0, 1, 2]})
    >>> pieces = pd.DataFrame({"decision": [1, 1, 3], "value": [0.5, 0.25, 1.0], "at": [0, 3, 4]})
    >>> with open_log(decisions, pieces) as log:
    ...     log.query("SELECT decision, age, value FROM pieces")
    [(0, 0.0, 0.5), (0, 3.0, 0.25), (2, 2.0, 1.0)]
    """
    reading = Reading(dict(columns or {}), end, age_unit, strict, allow_negative)
    folder = tempfile.TemporaryDirectory(prefix="accrual-")
    log = Log(folder, memory)
    try:
        tables = _find(log, Path(folder.name), decisions, pieces, reading)
        load_decisions(log, tables, reading)
        load_pieces(log, tables, reading)
    except BaseException:
        log.close()
        raise
    return log


def _find(log: Log, folder: Path, decisions: Any, pieces: Any, reading: Reading) -> Tables:
    """The sources, and which of their columns is what."""
    told = reading.columns
    check_told(told)
    first = open_source(log.connection, decisions, "decisions", folder)
    if pieces is None:
        found = assign(first, ROLES, {k: v for k, v in told.items() if k != "decision"}, joined=True)
        found["decision"] = found.get("id", -1)
        tables = Tables(first, first, found, found)
    else:
        second = open_source(log.connection, pieces, "pieces", folder)
        ours = {role: name for role, name in told.items() if role in DECISION_ROLES}
        theirs = {role: name for role, name in told.items() if role in PIECE_ROLES}
        tables = Tables(
            first, second, assign(first, DECISION_ROLES, ours), assign(second, PIECE_ROLES, theirs)
        )
    for role, meaning in (("id", "the decision's id"), ("arm", "what was chosen"), ("at", "its time")):
        required(first, tables.decision_columns, role, meaning)
    required(tables.pieces, tables.piece_columns, "decision", "the decision's id")
    required(tables.pieces, tables.piece_columns, "value", "what a piece pays")
    if "age" not in tables.piece_columns:
        required(tables.pieces, tables.piece_columns, "piece_at", "a piece's time, or else age")
    for roles, source in (
        (tables.decision_columns, tables.decisions), (tables.piece_columns, tables.pieces)
    ):  # fmt: skip
        log.columns |= {role: source.names[column] for role, column in roles.items()}
    if "age" in log.columns:  # an age is the plainer word of the two
        log.columns.pop("piece_at", None)
        tables.piece_columns.pop("piece_at", None)
    guessed = [f"{role} = {name}" for role, name in log.columns.items() if role not in told]
    if guessed:
        log.notes.append(f"columns guessed from their names: {', '.join(guessed)}")
    return tables
