"""The commands, and how errors are shown: one line on stderr and exit code 2."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import accrual
from accrual.cli.live import bandits, db, keys, serve, warm
from accrual.cli.logs import compare, convert, fit, plan, replay
from accrual.cli.study import bench, bounds, gallery, headline, paper, simulate, spread, sweep
from accrual.core.errors import InputError, MissingExtra

# A new command: a file in the folder of its section with a function of its name, and a row in this table. A
# command with actions of its own, such as `accrual db backup`, is an `app` of its own.
SECTIONS: dict[str, dict[str, Callable[..., Any] | typer.Typer]] = {
    "Study": {
        "simulate": simulate.simulate,
        "bounds": bounds.bounds,
        "spread": spread.spread,
        "headline": headline.headline,
        "gallery": gallery.gallery,
        "paper": paper.paper,
        "sweep": sweep.sweep,
        "bench": bench.bench,
    },
    "Logs": {
        "convert": convert.convert,
        "fit": fit.fit,
        "compare": compare.compare,
        "replay": replay.replay,
        "plan": plan.plan,
    },
    "Live": {"serve": serve.serve, "bandits": bandits.app, "keys": keys.app, "db": db.app, "warm": warm.warm},
}
COMMANDS = {name: command for section in SECTIONS.values() for name, command in section.items()}


class _GroupedHelp(TyperGroup):
    """The commands, listed by what they are for."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write one line for each command, under the name of its section."""
        for section, names in SECTIONS.items():
            room = formatter.width - 6 - max(map(len, self.commands))
            lines = [(name.ljust(8), self.commands[name].get_short_help_str(room)) for name in names]
            with formatter.section(section):
                formatter.write_dl(lines)


def _help_of_group(context: typer.Context) -> None:
    if context.invoked_subcommand is None:  # `accrual db` alone
        typer.echo(context.get_help())


app = typer.Typer(cls=_GroupedHelp, rich_markup_mode=None, pretty_exceptions_enable=False)
for _name, _command in COMMANDS.items():
    if isinstance(_command, typer.Typer):
        _command.callback(invoke_without_command=True)(_help_of_group)
        app.add_typer(_command, name=_name)
    else:
        app.command(_name)(_command)


@app.callback(invoke_without_command=True)
def accrual_(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """Bandits whose reward for one decision arrives in pieces over time."""
    if version:
        typer.echo(f"accrual {accrual.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def run(arguments: Sequence[str]) -> int:
    """Run the command line `arguments` and return the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a character that the terminal lacks is no reason to stop
            stream.reconfigure(errors="replace")
    try:
        code = app(list(arguments), prog_name="accrual", standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:
        return _complain(error.format_message())
    except (InputError, MissingExtra) as error:
        return _complain(str(error))
    except MemoryError as error:
        return _complain(f"not enough memory: {error}")
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _complain(f"{where}{error.strerror or error}")
    return code if isinstance(code, int) else 0


def _complain(message: str) -> int:
    print("accrual:", " ".join(message.split()), file=sys.stderr)
    return 2
