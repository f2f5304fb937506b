"""Arguments and options that several commands share."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

import typer

from accrual.cli.completion import settings
from accrual.core.errors import InputError, unknown

if TYPE_CHECKING:
    from accrual.runs.runner import Executor

ENGINES = ("local", "ray")


def count(given: str | int) -> int:
    """Read a whole number, which may be written 1e5."""
    try:
        return int(given)  # not by way of a float, which would round a long number
    except ValueError:
        pass
    try:
        value = float(given)
        if value == int(value):
            return int(value)
    except (ValueError, OverflowError):
        pass
    raise typer.BadParameter(f"{given!r} is not a whole number")


Setting = Annotated[
    str,
    typer.Argument(
        metavar="SETTING", help="A named setting such as setting1, or a TOML file.", autocompletion=settings
    ),
]
Horizon = Annotated[int, typer.Option(parser=count, metavar="ROUNDS", help="Rounds in a run.")]
Runs = Annotated[int, typer.Option(parser=count, metavar="COUNT", help="How many runs.")]
Device = Annotated[str, typer.Option(metavar="NAME", help="cpu, or cuda for an NVIDIA GPU.")]
Seed = Annotated[int, typer.Option(metavar="NUMBER", help="The seed of the random draws.")]
Plot = Annotated[Path | None, typer.Option(metavar="PATH", help="Write a picture here (.png, .svg or .pdf).")]


class Extent(NamedTuple):
    """How much to play, and on what."""

    horizon: Horizon = 100_000
    runs: Runs = 100
    device: Device = "cpu"


def with_extent(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --horizon, --runs and --device to a command, in place of its parameter ``extent: Extent``."""
    return expanded(command, "extent", Extent)


def with_executor(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add to a command the options that say where its cells are computed.

    The command declares a parameter ``executor: Executor``, in whose place the command line
    takes --jobs, --engine and --address.
    """
    return expanded(command, "executor", _executor)


def expanded(command: Callable[..., Any], name: str, make: Callable[..., Any]) -> Callable[..., Any]:
    """Return `command` with the parameters of `make` in place of its parameter `name`.

    The command gets for that parameter what `make`, a class or a function, makes of its own.
    """
    added = _parameters(make)

    @functools.wraps(command)
    def wrapped(**given: Any) -> Any:
        taken = {one.name: given.pop(one.name) for one in added}
        return command(**{name: make(**taken)}, **given)

    # Typer reads the options from the signature.
    every = [*(one for one in _parameters(command) if one.name != name), *added]
    wrapped.__annotations__ = {one.name: one.annotation for one in every}
    wrapped.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
    return wrapped


def _parameters(of: Callable[..., Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(of, localns={"Executor": Any, "TimeOptions": Any}, include_extras=True)
    return [
        parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in inspect.signature(of).parameters.items()
    ]


def _executor(
    jobs: Annotated[
        int | None, typer.Option(metavar="COUNT", help="Parts of the work at a time; all cores unless given.")
    ] = None,
    engine: Annotated[str, typer.Option(metavar="NAME", help="Where to compute: local or ray.")] = "local",
    address: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="A Ray cluster's head; without it Ray is started here."),
    ] = None,
) -> Executor:
    from accrual.runs.on_ray import OnRay
    from accrual.runs.runner import Local

    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)
    if engine == "ray":
        return OnRay(address, jobs)
    if address is not None:
        raise InputError("--address is a Ray cluster's; it needs --engine ray")
    return Local(jobs)
