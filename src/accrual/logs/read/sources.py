"""Tables to read: CSV, JSON lines or Parquet files, folders of parts, and data frames.

DuckDB reads every column under a name of ours (c0, c1, ...), and every file through a link of our
own making: so nothing of the input, neither a name nor a path, ever becomes part of a query.
"""

from __future__ import annotations

import bz2
import csv
import glob
import gzip
import os
import shutil
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, BinaryIO

from accrual.core.errors import InputError, need

LINE_MOST = 1 << 20  # bytes in a line of text; a log's line is far shorter, and memory stays bounded
_COLUMNS_MOST = 2000
_DELIMITERS = ",;\t|"

# What DuckDB says, and what it means for the user's file.
_SIGNS = {
    "utf-8": "not UTF-8 text (save the file as UTF-8)",
    "Invalid unicode": "not UTF-8 text (save the file as UTF-8)",
    "Maximum line size": f"longer than {LINE_MOST:,} bytes",
    "unterminated quote": "a quote is opened and never closed",
    "GZIP": "the gzip file is broken or cut short",
    "magic bytes": "not a whole Parquet file: it was cut short",
}

_PARQUET, _GZIP, _ZIP, _BZ2, _ZSTD = b"PAR1", b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\x28\xb5\x2f\xfd"
_FRAME = "read it with pandas or polars and give the frame to accrual.fit"
_READ = "CSV, JSON lines and Parquet are read, also in gzip, bz2, zst or zip"
# How files begin that are not read, and what to do with them.
_OTHERS = {
    b"SQLite format 3": "a SQLite database: write sqlite:///FILE?decisions=TABLE&pieces=TABLE",
    b"\xd0\xcf\x11\xe0": f"an Excel file: {_FRAME}",
    b"ARROW1": f"an Arrow file: {_FRAME}",
    b"FEA1": f"a Feather file: {_FRAME}",
    b"Obj\x01": f"an Avro file: {_FRAME}",
    b"ORC": f"an ORC file: {_FRAME}",
    b"\x89HDF": f"an HDF5 file: {_FRAME}",
    b"\xfd7zXZ": "an xz file: unpack it",
    b"7z\xbc\xaf": "a 7z file: unpack it",
    b"\x80\x04": "a pickle, which is never read",
    b"\x80\x05": "a pickle, which is never read",
}


@dataclass(frozen=True)
class TableSource:
    """One table that DuckDB can read."""

    label: str  # what a person calls it: the path, or "the decisions frame"
    # names, types: its columns: their own names, and DuckDB's names of their types.
    names: Sequence[str]
    types: Sequence[str]
    scan: str  # what to write after FROM; `parameters` go with it
    parameters: dict[str, Any]
    # Each file separately, where there are several.
    parts: Sequence[TableSource] = field(default=(), repr=False)
    decimal: str = (
        ""  # the decimal sign of numbers in text, where the user says it; the other is of thousands
    )

    def without(self, words: Sequence[str]) -> TableSource:
        """Return this table with every cell of text empty that is one of these words."""
        if not words:
            return self
        wanted = ", ".join("'" + word.replace("'", "''") + "'" for word in words)
        cells = ", ".join(
            f"CASE WHEN trim(c{i}) NOT IN ({wanted}) THEN c{i} END AS c{i}" if kind == "VARCHAR" else f"c{i}"
            for i, kind in enumerate(self.types)
        )
        scan = f"(SELECT {cells} FROM {self.scan})"
        return replace(self, scan=scan, parts=[replace(part, scan=scan) for part in self.parts])


def open_source(
    connection: Any, given: Any, what: str, folder: Path, label: str | None = None
) -> TableSource:
    """Open a path, a folder, a pattern or a data frame as a `TableSource`.

    `folder` is a temporary one for links and unpacked files; `label` is what a person calls the table.
    """
    if isinstance(given, (str, os.PathLike)):
        files = find_files(os.fspath(given), folder)
        if label is not None:
            files = [replace(file, label=label) for file in files]
        return _open_files(connection, label or os.fspath(given), files, what, folder)
    return _open_frame(connection, given, what)


