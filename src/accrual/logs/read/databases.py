"""Tables of a database or of the web, copied to Parquet files that are then read like any other.

An address is ``sqlite:///FILE``, ``duckdb:///FILE`` or ``postgresql://...`` with ``?decisions=`` and
perhaps ``&pieces=``, each the name of a table or a query; or the address of a live bandit's store.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from accrual.core.errors import InputError, need, unknown
from accrual.store.address import parse
from accrual.store.admin import export
from accrual.store.backends import schema_version
from accrual.store.postgres import connect

_WEB = ("http", "https", "s3", "gs", "r2")
_SCHEMES = ("sqlite", "duckdb", "postgresql", "postgres", *_WEB)
_ROLES = ("decisions", "pieces")
_CHUNK = 20_000


class Fetched(NamedTuple):
    """A table that was copied: where to, and what a person calls it."""

    path: Path
    label: str


class _Url(NamedTuple):
    scheme: str
    plain: str  # without the tables
    shown: str
    tables: dict[str, str]


def is_url(given: Any) -> bool:
    """Return whether something is the address of a database or of a file on the web.

    Examples
    --------
    >>> is_url("sqlite:///plays.db"), is_url("logs/2024.csv")
    (True, False)
    """
    return isinstance(given, str) and re.match(r"[a-z][a-z0-9+]*://", given) is not None


def fetch(given: str, role: str, folder: Path, bandit: str | None) -> dict[str, Fetched]:
    """Copy the tables that an address stands for.

    Parameters
    ----------
    role : {"decisions", "pieces"}
        What it is given as; an address with just one table has that.
    folder : Path
        Where the copies go.
    bandit : str or None
        The name of a live bandit.

    Returns
    -------
    dict
        Of "decisions" and "pieces" to what was copied; only one of them where the address has only one.
    """
    url = _split(given)
    if url.scheme in _WEB:
        return {role: _download(given, folder / f"{role}-fetched.parquet")}
    if not url.tables and url.scheme != "duckdb" and (bandit or schema_version(url.plain) is not None):
        place = folder / f"{role}-store"
        export(url.plain, bandit, place)
        return {name: Fetched(place / f"{name}.parquet", f"{url.shown} ({name})") for name in _ROLES}
    if bandit is not None:
        raise InputError("--bandit is for the address of a live bandit's store, without tables")
    if not url.tables:
        have = ", ".join(_tables(url)) or "no tables"
        raise InputError(f"{url.shown}: say which tables: ?decisions=TABLE&pieces=TABLE; it has {have}")
    copied = {}
    for name, table in url.tables.items():
        path = folder / f"{role}-{name}-fetched.parquet"
        _copy(url, table, path)
        copied[name] = Fetched(path, f"{url.shown} ({table})")
    if len(copied) == 1 and role not in copied:
        copied = {role: next(iter(copied.values()))}
    return copied


def _split(given: str) -> _Url:
    scheme = given.split("://", 1)[0]
    if scheme not in _SCHEMES:
        raise InputError(
            f"{scheme}:// is not supported; these are: {', '.join(f'{one}://' for one in _SCHEMES)}"
        )
    if scheme in _WEB:
        return _Url(scheme, given, given, {})
    plain, _, query = given.partition("?")
    pairs = parse_qsl(query, keep_blank_values=True)
    tables = {name: value for name, value in pairs if name in _ROLES}
    others = [(name, value) for name, value in pairs if name not in _ROLES]
    if others and scheme in {"sqlite", "duckdb"}:
        raise unknown(f"part of the address {plain}", others[0][0], _ROLES)
    if others:
        plain += f"?{urlencode(others, quote_via=quote)}"
    if scheme == "duckdb":
        if not re.match(r"duckdb:///.", plain):
            raise InputError(f"{plain}: write duckdb:///FILE (four slashes for a path from the root)")
        return _Url(scheme, plain.removeprefix("duckdb:///"), plain, tables)
    return _Url(scheme, plain, str(parse(plain)), tables)


def _is_query(table: str) -> bool:
    return re.match(r"\s*(select|with)\s", table, re.IGNORECASE) is not None


def _chosen(table: str, names: list[str], shown: str) -> str:
    """Return SQL for all rows of a table that is named, or the query that is given."""
    if _is_query(table):
        return table
    if table not in names:
        raise InputError(f"{shown}: {unknown('table', table, names)}")
    return f"SELECT * FROM {_quoted(table)}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _tables(url: _Url) -> list[str]:
    if url.scheme == "sqlite":
        with closing(_sqlite(url)) as connection:
            names = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"
            return [row[0] for row in connection.execute(names)]
    if url.scheme == "duckdb":
        with closing(_duckdb(url)) as connection:
            names = "SELECT table_name FROM information_schema.tables ORDER BY 1"
            return [row[0] for row in connection.execute(names).fetchall()]
    return _postgres_tables(url)


def _copy(url: _Url, table: str, path: Path) -> None:
    if url.scheme == "sqlite":
        _copy_sqlite(url, table, path)
    elif url.scheme == "duckdb":
        query, duckdb = _chosen(table, _tables(url), url.shown), need("duckdb", "fit")
        with closing(_duckdb(url)) as connection:
            try:
                connection.sql(query).write_parquet(str(path))
            except duckdb.Error as error:
                raise InputError(f"{url.shown}: {str(error).splitlines()[0]}") from None
    else:
        _copy_postgres(url, table, path)


def _duckdb(url: _Url) -> Any:
    duckdb = need("duckdb", "fit")
    if not Path(url.plain).is_file():
        raise InputError(f"{url.shown}: there is no such file")
    try:
        return duckdb.connect(url.plain, read_only=True)
    except duckdb.Error as error:
        raise InputError(f"cannot open {url.shown}: {str(error).splitlines()[0]}") from None


def _sqlite(url: _Url) -> sqlite3.Connection:
    address = parse(url.plain)
    if not Path(address.place).is_file():
        raise InputError(f"{url.shown}: there is no such file")
    try:
        return sqlite3.connect(f"{Path(address.place).absolute().as_uri()}?mode=ro", uri=True)
    except sqlite3.Error as error:
        raise InputError(f"cannot open {url.shown}: {error}") from None


def _copy_sqlite(url: _Url, table: str, path: Path) -> None:
    """Copy a table of SQLite, whose cells have types: a column is numbers if all cells are, else text."""
    arrow = need("pyarrow", "fit")
    query = _chosen(table, _tables(url), url.shown)
    with closing(_sqlite(url)) as connection:
        try:
            cursor = connection.execute(f"SELECT * FROM ({query}) LIMIT 0")
            names = [column[0] for column in cursor.description]
            kinds = []
            for name in names:
                cell_types = connection.execute(f"SELECT DISTINCT typeof({_quoted(name)}) FROM ({query})")
                kinds.append({row[0] for row in cell_types} - {"null"})
            wanted = [
                _quoted(name) if kind <= {"integer", "real"} and kind else f"CAST({_quoted(name)} AS TEXT)"
                for name, kind in zip(names, kinds, strict=True)
            ]
            types = [arrow.int64() if kind == {"integer"} else arrow.float64() for kind in kinds]
            types = [
                type_ if wish == _quoted(name) else arrow.string()
                for type_, wish, name in zip(types, wanted, names, strict=True)
            ]
            rows = connection.execute(f"SELECT {', '.join(wanted)} FROM ({query})")
            _write(path, names, types, iter(lambda: rows.fetchmany(_CHUNK), []))
        except sqlite3.Error as error:
            raise InputError(f"{url.shown}: {error}") from None


def _write(
    path: Path, names: Sequence[str], types: Sequence[Any], chunks: Iterator[list[tuple[Any, ...]]]
) -> None:
    """Write rows to a Parquet file."""
    arrow, parquet = need("pyarrow", "fit"), need("pyarrow.parquet", "fit")
    schema = arrow.schema(list(zip(names, types, strict=True)))
    with parquet.ParquetWriter(path, schema) as writer:
        for rows in chunks:
            cells = zip(zip(*rows, strict=True), types, strict=True)
            columns = [arrow.array(column, type_) for column, type_ in cells]
            writer.write_table(arrow.Table.from_arrays(columns, schema=schema))


def _postgres_tables(url: _Url) -> list[str]:
    here = "table_schema = ANY(current_schemas(false))"
    with connect(parse(url.plain)) as connection:
        rows = connection.execute(f"SELECT table_name FROM information_schema.tables WHERE {here}")
        return sorted(row[0] for row in rows)


def _copy_postgres(url: _Url, table: str, path: Path) -> None:
    psycopg = need("psycopg", "postgres")
    query = table if _is_query(table) else _chosen(table, _postgres_tables(url), url.shown)
    try:
        with connect(parse(url.plain)) as connection:
            connection.execute("BEGIN READ ONLY")
            with connection.cursor("rows") as cursor:
                cursor.execute(query)
                names = [column.name for column in cursor.description]
                found = [psycopg.postgres.types.get(column.type_code) for column in cursor.description]
                kinds = [_postgres_type("" if type_ is None else type_.name) for type_ in found]
                types, reads = zip(*kinds, strict=True)
                rows = (
                    [tuple(read(cell) for cell, read in zip(row, reads, strict=True)) for row in chunk]
                    for chunk in iter(lambda: cursor.fetchmany(_CHUNK), [])
                )
                _write(path, names, types, rows)
    except psycopg.Error as error:
        raise InputError(f"{url.shown}: {error}") from None


def _postgres_type(name: str) -> tuple[Any, Any]:
    """Return Arrow's type for a type of PostgreSQL, and the function that converts a cell."""
    arrow = need("pyarrow", "fit")
    if name in {"int2", "int4", "int8"}:
        return arrow.int64(), _same
    if name in {"float4", "float8", "numeric"}:
        return arrow.float64(), _float
    known = {
        "bool": arrow.bool_(), "date": arrow.date32(), "timestamp": arrow.timestamp("us"),
        "timestamptz": arrow.timestamp("us", tz="UTC"), "interval": arrow.duration("us"),
    }  # fmt: skip
    return (known[name], _same) if name in known else (arrow.string(), _text)


