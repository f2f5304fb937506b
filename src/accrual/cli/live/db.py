"""`accrual db`: the database behind live bandits."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

_WRONG = 1  # exit code of a database that is not as it should be

app = typer.Typer(help="Make, check, copy and export a database.")

Url = Annotated[str, typer.Argument(metavar="URL", help="sqlite:///FILE or postgresql://USER@HOST/NAME.")]
NewFile = Annotated[Path, typer.Argument(metavar="FILE", help="The SQLite file to write; it must be new.")]


@app.command()
def init(url: Url) -> None:
    """Make the tables."""
    from accrual.store.address import parse
    from accrual.store.backends import make_tables, schema_version
    from accrual.store.schema import VERSION

    found = schema_version(url)
    make_tables(url)
    done = "" if found is None else ", nothing to do"
    typer.echo(f"{parse(url)}: schema version {VERSION}{done}")


@app.command("backup")
def backup_(url: Url, file: NewFile) -> None:
    """Write everything to a new SQLite file.

    It holds all that was stored at one moment; others go on writing meanwhile.
    """
    from accrual.store.admin import backup

    backup(url, file)
    typer.echo(f"written: {file}")


@app.command("restore")
def restore_(
    url: Url, file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that backup wrote.")]
) -> None:
    """Put a backup into an empty database.

    The database may be SQLite or PostgreSQL, whichever the backup was made of.
    """
    from accrual.store.address import parse
    from accrual.store.admin import restore

    restore(url, file)
    typer.echo(f"restored: {parse(url)}")


@app.command("export")
def export_(
    url: Url,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where to write the Parquet files.")],
    bandit: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which bandit to export; needed if there are several.")
    ] = None,
) -> None:
    """Write a bandit's log as Parquet files.

    They hold its decisions and pieces, which accrual fit reads, and its arms.
    """
    from accrual.store.admin import export

    for name, count in export(url, bandit, folder).items():
        typer.echo(f"written: {folder / name} ({count:,} rows)")


@app.command("verify")
def verify_(url: Url) -> int:
    """Check all that can be checked.

    The exit code is 1 if something is wrong.
    """
    from accrual.live.verify_snapshots import verify_snapshots
    from accrual.store.admin import verify
    from accrual.store.backends import open_reader, open_store

    with open_reader(url) as reader:
        found = verify(reader)
        events = reader.value("SELECT coalesce(sum(seq), 0) FROM head") if not found else 0
    compared = 0
    if not found:
        with closing(open_store(url, readonly=True)) as store:
            compared, found = verify_snapshots(store)
    for wrong in found:
        typer.echo(f"wrong: {wrong}")
    if found:
        return _WRONG
    typer.echo(f"{int(events):,} events, {compared:,} snapshots: nothing wrong")
    return 0