def run(connection: Any, query: str, *sources: TableSource) -> Any:
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


def _open_files(connection: Any, label: str, files: list[File], what: str, folder: Path) -> TableSource:
    kinds = {file.kind: file for file in files}
    if len(kinds) > 1:
        a, b = (Path(kinds[kind].label).name for kind in sorted(kinds)[:2])
        raise InputError(f"{label}: parts must be of one format, but {a} and {b} are of two")
    kind = files[0].kind
    links = []
    for i, file in enumerate(files):
        links.append(str(folder / f"{what}{i}.{kind}"))
        os.symlink(os.path.realpath(file.path), links[-1])
    described = [
        _described(connection, file, what, link) if kind.startswith(("parquet", "json")) else _csv(file, kind)
        for file, link in zip(files, links, strict=True)
    ]
    names, types, reader = described[0]
    for file, (own, own_types, _) in zip(files, described, strict=True):
        if (own, own_types) != (names, types):
            raise InputError(f"{file.label}: its columns are not those of {files[0].label}")
    keys = [name for name, _ in files[0].keys if name not in names]
    scan = _scan(connection, reader.replace("$what", f"${what}"), len(names), files, links, keys)
    names, types = [*names, *keys], [*types, *(["VARCHAR"] * len(keys))]
    parts = [
        TableSource(file.label, names, types, scan, {what: [link]})
        for file, link in zip(files, links, strict=True)
    ]
    return TableSource(label, names, types, scan, {what: links}, parts)


def _scan(
    connection: Any, reader: str, count: int, files: list[File], links: list[str], keys: list[str]
) -> str:
    """Write what comes after FROM; columns that folders' names give come from a table of our own."""
    columns = ", ".join(f"c{i}" for i in range(count))
    if not keys:
        return f"{reader.replace('{more}', '')} AS source({columns})"
    pyarrow = need("pyarrow", "fit")
    values = {f"k{i}": [dict(file.keys)[key] for file in files] for i, key in enumerate(keys)}
    name = f"folders_{len(links)}_{links[0].rpartition('/')[2].partition('.')[0]}"
    connection.register(name, pyarrow.table({"link": links, **values}))
    added = ", ".join(f"k{i} AS c{count + i}" for i in range(len(keys)))
    read = f"{reader.replace('{more}', ', filename=true')} AS source({columns}, link)"
    return f"(SELECT {columns}, {added} FROM {read} JOIN {name} USING (link))"


def _described(connection: Any, file: File, what: str, link: str) -> tuple[list[str], list[str], str]:
    """Return names and types of the columns of a Parquet file or of JSON lines, and the SQL that reads it."""
    reader = "read_parquet($what{more}, hive_partitioning=false)"
    if file.kind != "parquet":
        # No text fits these formats of dates, so that text stays text: what it means is found in `times`.
        layout = "array" if _is_array(file) else "newline_delimited"
        reader = (
            f"read_json($what{{more}}, format='{layout}', sample_size=-1, maximum_object_size={LINE_MOST}, "
            "hive_partitioning=false, dateformat='%%', timestampformat='%%')"
        )
    bare = TableSource(file.label, (), (), "", {what: [link]})
    query = f"DESCRIBE SELECT * FROM {reader.replace('$what', f'${what}').replace('{more}', '')}"
    rows = run(connection, query, bare).fetchall()
    names, types = [row[0] for row in rows], [row[1] for row in rows]
    if file.kind == "parquet":
        # What DuckDB reads as whole numbers may be lengths of time, as Arrow's own schema in the file says.
        for field in need("pyarrow.parquet", "fit").read_schema(file.path):
            if str(field.type).startswith("duration") and field.name in names:
                types[names.index(field.name)] = str(field.type)
    return names, types, reader


