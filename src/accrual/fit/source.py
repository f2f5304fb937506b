"""Tables to read: CSV, gzipped CSV or Parquet files, folders of parts, and data frames.

DuckDB reads every column under a name of ours (c0, c1, ...), and every file through a link of our
own making: so nothing of the input, neither a name nor a path, ever becomes part of a query.
"""

from __future__ import annotations

import csv
import gzip
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from accrual.core.errors import InputError, need

LINE_MOST = 1 << 20  # bytes in a line of text; a log's line is far shorter, and memory stays bounded
_COLUMNS_MOST = 2000
_DELIMITERS = ",;\t|"
_PARQUET = b"PAR1"
_GZIP = b"\x1f\x8b"

# What DuckDB says, and what it means to whoever gave the file.
_SIGNS = {
    "utf-8": "not UTF-8 text (save the file as UTF-8)",
    "Invalid unicode": "not UTF-8 text (save the file as UTF-8)",
    "Maximum line size": f"longer than {LINE_MOST:,} bytes",
    "unterminated quote": "a quote is opened and never closed",
    "GZIP": "the gzip file is broken or cut short",
    "magic bytes": "not a whole Parquet file: it was cut short",
}


@dataclass(frozen=True)
class Source:
    """One table that DuckDB can read.

    Attributes
    ----------
    label : str
        What a person calls it: the path, or "the decisions frame".
    names, types : sequence of str
        Its columns: their own names, and DuckDB's names of their types.
    scan : str
        What to write after FROM; `parameters` go with it.
    parts : sequence of Source
        Each file by itself, where there are several.
    """

    label: str
    names: Sequence[str]
    types: Sequence[str]
    scan: str
    parameters: dict[str, Any]
    parts: Sequence[Source] = field(default=(), repr=False)


def open_source(connection: Any, given: Any, what: str, folder: Path) -> Source:
    """A path, a folder or a data frame as a `Source`; `folder` is an empty one for links."""
    if isinstance(given, (str, os.PathLike)):
        return _open_files(connection, Path(given), what, folder)
    return _open_frame(connection, given, what)


def run(connection: Any, query: str, *sources: Source) -> Any:
    """Execute a query on sources; what DuckDB finds wrong with them becomes an `InputError`."""
    duckdb = need("duckdb", "fit")
    parameters = {name: value for source in sources for name, value in source.parameters.items()}
    try:
        return connection.execute(query, parameters) if parameters else connection.execute(query)
    except duckdb.OutOfMemoryException as error:
        raise MemoryError(str(error)) from None
    except duckdb.Error as error:
        label = " and ".join(dict.fromkeys(source.label for source in sources))
        raise InputError(_explained(label, sources, str(error))) from None


def _open_files(connection: Any, path: Path, what: str, folder: Path) -> Source:
    if not path.exists():
        raise InputError(f"{path}: there is no such file or folder")
    files = _parts(path) if path.is_dir() else [path]
    kinds = {file: _kind(file) for file in files}
    if len(set(kinds.values())) > 1:
        a, b = (next(f for f in files if kinds[f] == kind) for kind in sorted(set(kinds.values()))[:2])
        raise InputError(f"{path}: parts must be of one format, but {a.name} and {b.name} are of two")
    kind = kinds[files[0]]
    links = []
    for i, file in enumerate(files):
        links.append(str(folder / f"{what}{i}.{kind}"))
        os.symlink(os.path.realpath(file), links[-1])
    if kind == "parquet":
        return _parquet(connection, path, files, what, links)
    return _csv(path, files, what, links, kind)


def _parts(path: Path) -> list[Path]:
    files = sorted(f for f in path.iterdir() if f.is_file() and not f.name.startswith((".", "_")))
    if not files:
        raise InputError(f"{path}: the folder has no files")
    return files


def _kind(file: Path) -> str:
    """What a file holds, by its beginning; by its name where that says Parquet and the file does not."""
    with file.open("rb") as stream:
        start = stream.read(4)
    if not start:
        raise InputError(f"{file}: the file is empty")
    if start == _PARQUET:
        return "parquet"
    if file.suffix.lower() in {".parquet", ".pq"}:
        raise InputError(f"{file}: not a Parquet file (it begins with {start!r}, not {_PARQUET!r})")
    return "csv.gz" if start[:2] == _GZIP else "csv"


def _parquet(connection: Any, path: Path, files: list[Path], what: str, links: list[str]) -> Source:
    parts: list[Source] = []
    for file, link in zip(files, links, strict=True):
        bare = Source(str(file), (), (), "", {what: [link]})
        rows = run(connection, f"DESCRIBE SELECT * FROM read_parquet(${what})", bare).fetchall()
        names, types = [row[0] for row in rows], [row[1] for row in rows]
        if parts and (names, types) != (parts[0].names, parts[0].types):
            raise InputError(f"{file}: its columns are not those of {parts[0].label}")
        columns = ", ".join(f"c{i}" for i in range(len(names)))
        scan = f"read_parquet(${what}) AS source({columns})"
        parts.append(Source(str(file), names, types, scan, {what: [link]}))
    first = parts[0]
    return Source(str(path), first.names, first.types, first.scan, {what: links}, parts)


