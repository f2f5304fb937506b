"""A problem: arms with caps, what each group of a decision pays, and the window.

A `Problem` checks everything when it is made, so engines need no checks of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from accrual.core.arrays import Floats
from accrual.core.errors import InputError, divides, unknown, whole
from accrual.problems.laws import Law, UniformLaw

Division = Literal["even", "first"]
DIVISIONS: tuple[Division, ...] = ("even", "first")

WINDOW_MOST = 10_000_000
ARMS_MOST = 65_535
_ARMS_SHOWN = 20  # in a notebook


@dataclass(frozen=True, repr=False)
class Problem:
    """Arms whose decisions pay in pieces over a window.

    Parameters
    ----------
    caps : sequence of float
        The greatest total reward of one decision, for each arm.
    window : int
        The number of rounds over which a decision pays, its own round included.
    groups : int
        Number of equal parts of the window; must divide it.
    laws : Law or sequence of Law
        What the groups pay: one law for all arms, or one for each.
    division : {"even", "first"}
        Within a group: the same in each of its rounds, or all in its first.
    arms : sequence of str, optional
        Names of the arms.

    Examples
    --------
    >>> problem = Problem(caps=[10, 20], window=6, groups=3)
    >>> problem.means
    array([ 5., 10.])
    >>> problem.regret([30, 70])
    150.0
    >>> problem
    Problem(2 arms, window 6 in 3 groups, means 5 to 10)
    """

    caps: Sequence[float]
    window: int
    groups: int
    laws: Law | Sequence[Law] = field(default_factory=UniformLaw)
    division: Division = "even"
    arms: Sequence[str] = ()

    def __post_init__(self) -> None:
        caps = _numbers(self.caps)
        if not 1 <= len(caps) <= ARMS_MOST:
            raise InputError(f"a problem needs 1 to {ARMS_MOST} arms, not {len(caps)}")
        for arm, cap in enumerate(caps):
            if not (np.isfinite(cap) and cap > 0):
                raise InputError(f"caps must be positive numbers; arm {arm} has {cap:g}")
        window = whole("window", self.window, 1, WINDOW_MOST)
        groups = whole("groups", self.groups, 1, WINDOW_MOST)
        divides("groups", groups, window)
        if self.division not in DIVISIONS:
            raise unknown("division", self.division, DIVISIONS)
        laws: tuple[Any, ...] = (self.laws,)
        if isinstance(self.laws, Iterable) and not isinstance(self.laws, str):
            laws = tuple(self.laws)
        elif isinstance(self.laws, Law):
            laws *= len(caps)
        for law in laws:
            if not isinstance(law, Law):
                raise InputError(f"laws must be reward laws such as BernoulliLaw(0.2), not {law!r}")
        if len(laws) != len(caps):
            raise InputError(f"{len(caps)} arms need {len(caps)} laws (or one for all), not {len(laws)}")
        arms = _names(self.arms) or tuple(str(arm) for arm in range(len(caps)))
        if len(arms) != len(caps) or len(set(arms)) != len(arms):
            raise InputError(f"{len(caps)} arms need {len(caps)} different names, not {list(arms)}")
        fields = {"caps": caps, "window": window, "groups": groups, "laws": laws, "arms": arms}
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        _ = self.group_means  # the laws check their settings

    def __repr__(self) -> str:
        low, high, arms = self.means.min(), self.means.max(), len(self.caps)
        means = f"means {low:.4g} to {high:.4g}" if low < high else f"mean {low:.4g}"
        count, parts = f"{arms:,} arm{'s'[: arms != 1]}", f"{self.groups:,} group{'s'[: self.groups != 1]}"
        return f"Problem({count}, window {self.window:,} in {parts}, {means})"

    def _repr_html_(self) -> str:
        """Return a table of the arms, the best first, for notebooks."""
        best = sorted(range(len(self.caps)), key=lambda arm: -self.means[arm])
        cells = [
            (self.arms[arm], f"{self.caps[arm]:.4g}", f"{self.means[arm]:.4g}", repr(self.arm_laws[arm]))
            for arm in best[:_ARMS_SHOWN]
        ]
        rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in cells)
        left = len(best) - len(cells)
        more = f'<tr><td colspan="4">and {left:,} more</td></tr>' if left else ""
        head = "<th>arm</th><th>cap</th><th>mean</th><th>law</th>"
        return (
            f"<table><caption>{escape(repr(self))}</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{rows}{more}</tbody></table>"
        )

    @property
    def arm_laws(self) -> tuple[Law, ...]:
        """The law of each arm."""
        assert not isinstance(self.laws, Law)
        return tuple(self.laws)

    @cached_property
    def group_means(self) -> Floats:
        """Expected pay, arms x groups."""
        shares = {id(law): law.means(self.groups) for law in self.arm_laws}
        return np.array([cap * shares[id(law)] for cap, law in zip(self.caps, self.arm_laws, strict=True)])

    @cached_property
    def means(self) -> Floats:
        """The true mean total of each arm."""
        return np.asarray(self.group_means.sum(axis=1))

    @cached_property
    def gaps(self) -> Floats:
        """How much each arm's mean falls short of the best arm's."""
        return np.asarray(self.means.max() - self.means)

    def regret(self, pulls: npt.ArrayLike) -> float:
        """Return the regret of `pulls[i]` decisions of each arm i, in true means."""
        try:
            counts = np.asarray(pulls, dtype=np.float64)
        except (TypeError, ValueError):
            counts = np.zeros(0)
        if counts.shape != self.gaps.shape:
            raise InputError(f"pulls must be {len(self.caps)} numbers, one for each arm, not {pulls!r}")
        return float(counts @ self.gaps)


@dataclass(frozen=True)
class ChangingProblem:
    """Problems that follow one another: from given rounds on, the same arms pay something else.

    A decision pays as the problem of its own round says. Regret compares with the arm that is best in the
    decision's own round.

    Parameters
    ----------
    problems : sequence of Problem
        With the same caps, window, groups, division and arms.
    changes : sequence of int
        The rounds, rising, at which the second problem begins, and the third, ...

    Examples
    --------
    >>> from accrual.problems.laws import BernoulliLaw
    >>> before, after = [Problem([1, 1], 6, 3, [BernoulliLaw(p), BernoulliLaw(0.5)]) for p in (0.6, 0.4)]
    >>> ChangingProblem([before, after], changes=[1001]).caps
    (1.0, 1.0)
    """

    problems: Sequence[Problem]
    changes: Sequence[int]

    def __post_init__(self) -> None:
        if not self.problems or not all(isinstance(problem, Problem) for problem in self.problems):
            raise InputError(f"problems must be a list of Problem, not {self.problems!r}")
        object.__setattr__(self, "problems", tuple(self.problems))
        for name in ("caps", "window", "groups", "division", "arms"):
            if any(getattr(problem, name) != getattr(self.problems[0], name) for problem in self.problems):
                raise InputError(f"problems that follow one another must have the same {name}")
        changes = tuple(whole("a change's round", change, 2) for change in self.changes)
        if len(changes) != len(self.problems) - 1 or sorted(set(changes)) != list(changes):
            raise InputError(
                f"{len(self.problems)} problems need {len(self.problems) - 1} rounds of change, each after "
                f"the one before, not {self.changes!r}"
            )
        object.__setattr__(self, "changes", changes)

    @property
    def caps(self) -> Sequence[float]:
        """The caps of the arms."""
        return self.problems[0].caps

    @property
    def window(self) -> int:
        """The window of all decisions."""
        return self.problems[0].window

    @property
    def arms(self) -> Sequence[str]:
        """The names of the arms."""
        return self.problems[0].arms


def _numbers(caps: Any) -> tuple[float, ...]:
    """Check that caps are a list of numbers."""
    wrong = InputError(f"caps must be a list of numbers, one for each arm, such as [1.0, 1.0], not {caps!r}")
    if isinstance(caps, str | Mapping):
        raise wrong
    try:
        given = tuple(caps)
        numbers = tuple(map(float, given))
    except (TypeError, ValueError):
        raise wrong from None
    if any(isinstance(cap, str) for cap in given):
        raise wrong
    return numbers


def _names(arms: Any) -> tuple[str, ...]:
    """Check that names of arms are a list of text."""
    try:
        names = () if isinstance(arms, str) else tuple(arms)
    except TypeError:
        names = (arms,)
    if isinstance(arms, str) or not all(isinstance(name, str) for name in names):
        raise InputError(f"arms must be a list of names, such as ['jazz', 'rock'], not {arms!r}")
    return names
