"""Lengths of time: read from text such as ``60d``, and written with their unit."""

from __future__ import annotations

import math
import re
from datetime import timedelta

from accrual.core.errors import InputError, unknown

UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0, "y": 31_536_000.0}
"""Seconds in a unit; ``y`` is a year of 365 days. No unit is ``m``, which may be a minute or a month."""

_WORDS = {"s": "seconds", "min": "minutes", "h": "hours", "d": "days"}  # the units in which lengths are shown
DURATION = r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(s|min|h|d|w|y)\s*"  # how a length of time is written
_LEAST, _MOST = 1e-3, 1e4  # of a unit: what is shown in it


def parse_duration(
    given: str | timedelta, name: str = "window", least: float | None = None, most: float = math.inf
) -> float:
    """Read a length of time as seconds.

    Parameters
    ----------
    given : str or timedelta
        A number and a unit: s, min, h, d, w or y (365 days).
    name : str
        The name that errors use for it.
    least : float, optional
        The shortest that is accepted, in seconds; anything above 0 unless given.
    most : float, optional
        The longest that is accepted, in seconds.

    Examples
    --------
    >>> parse_duration("36h"), parse_duration("1.5d"), parse_duration("2w"), parse_duration("1y")
    (129600.0, 129600.0, 1209600.0, 31536000.0)
    """
    shown = str(given) if isinstance(given, timedelta) else repr(given)
    if isinstance(given, timedelta):
        seconds = given.total_seconds()
    else:
        found = re.fullmatch(DURATION, given)
        seconds = float(found[1]) * UNITS[found[2]] if found else math.nan
    if not (math.isfinite(seconds) and (seconds > 0.0 if least is None else seconds >= least)):
        raise InputError(
            f"{name} must be a time such as 60d, 12h or 30min (units: s, min, h, d, w, y), not {shown}"
        )
    if seconds > most:
        raise InputError(f"{name} must be at most {exact_duration(most)}, not {shown}")
    return seconds


def parse_length(given: float | str | timedelta, timestamps: bool, name: str = "window") -> float:
    """Read a length in a log's unit of time: seconds where it has timestamps, else its own numbers.

    Examples
    --------
    >>> parse_length("36h", timestamps=True)
    129600.0
    >>> parse_length(50, timestamps=False)
    50.0
    """
    bad = f"{name} must be a positive number, or with timestamps such as 30d or 12h; not {str(given)!r}"
    text = given if isinstance(given, timedelta) else str(given).strip()
    try:
        value = math.nan if isinstance(text, timedelta) else float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value) and text != "nan":
        try:
            value = parse_duration(text)
        except InputError:
            raise InputError(bad) from None
        if not timestamps:
            raise InputError(
                f"{name} {text!r} has a unit, but the log's times are plain numbers: give a number"
            )
    if not 0.0 < value < math.inf:
        raise InputError(bad)
    return value


def unit_seconds(unit: str) -> float:
    """Return the seconds in a unit by its name, such as ``"d"``.

    Examples
    --------
    >>> unit_seconds("w")
    604800.0
    """
    if unit not in UNITS:
        raise unknown("unit of age", unit, UNITS)
    return UNITS[unit]


def suiting(seconds: float) -> tuple[float, str, str]:
    """Return the unit in which people read a length of time: its seconds, its sign and its name.

    Examples
    --------
    >>> suiting(46.0), suiting(3 * 86400.0)
    ((1.0, 's', 'seconds'), (86400.0, 'd', 'days'))
    """
    unit = next((x for x in ("d", "h", "min") if seconds >= 2.0 * UNITS[x] or seconds == UNITS[x]), "s")
    return UNITS[unit], unit, _WORDS[unit]


def exact_duration(seconds: float) -> str:
    """Write a length of time so that `parse_duration` reads the same length back.

    Examples
    --------
    >>> exact_duration(43200.0), exact_duration(80.0)
    ('12h', '80s')
    """
    unit = next((each for each in ("w", "d", "h", "min") if seconds % UNITS[each] == 0), "s")
    return f"{seconds / UNITS[unit]:.15g}{unit}"


def show_duration(seconds: float, like: float | None = None) -> str:
    """Write a length of time in the unit that suits it, or in the unit that suits the length `like`.

    What would be very small or very large in the unit of `like` is written in its own.

    Examples
    --------
    >>> show_duration(46.05), show_duration(7200.0, like=86400.0 * 30), show_duration(60.0, like=86400.0 * 30)
    ('46.05 s', '0.08333 d', '1 min')
    """
    scale, unit, _ = suiting(seconds if like is None else like)
    if seconds and not _LEAST <= seconds / scale < _MOST:
        scale, unit, _ = suiting(seconds)
    return f"{seconds / scale:.4g} {unit}"


def show_length(value: float, timestamps: bool, like: float | None = None) -> str:
    """Write a length in a log's unit of time; without timestamps it counts the log's own units.

    Examples
    --------
    >>> show_length(3600.0, timestamps=True), show_length(50.0, timestamps=False)
    ('1 h', '50 units')
    """
    return show_duration(value, like) if timestamps else f"{value:.4g} units"
