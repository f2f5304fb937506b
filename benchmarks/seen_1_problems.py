"""Problems for the default policy, written without knowledge of how the policy works.

They were the fresh set of the morning of 2026-11-18. Since then runs on them have been looked into, and
constants were chosen on them. The set for judging is fresh_problems.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from accrual.core.arrays import Floats
from accrual.problems.laws import BernoulliLaw as Coins
from accrual.problems.laws import BetaLaw, EmpiricalLaw, Law, LeavingLaw, LumpLaw, ScaledLaw, UniformLaw
from accrual.problems.problem import Problem
from accrual.problems.spreads import Boltzmann, SpreadLike, Zipf

SEED, HORIZON = 77_000_000, 20_000
G = 20  # groups, unless a problem says otherwise


def plain(window: int, laws: Sequence[Law], groups: int = G) -> Problem:
    """Make arms with caps of 1."""
    return Problem([1.0] * len(laws), window, groups, laws)


def loose(times: Sequence[float], window: int, laws: Sequence[Law]) -> Problem:
    """Make arms of totals up to 1, whose caps are `times` too large."""
    return Problem(times, window, G, [ScaledLaw(law, 1.0 / t) for law, t in zip(laws, times, strict=True)])


def leaving(*pairs: tuple[float, float], groups: int = G, spread: SpreadLike = "uniform") -> list[Law]:
    """Make users that stay before each group but the first, and pay while there, with these two chances."""
    return [LeavingLaw((1.0,) + (stay,) * (groups - 1), p, spread) for stay, p in pairs]


def lumps(*chances: float, spread: SpreadLike = "begin") -> list[Law]:
    return [LumpLaw(p, spread) for p in chances]


def over(total: float, first: int = 0, stop: int = G, groups: int = G) -> Floats:
    """Make a row that pays `total`, evenly over groups `first` to before `stop`."""
    return np.asarray([total / (stop - first) if first <= g < stop else 0.0 for g in range(groups)])


def mix(*kinds: tuple[int, Floats]) -> Law:
    """Make a law of several kinds of users, each as often as its number says."""
    return EmpiricalLaw(np.repeat([row for _, row in kinds], [count for count, _ in kinds], axis=0))


def sure(total: float, spread: SpreadLike = "uniform") -> Law:
    return ScaledLaw(Coins(1.0, spread), total)


def course(drop: float, settle: float, weeks: int = 8) -> Law:
    """Many drop out in the first weeks, fewer later; each week pays a little, the certificate a lot."""
    stay = [1.0, *(1.0 - drop * settle**week for week in range(weeks - 1))]
    return LeavingLaw(stay, [0.9] * (weeks - 1) + [1.0], [0.08] * (weeks - 1) + [0.44])


def funnel(click: int, buy: int, basket: float) -> Law:
    """Of 1000 who see an ad, `click` pay 0.02 at once, and `buy` of those also a basket later."""
    seen, sale = over(0.02, 0, 1), over(basket, 6, 16)
    return mix((1000 - click, over(0.0)), (click - buy, seen), (buy, seen + sale))


def upgrades(leave: float, upgrade: float, dice: np.random.Generator, months: int = 12) -> Law:
    """A monthly fee until the customer leaves; once upgraded, the fee is three times as high for good."""
    there = np.cumprod(dice.random((1500, months)) >= [0.0] + [leave] * (months - 1), axis=1)
    high = np.cumsum(dice.random((1500, months)) < upgrade, axis=1) > 0
    return EmpiricalLaw(there * np.where(high, 3.0, 1.0) / (3.0 * months))


def donors(monthly: int, once: int, legacy: int) -> Law:
    """Of 1000: some give a little all along, some once at the beginning, a few leave a legacy at the end."""
    rest = 1000 - monthly - once - legacy
    return mix((monthly, over(0.24)), (once, over(0.1, 0, 2)), (legacy, over(1.0, 18)), (rest, over(0.0)))


def fans(share: int, loud: float, quiet: float) -> Law:
    """Of 100 users, `share` pay in the first group; late, those pay `loud` and the others `quiet`."""
    return mix((share, over(0.05, 0, 1) + over(loud, 8)), (100 - share, over(quiet, 8)))


def sooner_or_later(mean: float) -> Law:
    """The more comes early, the less comes late: pieces vary a lot, totals by a tenth."""
    pairs = product(np.linspace(0, 1, 21), mean + np.linspace(-0.1, 0.1, 9))
    return EmpiricalLaw([over(part * total, 0, 4) + over((1 - part) * total, 14) for part, total in pairs])


def top_fifth(most: float) -> Law:
    """Four in five totals are alike for all arms; the largest fifth reaches up to `most`."""
    return EmpiricalLaw([over(x) for x in (*np.linspace(0.05, 0.25, 160), *np.linspace(0.3, most, 40))])


def any_kind(number: int, mean: float) -> Law:
    """Make an arm of this mean; what kind it is goes round with its number."""
    slow, even = BetaLaw(3 * mean, 3 * (1 - mean), "end"), sure(mean, Zipf(1.0))
    return (LumpLaw(mean, "very_begin"), Coins(mean, "middle"), slow, even)[number % 4]


def seen_1() -> dict[str, tuple[Problem, int, int]]:
    """The problems by name; the comment at the end of each says what it is."""
    dice = np.random.default_rng(SEED)
    p300, p60 = 0.05 + 0.5 * dice.beta(2, 4, 300), 0.1 + 0.4 * dice.random(60)
    ramp = np.arange(1, 31) / np.arange(1, 31).sum()
    weekdays = [np.array([0.25 * (g % 7 == day) for g in range(28)]) for day in range(7)]
    genres, lengths = (0.9, 0.7, 0.6, 0.5, 0.45, 0.4, 0.3, 0.2), (0.25, 0.6, 0.4, 0.3, 0.45, 0.5)
    appeal, prices = (0.5, 0.3, 0.8, 0.6, 0.4), {2.0: 0.5, 4.0: 0.36, 6.0: 0.2, 9.0: 0.08, 12.0: 0.05}
    fee = over(0.1, 0, 1)
    problems = {
        "course-certificate": plain(560, [course(0.5, 0.5), course(0.2, 1.0), course(0.35, 0.6),
            course(0.1, 1.1), course(0.6, 0.4)], 8),  # early dropout; a certificate is nearly half of the pay
        "clicks-then-baskets": plain(200, [funnel(300, 30, 0.3), funnel(100, 60, 0.5), funnel(500, 20, 0.4),
            funnel(200, 50, 0.35), funnel(60, 30, 0.9)]),  # clicks pay little, baskets more; clickbait loses
        "upgrades": plain(360, [upgrades(leave, up, dice) for leave, up in [(0.05, 0.02), (0.1, 0.12),
            (0.04, 0.06), (0.2, 0.2), (0.08, 0.03)]], 12),  # fees until they leave, tripled by an upgrade
        "donations": plain(400, [donors(200, 100, 5), donors(100, 300, 10), donors(150, 50, 45),
            donors(60, 500, 20)]),  # three kinds of giving, at three ages
        "whales": plain(100, [donors(0, small, whole) for small, whole in
            [(60, 10), (30, 40), (100, 5), (40, 18)]]),  # nine in ten pay nothing, very few the cap, late
        "trial-to-paid": plain(300, lumps(0.1, 0.16, 0.12, 0.08, 0.13, spread=over(1.0, 18))),  # late
        "paid-trial": plain(160, [mix((100 - n, fee), (n, fee + over(0.9, 19)))
            for n in (8, 20, 12, 15)]),  # all pay the same fee at once, those who stay the rest at the end
        "own-weekday": plain(140, [Coins(p, weekdays[d]) for d, p in
            enumerate((0.35, 0.5, 0.4, 0.3, 0.45, 0.42, 0.38))], 28),  # each arm has a weekday of its own
        "streak-bonus": plain(90, leaving((0.9, 1.0), (0.97, 0.7), (0.95, 0.9), (0.99, 0.45), (0.93, 1.0),
            groups=30, spread=ramp), 30),  # days pay more and more while the user stays
        "shipping-times": plain(120, [LumpLaw(p, over(1.0, a, a + 3, 24)) for p, a in [(0.5, 1), (0.45, 4),
            (0.58, 20), (0.4, 8), (0.52, 14), (0.3, 0)]], 24),  # paid on delivery, each arm in its own time
        "billed-monthly": Problem([1.0] * 4, 360, 12, leaving((0.95, 0.6), (0.9, 0.95), (0.85, 0.98),
            (0.98, 0.65), groups=12), "first"),  # the fee comes on the first day of a month, until they leave
        "two-kinds-of-users": plain(160, [mix((60, over(binge, 0, 2)), (40, over(even))) for binge, even in
            [(0.5, 0.1), (0.1, 0.9), (0.35, 0.5), (0.3, 0.3)]]),  # an arm pleases one kind or the other
        "never-cancelled": plain(260, [mix((100 - n, over(0.0)), (n, over(1.0)))
            for n in (12, 20, 9, 25, 18)]),  # who pays once pays always: the first piece says everything
        "fans-stay": plain(300, [fans(10, 0.8, 0.2), fans(25, 0.8, 0.1), fans(15, 0.9, 0.15),
            fans(40, 0.4, 0.1)]),  # those who pay early pay much late
        "fans-gone": plain(300, [fans(n, 0.0, 0.5) for n in (60, 45, 30, 20, 50)]),  # those never pay again
        "sooner-or-later": plain(100, [sooner_or_later(m)
            for m in (0.5, 0.53, 0.59, 0.56, 0.45)]),  # what comes early is missing late: totals hardly vary
        "rank-one-48": plain(100, [LumpLaw(a * b, Boltzmann(0.05 + 0.2 * b)) for a, b in
            product(genres, lengths)]),  # 8 genres times 6 lengths; each length pays at its own speed
        "rank-one-priced": Problem([*prices] * 5, 100, G, [LumpLaw(a * p, "middle") for a, p in
            product(appeal, prices.values())]),  # 5 products at 5 prices, which are the caps
        "k300-four-kinds": plain(100, [any_kind(i, float(m)) for i, m in enumerate(p300)]),  # lumps to sure
        "k200-mostly-dead": plain(60, lumps(*(0.0 if i % 10 else 0.02 + 0.0012 * i
            for i in range(200)))),  # 180 of 200 arms pay nothing at all
        "odd-one-of-30": plain(100, [BetaLaw(2.6 if i == 17 else 2.0, 2.0) for i in range(30)]),  # smooth
        "price-middle": Problem([5, 8, 12, 20, 35], 100, G,
            lumps(0.5, 0.42, 0.34, 0.13, 0.05)),  # caps are prices and true; the middle one earns most
        "price-against": Problem([1, 2, 5, 10, 25, 60], 100, G, lumps(0.6, 0.26, 0.09, 0.038, 0.012, 0.004,
            spread="middle_end")),  # the larger the cap, the smaller the mean
        "price-with": Problem(range(1, 11), 80, G,
            [BetaLaw(0.5, 1.0 + 0.1 * i) for i in range(10)]),  # the larger the cap, the larger the mean
        "caps3-leaving": loose([3.0] * 5, 200, leaving((0.8, 1.0), (0.9, 0.8), (0.94, 0.7), (0.97, 0.4),
            (0.86, 0.9))),  # caps three times too large, customers that leave
        "caps10-mixed": loose([10.0] * 5, 100, [LumpLaw(0.4), Coins(0.45, "end"), BetaLaw(2.0, 1.7, "begin"),
            sure(0.42), LumpLaw(0.3, "begin")]),  # caps ten times too large, arms of four kinds
        "caps30-of-worse": loose([1, 30, 1, 30, 1], 100,
            lumps(0.4, 0.45, 0.6, 0.35, 0.5, spread="middle")),  # two caps too large, the best arm's is right
        "caps30-of-best": loose([1, 1, 30, 1], 100, [UniformLaw("end"), BetaLaw(2.0, 3.0), BetaLaw(3.0, 2.0),
            LumpLaw(0.52)]),  # only the cap of the best arm is too large, and that arm pays smoothly
        "wild-second": plain(100, [*(EmpiricalLaw([over(m - 0.05), over(m), over(m + 0.05)]) for m in
            (0.3, 0.35, 0.33, 0.42, 0.31)), LumpLaw(0.37)]),  # quiet arms, and a wild one that is second
        "sure-best": plain(100, [*lumps(0.4, 0.45, spread="end"), sure(0.52, "end"),
            Coins(0.42)]),  # the best always pays the same, beside coins
        "noisy-and-slow": plain(200, [LumpLaw(0.36, "very_end"),
            *(sure(m, "very_begin") for m in (0.2, 0.24, 0.28))]),  # the best, beside sure ones that pay fast
        "rare-and-large": Problem([1, 1, 12, 1], 100, G, [Coins(0.5, "begin"), Coins(0.4, "begin"),
            LumpLaw(1 / 15, "middle"), LumpLaw(0.55, "begin")]),  # the best pays 1 time in 15, but 12
        "top-fifth": plain(100, [top_fifth(m) for m in (0.4, 0.6, 0.5, 1.0, 0.7)]),  # arms differ in it alone
        "nearly-equal": plain(100, [Coins(p, "middle")
            for p in (0.5, 0.51, 0.52, 0.515, 0.54, 0.53)]),  # small gaps, but little noise
        "hair-apart": plain(100, lumps(0.4, 0.4, 0.4, 0.41, 0.4, 0.4)),  # hard: a hundredth, and coins' noise
        "two-rounds": plain(2, [mix((100 - c, np.zeros(2)), (c - s, over(0.1, 0, 1, 2)),
            (s, over(0.1, 0, 1, 2) + over(0.9, 1, 2, 2))) for c, s in
            [(50, 10), (30, 16), (70, 8), (20, 14)]], 2),  # a click now, a sale in the next round
        "three-groups": plain(90, [BetaLaw(a, 2.0, (0.2, 0.3, 0.5)) for a in [(3, 2, 1), (1, 2, 3),
            (2, 2, 2), (4, 1, 1.5)]], 3),  # thirty rounds each; smooth pay that rises or falls
        "five-rounds-100": plain(5, [Coins(0.3 + 0.003 * (i * 37 % 100), "begin")
            for i in range(100)], 5),  # a very short window, a hundred arms
        "w6000-best-slowest": plain(6000, [LumpLaw(0.3, "very_begin"), LumpLaw(0.5, "end"), LumpLaw(0.35),
            LumpLaw(0.4, "middle")]),  # lumps at ages of the arm's own
        "w4000-second-half": plain(4000, [Coins([0.4] * 50 + [p] * 50) for p in (0.3, 0.65, 0.5, 0.4)],
            100),  # arms alike in the first half of a long window
        "beyond-leaving": plain(12_000, leaving((0.9, 1.0), (0.97, 0.7), (0.98, 0.9), (0.94, 0.95),
            (0.99, 0.5), groups=60), 60),  # longer than the horizon; customers leave early or late
        "beyond-two-speeds": plain(24_000, [UniformLaw("begin"), BetaLaw(2.0, 3.0, "extreme_begin"),
            BetaLaw(3.0, 1.5, "middle"), BetaLaw(2.0, 2.5, Zipf(0.5))]),  # longer; the best is slow
        "short-smooth": plain(300, [BetaLaw(a, 2.0, "middle") for a in (1.0, 1.4, 2.0, 3.0, 1.7, 2.4)],
            30),  # 3,000 rounds, ten windows
        "short-leaving": plain(1000, leaving(*((0.8 + 0.016 * (i * 7 % 12), 1.0 - 0.04 * (i * 7 % 12))
            for i in range(12)))),  # 4,000 rounds, four windows; who stays longer pays less often
        "short-sixty": plain(50, lumps(*p60.round(3).tolist()), 10),  # 5,000 rounds, sixty arms
        "ordinary-lumps": plain(70, lumps(0.22, 0.31, 0.27, 0.18, 0.38, spread="middle"), 14),  # five coins
        "ordinary-smooth": Problem(range(3, 11), 120, 24, [BetaLaw(2.0, b, "begin_middle") for b in
            (1.0, 1.2, 2.0, 2.2, 3.5, 4.0, 4.0, 6.0)]),  # caps from 3 to 10, all true
    }  # fmt: skip
    horizons = {"short-smooth": 3000, "short-leaving": 4000, "short-sixty": 5000}
    return {
        name: (problem, 10_000 if "beyond" in name else horizons.get(name, HORIZON), SEED + i)
        for i, (name, problem) in enumerate(problems.items())
    }
