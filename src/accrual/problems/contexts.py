"""Problems with contexts: which arm is best depends on the context, and arms pay in pieces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from accrual.core.arrays import Floats
from accrual.core.errors import InputError, unknown, whole
from accrual.problems.problem import Problem

Link = Literal["linear", "logistic"]
Pay = Literal["pieces", "once"]
LINKS: tuple[Link, ...] = ("linear", "logistic")
PAYS: tuple[Pay, ...] = ("pieces", "once")
WINDOW_MOST, ARMS_MOST, WIDTH_MOST = 1_000_000, 1_000, 101
PIECE, PIECES_MOST = 0.1, 64  # the size of a piece, and how many a decision pays at most


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


@dataclass(frozen=True)
class ContextualProblem:
    """Arms whose decisions pay in pieces over a window, depending on the decision's context.

    A context x begins with the constant 1. The mean total of arm a is x · effects[a], at least 0, or for a
    logistic link 1 / (1 + exp(-x · effects[a])). A piece's age is window · u ** exp(-x · speeds[a]) for a
    uniform u: a speed of 0 is an even spread, a negative one an early spread.

    Parameters
    ----------
    contexts : Contexts
    effects : array of float, arms x width
    window : int
        The number of rounds over which a decision pays, its own round included.
    speeds : array of float, arms x width, optional
        Unless given, all are 0: the same even spread for all.
    link : {"linear", "logistic"}
    pay : {"pieces", "once"}
        "pieces": a Poisson number of pieces of 0.1, at a pace that is uniform from 0 to 2 for each decision.
        "once": one piece of 1, with the mean as its chance.
    arms : sequence of str, optional
        Names of the arms.

    Examples
    --------
    >>> problem = ContextualProblem(Contexts(flags=[0.5]), effects=[[0.5, 0.4], [0.6, 0.0]], window=20)
    >>> problem.means([[1, 0], [1, 1]])
    array([[0.5, 0.6],
           [0.9, 0.6]])
    """

    contexts: Contexts
    effects: npt.ArrayLike
    window: int
    speeds: npt.ArrayLike | None = None
    link: Link = "linear"
    pay: Pay = "pieces"
    arms: Sequence[str] = field(default=())

    def __post_init__(self) -> None:
        effects = _table("effects", self.effects, self.contexts.width)
        if not 1 <= len(effects) <= ARMS_MOST:
            raise InputError(f"a problem with contexts needs 1 to {ARMS_MOST} arms, not {len(effects)}")
        given = np.zeros_like(effects) if self.speeds is None else self.speeds
        speeds = _table("speeds", given, self.contexts.width)
        if speeds.shape != effects.shape:
            raise InputError(f"{len(effects)} arms need {len(effects)} rows of speeds, not {len(speeds)}")
        if self.link not in LINKS:
            raise unknown("link", self.link, LINKS)
        if self.pay not in PAYS:
            raise unknown("pay", self.pay, PAYS)
        arms = tuple(self.arms) or tuple(str(arm) for arm in range(len(effects)))
        if len(arms) != len(effects) or len(set(arms)) != len(arms):
            raise InputError(f"{len(effects)} arms need {len(effects)} different names, not {list(arms)}")
        fields = {"effects": effects, "speeds": speeds, "arms": arms}
        fields["window"] = whole("window", self.window, 1, WINDOW_MOST)
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def caps(self) -> tuple[float, ...]:
        """The most that one decision can pay, for each arm."""
        return (PIECE * PIECES_MOST if self.pay == "pieces" else 1.0,) * len(np.asarray(self.effects))

    def means(self, x: npt.ArrayLike) -> Floats:
        """Return the true mean total of each arm in contexts `x`, contexts x arms."""
        value = np.asarray(x, np.float64) @ np.asarray(self.effects, np.float64).T
        if self.link == "logistic":
            return np.asarray(1.0 / (1.0 + np.exp(-value)))
        return np.asarray(np.maximum(value, 0.0) if self.pay == "pieces" else np.clip(value, 0.0, 1.0))


AnyProblem = Problem | ContextualProblem
"""A problem with or without contexts."""


def _table(name: str, given: npt.ArrayLike, width: int) -> Floats:
    try:
        table = np.array(given, np.float64)
    except (TypeError, ValueError):
        table = np.zeros(0)
    if table.ndim != 2 or table.shape[1] != width or not np.isfinite(table).all():
        raise InputError(f"{name} must be one row of {width} finite numbers for each arm")
    table.flags.writeable = False
    return table
