"""Features: what a context may hold, how a context is stored, and the numbers that a policy gets.

A feature is one of a few levels (a list of text), yes or no (`bool` or "bool"), or a number within a range
(a pair). What JSON can write means the same here as over HTTP.
A stored context is one number per feature: the level's place in the list, 0 or 1, or the number itself. What
the policy gets follows from the stored numbers alone, so that a log can be read again at any time:

=====================  =============================  ================================================
given                  stored                         the policy gets
=====================  =============================  ================================================
a level                its place in the list          1 for this level, 0 for the others
another text           -1; counted as unknown         0 for every level
True or False          1 or 0                         1 or 0
a number               the number                     0 at the low end of the range, 1 at the high end
one beyond the range   the number; counted            the nearest end of the range
nothing, None, NaN     NaN; counted as missing        0 for every level; the middle of a range; 0.5
=====================  =============================  ================================================

Anything else is refused: a feature that was not declared, a value of another type, an infinite number.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from accrual.core.arrays import Floats, Ints
from accrual.core.basis import FeatureNumbers, Layout, layout_of, levels
from accrual.core.errors import InputError, unknown
from accrual.core.jit import kernel, njit

FEATURES_MOST, LEVELS_MOST, WIDTH_MOST, TEXT_MOST = 50, 100, 101, 200
VALUE_MOST = 1e50
UNKNOWN, MISSING, BEYOND = range(3)  # what is counted for each feature
ODDITIES = ("unknown", "missing", "out of range")
CONSTANT = "always"
FeatureValue = str | bool | float | None  # None: not known


class Encoding(NamedTuple):
    """How compiled code turns a stored context into what a policy gets: arrays with an entry per feature."""

    first: Ints  # the place of its first number in what the policy gets
    levels: Ints  # how many levels it has; 0 for a number, and for yes or no
    low: Floats
    scale: Floats


class Features:
    """Declared features, checked.

    Parameters
    ----------
    declared : mapping of str to list of str, `bool` or "bool", or pair of numbers

    Examples
    --------
    >>> features = Features({"country": ["de", "us"], "new": bool, "visits": (0, 50)})
    >>> features.columns
    ('always', 'country=de', 'country=us', 'new', 'visits')
    >>> features.stored({"country": "us", "new": True, "visits": 3})
    (1.0, 1.0, 3.0)
    >>> features.seen((1.0, 1.0, 3.0))
    array([1.  , 0.  , 1.  , 1.  , 0.06])
    """

    def __init__(self, declared: Mapping[str, Any]) -> None:
        if not isinstance(declared, Mapping):
            raise InputError(f"features must be names with their kinds, not {declared!r}; {_HINT}")
        if len(declared) > FEATURES_MOST:
            raise InputError(f"at most {FEATURES_MOST} features may be declared, not {len(declared)}")
        self.kinds = {_name(name): _kind(name, kind) for name, kind in declared.items()}
        self._places = {
            name: {level: float(place) for place, level in enumerate(kind)}
            for name, kind in self.kinds.items()
            if isinstance(kind, list)
        }
        self.columns: tuple[str, ...] = (CONSTANT, *self._columns())
        """The names of the numbers that a policy gets."""
        if self.width > WIDTH_MOST:
            raise InputError(
                f"levels and other features make {self.width - 1}, more than {WIDTH_MOST - 1}; leave out the "
                "rarest levels, which then count as unknown, or a feature"
            )
        counts = [len(kind) if isinstance(kind, list) else 1 for kind in self.kinds.values()]
        ranges = [kind if isinstance(kind, tuple) else (0.0, 1.0) for kind in self.kinds.values()]
        self.encoding = Encoding(
            np.cumsum([1, *counts[:-1]]) if counts else np.zeros(0, np.int64),
            np.array([len(k) if isinstance(k, list) else 0 for k in self.kinds.values()], np.int64),
            np.array([low for low, _ in ranges], np.float64),
            np.array([1.0 / (high - low) for low, high in ranges], np.float64),
        )

    def _columns(self) -> list[str]:
        return [
            column
            for name, kind in self.kinds.items()
            for column in ([f"{name}={level}" for level in kind] if isinstance(kind, list) else [name])
        ]

    @property
    def layout(self) -> Layout:
        """What the numbers stand for that a policy gets."""
        return layout_of(
            [
                levels(len(kind)) if isinstance(kind, list) else FeatureNumbers(bends=kind is not bool)
                for kind in self.kinds.values()
            ]
        )

    def __len__(self) -> int:
        return len(self.kinds)

    @property
    def width(self) -> int:
        """How many numbers a policy gets for a context, including the constant."""
        return len(self.columns)

    def written(self) -> dict[str, Any]:
        """Return these features as they are declared in JSON.

        Examples
        --------
        >>> Features({"new": bool, "visits": (0, 50)}).written()
        {'new': 'bool', 'visits': [0.0, 50.0]}
        """
        return {name: "bool" if kind is bool else list(kind) for name, kind in self.kinds.items()}

    def stored(self, context: Mapping[str, Any] | None) -> tuple[float, ...]:
        """Return the stored form of a context; refuse an invalid one."""
        if context is None:
            context = {}
        if not isinstance(context, Mapping):
            raise InputError(f"a context must be features with their values, not {context!r}")
        numbers = tuple([self._number(name, kind, context.get(name)) for name, kind in self.kinds.items()])
        if not context.keys() <= self.kinds.keys():
            odd = next(name for name in context if name not in self.kinds)
            raise unknown("feature", str(odd), self.kinds)
        return numbers

    def _number(self, name: str, kind: Any, value: Any) -> float:
        given = type(value)  # the usual types first: this runs for every feature of every decision
        if given is str and name in self._places:
            return self._places[name].get(value, -1.0)
        if kind is bool and (given is bool or given is np.bool_):
            return 1.0 if value else 0.0
        if (given is float or given is int) and type(kind) is tuple and -VALUE_MOST <= value <= VALUE_MOST:
            return float(value) + 0.0  # 0.0 for -0.0: they are one number
        if value is None or (isinstance(value, float | np.floating) and math.isnan(value)):
            return math.nan
        if kind is bool:
            raise InputError(f"the feature {name!r} must be True or False, not {value!r}")
        if isinstance(kind, tuple):
            if not isinstance(value, int | float | np.integer | np.floating) or isinstance(value, bool):
                raise InputError(f"the feature {name!r} must be a number, not {value!r}")
            if -VALUE_MOST <= value <= VALUE_MOST:
                return float(value) + 0.0
            raise InputError(
                f"the feature {name!r} must be a number of at most {VALUE_MOST:g} in size, not {value!r}"
            )
        if not isinstance(value, str):
            raise InputError(f"the feature {name!r} must be text, one of its levels, not {value!r}")
        return self._places[name].get(value, -1.0)

    def read_back(self, stored: Sequence[float]) -> dict[str, Any]:
        """Return a stored context as it was given, with None for a missing value or an unknown level."""
        back: dict[str, Any] = {}
        for (name, kind), number in zip(self.kinds.items(), stored, strict=True):
            if math.isnan(number) or (isinstance(kind, list) and not 0 <= number < len(kind)):
                back[name] = None
            elif isinstance(kind, list):
                back[name] = kind[int(number)]
            else:
                back[name] = bool(number) if kind is bool else float(number)
        return back

    def read_back_bytes(self, stored: bytes) -> dict[str, Any]:
        """Do what `read_back` does for a context as a store keeps it: 8 bytes per number, little-endian."""
        return self.read_back(struct.unpack(f"<{len(self)}d", stored))

    def seen(self, stored: Sequence[float] | Floats) -> Floats:
        """Return the numbers that a policy gets for a stored context."""
        x = np.zeros(self.width)
        encode(self.encoding, np.array(stored, np.float64), x)
        return x


_HINT = "for example {'country': ['de', 'us'], 'new': 'bool', 'visits': [0, 50]}"


def _name(name: Any) -> str:
    if isinstance(name, str) and 0 < len(name) <= TEXT_MOST and "\0" not in name:
        try:
            name.encode()  # fails for half a character (a lone surrogate), which no database takes
            return name
        except UnicodeEncodeError:
            pass
    raise InputError(f"the name of a feature must be text of 1 to {TEXT_MOST} characters, not {name!r}")


def _kind(name: str, kind: Any) -> Any:
    """Check what a feature may be; return a list of text, `bool`, or a pair of numbers."""
    if kind is bool or (isinstance(kind, str) and kind == "bool"):
        return bool
    if isinstance(kind, list | tuple) and len(kind) == 2 and not any(isinstance(end, str) for end in kind):
        try:
            low, high = float(kind[0]), float(kind[1])
        except (TypeError, ValueError):
            low = high = 0.0
        if -VALUE_MOST <= low < high <= VALUE_MOST and high - low >= 1.0 / VALUE_MOST:
            return (low, high)
        raise InputError(f"the range of the feature {name!r} must be two rising numbers, not {kind!r}")
    if isinstance(kind, list | tuple) and all(isinstance(level, str) for level in kind):
        if not 1 <= len(kind) <= LEVELS_MOST or len(set(kind)) < len(kind):
            raise InputError(f"the feature {name!r} must have 1 to {LEVELS_MOST} different levels")
        return [_name(level) for level in kind]
    raise InputError(f"the feature {name!r} must be levels, bool or a range, not {kind!r}; {_HINT}")


@njit
def encode(encoding: Encoding, stored: Floats, x: Floats) -> None:
    """Write into `x` the numbers that a policy gets for a stored context."""
    x[0] = 1.0
    for f in range(len(encoding.first)):
        place, count, value = encoding.first[f], encoding.levels[f], stored[f]
        if count > 0:
            for j in range(count):
                x[place + j] = 0.0
            if 0.0 <= value < count:  # other places only occur in a damaged database
                x[place + int(value)] = 1.0
        elif math.isnan(value):
            x[place] = 0.5
        else:
            x[place] = min(max((value - encoding.low[f]) * encoding.scale[f], 0.0), 1.0)


@kernel
def encode_all(encoding: Encoding, stored: Floats, encoded: Floats) -> None:
    """Write into `encoded` the numbers that a policy gets for stored contexts, a row for each."""
    for i in range(len(stored)):
        encode(encoding, stored[i], encoded[i])


@njit
def count_oddities(encoding: Encoding, stored: Floats, counts: Ints) -> None:
    """Count what is unknown, missing or out of range in a stored context: `counts` is features x 3."""
    for f in range(len(encoding.first)):
        value = stored[f]
        if math.isnan(value):
            counts[f, MISSING] += 1
        elif encoding.levels[f] > 0:
            if value < 0.0:
                counts[f, UNKNOWN] += 1
        else:
            share = (value - encoding.low[f]) * encoding.scale[f]
            if not 0.0 <= share <= 1.0:
                counts[f, BEYOND] += 1
