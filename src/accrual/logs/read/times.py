"""Find how a column of times is read: as the user says, or as its cells look.

The guess of a date column is here. What was guessed is noted, so that the user can correct it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from accrual.core.errors import InputError, unknown
from accrual.logs.log import TICKS
from accrual.logs.read.columns import NOBODY, NUMBERS, TIMED, ZONED, empty, plain_number
from accrual.logs.read.sources import TableSource, run

TIME_UNITS = ("s", "ms", "us", "ns", "number")

_SAMPLE = 10_000  # cells that are read to recognise a format
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_EPOCH = (946_684_800, 4_102_444_800)  # seconds since 1970, from the year 2000 to 2100
# Dates packed into digits. The first two are read; of the others the user is asked, if so many different
# cells are all such dates: fewer where the year has four digits, which plain numbers seldom look like.
_PACKED = (
    ("%Y%m%d", 1), ("%Y%m%d%H%M%S", 1), ("%Y%m", 2), ("%G%V", 2), ("%Y%j", 2), ("%d%m%Y", 2), ("%m%d%Y", 2),
    ("%Y%m%d%H", 2), ("%Y%m%d%H%M", 2), ("%Y%m%d%H%M%S%g", 2), ("%Y%m%d%H%M%S%f", 2), ("%y%m%d", 5),
    ("%d%m%y", 5), ("%y%m%d%H", 5), ("%y%m%d%H%M", 5), ("%y%m%d%H%M%S", 5), ("%y%j", 20),
)  # fmt: skip
_PARTS = {
    "%Y": "(19|20)[0-9]{2}", "%G": "(19|20)[0-9]{2}", "%y": "[0-9]{2}", "%m": "(0[1-9]|1[0-2])",
    "%d": "(0[1-9]|[12][0-9]|3[01])", "%j": "(00[1-9]|0[1-9][0-9]|[12][0-9]{2}|3[0-5][0-9]|36[0-6])",
    "%V": "(0[1-9]|[1-4][0-9]|5[0-3])", "%H": "([01][0-9]|2[0-3])", "%M": "[0-5][0-9]", "%S": "[0-5][0-9]",
    "%g": "[0-9]{3}", "%f": "[0-9]{6}",
}  # fmt: skip
_EACH_YEAR = 5  # different dates, at least, where the year stands last
_WHOLE = re.compile(r"\.0*$")  # what a column of numbers may write after whole numbers
_NAIVE = r"\s*[0-9/.-]+([T ]+[0-9:.,]+)?\s*"
_DATE = re.compile(r"\s*\d{4}[/-]\d\d[/-]\d\d\s*")
_SHORT_YEAR = re.compile(
    r"\s*(\d{1,2}[/. -](\d{1,2}|[A-Za-z]{3,9})[/. -]\d{2}([^\d:/.,-].*)?|[A-Za-z]{3,9}[-/]\d{2}\s*)"
)
_DATES = (
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d.%m.%Y",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%d %b %Y",
    "%b %d, %Y",
    "%d-%b-%Y",
    "%d %B %Y",
    "%Y.%m.%d",
    "%Y-%m-%d",
)
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p", " %H:%M:%S %z")
_FORMATS = (
    *(date + clock for clock in _CLOCKS for date in _DATES),
    "%Y-%m-%dT%H:%M:%S,%f", "%Y-%m-%d %H:%M:%S,%f", "%Y-%m-%d %H:%M:%S.%f %z", "%Y%m%dT%H%M%S",
    "%Y%m%dT%H%M%S%z", "%d/%b/%Y:%H:%M:%S %z", "%a %b %d %H:%M:%S %Y", "%a, %d %b %Y %H:%M:%S %Z",
)  # fmt: skip


@dataclass(frozen=True)
class TimeOptions:
    """What the user says about the log's times; see `accrual.logs.open_log.open_log`."""

    format: str | None = None
    unit: str | None = None
    zone: str | None = None

    def check(self, connection: Any) -> None:
        """Refuse an unknown unit or time zone, and a format together with a unit."""
        if self.unit is not None and self.unit not in TIME_UNITS:
            raise unknown("unit of time", self.unit, TIME_UNITS)
        if self.unit is not None and self.format is not None:
            raise InputError("a time format and a time unit exclude each other: give one of them")
        if self.zone is not None:
            zones = run(connection, "SELECT name FROM pg_timezone_names()").fetchall()
            if self.zone not in {row[0] for row in zones}:
                raise InputError(f"unknown time zone {self.zone!r}; write it like Europe/Berlin or UTC")


