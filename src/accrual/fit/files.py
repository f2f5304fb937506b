"""Find the files that a path stands for: one file, a folder of parts, a pattern, or an archive's files."""

from __future__ import annotations

import bz2
import glob
import gzip
import shutil
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from accrual.core.errors import InputError, need

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
class File:
    """A file to read."""

    path: Path  # where it lies, unpacked if need be
    label: str  # what a person calls it
    kind: str
    # The columns that the names of its folders give, as Hive writes them (``day=2024-01-05``).
    keys: tuple[tuple[str, str], ...] = ()


def find_files(given: str, folder: Path) -> list[File]:
    """Give the files that a path or a pattern stands for; what must be unpacked goes to `folder`."""
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