def _is_array(file: File) -> bool:
    with gzip.open(file.path) if file.kind.endswith(".gz") else file.path.open("rb") as stream:
        return bool(stream.read(1024).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"[")


def _csv(file: File, kind: str) -> tuple[list[str], list[str], str]:
    """Return names and types of the columns of a CSV file, and the SQL that reads it."""
    head = _first_line(file, kind)
    delimiter = max(_DELIMITERS, key=lambda d: len(_split(head, d)))
    names = [name.strip() for name in _split(head, delimiter)]
    if not 0 < len(names) <= _COLUMNS_MOST:
        raise InputError(
            f"{file.label}: a header of 1 to {_COLUMNS_MOST} columns is needed, not {len(names)}"
        )
    columns = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(names)))
    reader = (
        f"read_csv($what{{more}}, columns={{{columns}}}, header=true, auto_detect=false, "
        f"delim='{delimiter}', "
        f"quote='\"', escape='\"', max_line_size={LINE_MOST}, hive_partitioning=false, "
        f"compression='{'gzip' if kind == 'csv.gz' else 'none'}')"
    )
    return names, ["VARCHAR"] * len(names), reader


def _first_line(found: File, kind: str) -> str:
    """Read the header, and check the file for bytes that are no text and lines that are too long."""
    file = found.label
    try:
        with gzip.open(found.path) if kind == "csv.gz" else found.path.open("rb") as stream:
            line = stream.readline(LINE_MOST + 1)
            if len(line) > LINE_MOST:
                raise InputError(f"{file}: line 1: longer than {LINE_MOST:,} bytes")
            text = line.decode("utf-8-sig").rstrip("\r\n")
            _check_bytes(file, stream)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InputError(f"{file}: the gzip file is broken or cut short") from None
    except UnicodeDecodeError:
        raise InputError(f"{file}: line 1: not UTF-8 text (save the file as UTF-8)") from None
    if not text.strip():
        raise InputError(f"{file}: line 1: it must name the columns, and it is empty")
    return text


def _check_bytes(file: str, stream: BinaryIO | gzip.GzipFile) -> None:
    """Refuse what DuckDB would take long to notice; this reads at the speed of the disk."""
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


def _open_frame(connection: Any, given: Any, what: str) -> TableSource:
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
    bare = TableSource(label, (), (), "", {})
    types = [row[1] for row in run(connection, f"DESCRIBE SELECT * FROM frame_{what}", bare).fetchall()]
    return TableSource(label, names, types, f"frame_{what}", {})


def _explained(label: str, sources: Sequence[TableSource], error: str) -> str:
    """Return DuckDB's error in one line, with the file's own name in place of our link to it."""
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
        expected, given = (part.split()[0] for part in counts.split(": ")[1:3])
        what = f"{given} columns where the header has {expected}"
    else:
        what = (
            next((said for sign, said in _SIGNS.items() if sign in error), "") or lines[0].split(": ", 1)[-1]
        )
    return f"{label}: line {line}: {what}" if line else f"{label}: {what}"


@dataclass(frozen=True)
class File:
    """A file to read."""

    path: Path  # where it is, unpacked if necessary
    label: str  # what a person calls it
    kind: str
    # The columns that the names of its folders give, as Hive writes them (``day=2024-01-05``).
    keys: tuple[tuple[str, str], ...] = ()


def find_files(given: str, folder: Path) -> list[File]:
    """Return the files that a path or a pattern stands for; what must be unpacked goes to `folder`."""
    path = Path(given)
    if path.is_dir():
        paths = [(file, _keys(file.relative_to(path))) for file in _parts(path)]
        if not paths:
            raise InputError(f"{given}: the folder has no files")
    elif path.exists():
        paths = [(path, ())]
    else:
        paths = [
            (Path(name), ()) for name in sorted(glob.glob(given, recursive=True)) if Path(name).is_file()
        ]
        if not paths:
            what = "no file fits the pattern" if glob.has_magic(given) else "there is no such file or folder"
            raise InputError(f"{given}: {what}")
    files = [file for each, keys in paths for file in _unpacked(each, keys, folder)]
    names = {tuple(name for name, _ in file.keys) for file in files}
    if len(names) > 1:
        raise InputError(f"{given}: its folders must all have the same names before the sign =")
    return files