class TimeColumn:
    """How a column of times is read.

    Where the cells can be read in two ways and `like`, the format of the decisions' times, is one of them,
    they are read by `like`.

    Attributes
    ----------
    timestamps : bool
        Otherwise plain numbers.
    kind : str
        What was recognised, in words: ``"epoch milliseconds"``, ``"dates written yyyymmdd"``; empty for
        timestamps in the usual form and for plain numbers.
    tick : str
        SQL for the moment, in microseconds or as the number; NULL where the cell is no time.
    aware : str
        SQL that tells whether it has a time zone of its own.
    dates : bool
        Whether all are dates without a time of day.
    """

    def __init__(
        self,
        connection: Any,
        source: TableSource,
        column: int,
        role: str,
        options: TimeOptions | None = None,
        like: str = "",
    ) -> None:
        options = options or TimeOptions()
        self._connection, self._source, self._column = connection, source, column
        self._options = options
        self._where = f"{source.label}: column {source.names[column]!r} ({role})"
        self._type = source.types[column]
        self.kind, self.aware, self._like, self.dates = "", "NULL::BOOLEAN", like, False
        self._format, self._epoch = options.format, options.unit if options.unit != "number" else None
        if TIMED.match(self._type) or ZONED.match(self._type):
            if options.format or options.unit:
                raise InputError(f"{self._where} holds timestamps already: leave out the time format or unit")
            self.aware = "true" if ZONED.match(self._type) else "false"
            self._moment, self.dates = "{x}", self._type == "DATE"
            self.timestamps = True
        else:
            if self._type != "VARCHAR" and not NUMBERS.match(self._type):
                raise InputError(f"{self._where} must hold timestamps or numbers, not {self._type}")
            self._recognise()
        self.tick = self.reading(f"c{column}")

    def reading(self, cell: str) -> str:
        """Return SQL for the moment that a cell of this column's type holds."""
        if not self.timestamps:
            value = f"CAST({cell} AS DOUBLE)"
            if self._type == "VARCHAR":
                value = f"TRY_CAST({plain_number(self._source, cell)} AS DOUBLE)"
            return f"CASE WHEN isfinite({value}) THEN {value} END"
        if self._epoch:
            return _epoch(cell, _PER_SECOND[self._epoch])
        # What has no time zone of its own is in the connection's; but a date is a date in any of them, and
        # where that is UTC there is no need for the slow conversion.
        plain = self.dates or (self.aware == "false" and self._options.zone is None)
        kind = "TIMESTAMP" if plain else "TIMESTAMPTZ"
        moment = f"TRY_CAST({self._moment.replace('{x}', cell)} AS {kind})"
        return f"CASE WHEN isfinite({moment}) THEN epoch_us({moment}) END"

    @property
    def needed(self) -> str:
        """What a cell must be."""
        if not self.timestamps:
            return "a number"
        return f"one of the {self.kind}" if self.kind else "a timestamp such as 2024-05-01 12:30:00+00:00"

    def _recognise(self) -> None:
        """Settle how numbers or text are read."""
        cells = self._sample()
        # Words for nothing do not tell how the others are written; their rows will be named.
        cells = [cell for cell in cells if cell.strip().lower() not in NOBODY] or cells
        numbers = [_number(cell) for cell in cells]
        if self._format:
            self._by_format(self._format, "as given")
            return
        if self._epoch:
            self._by_epoch(self._epoch, "as given")
            return
        self.timestamps = False
        if self._options.unit == "number" or not cells:
            return
        if all(number is not None for number in numbers):
            if not self._recognise_digits([_WHOLE.sub("", cell.strip()) for cell in cells]):
                self._recognise_numbers([number for number in numbers if number is not None])
            return
        if any(_SHORT_YEAR.fullmatch(cell) for cell in cells):
            raise InputError(
                f"{self._where} has years of two digits, such as {cells[0]!r}; write four, or say how they "
                "are read, such as --time-format %d/%m/%y or %d-%b-%y"
            )
        if self._castable(cells[0]):
            self.timestamps = True
            self._moment, self.dates = "{x}", all(_DATE.fullmatch(cell) for cell in cells)
            # What cannot be read says nothing about time zones.
            cell = f"c{self._column}"
            self.aware = (
                f"CASE WHEN TRY_CAST({cell} AS TIMESTAMPTZ) IS NOT NULL "
                f"THEN NOT regexp_full_match({cell}, '{_NAIVE}') END"
            )
            return
        if numbers[0] is not None:  # the first cell decides; the row that is none will be named
            return
        self._recognise_text(cells)

    def _recognise_digits(self, cells: list[str]) -> bool:
        """Read dates that are packed into digits; ask where they may be such dates or plain numbers."""
        different = set(cells)
        # Numbers that count up end in all digits, dates in few years.
        few_years = _EACH_YEAR * len({cell[-2:] for cell in different}) <= len(different)
        fitting = [
            style for style, least in _PACKED
            if len(different) >= least and (few_years or style[-1] not in "yY")
            and all(_packed(style).fullmatch(_padded(cell, style)) for cell in different)
        ]  # fmt: skip
        if fitting and fitting[0] in ("%Y%m%d", "%Y%m%d%H%M%S"):
            self._by_format(fitting[0], "recognised")
        elif fitting:
            ways = " or ".join(f"--time-format {style}" for style in fitting)
            raise InputError(
                f"{self._where} holds numbers such as {cells[0]}, which may be dates written "
                f"{' or '.join(map(_spelled, fitting))}: say {ways}; or --time-unit number if they are plain "
                f"numbers, --time-unit s if they count seconds since 1970"
            )
        return bool(fitting)

    def _recognise_numbers(self, numbers: list[float]) -> None:
        for unit, size in _PER_SECOND.items():
            if all(_EPOCH[0] * size <= number <= _EPOCH[1] * size for number in numbers):
                self._by_epoch(unit, "recognised")
                return

    def _recognise_text(self, cells: list[str]) -> None:
        """Try the usual ways to write a date; refuse where two of them fit every cell of the column."""
        column = f"c{self._column}"
        fitting = self._parsing(cells[:100])
        if len(fitting) > 1:
            counts = ", ".join(
                f"count(*) FILTER (try_strptime({column}, {quoted(f)}) IS NULL)" for f in fitting
            )
            query = f"SELECT {counts} FROM {self._source.scan} WHERE NOT {empty(self._column)}"
            (missed,) = run(self._connection, query, self._source).fetchall()
            fitting = [style for style, misses in zip(fitting, missed, strict=True) if not misses] or fitting[
                :1
            ]
        if self._like in fitting:
            fitting = [self._like]
        if len(fitting) > 1:
            ways = " or ".join(
                f"--time-format {quoted(style) if ' ' in style else style}" for style in fitting
            )
            raise InputError(f"{self._where} can be read in two ways, such as {cells[0]!r}: say {ways}")
        if fitting:
            self._by_format(fitting[0], "recognised")
            return
        raise InputError(
            f"{self._where} is {cells[0][:60]!r}, not a number and not a timestamp such as "
            "2024-05-01 12:30:00; say how it is written, such as --time-format %d/%m/%Y"
        )

    def _by_format(self, style: str, how: str) -> None:
        text = "{x}" if self._type == "VARCHAR" else "CAST(TRY_CAST({x} AS HUGEINT) AS VARCHAR)"
        if re.fullmatch("(%.)+", style):
            text = f"CASE WHEN len({text}) = {_width(style) - 1} THEN '0' ELSE '' END || {text}"
        self.timestamps, self._format = True, style
        self._moment, self.dates = (
            f"try_strptime({text}, {quoted(style)})",
            "%H" not in style and "%I" not in style,
        )
        self.aware = "true" if "%z" in style.lower() else "false"
        self.kind = f"times written {_spelled(style)} ({how})"
        try:
            run(self._connection, f"SELECT try_strptime('', {quoted(style)})")
        except InputError:
            raise InputError(f"{style!r} is not a time format; write it like %d/%m/%Y %H:%M") from None

    def _by_epoch(self, unit: str, how: str) -> None:
        self.timestamps, self._epoch = True, unit
        self.kind = f"{_NAMES[unit]} since 1970 ({how})"
        self.aware = "NULL::BOOLEAN"

    def _sample(self) -> list[str]:
        cell = f"CAST(c{self._column} AS VARCHAR)"
        if self._source.decimal:
            cell = f"coalesce({plain_number(self._source, cell)}, {cell})"
        query = f"SELECT {cell} FROM {self._source.scan} WHERE NOT {empty(self._column)} LIMIT {_SAMPLE}"
        return [row[0] for row in run(self._connection, query, self._source).fetchall()]

    def _castable(self, text: str) -> bool:
        given = TableSource(self._source.label, (), (), "", {"text": text})
        query = "SELECT TRY_CAST($text AS TIMESTAMPTZ) IS NOT NULL"
        return bool(run(self._connection, query, given).fetchone()[0])

    def _parsing(self, cells: list[str]) -> list[str]:
        """Return the usual ways to write a date in which every cell can be read."""
        given = TableSource(self._source.label, (), (), "", {"texts": cells})
        fits = ", ".join(f"bool_and(try_strptime(x, {quoted(style)}) IS NOT NULL)" for style in _FORMATS)
        query = f"SELECT {fits} FROM (SELECT unnest($texts) AS x)"
        (found,) = run(self._connection, query, given).fetchall()
        return [style for style, fit in zip(_FORMATS, found, strict=True) if fit]

    @property
    def style(self) -> str:
        """The format by which times are read, empty where there is none."""
        return self._format or ""

    @property
    def unit(self) -> str:
        """The epoch's unit, empty where there is none: decisions and pieces must have the same."""
        return self._epoch or ""


