"""The options that say how a log is read and fitted, shared by every command that takes a log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from accrual.cli.options import expanded
from accrual.core.errors import InputError

if TYPE_CHECKING:
    from accrual.logs.fitted import Fitted
    from accrual.logs.log import Log
    from accrual.logs.read import ReadingOptions

BAD_ROWS_FILE = "bad-rows.csv"


class PathOrUrl(str):
    """A path, a pattern or a URL, as it was typed."""

    __slots__ = ()

    @property
    def suffix(self) -> str:
        """The ending of its name."""
        return Path(self).suffix


Columns = Annotated[
    list[str] | None,
    typer.Option(metavar="ROLE=NAME", help="Which column is what, such as arm=course; may be repeated."),
]

TimeFormat = Annotated[
    str | None, typer.Option(metavar="TEXT", help="How times are written, such as %d/%m/%Y.")
]
TimeUnit = Annotated[
    str | None, typer.Option(metavar="UNIT", help="Unit of times since 1970: s, ms, us, ns; or number.")
]
TimeZone = Annotated[
    str | None, typer.Option(metavar="NAME", help="Time zone of times that have none: Europe/Berlin.")
]


@dataclass(frozen=True)
class LogOptions:
    """What the command line says about a log."""

    log: Annotated[
        PathOrUrl,
        typer.Argument(
            parser=PathOrUrl, metavar="LOG", help="Decisions, or all in one table: a path, pattern or URL."
        ),
    ]
    pieces: Annotated[
        PathOrUrl | None,
        typer.Argument(parser=PathOrUrl, metavar="PIECES", help="The pieces, if in a table of their own."),
    ] = None
    column: Columns = None
    window: Annotated[
        str | None, typer.Option(metavar="TIME", help="The window, such as 60d, or a number.")
    ] = None
    groups: Annotated[int | None, typer.Option(metavar="COUNT", help="Equal parts of the window.")] = None
    cap: Annotated[
        list[str] | None,
        typer.Option(metavar="[ARM=]NUMBER", help="The most one decision can pay; may be repeated."),
    ] = None
    end: Annotated[
        str | None, typer.Option(metavar="TIME", help="The time until which the log is complete.")
    ] = None
    context: Annotated[
        str | None,
        typer.Option(metavar="NAME,...", help="Columns with the context of a decision: country,new."),
    ] = None
    uniform: Annotated[
        bool, typer.Option("--uniform", help="Every arm had the same chance at each decision.")
    ] = False
    cluster: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A column of decisions that may pay alike, such as user."),
    ] = None
    cap_totals: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="Count at most this of a decision's total.")
    ] = None
    age_unit: Annotated[
        str | None, typer.Option(metavar="UNIT", help="Unit of ages and windows: s, min, h, d, w, y.")
    ] = None
    bandit: Annotated[
        str | None, typer.Option(metavar="NAME", help="The live bandit to read, where LOG is a store.")
    ] = None
    time_format: TimeFormat = None
    time_unit: TimeUnit = None
    timezone: TimeZone = None
    skew: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="How long before its decision a piece may come: clocks differ."),
    ] = None
    na: Annotated[
        str | None, typer.Option(metavar="WORD,...", help="Words for an empty cell, such as NA,-.")
    ] = None
    decimal: Annotated[
        str | None, typer.Option(metavar="SIGN", help="Decimal sign, comma or point; the other: thousands.")
    ] = None
    bad_rows: Annotated[
        str, typer.Option(metavar="WAY", help="Unreadable rows: refuse, or skip and list in a file.")
    ] = "refuse"
    strict: Annotated[bool, typer.Option("--strict", help="Refuse pieces without a decision.")] = False
    allow_negative: Annotated[bool, typer.Option("--allow-negative", help="Accept negative values.")] = False

    def opened(self) -> Log:
        """Open the log."""
        from accrual.logs.open_log import open_log

        pieces = None if self.pieces is None else str(self.pieces)
        return open_log(str(self.log), pieces, column_roles(self.column), **self.reading)

    @property
    def reading(self) -> ReadingOptions:
        """How the log is to be read."""
        fitting = ("log", "pieces", "column", "window", "groups", "cap", "uniform")
        given: Any = {name: value for name, value in vars(self).items() if name not in fitting}
        for several in ("context", "na"):
            given[several] = [word for word in (given[several] or "").split(",") if word]
        return cast("ReadingOptions", {**given, "bad_rows_file": BAD_ROWS_FILE})

    def check_uniform(self) -> None:
        """Refuse ``--uniform`` where it would say nothing: it is for contexts, and for a replay."""
        if self.uniform and not self.context:
            raise InputError("--uniform says how arms were chosen by --context, which is not given")

    def words(self) -> list[str]:
        """Write the options as words of a command line."""
        words = [str(self.log), *([] if self.pieces is None else [str(self.pieces)])]
        for name, value in vars(self).items():
            if name in ("log", "pieces") or not value or (name, value) == ("bad_rows", "refuse"):
                continue
            if value is True:
                words.append(_spelled(name))
            else:
                words += [
                    f"{_spelled(name)}={one}" for one in ([*value] if isinstance(value, list) else [value])
                ]
        return words

    def fit(self, log: Log) -> Fitted:
        """Fit the opened log."""
        from accrual.logs.fit import fit_log

        return fit_log(log, self.window, self.groups, _caps(self.cap), self.uniform)

    def fitted(self) -> Fitted:
        """Read a problem.json, or fit a log."""
        if self.log.suffix != ".json":
            with self.opened() as log:
                return self.fit(log)
        from accrual.logs.fitted import Fitted

        usual = {"log": self.log, "bad_rows": "refuse"}
        given = [name for name, value in vars(self).items() if value and value != usual.get(name)]
        if given:
            raise InputError(f"{self.log} is what a fit wrote; {_spelled(given[0])} is for a log")
        return Fitted.load(self.log)


def with_log(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a log to a command, in place of its parameter ``source: LogOptions``."""
    return expanded(command, "source", LogOptions)


def column_roles(column: Sequence[str] | None) -> dict[str, str]:
    """Return the ``--column ROLE=NAME`` options as a mapping of role to column name."""
    roles: dict[str, str] = {}
    for text in column or ():
        role, equals, name = text.partition("=")
        if not (role and equals and name):
            raise InputError(f"--column must be written like arm=course, not {text!r}")
        if role in roles:
            raise InputError(f"--column gives {role} twice")
        roles[role] = name
    return roles


def _caps(cap: Sequence[str] | None) -> float | dict[str, float] | None:
    """Read ``--cap`` options: one cap for all arms, or caps by name."""
    caps: dict[str, float] = {}
    for text in cap or ():
        arm, _, number = text.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            raise InputError(f"--cap must be written like 10 or jazz=10, not {text!r}") from None
        if arm in caps:
            raise InputError(f"--cap gives {f'{arm!r}' if arm else 'the cap of all arms'} twice")
        caps[arm] = value
    if "" in caps and len(caps) > 1:
        raise InputError("--cap is one number for all arms, or ARM=NUMBER for each, not both")
    return caps.get("", caps or None)


def _spelled(name: str) -> str:
    return "PIECES" if name == "pieces" else f"--{name.replace('_', '-')}"
