"""AgeLinTS itself: its index, its settings, and where its statistics start."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from accrual.core.arrays import Floats, Ints
from accrual.core.basis import Layout, basis_of, expand, layout_of, levels
from accrual.core.errors import flag, not_negative, whole
from accrual.core.jit import njit
from accrual.core.random import normal
from accrual.policies.age_lin.refresh import KAPPA, MOST, SHUT, refresh
from accrual.policies.age_lin.sums import (
    LEARNING_FIELDS,
    NOISE,
    READY,
    Params,
    Stats,
    amended,
    decided,
    finished,
    survey,
)
from accrual.policies.base import Feedback, Functions, Moment
from accrual.policies.contexts import WIDTH_MOST, ContextualPolicy, normal_draw
from accrual.policies.engine_hooks import EngineHooks
from accrual.policies.scalars import in_turn
from accrual.problems.spreads import SpreadLike, as_spread

BUCKETS_MOST = 100


@njit
def index(params: Params, stats: Stats, arm: int, moment: Moment, x: Floats) -> float:
    """cap * a draw from N(guess, (alpha deviation)^2)"""
    if stats.shared[READY] == 0.0:
        return in_turn(stats.pulls[arm])
    return normal_draw(params, stats, arm, moment)


def _deviations(alpha: float, arms: int, width: int) -> float:
    """Return how many standard deviations a draw has.

    The fewer numbers a context has, the fewer ways there are for a draw to try an arm that looks bad: with
    half a standard deviation and one to four numbers, rare runs settled on a wrong arm. With many arms there
    is always another that is nearly as good, and wider draws only cost.
    """
    return alpha * min(max(math.sqrt(min(9.0, 80.0 / arms) / width), 1.0), 1.4)


@dataclass(frozen=True)
class AgeLinTS(ContextualPolicy):
    """Thompson sampling on a linear model of what each arm pays, in each context, at each age.

    A heuristic: nothing is proved. docs/contexts.md has the model, and when not to use it.

    Parameters
    ----------
    buckets : int
        Into how many parts the window is cut, fine early and coarse late (fewer if it is short). With 1
        it waits until a window has closed.
    alpha : float
        How many standard deviations of the estimate a draw has where contexts have nine numbers or more, or
        arms are many; otherwise it has up to 1.4 times as many.
    spread : str, Spread or sequence of float
        The pooled spread before anything is known; soon outweighed.
    immediate : bool
        Whether a total is known in the round of its decision. True makes the policy a yardstick that no
        delayed learner can have.
    columns : int
        How many columns the model may have. If they fit, there are columns for bends of each number of a
        context, and for each pair of features; they count only as far as they earn it. With 0 the model is
        linear in the features.

    Examples
    --------
    >>> AgeLinTS().label, AgeLinTS(buckets=1).label
    ('AgeLinTS', 'AgeLinTS(waiting)')
    """

    buckets: int = 8
    alpha: float = 0.5
    spread: SpreadLike = "uniform"
    immediate: bool = False
    columns: int = 40

    takes_layout: ClassVar[bool] = True
    feedback: ClassVar[Feedback] = "groups"
    functions: ClassVar[Functions] = Functions(
        index=index,
        survey=survey,
        decided=decided,
        finished=finished,
        amended=amended,
        refresh=refresh,
        hooks=EngineHooks(learning_fields=LEARNING_FIELDS),
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "buckets", whole("buckets", self.buckets, 1, BUCKETS_MOST))
        object.__setattr__(self, "spread", as_spread(self.spread))
        object.__setattr__(self, "columns", whole("columns", self.columns, 0, WIDTH_MOST))
        not_negative("alpha", self.alpha)
        flag("immediate", self.immediate)

    @property
    def label(self) -> str:
        if self.immediate:
            return "AgeLinTS(immediate)"
        if self.buckets == 1:
            return "AgeLinTS(waiting)"
        return "AgeLinTS" if self.columns else "AgeLinTS(linear)"

    def edges(self, window: int) -> Ints:
        if self.immediate:
            return np.array([window], np.int64)
        g = np.arange(1, self.buckets + 1)
        return np.unique(np.ceil(window * (g / self.buckets) ** 2).astype(np.int64))

    def params(self, caps: Floats, window: int, width: int = 1, layout: Layout | None = None) -> Params:
        arrived = np.concatenate([[0.0], np.cumsum(as_spread(self.spread).pmf(window))])
        prior = np.maximum(np.diff(arrived[np.concatenate([[0], self.edges(window)])]), 1e-9)
        width = whole("the numbers of a context", width, 1, WIDTH_MOST)
        basis = (
            basis_of(layout_of([levels(1)] * (width - 1)), 0)
            if layout is None
            else basis_of(layout, self.columns)
        )
        alpha = _deviations(self.alpha, len(caps), width)
        return Params(caps, 1.0 / caps, prior / prior.sum(), alpha, basis.width, width, basis)

    def stats(self, params: Params) -> Stats:
        arms, buckets, width = len(params.cap), len(params.prior), params.width
        made = np.arange(width) >= params.numbers  # bends and pairs
        return Stats(
            pulls=np.zeros(arms, np.int64),
            due=np.array([8], np.int64),
            estimate=np.zeros((arms, width)),
            root=np.tile(np.eye(width), (arms, 1, 1)) / math.sqrt(params.numbers),
            guess=np.zeros(arms),
            deviation=np.zeros(arms),
            scratch=np.zeros((2, width)),
            shared=np.array([0.0, 1.0, 0.0]),
            gram=np.zeros((arms, buckets, width, width)),
            response=np.zeros((arms, buckets, width)),
            earlier=np.zeros((arms, buckets, width)),
            growth=np.zeros((arms, buckets)),
            square=np.zeros((arms, buckets)),
            all_gram=np.zeros((arms, width, width)),
            nonzero=np.zeros(width),
            spread=params.prior.copy(),
            # One bucket has no speed of its own, and bends and pairs have none.
            kappa=np.where(made, SHUT, KAPPA if buckets > 1 else MOST),
            weight=np.where(made, SHUT, float(params.numbers)),
            common=np.where(made, SHUT, float(params.numbers)),
            total=np.zeros((arms, width)),
            speed=np.zeros((buckets, width)),
            centre=np.zeros(width),
            unit=np.ones(width),
            inverse=np.zeros((arms, buckets, width, width)),
            own=np.zeros((arms, buckets, width)),
            within=np.zeros((arms, width, width)),
            news=np.zeros((arms, width)),
            matrices=np.zeros((4, width, width)),
            vectors=np.zeros((10, width)),
            pooled=np.zeros((8, buckets)),
        )

    def grow(self, stats: Stats, params: Params) -> Stats:
        grown: Stats = super().grow(stats, params)
        if stats.shared[READY]:
            # A refresh comes first, so that a new arm starts from what arms have in common.
            grown.due[0] = 0
        return grown

    def explain_context(
        self, params: Params, stats: Stats, arm: int, x: Floats, names: Sequence[str]
    ) -> dict[str, float]:
        """Return what each feature, and each pair of them, adds to the arm's estimate, in rewards.

        Bends of a number count as the number's. A pair that adds less than a millionth of the cap is left
        out.
        """
        columns, cap, numbers = np.zeros(params.width), float(params.cap[arm]), params.numbers
        expand(params.basis, x, columns)
        adds = (cap * stats.estimate[arm] * columns).tolist()
        found = dict(zip(names, adds[:numbers], strict=True))
        for i, j, add in zip(params.basis.first, params.basis.second, adds[numbers:], strict=True):
            if j < 0:
                found[names[i]] += add
            elif abs(add) >= 1e-6 * cap:
                found[f"{names[i]} × {names[j]}"] = add
        return found

    def terms(self, params: Params, stats: Stats, arm: int, moment: Moment) -> dict[str, float]:
        if stats.shared[READY] == 0.0:
            return {"decisions": float(stats.pulls[arm])}
        cap = float(params.cap[arm])
        return {
            "expected total in this context": cap * float(stats.guess[arm]),
            "standard deviation of that": cap * float(stats.deviation[arm]),
            "deviations drawn": float(normal((moment.seed, moment.run), moment.round, arm)) * params.alpha,
            "deviation of a total": cap * math.sqrt(float(stats.shared[NOISE])),
            "decisions": float(stats.pulls[arm]),
        }


def average_columns(params: Params, stats: Stats, given: dict[int, float]) -> Floats:
    """Return the columns of a context with these numbers, by place, which is otherwise average."""
    x = stats.centre[: params.numbers].copy()
    x[0] = 1.0
    x[list(given)] = list(given.values())
    made = np.zeros(params.width)
    expand(params.basis, x, made)
    # Columns into which none of these numbers enters are average themselves. In a pair the other feature is.
    other = [not {i, j} & given.keys() for i, j in zip(params.basis.first, params.basis.second, strict=True)]
    columns: Floats = np.where([False] * params.numbers + other, stats.centre, made)
    return columns
