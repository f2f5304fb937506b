"""What policies that choose by a context share, and how the engines call other policies beside them.

The functions of such a policy that concern one decision (`survey`, `index`, `decided`, `closed`, `finished`,
`amended`) take the decision's context as one more, last argument: a vector whose first number is 1.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar

from accrual.core.arrays import Floats
from accrual.core.basis import Layout
from accrual.core.jit import njit
from accrual.core.random import normal
from accrual.policies.base import Functions, Moment, Policy

WIDTH_MOST = 101  # numbers in a context: a refresh takes time in proportion to the cube of it


class ContextualPolicy(Policy):
    """A policy that chooses by a context.

    Attributes
    ----------
    takes_layout : bool
        Whether `params` takes one more argument, `layout`: what the numbers of a context stand for.
    """

    contextual: ClassVar[bool] = True
    takes_layout: ClassVar[bool] = False

    @abstractmethod
    def params(self, caps: Floats, window: int, width: int = 1) -> Any:
        """Return the params for these arms, this window, and contexts of `width` numbers."""

    def explain_context(
        self, params: Any, stats: Any, arm: int, x: Floats, names: Sequence[str]
    ) -> dict[str, float]:
        """Return what each feature adds to the arm's estimate in context `x`, in rewards.

        Here for a linear model, whose coefficients are ``stats.estimate``, in caps.
        """
        adds = params.cap[arm] * stats.estimate[arm] * x
        return {name: float(value) for name, value in zip(names, adds, strict=True)}


def params_of(
    policy: Policy, caps: Floats, window: int, layout: Layout | None, about: Floats | None = None
) -> Any:
    """Return the params of any policy: for contexts of this layout, if it chooses by contexts.

    `about` has a row of numbers for each arm, its features, for a policy that `takes_about`.
    """
    if isinstance(policy, ContextualPolicy):
        assert layout is not None
        if policy.takes_layout:
            return policy.params(caps, window, layout.width, layout)  # type: ignore[call-arg]
        return policy.params(caps, window, layout.width)
    if about is not None and about.shape[1]:
        return policy.params(caps, window, about)  # type: ignore[call-arg]
    return policy.params(caps, window)


@njit
def normal_draw(params: Any, stats: Any, arm: int, moment: Moment) -> float:
    """Return cap * a draw from N(guess, (alpha deviation)^2): Thompson sampling on a linear model."""
    draw = normal((moment.seed, moment.run), moment.round, arm)
    return params.cap[arm] * (stats.guess[arm] + params.alpha * stats.deviation[arm] * draw)


@cache
def with_contexts(functions: Functions, contextual: bool) -> Functions:
    """Return functions that take a context: those of a plain policy ignore it.

    So a loop over decisions with contexts is written once for all policies.
    """
    dropping = _dropping_contexts(functions)
    if not contextual:
        return dropping
    own = {
        name: function
        for name in ("index", "survey", "decided", "closed", "finished", "amended")
        if (function := getattr(functions, name)) is not Functions._field_defaults.get(name)
    }
    return dropping._replace(**own)


def _dropping_contexts(functions: Functions) -> Functions:
    index, survey, decided = functions.index, functions.survey, functions.decided
    closed, finished, amended = functions.closed, functions.finished, functions.amended

    @njit
    def index_(params: Any, stats: Any, arm: int, moment: Moment, x: Floats) -> float:
        return index(params, stats, arm, moment)

    @njit
    def survey_(params: Any, stats: Any, moment: Moment, x: Floats) -> None:
        survey(params, stats, moment)

    @njit
    def decided_(params: Any, stats: Any, arm: int, x: Floats) -> None:
        decided(params, stats, arm)

    @njit
    def closed_(params: Any, stats: Any, arm: int, total: float, x: Floats) -> None:
        closed(params, stats, arm, total)

    @njit
    def finished_(
        params: Any, stats: Any, arm: int, group: int, before: float, after: float, x: Floats
    ) -> None:
        finished(params, stats, arm, group, before, after)

    @njit
    def amended_(  # noqa: PLR0913, PLR0917  (as every policy's, and the context)
        params: Any, stats: Any, arm: int, group: int,
        before: float, after: float, more_before: float, more_after: float, x: Floats,
    ) -> None:  # fmt: skip
        amended(params, stats, arm, group, before, after, more_before, more_after)

    return functions._replace(
        index=index_, survey=survey_, decided=decided_, closed=closed_, finished=finished_, amended=amended_
    )