def _same(cell: Any) -> Any:
    return cell


def _float(cell: Any) -> float | None:
    return None if cell is None else float(cell)


def _text(cell: Any) -> str | None:
    return None if cell is None else str(cell)


def _download(given: str, path: Path) -> Fetched:
    """Copy a file of the web with DuckDB's extension for it, which is used where it is installed."""
    duckdb = need("duckdb", "fit")
    shown = re.sub(r"//[^/@]*@", "//", given.split("?", maxsplit=1)[0])
    ending = urlsplit(given).path.lower().removesuffix(".gz").rpartition(".")[2]
    readers = {"parquet": "read_parquet", "csv": "read_csv", "jsonl": "read_json", "ndjson": "read_json"}
    if ending not in readers:
        raise InputError(f"{shown}: its name must end in one of .{', .'.join(readers)} (also with .gz)")
    with duckdb.connect(config={"autoinstall_known_extensions": "false"}) as connection:
        try:
            connection.execute("LOAD httpfs")
        except duckdb.Error:
            raise InputError(
                f"{shown}: reading from the web needs DuckDB's extension httpfs, which is not installed: "
                "python -c \"import duckdb; duckdb.connect().install_extension('httpfs')\""
            ) from None
        options = ", all_varchar=true, header=true" if ending == "csv" else ""
        try:
            connection.execute(
                f"CREATE TABLE copied AS SELECT * FROM {readers[ending]}($1{options})", [given]
            )
            connection.table("copied").write_parquet(str(path))
        except duckdb.Error as error:
            raise InputError(f"{shown}: {str(error).splitlines()[0]}") from None
    return Fetched(path, shown)
