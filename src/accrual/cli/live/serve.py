"""`accrual serve`: the decision service."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from accrual.cli.options import expanded
from accrual.core.errors import InputError, need

if TYPE_CHECKING:
    from accrual.logs.fitted import Fitted


class _Beginning(NamedTuple):
    """What the service starts with."""

    days: float | None  # simulated days in a second; None without simulated traffic
    priors: list[str]


def _beginning(
    demo: Annotated[bool, typer.Option("--demo", help="Drive it with simulated traffic.")] = False,
    speed: Annotated[
        float, typer.Option(metavar="DAYS", help="Simulated days in a second, with --demo.")
    ] = 1.0,
    prior: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=FILE", help="Make a bandit from a fit or an old log; may be repeated."),
    ] = None,
) -> _Beginning:
    if not demo and speed != 1.0:
        raise InputError("--speed is for simulated traffic: use it with --demo")
    if demo and prior:
        raise InputError("--prior is for a service of your own: use it without --demo")
    return _Beginning(speed if demo else None, prior or [])


@partial(expanded, name="beginning", make=_beginning)
def serve(
    beginning: _Beginning,
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
    need("starlette", "service")
    need("uvicorn", "service")
    need("httptools", "service")
    from accrual.service.app import prepare
    from accrual.service.keys import create_key_command
    from accrual.service.server import bound
    from accrual.service.server import serve as run
    from accrual.service.settings import load, named
    from accrual.store.address import parse
    from accrual.studies.demo import Demo

    demo = None if beginning.days is None else Demo(beginning.days)
    options = {"store": store, "host": host, "port": port, "workers": workers, "hosts": hosts}
    given = {name: value for name, value in options.items() if value not in (None, [])}

    def started(address: str, keys: bool) -> None:
        what = "simulated traffic, kept until it stops," if passing else parse(settings.store)
        print(f"accrual serves {what} at {address}", file=sys.stderr)
        if not keys and not passing:
            print(
                "anyone on this machine may use it, until there is a key: "
                f"{create_key_command(settings.store)}",
                file=sys.stderr,
            )

    # Simulated traffic is stored only where --store says, not where a file or a variable does.
    passing = demo is not None and store is None
    with ExitStack() as stack:
        if passing:
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # the folder goes also then
            folder = stack.enter_context(TemporaryDirectory(prefix="accrual-demo-"))
            given["store"] = f"sqlite:///{folder}/demo.db"
        settings = load(config, os.environ, named(setting or ()) | given)
        if passing and not settings.loopback:
            raise InputError(
                "simulated traffic without --store is served to this machine alone: give --store"
            )
        if beginning.priors:
            bound(settings).close()  # what cannot be served is refused before a file is made
            if not settings.loopback:
                prepare(settings).close()
            make_bandits(beginning.priors, settings.store)
        run(settings, started, demo)


def make_bandits(priors: Sequence[str], store: str) -> None:
    """Make the bandits of ``--prior NAME=FILE`` options; a bandit that exists goes on as it is."""
    from accrual.live.bandit import Bandit
    from accrual.service.messages import BANDIT
    from accrual.store.backends import open_store, schema_version

    asked: dict[str, str] = {}
    for text in priors:
        name, _, file = text.partition("=")
        if not re.fullmatch(BANDIT, name) or not file:
            raise InputError(f"--prior must be written like plays=problem.json, not {text!r}")
        asked[name] = file
    if schema_version(store) is not None:
        with closing(open_store(store, readonly=True)) as place:
            for name, row in [(name, place.find(name)) for name in asked]:
                if row is not None and not row.config.get("imported"):
                    raise InputError(
                        f"--prior: the bandit {name!r} was made without a prior; take another name"
                    )
                if row is not None:
                    del asked[name]
    given: dict[str, dict[str, Any]] = {}
    for name, file in asked.items():
        fitted = _fitted(file)
        given[name] = {
            "arms": {arm.name: arm.cap.used for arm in fitted.known if arm.cap is not None},
            "window": timedelta(seconds=fitted.window),
            "prior": fitted,
            "allow_negative": fitted.signed,
        }
        Bandit(**given[name]).close()  # in memory first: what is refused leaves no file behind
    for name, options in given.items():
        Bandit(**options, store=store, name=name).close()
        also = ", and takes negative pieces, as the log has them" if options["allow_negative"] else ""
        print(f"made {name} from {asked[name]}{also}", file=sys.stderr)


def _fitted(file: str) -> Fitted:
    """Read what a fit wrote, or fit a log whose columns have their usual names."""
    from accrual.logs.fit import fit
    from accrual.logs.fitted import Fitted

    return Fitted.load(file) if Path(file).suffix == ".json" else fit(file, allow_negative=True)
