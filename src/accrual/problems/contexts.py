"""Contexts, and the laws of a problem with contexts: which arm is best depends on the context."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from accrual.core.arrays import Floats, as_numbers
from accrual.core.basis import FeatureNumbers, Layout, layout_of, levels
from accrual.core.errors import InputError, unknown, whole

Pay = Literal["pieces", "once"]
PAYS: tuple[Pay, ...] = ("pieces", "once")
# The most of a problem with contexts.
WINDOW_MOST, ARMS_MOST, WIDTH_MOST = 1_000_000, 1_000, 101
PIECES_MOST = 64  # of one decision


@dataclass(frozen=True)
class Contexts:
    """How contexts are drawn; features are independent of each other.

    Parameters
    ----------
    numbers : int
        Features that are uniform with mean 0 and variance 1.
    flags : sequence of float
        Features that are 1 with this chance, else 0.
    levels : sequence of sequence of float
        Features with levels: the chance of each level. In a context each level is one number, 1 or 0.

    Examples
    --------
    >>> Contexts(numbers=2, flags=[0.5], levels=[[0.7, 0.3]]).width
    6
    """

    numbers: int = 0
    flags: Sequence[float] = ()
    levels: Sequence[Sequence[float]] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "numbers", whole("numbers", self.numbers, 0, WIDTH_MOST - 1))
        object.__setattr__(self, "flags", tuple(map(float, self.flags)))
        object.__setattr__(self, "levels", tuple(tuple(map(float, chances)) for chances in self.levels))
        if not all(0.0 <= chance <= 1.0 for chance in self.flags):
            raise InputError(f"flags must be chances from 0 to 1, not {list(self.flags)}")
        for chances in self.levels:
            if not chances or min(chances) < 0.0 or abs(sum(chances) - 1.0) > 1e-9:
                raise InputError(f"the chances of a feature's levels must add up to 1, not {list(chances)}")
        if self.width > WIDTH_MOST:
            raise InputError(f"a context may have {WIDTH_MOST - 1} numbers and a constant, not {self.width}")

    @property
    def width(self) -> int:
        """How many numbers a context has, including the constant 1 at its beginning."""
        return 1 + self.numbers + len(self.flags) + sum(map(len, self.levels))

    @property
    def layout(self) -> Layout:
        """What the numbers of a context stand for."""
        number = FeatureNumbers(1, 0.0, math.sqrt(3.0), bends=True)  # a uniform of variance 1
        listed = [levels(len(chances)) for chances in self.levels]
        return layout_of([number] * self.numbers + [FeatureNumbers()] * len(self.flags) + listed)


@dataclass(frozen=True)
class ContextLaw:
    """What the decisions of an arm pay, depending on their contexts: see `LinearLaw` and `LogisticLaw`."""

    effects: Sequence[float]
    speeds: Sequence[float] = ()
    pay: Pay = "pieces"
    logistic: ClassVar[bool]

    def __post_init__(self) -> None:
        effects = _row("effects", self.effects)
        object.__setattr__(self, "effects", effects)
        object.__setattr__(self, "speeds", _row("speeds", self.speeds) or (0.0,) * len(effects))
        if self.pay not in PAYS:
            raise unknown("pay", self.pay, PAYS)

    def check(self, width: int) -> None:
        """Raise an `InputError` unless the law is for contexts of `width` numbers."""
        for name, row in (("effects", self.effects), ("speeds", self.speeds)):
            if len(row) != width:
                raise InputError(f"{name} must be {width} numbers for each arm, as many as a context has")

    def means(self, x: npt.ArrayLike, cap: float) -> Floats:
        """Return the mean total in each of the contexts `x`, for an arm with this cap."""
        value = np.asarray(x, np.float64) @ np.array(self.effects)
        if self.logistic:
            return np.asarray(1.0 / (1.0 + np.exp(-value)))
        return np.asarray(np.clip(value, 0.0, cap if self.pay == "once" else None))


@dataclass(frozen=True)
class LinearLaw(ContextLaw):
    """An arm whose mean total is linear in the context.

    A context x begins with the constant 1. The mean total is x · effects, at least 0. A piece's age is
    window · u ** exp(-x · speeds) for a uniform u: a speed of 0 is an even spread, a negative one an early
    spread.

    Parameters
    ----------
    effects : sequence of float
        One for each number of a context.
    speeds : sequence of float
        One for each number of a context. Unless given, all are 0: an even spread in every context.
    pay : {"pieces", "once"}
        "pieces": a Poisson number of pieces, at most 64, each a 64th of the cap, at a pace that is uniform
        from 0 to 2 for each decision. "once": one piece as large as the cap, or nothing.

    Examples
    --------
    >>> LinearLaw([0.5, 0.4]).means([[1, 0], [1, 1]], cap=6.4)
    array([0.5, 0.9])
    """

    logistic: ClassVar[bool] = False


@dataclass(frozen=True)
class LogisticLaw(ContextLaw):
    """An arm whose mean total is 1 / (1 + exp(-x · effects)) in context x, and otherwise like `LinearLaw`.

    Parameters
    ----------
    effects : sequence of float
        One for each number of a context, in logits.
    speeds : sequence of float
    pay : {"pieces", "once"}

    Examples
    --------
    >>> LogisticLaw([0.0, 2.0], pay="once").means([[1, 0]], cap=1.0)
    array([0.5])
    """

    logistic: ClassVar[bool] = True


CONTEXT_LAWS: dict[str, type[ContextLaw]] = {"linear": LinearLaw, "logistic": LogisticLaw}
"""Laws of problems with contexts, by the names that they have in TOML files."""


def _row(name: str, given: Sequence[float]) -> tuple[float, ...]:
    row = as_numbers(given)
    if row.ndim != 1 or not np.isfinite(row).all():
        raise InputError(f"{name} must be a list of finite numbers, not {given!r}")
    return tuple(row.tolist())