def _parts(path: Path) -> list[Path]:
    """List all files of a folder; of folders in it only those that Hive names, such as day=2024-01-05."""
    files: list[Path] = []
    for each in sorted(path.iterdir()):
        if each.name.startswith((".", "_")):
            continue
        if each.is_file():
            files.append(each)
        elif each.is_dir() and "=" in each.name:
            files += _parts(each)
    return files


def _keys(path: Path) -> tuple[tuple[str, str], ...]:
    pairs = [part.partition("=") for part in path.parts[:-1]]
    return tuple((name, value) for name, _, value in pairs)


def _unpacked(path: Path, keys: tuple[tuple[str, str], ...], folder: Path) -> Iterator[File]:
    start = _start(path)
    if not start:
        raise InputError(f"{path}: the file is empty")
    if start.startswith(_ZIP):
        yield from _members(path, keys, folder)
        return
    if start.startswith((_BZ2, _ZSTD)):
        target = _room(folder)
        try:
            with _opened(path, start) as packed, target.open("wb") as out:
                shutil.copyfileobj(packed, out)
        except (OSError, EOFError) as error:
            raise InputError(f"{path}: the packed file is broken or cut short ({error})") from None
        yield File(target, str(path), _kind(target, str(path)), keys)
        return
    yield File(path, str(path), _kind(path, str(path)), keys)


def _members(path: Path, keys: tuple[tuple[str, str], ...], folder: Path) -> Iterator[File]:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if "[Content_Types].xml" in names:
                raise InputError(f"{path}: an Excel file: {_FRAME}")
            wanted = [name for name in sorted(names) if not name.endswith("/")]
            wanted = [name for name in wanted if not Path(name).name.startswith((".", "_"))]
            if not wanted:
                raise InputError(f"{path}: the zip file has no files")
            for name in wanted:
                target, label = _room(folder), f"{path} ({name})"
                with archive.open(name) as member, target.open("wb") as out:
                    shutil.copyfileobj(member, out)
                yield File(target, label, _kind(target, label), keys)
    except (zipfile.BadZipFile, EOFError, OSError, RuntimeError) as error:
        raise InputError(f"{path}: the zip file is broken, cut short or encrypted ({error})") from None


def _opened(path: Path, start: bytes) -> IO[bytes] | Any:
    if start.startswith(_BZ2):
        return bz2.open(path)
    pyarrow = need("pyarrow", "fit")
    return pyarrow.CompressedInputStream(pyarrow.OSFile(str(path)), "zstd")


def _room(folder: Path) -> Path:
    return folder / f"unpacked{len(list(folder.glob('unpacked*')))}"


def _start(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(16)


def _kind(path: Path, label: str) -> str:
    """Tell what a file holds, by how it begins."""
    start = _start(path)
    if not start:
        raise InputError(f"{label}: the file is empty")
    if start.startswith(_PARQUET):
        return "parquet"
    if label.lower().endswith((".parquet", ".pq")):
        raise InputError(f"{label}: not a Parquet file (it begins with {start[:4]!r}, not {_PARQUET!r})")
    if start[8:12] == b"DUCK":
        raise InputError(f"{label}: a DuckDB database: write duckdb:///FILE?decisions=TABLE&pieces=TABLE")
    for sign, what in _OTHERS.items():
        if start.startswith(sign):
            raise InputError(f"{label}: {what} ({_READ})")
    packed = start.startswith(_GZIP)
    if packed:
        try:
            with gzip.open(path) as stream:
                start = stream.read(16)
        except (EOFError, OSError):
            start = b""  # the reader will say what is wrong
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    return ("json" if text[:1] in (b"{", b"[") else "csv") + (".gz" if packed else "")