def quoted(text: str) -> str:
    """Return a text in quotes, for SQL."""
    return "'" + text.replace("'", "''") + "'"


def _epoch(cell: str, per_second: int) -> str:
    """Return SQL for microseconds since 1970, exact for whole numbers."""
    whole, value = f"TRY_CAST({cell} AS BIGINT)", f"TRY_CAST({cell} AS DOUBLE)"
    exact = f"{whole} * {TICKS // per_second}" if per_second <= TICKS else f"{whole} // {per_second // TICKS}"
    inexact = f"CAST(round({value} * {TICKS / per_second}) AS BIGINT)"
    return f"CASE WHEN isfinite({value}) THEN CASE WHEN {value} = {whole} THEN {exact} ELSE {inexact} END END"


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


@cache
def _packed(style: str) -> re.Pattern[str]:
    return re.compile("".join(_PARTS[part] for part in re.findall("%.", style)))


def _width(style: str) -> int:
    return sum({"%Y": 4, "%G": 4, "%j": 3, "%g": 3, "%f": 6}.get(part, 2) for part in re.findall("%.", style))


def _padded(cell: str, style: str) -> str:
    """Return digits with the zero that a number has lost, where a day or a month below 10 stands first."""
    return cell.zfill(_width(style)) if style[1] in "dm" and len(cell) == _width(style) - 1 else cell


def _spelled(style: str) -> str:
    words = {"%Y": "yyyy", "%G": "yyyy", "%y": "yy", "%m": "mm", "%d": "dd", "%j": "ddd", "%V": "ww (weeks)"}
    words |= {"%H": "HH", "%M": "MM", "%S": "SS", "%g": "mmm", "%f": "mmmmmm", "%b": "Mon", "%a": "Day"}
    for sign, word in words.items():
        style = style.replace(sign, word)
    return style
