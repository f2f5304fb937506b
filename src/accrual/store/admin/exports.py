"""Export the decisions, pieces and arms of a bandit as Parquet files, which `accrual fit` reads."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from accrual.core.errors import need, unknown
from accrual.core.features import Features
from accrual.core.files import replacing
from accrual.store.backends import TableReader, open_reader
from accrual.store.base import stream_names
from accrual.store.events import EXPORTED, TABLES, BanditTableRow, column_types, select_all

# For each table whose rows have features: the column that holds their numbers.
_FEATURE_COLUMN = {"decision": "context", "arm": "about"}


class _Bandit(NamedTuple):
    number: int
    rounds: bool
    features: dict[str, Features]  # by table: those of contexts ("decision") and those of arms ("arm")
    streams: list[str]  # the names of its streams beside the reward
    imported: int  # how many of its first decisions come from an old log


def _columns(file: str, reader: TableReader, bandit: _Bandit) -> tuple[str, dict[str, str]]:
    """Return the table of a file and its columns: propensities only where every decision has one."""
    table, columns = EXPORTED[file]
    shown = dict(columns)
    if "propensity" in shown:
        own = f"bandit = $1 AND id >= {bandit.imported}"
        query = f"SELECT 1 FROM decision WHERE {own} AND propensity IS NULL LIMIT 1"
        if any(reader.chunks(query, bandit.number)):
            del shown["propensity"]
    return table, shown


def _query(table: str, columns: Mapping[str, str], imported: int) -> str:
    of_arm = any(name.startswith("arm.") for name in columns.values())
    arm = "JOIN arm ON arm.bandit = t.bandit AND arm.number = t.arm" if of_arm else ""
    names = ", ".join(
        ".".join(f'"{part}"' for part in name.split(".")) if "." in name else f't."{name}"'
        for name in columns.values()
    )
    order = TABLES[table]._fields[1]
    stream = "NOT NULL" if "stream" in columns else "NULL"
    which = {
        "decision": f" AND t.id >= {imported}",
        "piece": f" AND t.decision >= {imported} AND t.stream IS {stream}",
    }.get(table, "")
    return f"SELECT {names} FROM {table} t {arm} WHERE t.bandit = $1{which} ORDER BY t.{order}"


def export(url: str, name: str | None, folder: str | os.PathLike[str]) -> dict[str, int]:
    """Write `decisions.parquet`, `pieces.parquet` and `arms.parquet`, at one moment.

    A bandit with streams beside the reward has `streams.parquet` too: the pieces of these streams, each with
    the name of its stream. If the bandit has features, `decisions.parquet` has a column `context_NAME` for
    each: the level, True or False, or the number; null where the value was missing, or a level that was not
    declared.
    If arms have features of their own, `arms.parquet` has a column `about_NAME` for each. Decisions that a
    bandit has from an old log (its prior) are left out: their times are not when they were made.

    Parameters
    ----------
    url : str
        The database.
    name : str or None
        The bandit; None where there is only one.
    folder : path
        Made if there is none.

    Returns
    -------
    dict
        How many rows each file has.
    """
    need("pyarrow", "fit")
    with open_reader(url) as reader:
        bandit = _bandit(reader, name)
        number, rounds, features, streams, imported = bandit
        Path(folder).mkdir(parents=True, exist_ok=True)
        counts = {}
        for file in EXPORTED:
            table, columns = _columns(file, reader, bandit)
            if "stream" in columns and not streams:
                continue
            fields = _fields(table, columns, rounds)
            if table in features:
                column = _FEATURE_COLUMN[table]
                columns[column] = column
                fields |= _feature_fields(column, features[table])
                rows = _with_features(
                    features[table], reader.chunks(_query(table, columns, imported), number)
                )
            elif "stream" in columns:
                fields["stream"] = need("pyarrow", "fit").string()
                chunks = reader.chunks(_query(table, columns, imported), number)
                rows = ([(*row[:-1], streams[row[-1]]) for row in chunk] for chunk in chunks)
            else:
                rows = reader.chunks(_query(table, columns, imported), number)
            counts[file] = _write(Path(folder) / file, rows, fields)
        return counts


def _fields(table: str, columns: Mapping[str, str], rounds: bool) -> dict[str, Any]:
    """Return the name and the Arrow type of each column of a file."""
    arrow = need("pyarrow", "fit")
    kinds = {int: arrow.int64(), float: arrow.float64(), str: arrow.string(), bool: arrow.bool_()}
    fields = {}
    for shown, name in columns.items():
        owner, _, column = name.rpartition(".")
        (kind,) = {kind for kind in kinds if column_types(owner or table)[column] in (kind, kind | None)}
        fields[shown] = kinds[kind]
        if name == "at" and not rounds:
            fields[shown] = arrow.timestamp("us", tz="UTC")
    return fields


def _feature_fields(column: str, features: Features) -> dict[str, Any]:
    arrow = need("pyarrow", "fit")
    kinds = {list: arrow.string(), type: arrow.bool_(), tuple: arrow.float64()}
    return {f"{column}_{name}": kinds[type(kind)] for name, kind in features.kinds.items()}


def _with_features(
    features: Features, chunks: Iterator[list[tuple[Any, ...]]]
) -> Iterator[list[tuple[Any, ...]]]:
    """Replace the last column of rows, a number for each feature in bytes, by a column for each feature."""
    nothing = (None,) * len(features)
    for rows in chunks:
        yield [
            (*row[:-1], *(nothing if row[-1] is None else features.read_back_bytes(row[-1]).values()))
            for row in rows
        ]


def _bandit(reader: TableReader, name: str | None) -> _Bandit:
    """Return what there is to know of the bandit of this name, or of the only one."""
    rows = [BanditTableRow._make(row) for rows in reader.chunks(select_all("bandit")) for row in rows]
    bandits = {row.name: row for row in rows}
    if name is None and len(bandits) == 1:
        name = rows[0].name
    if name is None or name not in bandits:
        raise unknown("bandit", name or "", bandits)
    row = bandits[name]
    config = json.loads(row.config)
    features = {}
    if "features" in config:
        features["decision"] = Features(config["features"])
    if "arm_features" in config:
        features["arm"] = Features(config["arm_features"])
    imported = config.get("imported", 0)
    return _Bandit(row.number, bool(row.rounds), features, stream_names(config), imported)


def _write(path: Path, chunks: Iterator[list[tuple[Any, ...]]], fields: dict[str, Any]) -> int:
    arrow, parquet = need("pyarrow", "fit"), need("pyarrow.parquet", "fit")
    count = 0
    with ExitStack() as stack:
        partial = stack.enter_context(replacing(path, private=True))
        writer = stack.enter_context(parquet.ParquetWriter(partial, arrow.schema(list(fields.items()))))
        for rows in chunks:
            columns = [
                _column(values, type_)
                for values, type_ in zip(zip(*rows, strict=True), fields.values(), strict=True)
            ]
            writer.write_table(arrow.table(columns, names=list(fields)))
            count += len(rows)
    return count


def _column(values: tuple[Any, ...], type_: Any) -> Any:
    arrow = need("pyarrow", "fit")
    if arrow.types.is_timestamp(type_):
        return arrow.array([round(value * 1e6) for value in values], arrow.int64()).cast(type_)
    if arrow.types.is_boolean(type_):
        values = tuple([None if value is None else bool(value) for value in values])
    return arrow.array(values, type_)
