"""Kinds of problems on which policies fail, as functions of their numbers.

The gallery has one set of numbers for each kind. `benchmarks/default_policy.py` has another set, on which the
constants of the default policy were chosen.
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
    """Make a law for each chance to pay; arms with the same chance share one, which is drawn once a round."""
    laws = {p: LumpLaw(p, spread) for p in chances}
    return [laws[p] for p in chances]


def late_surprise(late: Sequence[float], share: float, early: float = 0.5, window: int = 100) -> Problem:
    """Make arms that are alike until the last group, which holds `share` of the cap and differs."""
    spread = [(1.0 - share) / (GROUPS - 1)] * (GROUPS - 1) + [share]
    return plain(window, [BernoulliLaw([early] * (GROUPS - 1) + [p], spread) for p in late])


def lure(first: Sequence[float], rest: Sequence[float], window: int = 2000) -> Problem:
    """Make arms whose pay in the first quarter of the window misleads about the rest."""
    quarter = GROUPS // 4
    return plain(
        window,
        [BernoulliLaw([p] * quarter + [q] * (GROUPS - quarter)) for p, q in zip(first, rest, strict=True)],
    )


def jackpot(steady: Sequence[float], chance: float, window: int = 100) -> Problem:
    """Make arms with small steady pay, and a last arm that is best: it pays rarely, but its whole cap."""
    small: list[Law] = [ScaledLaw(UniformLaw(), 2.0 * mean) for mean in steady]
    return plain(window, [*small, LumpLaw(chance)])


def hidden_jackpot(steady: Sequence[float], base: float, one_in: int, window: int = 100) -> Problem:
    """Make arms with small steady pay; except for rare large totals, the last arm looks a little worse.

    One decision in `one_in` of that arm pays the whole cap, spread evenly; any other pays `base`.
    """
    rows = np.full((one_in, GROUPS), base / GROUPS)
    rows[0] = 1.0 / GROUPS
    small: list[Law] = [ScaledLaw(UniformLaw(), 2.0 * mean) for mean in steady]
    return plain(window, [*small, EmpiricalLaw(rows)])


def mixed_caps(caps: Sequence[float], means: Sequence[float], spread: SpreadLike = "begin") -> Problem:
    """Make arms with caps of very different size and similar means; no reward comes near some caps."""
    laws: list[Law] = []
    for cap, mean in zip(caps, means, strict=True):
        most = min(cap, 2.0 * mean)  # the most that a decision pays
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
    """Make arms of which some pay early and the others late, with means that overlap."""
    return plain(window, [*(BernoulliLaw(p, "begin") for p in fast), *(BernoulliLaw(p, "end") for p in slow)])


def needle(arms: int, usual: float, second: float, best: float) -> Problem:
    """Make arms that are all alike except two: a good one, and one that is a little better."""
    laws = [LumpLaw(usual, "begin_middle")] * arms
    laws[arms // 3] = LumpLaw(second, "begin_middle")
    laws[2 * arms // 3] = LumpLaw(best, "begin_middle")
    return plain(100, laws)


def fixed_delay(chances: Sequence[float], delay: int = 50) -> Problem:
    """Make arms that pay the whole reward after exactly `delay` rounds, and nothing before."""
    spread = [0.0] * (delay - 1) + [1.0]
    return Problem([1.0] * len(chances), delay, delay, [LumpLaw(p, spread) for p in chances])


def heavy_tails(scales: Sequence[float], exponent: float = 1.5, window: int = 100) -> Problem:
    """Make arms whose totals have a Pareto tail with these scales, cut off at the cap."""
    levels = (np.arange(400) + 0.5) / 400
    laws: list[Law] = []
    for scale in scales:
        totals = np.minimum(scale * levels ** (-1.0 / exponent), 1.0)
        laws.append(EmpiricalLaw(totals[:, None] * np.full(GROUPS, 1.0 / GROUPS)))
    return plain(window, laws)


def long_window(means: Sequence[float], spread: SpreadLike, window: int = 5000) -> Problem:
    """Make arms with Bernoulli groups and a window that is long compared with the horizon."""
    return plain(window, [BernoulliLaw(p, spread) for p in means])


def listeners(arms: int, seed: int, days: int = 59, differ: float = 1.0) -> list[Law]:
    """Make the shows of a listening service, where listeners are active on some days until they leave.

    The chances differ between shows: those to be active lie around 0.3, those to leave before a day around
    0.05. The larger `differ`, the more shows differ.
    """
    dice = np.random.default_rng(seed)
    active = 1.0 / (1.0 + np.exp(0.85 - 0.45 * differ * dice.standard_normal(arms)))
    leave = 0.05 * np.exp(0.45 * differ * dice.standard_normal(arms))
    return [
        LeavingLaw((1.0,) + (float(1.0 - min(q, 0.5)),) * (days - 1), float(p))
        for p, q in zip(active, leave, strict=True)
    ]
