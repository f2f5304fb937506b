"""A log in parts, each read and added up on its own machine; the fit is the same to the bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, TypeVar

from accrual.core.errors import InputError
from accrual.logs.log import load
from accrual.logs.read import Reading, Tables
from accrual.logs.tables import Log, LogFacts
from accrual.logs.whole_log import (
    EndedCounts,
    LogContents,
    check_contents,
    cut_at_end,
    describe_whole,
    merge_contents,
)

T = TypeVar("T")

_TRAITS = ("timestamps", "time_unit", "time_style", "moment_sql", "columns", "has_propensity", "has_window")


class Opened(NamedTuple):
    """What a part says when it is first read."""

    found: LogContents
    tables: Tables
    traits: dict[str, Any]


class Part:
    """One part of a log, read when it is first asked, and again if what was read is lost.

    Parameters
    ----------
    decisions, pieces : path
    reading : Reading
        It names the part.
    """

    def __init__(self, decisions: Any, pieces: Any, reading: Reading) -> None:
        self._given = decisions, pieces, reading
        self._log: Log | None = None
        self._opened: Opened | None = None
        self._counted: EndedCounts | None = None

    def open(self) -> Opened:
        """Say what the part holds."""
        if self._opened is None:
            self._log, tables, contents = load(*self._given)
            self._opened = Opened(contents, tables, {name: getattr(self._log, name) for name in _TRAITS})
        return self._opened

    def cut_at_end(self, whole: LogContents) -> EndedCounts:
        """Leave out what is after the whole log's end."""
        self.open()
        assert self._log is not None
        if self._counted is None:
            self._counted = cut_at_end(self._log, whole, self._given[2])
        return self._counted

    def ask(self, whole: LogContents, find: Callable[..., T], known: tuple[Any, ...]) -> T:
        """Give what `find` finds in the part."""
        self.cut_at_end(whole)
        assert self._log is not None
        return find(self._log, *known)

    def close(self) -> None:
        """Delete what was read."""
        if self._log is not None:
            self._log.close()


class Everywhere(Protocol):
    """Calls a method of all parts, in their order."""

    def __call__(self, method: str, *given: Any) -> Sequence[Any]: ...


class PartedLog(LogFacts):
    """A log of which `everywhere` asks the parts."""

    def __init__(self, everywhere: Everywhere) -> None:
        super().__init__()
        self._everywhere = everywhere
        parts: Sequence[Opened] = everywhere("open")
        for name, value in parts[0].traits.items():
            setattr(self, name, value)
        self._whole = merge_contents([part.found for part in parts])
        check_contents(self._whole, parts[0].tables)
        describe_whole(self, self._whole, everywhere("cut_at_end", self._whole))

    def each(self, find: Callable[..., T], *known: Any) -> list[T]:
        return list(self._everywhere("ask", self._whole, find, known))


def part_readings(reading: Reading, parts: int) -> list[Reading]:
    """Give the readings of so many parts; refuse what only a whole log can do."""
    if reading.skips:
        raise InputError(
            "rows that cannot be read can be skipped only on one machine: leave out --engine ray"
        )
    if reading.context:
        raise InputError("contexts are looked at on one machine: leave out --context, or --engine ray")
    return [replace(reading, part=(number, parts)) for number in range(parts)]
