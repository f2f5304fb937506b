"""A problem: arms with caps, what the decisions of each pay, and the window.

A `Problem` checks everything when it is made, so engines need no checks of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from accrual.core.arrays import Floats, as_numbers
from accrual.core.errors import InputError, divides, unknown, whole
from accrual.problems import contexts as with_contexts
from accrual.problems.contexts import ContextLaw, Contexts
from accrual.problems.laws import Law, UniformLaw

Division = Literal["even", "first"]
DIVISIONS: tuple[Division, ...] = ("even", "first")

WINDOW_MOST = 10_000_000
ARMS_MOST = 65_535
_ARMS_SHOWN = 20  # in a notebook

AnyLaw = Law | ContextLaw
Changes = Mapping[int, AnyLaw | Sequence[AnyLaw]] | Sequence[tuple[int, Sequence[AnyLaw]]]


@dataclass(frozen=True, repr=False)
class Problem:
    """Arms whose decisions pay in pieces over a window.

    Parameters
    ----------
    caps : sequence of float
        The greatest total reward of one decision, for each arm.
    window : int
        The number of rounds over which a decision pays, its own round included.
    groups : int, optional
        Number of equal parts of the window; must divide it. Unless given, each round is a group.
    laws : Law or sequence of Law
        What the groups pay: one law for all arms, or one for each. With contexts, each is a `LinearLaw` or a
        `LogisticLaw`.
    division : {"even", "first"}
        Within a group: the same in each of its rounds, or all in its first.
    arms : sequence of str, optional
        Names of the arms.
    contexts : Contexts, optional
        How the context of each decision is drawn.
    changes : dict of int to laws, optional
        For each round at which the laws change: the laws of decisions from that round on. Regret compares
        with the arm that is best in the decision's own round.

    Examples
    --------
    >>> from accrual import BernoulliLaw, LinearLaw
    >>> problem = Problem(caps=[10, 20], window=6, groups=3)
    >>> problem.means
    array([ 5., 10.])
    >>> problem.regret([30, 70])
    150.0
    >>> problem
    Problem(2 arms, window 6 in 3 groups, means 5 to 10)

    Whom a decision is for decides which of two arms is better:

    >>> laws = [LinearLaw([0.5, 0.4]), LinearLaw([0.6, 0.0])]
    >>> problem = Problem([6.4, 6.4], window=20, laws=laws, contexts=Contexts(flags=[0.5]))
    >>> problem.means_in([[1, 0], [1, 1]])
    array([[0.5, 0.6],
           [0.9, 0.6]])

    From round 1,001 on the first arm pays less:

    >>> laws, later = [[BernoulliLaw(p), BernoulliLaw(0.5)] for p in (0.6, 0.4)]
    >>> Problem([1, 1], 6, 3, laws, changes={1001: later})
    Problem(2 arms, window 6 in 3 groups, laws that change in round 1,001)
    """

    caps: Sequence[float]
    window: int
    groups: int = cast(int, None)
    laws: AnyLaw | Sequence[AnyLaw] = field(default_factory=UniformLaw)
    division: Division = "even"
    arms: Sequence[str] = ()
    contexts: Contexts | None = None
    changes: Changes = ()

    def __post_init__(self) -> None:
        caps = _numbers(self.caps)
        if not 1 <= len(caps) <= ARMS_MOST:
            raise InputError(f"a problem needs 1 to {ARMS_MOST} arms, not {len(caps)}")
        for arm, cap in enumerate(caps):
            if not (np.isfinite(cap) and cap > 0):
                raise InputError(f"caps must be positive numbers; arm {arm} has {cap:g}")
        window = whole("window", self.window, 1, WINDOW_MOST)
        groups = whole("groups", window if self.groups is None else self.groups, 1, WINDOW_MOST)
        divides("groups", groups, window)
        if self.division not in DIVISIONS:
            raise unknown("division", self.division, DIVISIONS)
        arms = _names(self.arms) or tuple(str(arm) for arm in range(len(caps)))
        if len(arms) != len(caps) or len(set(arms)) != len(arms):
            raise InputError(f"{len(caps)} arms need {len(caps)} different names, not {list(arms)}")
        fields = {"caps": caps, "window": window, "groups": groups, "arms": arms}
        fields["laws"] = self._checked_laws(self.laws, len(caps))
        try:
            later = dict(self.changes)
        except (TypeError, ValueError):
            raise InputError(f"changes must be a dict of rounds to laws, not {self.changes!r}") from None
        changes = {whole("a change's round", at, 2): laws for at, laws in later.items()}
        fields["changes"] = tuple((at, self._checked_laws(changes[at], len(caps))) for at in sorted(changes))
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        if self.contexts is not None:
            self._check_contexts(self.contexts)
        else:
            for _, phase in self.phases:
                _ = phase.group_means  # the laws check their settings

    def _checked_laws(self, given: Any, arms: int) -> tuple[AnyLaw, ...]:
        kind: type[AnyLaw] = Law
        usual = "laws must be reward laws such as BernoulliLaw(0.2)"
        if self.contexts is not None:
            kind, usual = ContextLaw, "with contexts, laws must be such as LinearLaw([0.2, 0.1])"
        laws: tuple[Any, ...] = (given,)
        if isinstance(given, Iterable) and not isinstance(given, str):
            laws = tuple(given)
        elif isinstance(given, kind):
            laws *= arms
        for law in laws:
            if not isinstance(law, kind):
                raise InputError(f"{usual}, not {law!r}")
        if len(laws) != arms:
            raise InputError(f"{arms} arms need {arms} laws (or one for all), not {len(laws)}")
        return laws

    def _check_contexts(self, contexts: Contexts) -> None:
        if not isinstance(contexts, Contexts):
            raise InputError(f"contexts must be such as Contexts(numbers=2), not {contexts!r}")
        if len(self.caps) > with_contexts.ARMS_MOST:
            raise InputError(
                f"a problem with contexts needs 1 to {with_contexts.ARMS_MOST} arms, not {len(self.caps)}"
            )
        whole("window", self.window, 1, with_contexts.WINDOW_MOST)
        if self.groups != self.window or self.changes:
            raise InputError("a problem with contexts takes neither groups nor changes")
        for law in self.context_laws:
            law.check(contexts.width)

    def __repr__(self) -> str:
        arms = len(self.caps)
        parts = [f"{arms:,} arm{'s'[: arms != 1]}"]
        if self.contexts is not None:
            parts += [f"window {self.window:,}", f"contexts of width {self.contexts.width}"]
        else:
            groups = f"{self.groups:,} group{'s'[: self.groups != 1]}"
            parts += [f"window {self.window:,} in {groups}", self._say_means()]
        return f"Problem({', '.join(parts)})"

    def _say_means(self) -> str:
        if self.changes:
            return f"laws that change in round {', '.join(f'{at:,}' for at, _ in self.phases[1:])}"
        low, high = self.means.min(), self.means.max()
        return f"means {low:.4g} to {high:.4g}" if low < high else f"mean {low:.4g}"

    def _repr_html_(self) -> str:
        """Return a table of the arms, the best first, for notebooks."""
        fixed = self.contexts is None and not self.changes
        order = np.argsort(-self.means, kind="stable") if fixed else np.arange(len(self.caps))
        best = order.tolist()
        laws: Any = self.laws
        cells = [
            (
                self.arms[arm],
                f"{self.caps[arm]:.4g}",
                f"{self.means[arm]:.4g}" if fixed else "",
                repr(laws[arm]),
            )
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
        """The law of each arm, of a problem without contexts whose laws do not change."""
        laws: Any = self.laws
        if self.contexts is not None:
            raise InputError("this problem has contexts, and means that depend on them: see means_in")
        if self.changes:
            raise InputError("the laws of this problem change: each of its phases has laws of its own")
        return tuple(laws)

    @property
    def context_laws(self) -> tuple[ContextLaw, ...]:
        """The law of each arm, of a problem with contexts."""
        laws: Any = self.laws
        return tuple(laws)

    @cached_property
    def phases(self) -> tuple[tuple[int, Problem], ...]:
        """The problem between changes: for each phase its first round, and a problem that does not change."""
        if not self.changes:
            return ((1, self),)
        every: Any = ((1, self.laws), *self.changes)
        return tuple((at, replace(self, laws=laws, changes=())) for at, laws in every)

    def means_in(self, x: npt.ArrayLike) -> Floats:
        """Return the true mean total of each arm in contexts `x`, contexts x arms."""
        rows = [law.means(x, cap) for law, cap in zip(self.context_laws, self.caps, strict=True)]
        return np.stack(rows, axis=-1)

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
        counts = as_numbers(pulls)
        if counts.shape != self.gaps.shape:
            raise InputError(f"pulls must be {len(self.caps)} numbers, one for each arm, not {pulls!r}")
        return float(counts @ self.gaps)


def _numbers(caps: Any) -> tuple[float, ...]:
    """Check that caps are a list of numbers."""
    array = as_numbers(caps if isinstance(caps, np.ndarray) else list(caps) if np.iterable(caps) else caps)
    if array.ndim != 1 or isinstance(caps, Mapping):
        raise InputError(
            f"caps must be a list of numbers, one for each arm, such as [1.0, 1.0], not {caps!r}"
        )
    return tuple(array.tolist())


def _names(arms: Any) -> tuple[str, ...]:
    """Check that names of arms are a list of text."""
    try:
        names = () if isinstance(arms, str) else tuple(arms)
    except TypeError:
        names = (arms,)
    if isinstance(arms, str) or not all(isinstance(name, str) for name in names):
        raise InputError(f"arms must be a list of names, such as ['jazz', 'rock'], not {arms!r}")
    return names
