"""A bandit's decisions and pieces as Parquet files, for `accrual fit` and for anyone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from accrual.core.errors import need, unknown
from accrual.core.files import replacing
from accrual.store.readers import TableReader, open_reader

_DECISIONS = """
    SELECT d.id, a.name, d.at, d."window" FROM decision d
    JOIN arm a ON a.bandit = d.bandit AND a.number = d.arm WHERE d.bandit = $1 ORDER BY d.id
"""
_PIECES = """
    SELECT p.decision, p.value, p.age, p.at, p.key, p.late FROM piece p WHERE p.bandit = $1 ORDER BY p.seq
"""


def export(url: str, name: str | None, folder: str | os.PathLike[str]) -> dict[str, int]:
    """Write `decisions.parquet` and `pieces.parquet`, as of one moment.

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
    arrow = need("pyarrow", "fit")
    with open_reader(url) as reader:
        number, rounds = _bandit(reader, name)
        time = arrow.float64() if rounds else arrow.timestamp("us", tz="UTC")
        length = arrow.float64()
        decisions = {"id": arrow.int64(), "arm": arrow.string(), "at": time, "window": length}
        pieces = {
            "decision": arrow.int64(), "value": length, "age": length, "stored_at": time,
            "key": arrow.string(), "late": arrow.bool_(),
        }  # fmt: skip
        Path(folder).mkdir(parents=True, exist_ok=True)
        counts = {}
        for file, query, fields in (
            ("decisions.parquet", _DECISIONS, decisions), ("pieces.parquet", _PIECES, pieces)
        ):  # fmt: skip
            counts[file] = _write(Path(folder) / file, reader.chunks(query, number), fields)
        return counts


def _bandit(reader: TableReader, name: str | None) -> tuple[int, bool]:
    found = {
        row[1]: (row[0], bool(row[2]))
        for rows in reader.chunks("SELECT number, name, rounds FROM bandit ORDER BY number")
        for row in rows
    }
    if name is None and len(found) == 1:
        return next(iter(found.values()))
    if name not in found:
        raise unknown("bandit", name or "", found)
    return found[name]


def _write(path: Path, chunks: Iterator[list[tuple[Any, ...]]], fields: dict[str, Any]) -> int:
    arrow, parquet = need("pyarrow", "fit"), need("pyarrow.parquet", "fit")
    count = 0
    with ExitStack() as stack:
        partial = stack.enter_context(replacing(path))
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
        values = tuple(map(bool, values))
    return arrow.array(values, type_)
