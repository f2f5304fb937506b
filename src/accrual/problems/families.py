"""Kinds of problems on which policies fail, as functions of their numbers.

The gallery plays one set of numbers of every kind; `benchmarks/default_policy.py` has another set, on
which the constants of the default policy were chosen.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from accrual.problems.laws import BernoulliLaw, EmpiricalLaw, Law, LeavingLaw, LumpLaw, ScaledLaw, UniformLaw
from accrual.problems.problem import Problem
from accrual.problems.spreads import SpreadLike

GROUPS = 20


def plain(window: int, laws: Sequence[Law], groups: int = GROUPS) -> Problem:
    """Make arms with caps of 1."""
    return Problem([1.0] * len(laws), window, groups, laws)


def lumps(*chances: float, spread: SpreadLike = "begin_middle") -> list[Law]:
    """Make a law for each chance to pay; arms of the same chance share one, which is drawn once a round."""
    laws = {p: LumpLaw(p, spread) for p in chances}
    return [laws[p] for p in chances]


def late_surprise(late: Sequence[float], share: float, early: float = 0.5, window: int = 100) -> Problem:
    """Make arms alike until the last group, which holds `share` of the cap and decides."""
    spread = [(1.0 - share) / (GROUPS - 1)] * (GROUPS - 1) + [share]
    return plain(window, [BernoulliLaw([early] * (GROUPS - 1) + [p], spread) for p in late])


def lure(first: Sequence[float], rest: Sequence[float], window: int = 2000) -> Problem:
    """Make arms whose first quarter of the window promises something else than the rest keeps."""
    quarter = GROUPS // 4
    return plain(
        window,
        [BernoulliLaw([p] * quarter + [q] * (GROUPS - quarter)) for p, q in zip(first, rest, strict=True)],
    )


def jackpot(steady: Sequence[float], chance: float, window: int = 100) -> Problem:
    """Make arms of small steady pay, and a last one that pays its whole cap, rarely, and is best."""
    small: list[Law] = [ScaledLaw(UniformLaw(), 2.0 * mean) for mean in steady]
    return plain(window, [*small, LumpLaw(chance)])


def hidden_jackpot(steady: Sequence[float], base: float, one_in: int, window: int = 100) -> Problem:
    """Make arms of small steady pay; the last looks a little worse than they do but for rare large totals.

    One decision in `one_in` of that arm pays the whole cap, spread evenly; any other pays `base`.
    """
    rows = np.full((one_in, GROUPS), base / GROUPS)
    rows[0] = 1.0 / GROUPS
    small: list[Law] = [ScaledLaw(UniformLaw(), 2.0 * mean) for mean in steady]
    return plain(window, [*small, EmpiricalLaw(rows)])


def mixed_caps(caps: Sequence[float], means: Sequence[float], spread: SpreadLike = "begin") -> Problem:
    """Make caps of very different size over means that are alike; some caps are never come near."""
    laws: list[Law] = []
    for cap, mean in zip(caps, means, strict=True):
        most = min(cap, 2.0 * mean)  # what a decision can pay in truth
        laws.append(ScaledLaw(BernoulliLaw(mean / most, spread), most / cap))
    return Problem(caps, 100, GROUPS, laws)


def bimodal(chances: Sequence[float], early: Sequence[float], window: int = 100) -> Problem:
    """Make lumps that come in the first two groups or in the last two, in shares that differ by arm."""
    return plain(
        window,
        [
            LumpLaw(p, [e / 2] * 2 + [0.0] * (GROUPS - 4) + [(1.0 - e) / 2] * 2)
            for p, e in zip(chances, early, strict=True)
        ],
    )


def two_speeds(fast: Sequence[float], slow: Sequence[float], window: int = 200) -> Problem:
    """Make arms of which some pay early and the others late, at means that lie among each other."""
    return plain(window, [*(BernoulliLaw(p, "begin") for p in fast), *(BernoulliLaw(p, "end") for p in slow)])


def needle(arms: int, usual: float, second: float, best: float) -> Problem:
    """Make all arms alike but two: a good one, and one a little better."""
    laws = [LumpLaw(usual, "begin_middle")] * arms
    laws[arms // 3] = LumpLaw(second, "begin_middle")
    laws[2 * arms // 3] = LumpLaw(best, "begin_middle")
    return plain(100, laws)


def fixed_delay(chances: Sequence[float], delay: int = 50) -> Problem:
    """Make arms that pay the whole reward after exactly `delay` rounds, and nothing before."""
    spread = [0.0] * (delay - 1) + [1.0]
    return Problem([1.0] * len(chances), delay, delay, [LumpLaw(p, spread) for p in chances])


def heavy_tails(scales: Sequence[float], exponent: float = 1.5, window: int = 100) -> Problem:
    """Make totals with a Pareto tail, cut off at the cap; `scales` times the usual ones."""
    levels = (np.arange(400) + 0.5) / 400
    laws: list[Law] = []
    for scale in scales:
        totals = np.minimum(scale * levels ** (-1.0 / exponent), 1.0)
        laws.append(EmpiricalLaw(totals[:, None] * np.full(GROUPS, 1.0 / GROUPS)))
    return plain(window, laws)


def long_window(means: Sequence[float], spread: SpreadLike, window: int = 5000) -> Problem:
    """Make coins over a window that is long beside the horizon."""
    return plain(window, [BernoulliLaw(p, spread) for p in means])


def listeners(arms: int, seed: int, days: int = 59, differ: float = 1.0) -> list[Law]:
    """Shows of a listening service: a listener is active on a day with some chance, until they leave.

    How likely is different for each show: the chance to be active lies around 0.3, that to leave before a day
    around 0.05. `differ` widens (or narrows) how far shows lie apart.
    """
    dice = np.random.default_rng(seed)
    active = 1.0 / (1.0 + np.exp(0.85 - 0.45 * differ * dice.standard_normal(arms)))
    leave = 0.05 * np.exp(0.45 * differ * dice.standard_normal(arms))
    return [
        LeavingLaw((1.0,) + (float(1.0 - min(q, 0.5)),) * (days - 1), float(p))
        for p, q in zip(active, leave, strict=True)
    ]
