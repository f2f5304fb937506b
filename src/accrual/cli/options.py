"""Arguments and options that several commands share."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
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

_Jobs = Annotated[
    int | None, typer.Option(metavar="COUNT", help="Parts of the work at a time; all cores unless given.")
]
_Engine = Annotated[str, typer.Option(metavar="NAME", help="Where to compute: local or ray.")]
_Address = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="A Ray cluster's head; without it Ray is started here."),
]
_WHERE = {"jobs": (_Jobs, None), "engine": (_Engine, "local"), "address": (_Address, None)}


class Extent(NamedTuple):
    """How much to play, and on what."""

    horizon: int
    runs: int
    device: str


_EXTENT = {"horizon": (Horizon, 100_000), "runs": (Runs, 100), "device": (Device, "cpu")}


def with_extent(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --horizon, --runs and --device to a command, in place of its parameter ``extent: Extent``."""
    return expanded(command, "extent", _EXTENT, Extent)


def with_executor(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add to a command the options that say where its cells are computed.

    The command declares a parameter ``executor: Executor``, in whose place the command line
    takes --jobs, --engine and --address.
    """
    return expanded(command, "executor", _WHERE, _executor)


def expanded(
    command: Callable[..., Any], name: str, options: Mapping[str, tuple[Any, Any]], make: Callable[..., Any]
) -> Callable[..., Any]:
    """Return `command` with several options, each (annotation, default), in place of its parameter `name`.

    The command gets for that parameter what `make` makes of the options. An argument without a default
    has ``...`` in its place.
    """

    @functools.wraps(command)
    def wrapped(**given: Any) -> Any:
        taken = {option: given.pop(option) for option in options}
        return command(**{name: make(**taken)}, **given)

    # Typer reads the options from the signature.
    hints = get_type_hints(command, localns={"Executor": Any}, include_extras=True)
    own = [
        parameter.replace(annotation=hints[one], kind=inspect.Parameter.KEYWORD_ONLY)
        for one, parameter in inspect.signature(command).parameters.items()
        if one != name
    ]
    added = [
        inspect.Parameter(
            option,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if default is ... else default,
            annotation=annotation,
        )
        for option, (annotation, default) in options.items()
    ]
    wrapped.__annotations__ = {one.name: one.annotation for one in [*own, *added]}
    wrapped.__signature__ = inspect.Signature([*own, *added])  # type: ignore[attr-defined]
    return wrapped


def _executor(jobs: int | None, engine: str, address: str | None) -> Executor:
    from accrual.runs.on_ray import OnRay
    from accrual.runs.runner import Local

    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)
    if engine == "ray":
        return OnRay(address, jobs)
    if address is not None:
        raise InputError("--address is a Ray cluster's; it needs --engine ray")
    return Local(jobs)
