"""`accrual serve`: the decision service."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from accrual.core.errors import need


def serve(
    config: Annotated[Path | None, typer.Option(metavar="PATH", help="A TOML file of settings.")] = None,
    store: Annotated[str | None, typer.Option(metavar="URL", help="The database.")] = None,
    host: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Where to listen.")] = None,
    port: Annotated[int | None, typer.Option(metavar="NUMBER", help="0 takes any that is free.")] = None,
    workers: Annotated[int | None, typer.Option(metavar="COUNT", help="Processes, on PostgreSQL.")] = None,
    hosts: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="A name of the service; may be repeated."),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any other setting; may be repeated."),
    ] = None,
) -> None:
    """Serve decisions over HTTP."""
    need("fastapi", "service")
    need("uvicorn", "service")
    need("httptools", "service")
    from accrual.service.server import serve as run
    from accrual.service.settings import load, named
    from accrual.store.address import parse

    options = {"store": store, "host": host, "port": port, "workers": workers, "hosts": hosts}
    given = {name: value for name, value in options.items() if value not in (None, [])}
    settings = load(config, os.environ, named(setting or ()) | given)

    def started(address: str, keys: bool) -> None:
        where = parse(settings.store)
        print(f"accrual serves {where} at {address}", file=sys.stderr)
        if not keys:
            print(
                "anyone on this machine may use it, until there is a key: accrual keys create",
                file=sys.stderr,
            )

    run(settings, started)
