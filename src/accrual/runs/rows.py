"""The files of a run: what it leaves on disk, and all that a report reads.

``cells/*.parquet`` has one row per learner and run: the regret at the checkpoints. The folder of
`accrual paper` also holds ``manifest.json`` (the settings, their learners and printed figures, and which
cells belong to them) and ``curves.parquet`` (bounds and spreads to draw). Every file appears whole or not at
all, and the Parquet files carry a digest of their contents.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from accrual.core.arrays import Floats, Ints
from accrual.core.errors import InputError, need
from accrual.core.files import replacing

FORMAT = 1
MANIFEST = "manifest.json"
CURVES = "curves.parquet"
CELLS = "cells"


class DamagedCell(InputError):
    """Raised where a stored file is not what was written."""


@dataclass(frozen=True)
class CellRows:
    """The rows of one cell: learners x runs, each with the regret at the checkpoints."""

    identity: dict[str, Any]  # everything that determines the numbers
    learners: tuple[str, ...]
    runs: range
    rounds: Ints
    regret: Floats = field(repr=False)  # learners x runs x rounds
    pulls: Ints = field(repr=False)  # learners x runs x arms, at the horizon


class FigureCurve(NamedTuple):
    """A line to draw: a bound over rounds, or a spread over groups."""

    figure: str
    kind: str  # "upper", "lower" or "spread"
    label: str
    x: Floats
    y: Floats

    @property
    def per_log(self) -> float:
        """What a bound that is proportional to ln t gains per unit of ln t."""
        return float(self.y[-1] / np.log(self.x[-1]))


def canonical(value: Any) -> str:
    """Write `value` as JSON, the same text for the same value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def key(identity: dict[str, Any]) -> str:
    """Return the hash that names a cell."""
    return hashlib.sha256(canonical(identity).encode()).hexdigest()


def write(path: Path, data: bytes) -> None:
    """Write `data` durably: after this returns, a power cut leaves the whole file."""
    try:
        with replacing(path) as partial, open(partial, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:  # a full disk does not say which file it refused
        raise OSError(error.errno, error.strerror, str(path)) from error


def write_cell(path: Path, cell: CellRows) -> None:
    """Store one cell."""
    pa = need("pyarrow", "frames")
    regret, pulls = np.ascontiguousarray(cell.regret), np.ascontiguousarray(cell.pulls)
    names = np.repeat(np.array(cell.learners, dtype=object), len(cell.runs))
    columns = {
        "learner": pa.array(names, pa.string()),
        "run": pa.array(np.tile(np.array(cell.runs), len(cell.learners)), pa.int64()),
        "regret": pa.FixedSizeListArray.from_arrays(regret.ravel(), regret.shape[2]),
        "pulls": pa.FixedSizeListArray.from_arrays(pulls.ravel(), pulls.shape[2]),
    }
    head = {
        "identity": cell.identity,
        "learners": cell.learners,
        "runs": [cell.runs.start, cell.runs.stop],
        "rounds": cell.rounds.tolist(),
    }
    _write_table(path, columns, head, regret.tobytes() + pulls.tobytes())


def read_cell(path: Path) -> CellRows:
    """Read one cell, or raise `DamagedCell`."""
    table, head = _read_table(path)
    try:
        runs = range(*head["runs"])
        shape = (len(head["learners"]), len(runs), -1)
        regret, pulls = (
            table.column(name).combine_chunks().flatten().to_numpy().reshape(shape)
            for name in ("regret", "pulls")
        )
        rounds = np.array(head["rounds"], np.int64)
        cell = CellRows(head["identity"], tuple(head["learners"]), runs, rounds, regret, pulls)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DamagedCell(f"{path} is damaged ({error})") from error
    _verify(path, head, cell.regret.tobytes() + cell.pulls.tobytes())
    return cell


def write_curves(path: Path, curves: list[FigureCurve]) -> None:
    """Store the lines that figures draw beside the learners."""
    pa = need("pyarrow", "frames")
    floats = pa.list_(pa.float64())
    columns = {
        "figure": pa.array([curve.figure for curve in curves], pa.string()),
        "kind": pa.array([curve.kind for curve in curves], pa.string()),
        "label": pa.array([curve.label for curve in curves], pa.string()),
        "x": pa.array([np.asarray(curve.x, np.float64) for curve in curves], floats),
        "y": pa.array([np.asarray(curve.y, np.float64) for curve in curves], floats),
    }
    _write_table(path, columns, {}, _curve_bytes(curves))


def read_curves(path: Path) -> list[FigureCurve]:
    """Read what `write_curves` stored."""
    table, head = _read_table(path)
    curves = [
        FigureCurve(row["figure"], row["kind"], row["label"], np.array(row["x"]), np.array(row["y"]))
        for row in table.to_pylist()
    ]
    _verify(path, head, _curve_bytes(curves))
    return curves


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a folder that `accrual paper` has filled."""
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise InputError(f"{folder} holds no {MANIFEST}; run: accrual paper --out {folder}") from None
    except ValueError as error:
        raise DamagedCell(f"{path} is damaged ({error}); run accrual paper again") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise InputError(f"{path} is not of format {FORMAT}; run accrual paper again")
    return manifest


def _write_table(path: Path, columns: dict[str, Any], head: dict[str, Any], payload: bytes) -> None:
    pa, parquet = need("pyarrow", "frames"), need("pyarrow.parquet", "frames")
    text = canonical({"format": FORMAT, **head, "digest": _digest(head, payload)})
    table = pa.table(columns).replace_schema_metadata({"accrual": text})
    data = io.BytesIO()
    parquet.write_table(table, data, compression="zstd")
    write(path, data.getvalue())


def _read_table(path: Path) -> tuple[Any, dict[str, Any]]:
    pa, parquet = need("pyarrow", "frames"), need("pyarrow.parquet", "frames")
    try:
        # From memory and on this thread: a cell is small, and many are read at once.
        table = parquet.read_table(pa.BufferReader(path.read_bytes()), use_threads=False)
        head = json.loads(table.schema.metadata[b"accrual"])
        if head["format"] != FORMAT:
            raise ValueError(f"its format is {head['format']}, not {FORMAT}")
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        raise DamagedCell(f"{path} is damaged ({_first_line(error)})") from error
    return table, head


def _verify(path: Path, head: dict[str, Any], payload: bytes) -> None:
    named = {name: value for name, value in head.items() if name not in ("format", "digest")}
    if head.get("digest") != _digest(named, payload):
        raise DamagedCell(f"{path} is damaged (its contents do not match its digest)")


def _digest(head: dict[str, Any], payload: bytes) -> str:
    return hashlib.sha256(canonical(head).encode() + b"\0" + payload).hexdigest()


def _curve_bytes(curves: list[FigureCurve]) -> bytes:
    names = canonical([[curve.figure, curve.kind, curve.label] for curve in curves]).encode()
    return names + b"".join(np.concatenate([curve.x, curve.y]).tobytes() for curve in curves)


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0][:120]