def _csv(path: Path, files: list[Path], what: str, links: list[str], kind: str) -> Source:
    parts: list[Source] = []
    scan = ""
    for file, link in zip(files, links, strict=True):
        head = _first_line(file, kind)
        delimiter = max(_DELIMITERS, key=lambda d: len(_split(head, d)))
        names = [name.strip() for name in _split(head, delimiter)]
        if parts and names != parts[0].names:
            raise InputError(f"{file}: its columns are not those of {parts[0].label}")
        if not 0 < len(names) <= _COLUMNS_MOST:
            raise InputError(f"{file}: a header of 1 to {_COLUMNS_MOST} columns is needed, not {len(names)}")
        columns = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(names)))
        scan = (
            f"read_csv(${what}, columns={{{columns}}}, header=true, auto_detect=false, delim='{delimiter}', "
            f"quote='\"', escape='\"', max_line_size={LINE_MOST}, "
            f"compression='{'gzip' if kind == 'csv.gz' else 'none'}')"
        )
        parts.append(Source(str(file), names, ["VARCHAR"] * len(names), scan, {what: [link]}))
    return Source(str(path), parts[0].names, parts[0].types, scan, {what: links}, parts)


def _first_line(file: Path, kind: str) -> str:
    """The header, after a look through the file for what is no text or has no end."""
    try:
        with gzip.open(file) if kind == "csv.gz" else file.open("rb") as stream:
            line = stream.readline(LINE_MOST + 1)
            if len(line) > LINE_MOST:
                raise InputError(f"{file}: line 1: longer than {LINE_MOST:,} bytes")
            text = line.decode("utf-8-sig").rstrip("\r\n")
            _look_through(file, stream)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InputError(f"{file}: the gzip file is broken or cut short") from None
    except UnicodeDecodeError:
        raise InputError(f"{file}: line 1: not UTF-8 text (save the file as UTF-8)") from None
    if not text.strip():
        raise InputError(f"{file}: line 1: it must name the columns, and it is empty")
    return text


def _look_through(file: Path, stream: BinaryIO | gzip.GzipFile) -> None:
    """Complain of what DuckDB would take long to notice; a file is read at the speed of the disk."""
    lines = 1
    while block := stream.read(LINE_MOST):
        if b"\0" in block:
            lines += block[: block.index(b"\0")].count(b"\n") + 1
            raise InputError(f"{file}: line {lines}: a byte of zero, which is not text")
        if len(block) == LINE_MOST and b"\n" not in block:  # so it is within a line longer than that
            raise InputError(f"{file}: line {lines + 1}: longer than {LINE_MOST:,} bytes")
        lines += block.count(b"\n")


def _split(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []


def _open_frame(connection: Any, given: Any, what: str) -> Source:
    label = f"the {what} frame"
    narwhals, pyarrow = need("narwhals", "fit"), need("pyarrow", "fit")
    try:
        frame = narwhals.from_native(given)
    except TypeError:
        raise InputError(
            f"{what} must be a path or a data frame (pandas, polars or Arrow), not {type(given).__name__}"
        ) from None
    try:
        table = (frame.collect() if isinstance(frame, narwhals.LazyFrame) else frame).to_arrow()
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        raise InputError(f"{label}: a column is not of one type: {' '.join(str(error).split())}") from None
    names = [str(name) for name in table.column_names]
    if not names:
        raise InputError(f"{label}: it has no columns")
    table = table.rename_columns([f"c{i}" for i in range(len(names))])
    connection.register(f"frame_{what}", table)
    bare = Source(label, (), (), "", {})
    types = [row[1] for row in run(connection, f"DESCRIBE SELECT * FROM frame_{what}", bare).fetchall()]
    return Source(label, names, types, f"frame_{what}", {})


def _explained(label: str, sources: Sequence[Source], error: str) -> str:
    """DuckDB's error in one line, with the file's own name for our link to it."""
    for source in sources:
        for part in source.parts or [source]:
            for links in part.parameters.values():
                if any(link in error for link in links):
                    label = part.label
                for link in links:
                    error = error.replace(link, part.label)
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    line = next((line.split("Line: ")[1] for line in lines if "CSV Error on Line: " in line), "")
    counts = next((line for line in lines if line.startswith("Expected Number of Columns")), "")
    if counts:
        expected, found = (part.split()[0] for part in counts.split(": ")[1:3])
        what = f"{found} columns where the header has {expected}"
    else:
        what = (
            next((said for sign, said in _SIGNS.items() if sign in error), "") or lines[0].split(": ", 1)[-1]
        )
    return f"{label}: line {line}: {what}" if line else f"{label}: {what}"
