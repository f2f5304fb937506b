"""Still more problems for the default policy, written without knowledge of how the policy works.

They were the fresh set until runs on them were looked into. Half are ordinary, a quarter hard and a quarter
strange. The set for judging is fresh_problems.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt
from benchmarks.seen_1_problems import G, leaving, loose, lumps, mix, over, plain, sure

from accrual.core.arrays import Floats
from accrual.problems.laws import BernoulliLaw as Coins
from accrual.problems.laws import BetaLaw, EmpiricalLaw, Law, LeavingLaw, LumpLaw
from accrual.problems.problem import Problem
from accrual.problems.spreads import BetaBinomial, Boltzmann, Zipf

SEED, HORIZON = 143_000_000, 20_000
USERS = 2000  # logged decisions of an arm, where they are made with dice
Dice = np.random.Generator


def alike(window: int, law: Callable[..., Law], *arms: tuple[float, ...], groups: int = G) -> Problem:
    """Make arms with caps of 1 whose laws are of one kind and differ in their numbers."""
    return plain(window, [law(*numbers, groups=groups) for numbers in arms], groups)


def logged(rows: npt.ArrayLike) -> Law:
    """Make a law of logged rows; what would take a user's total above 1 is not paid."""
    pays = np.asarray(rows, dtype=np.float64)
    return EmpiricalLaw(np.minimum(pays, np.maximum(1.0 - np.cumsum(pays, axis=1) + pays, 0.0)))


def dated(pays: npt.ArrayLike, ages: Floats, groups: int) -> Floats:
    """Make rows with one payment each, in the group of that age; what is older than the window is lost."""
    rows = np.zeros((USERS, groups + 1))
    rows[np.arange(USERS), np.minimum(ages.astype(np.int64), groups)] = pays
    return rows[:, :groups]


def lessons(dice: Dice, pace: float, drop: float, count: int = 12, groups: int = G) -> Law:
    """Learners go through the lessons at a pace of their own, until they are through or drop out."""
    there = np.cumprod(dice.random((USERS, groups)) >= drop, axis=1)
    return logged(there * dice.poisson(dice.gamma(3, pace / 3, (USERS, 1)), (USERS, groups)) / count)


def listeners(dice: Dice, like: float, skips: int = 2, groups: int = G) -> Law:
    """Each song that is liked pays; after one skip too many the listener is gone."""
    liked = dice.random((USERS, groups)) < dice.beta(6 * like, 6 - 6 * like, (USERS, 1))
    return EmpiricalLaw(liked * (np.cumsum(~liked, axis=1) <= skips) / groups)


def mails(dice: Dice, opens: float, clicks: float, wait: float = 2.0, groups: int = G) -> Law:
    """Some open the mail, which pays a little; some of those click later, which pays the rest."""
    opened, clicked = dice.random(USERS) < opens, dice.random(USERS) < clicks
    first, more = dice.exponential(wait, (2, USERS))
    late = dated(0.9 * (opened & clicked), first + more, groups)
    return EmpiricalLaw(dated(0.1 * opened, first, groups) + late)


def sales(dice: Dice, chance: float, wait: float, size: float, tail: float, groups: int = G) -> Law:
    """At most one sale, of any size, after a wait that may last beyond the window."""
    sold = (dice.random(USERS) < chance) * size * np.exp(tail * dice.standard_normal(USERS))
    return logged(dated(np.minimum(sold, 1.0), dice.exponential(wait, USERS), groups))


def visitors(dice: Dice, often: float, fade: float, groups: int = G) -> Law:
    """Visitors come more or less often, each in their own way, and less and less."""
    own = dice.beta(2 * often, 2 - 2 * often, (USERS, 1)) * fade ** np.arange(groups)
    return EmpiricalLaw((dice.random((USERS, groups)) < own) / groups)


def counted(dice: Dice, rate: float, fade: float, worth: float, groups: int = G) -> Law:
    """Counts of what comes in, such as applications, fewer with age; some decisions have more of all."""
    luck = dice.gamma(1.5, 1 / 1.5, (USERS, 1))
    return logged(worth * dice.poisson(luck * rate * fade ** np.arange(groups), (USERS, groups)))


def moods(dice: Dice, level: float, inertia: float, groups: int = G) -> Law:
    """Users are active while their mood is below the level; it changes slowly."""
    mood, active = dice.standard_normal(USERS), np.zeros((USERS, groups))
    for g in range(groups):
        active[:, g] = mood < level
        mood = inertia * mood + np.sqrt(1 - inertia**2) * dice.standard_normal(USERS)
    return EmpiricalLaw(active / groups)


def pareto(dice: Dice, scale: float, tail: float, groups: int = G) -> Law:
    """Totals have a Pareto tail, cut off at the cap; they are paid in unequal parts."""
    totals = np.minimum(scale * (1 + dice.pareto(tail, (USERS, 1))), 1.0)
    return EmpiricalLaw(totals * dice.dirichlet([0.5] * groups, USERS))


def rich_or_poor(dice: Dice, rich: float, high: float, low: float, groups: int = G) -> Law:
    """Totals are near one of two numbers, never between them; both kinds pay in the same parts."""
    totals = np.where(dice.random((USERS, 1)) < rich, high, low) + dice.uniform(-0.02, 0.02, (USERS, 1))
    return EmpiricalLaw(totals * dice.dirichlet([2.0] * groups, USERS))


def odd_or_even(dice: Dice, odd: float, busy: float, groups: int = G) -> Law:
    """Each user pays in odd groups only or in even ones only, and not in all of these."""
    mine = (np.arange(groups) % 2 == 1) == (dice.random((USERS, 1)) < odd)
    return EmpiricalLaw(mine * (dice.random((USERS, groups)) < busy) * 2 / groups)


def first_then(now: tuple[float, float], late: tuple[float, float], dice: Dice, groups: int = G) -> Law:
    """Make a first piece evenly between two numbers, and a late one between two others, independent of it."""
    row = np.outer(dice.permutation(np.linspace(*now, USERS)), over(1.0, 0, 1, groups))
    return EmpiricalLaw(row + np.outer(np.linspace(*late, USERS), over(1.0, groups - 4, groups, groups)))


def seen_3() -> dict[str, tuple[Problem, int, int]]:
    """The problems by name; the comment at the end of each says what it is."""
    dice = np.random.default_rng(SEED)
    learners, buyers = partial(lessons, dice), partial(sales, dice)
    books = [(0.3 + 1.2 * pace, 0.02 + 0.2 * drop) for pace, drop in dice.random((20, 2))]
    artists, widgets = 1 + 3 * dice.beta(2, 3, 150), 0.02 + 0.08 * dice.beta(1, 2, 30)
    recipes, crowd = 0.05 + 0.3 * dice.beta(2, 4, 60), 0.05 + 0.6 * dice.beta(2, 6, 300)
    astray, goods, ladder = 2.0 ** dice.integers(0, 5, 50), dice.random(50), dice.permutation(128) / 127
    even, flat, bump = over(0.3), [2.0] * G, [2.0] * 13 + [8.0] + [2.0] * 6
    problems = {
        # Ordinary ones: what is recommended, sold or sent, and what its users do for some days or months.
        "course-catalog-8": alike(84, partial(learners, count=12), (1.2, 0.1), (0.8, 0.03), (2, 0.2),
            (1.5, 0.08), (0.6, 0.02), (1, 0.15), (1.8, 0.12), (2.5, 0.3), groups=12),  # lessons done a week
        "playlist-covers-5": alike(30, partial(listeners, dice), (0.5,), (0.58,), (0.62,), (0.55,), (0.68,),
            groups=30),  # songs heard before the third skip
        "push-notices-4": plain(10, lumps(0.031, 0.044, 0.052, 0.038, spread=Boltzmann(1.0)), 10),  # taps
        "mail-subjects-6": alike(48, partial(mails, dice), (0.3, 0.1), (0.2, 0.25), (0.45, 0.05), (0.25, 0.3),
            (0.35, 0.15), (0.4, 0.12), groups=12),  # opened, then clicked
        "search-ads-two": alike(150, buyers, (0.06, 6, 0.3, 0.5), (0.09, 4, 0.33, 0.5),
            groups=30),  # an A/B test of two ads that sell to one in twelve
        "articles-read-down-16": plain(5, leaving(*((0.55 + 0.4 * (i * 5 % 16) / 15, 1.0)
            for i in range(16)), groups=5), 5),  # how far down sixteen articles are read
        "game-levels-14-days": plain(70, [LeavingLaw([1.0, *(ease - tire * day for day in range(13))])
            for ease, tire in [(0.95, 0.03), (0.85, 0.0), (0.99, 0.02), (0.9, 0.01), (0.97, 0.05)]],
            14),  # levels get harder, in some games sooner
        "gym-offers-4": alike(120, partial(visitors, dice), (0.4, 0.95), (0.6, 0.88), (0.3, 1), (0.5, 0.93),
            groups=24),  # visits a week
        "hotel-prices-9": Problem(range(60, 240, 20), 90, 18, lumps(0.42, 0.38, 0.35, 0.31, 0.24, 0.21, 0.17,
            0.12, 0.1, spread="middle"), "first"),  # nine prices, booked once or not
        "coupon-baskets-6": alike(40, buyers, (0.1, 2, 0.2, 0.4), (0.3, 1.5, 0.1, 0.6), (0.2, 3, 0.15, 0.5),
            (0.15, 1, 0.3, 0.3), (0.4, 2.5, 0.08, 0.8), (0.25, 1, 0.25, 0.4), groups=8),  # few or many use it
        "box-by-post-5": Problem([1.0] * 5, 150, 10, [LeavingLaw([join, after, *[stay] * 8], 1.0,
            [0.04, *[0.96 / 9] * 9]) for join, after, stay in [(0.6, 0.4, 0.9), (0.3, 0.8, 0.95),
            (0.5, 0.5, 0.97), (0.8, 0.3, 0.8), (0.2, 0.9, 0.98)]], "first"),  # a cheap first box, then fees
        "channels-40": plain(20, [BetaLaw(0.8, 1.0 + 0.06 * (i * 13 % 40), "begin_middle")
            for i in range(40)], 10),  # minutes watched of forty channels
        "shop-widgets-30": plain(60, lumps(*widgets.round(4).tolist(), spread="begin_middle"), 15),  # orders
        "meal-stars-12": plain(25, [EmpiricalLaw(np.outer(dice.binomial(4, 0.4 + 0.03 * (i * 7 % 12), USERS),
            over(0.25, 4, 5, 5))) for i in range(12)], 5),  # ratings, all at the end
        "book-chapters-20": alike(100, partial(learners, count=15), *books),  # chapters read, at any pace
        "job-ads-6": alike(60, partial(counted, dice), (1, 0.7, 0.05), (0.5, 0.9, 0.05), (2, 0.5, 0.05),
            (0.8, 0.8, 0.07), (0.3, 0.97, 0.06), (1.5, 0.6, 0.06), groups=15),  # applications
        "charity-letters-5": alike(100, buyers, (0.05, 4, 0.2, 1), (0.03, 5, 0.5, 0.5), (0.08, 6, 0.1, 1.2),
            (0.04, 3, 0.6, 0.3), (0.1, 5, 0.12, 0.9)),  # few replies, of sums small and large
        "app-first-week-3": alike(7, partial(moods, dice), (-0.3, 0.9), (0.1, 0.8), (0.0, 0.95),
            groups=7),  # days of use in the first week, three onboardings
        "phone-plans-8": Problem(range(96, 480, 48), 144, 12, [LeavingLaw([sign, *[stay] * 11]) for sign, stay
            in [(0.7, 0.98), (0.6, 0.97), (0.45, 0.99), (0.4, 0.96), (0.3, 0.98), (0.31, 0.95), (0.2, 0.97),
            (0.17, 0.9)]], "first"),  # caps are a year's fees
        "recipe-clicks-60": plain(6, lumps(*recipes.round(3).tolist(), spread=Boltzmann(0.7)), 6),  # at once
        "festival-tickets-4": Problem([40, 55, 70, 90], 120, 24, lumps(0.5, 0.42, 0.29, 0.26,
            spread=BetaBinomial(0.5, 0.4)), "first"),  # early birds and last-minute buyers
        "artists-150": plain(24, [BetaLaw(float(a), 3.0, "begin") for a in artists.round(2)], 12),  # plays
        # Hard ones: tiny gaps, a noisy best arm, long windows, caps too large, many arms, few payments.
        "mails-a-thousandth-apart": plain(24, lumps(0.03, 0.031, 0.035, 0.032, 0.034, 0.033), 12),  # replies
        "two-gamblers-eight-clerks": plain(80, [LumpLaw(0.35, "middle_end"), LumpLaw(0.25, "middle_end"),
            *(sure(0.31 - 0.01 * i, "middle") for i in range(8))]),  # a gambler is best, the other worst
        "window-half-of-3000": plain(1500, leaving((0.9, 0.9), (0.95, 0.7), (0.93, 0.95), (0.98, 0.5),
            (0.97, 0.75), (0.85, 1.0), (0.99, 0.65), groups=30), 30),  # two windows in all
        "window-2400-of-6000": plain(2400, [LumpLaw(0.1 + 0.015 * (i * 11 % 30), BetaBinomial(1 + i % 3, 2))
            for i in range(30)], 24),  # thirty arms, two and a half windows
        "caps-7-smooth": loose([7.0] * 6, 60, [BetaLaw(a, 3.0, "begin_middle")
            for a in (2.0, 2.3, 2.9, 2.6, 1.5, 3.1)]),  # all caps seven times too large, quiet arms
        "caps-25-few-orders": loose([25.0] * 5, 100, [buyers(*arm) for arm in [(0.05, 4, 0.3, 0.6),
            (0.1, 3, 0.25, 0.5), (0.04, 2, 0.5, 0.4), (0.12, 5, 0.3, 0.7), (0.2, 4, 0.1, 0.5)]]),  # few pay
        "caps-astray-50": loose(astray.tolist(), 40, [(LumpLaw(m, "begin"), BetaLaw(2 * m, 2 - 2 * m),
            Coins(m, Zipf(0.8)))[i % 3] for i, m in enumerate(0.1 + 0.4 * goods)]),  # caps 1 to 16 times
        "k160-needle": plain(40, lumps(*(0.4 if i == 101 else 0.2 for i in range(160)), spread="end")),  # one
        "k128-ladder": plain(64, [Coins(0.1 + 0.4 * m, BetaBinomial(1 + i % 4, 1 + i // 4 % 4))
            for i, m in enumerate(ladder)], 16),  # steps of a three-hundredth, sixteen speeds
        "crossing-lines-10": plain(100, [Coins(np.linspace(0.8 - 0.07 * i, 0.1 + 0.085 * i, G).tolist())
            for i in (3, 8, 0, 5, 9, 1, 6, 2, 7, 4)]),  # who begins low ends high, and is a little better
        "smooth-15-a-hair-apart": plain(90, [BetaLaw(2 + i / 75, 2 - i / 75)
            for i in range(15)], 18),  # gaps of a three-hundredth
        "k300-in-6000-rounds": plain(30, [LumpLaw(m, "middle") if i % 2 else BetaLaw(3 * m, 3 - 3 * m)
            for i, m in enumerate(crowd.tolist())], 10),  # twenty rounds an arm, coins and smooth ones
        "sparse-40": plain(60, lumps(*(0.012 * 0.85 ** (i * 7 % 40) for i in range(40)),
            spread="middle")),  # the best pays one time in eighty, most hardly ever
        # Strange ones: what an outsider would try in order to mislead a policy.
        "teaser-rates-8": plain(100, [mix((100 - n, over(now, 0, 1)), (n, over(now, 0, 1) + over(0.6, 12)))
            for n, now in [(10, 0.36), (60, 0.1), (20, 0.32), (75, 0.02), (35, 0.2), (50, 0.14), (90, 0.0),
            (5, 0.4)]]),  # the more at once, the less later
        "pareto-tails-6": alike(100, partial(pareto, dice), (0.02, 1.1), (0.05, 2), (0.01, 0.8), (0.04, 1.3),
            (0.06, 3), (0.03, 1.05)),  # most users pay next to nothing, some all that they can
        "rich-or-poor-5": alike(120, partial(rich_or_poor, dice), (0.2, 0.9, 0.1), (0.5, 0.5, 0.2),
            (0.1, 0.95, 0.25), (0.35, 0.95, 0.04), (0.9, 0.3, 0.02)),  # two kinds of totals, none between
        "silent-until-the-last-day": plain(150, lumps(0.2, 0.35, 0.3, 0.45, 0.25, 0.4, 0.15, 0.33,
            spread=over(1.0, 29, 30, 30)), 30),  # no arm pays before the last group
        "twins-in-pairs": plain(60, [law for i in range(5) for law in [(LumpLaw(0.3 + 0.04 * i, "begin"),
            BetaLaw(3 + i / 2, 5, "end"))[i % 2]] * 2]),  # each arm is there twice, the best too
        "clones-and-a-mutant": plain(100, [BetaLaw(bump if i == 7 else flat, 3.0)
            for i in range(12)]),  # twelve arms alike, but for one group of one arm
        "odd-or-even-days": alike(80, partial(odd_or_even, dice), (0.5, 0.4), (0.1, 0.48), (0.9, 0.52),
            (0.3, 0.44), (0.7, 0.58)),  # each user pays on odd days or on even ones
        "silent-ones-pay": plain(140, [mix((100 - n, even), (n, over(1.0, 14, 16)))
            for n in (5, 25, 15, 35, 10)]),  # who pays nothing for a long time then pays all
        "nothing-is-late": plain(1, [*lumps(0.3, 0.42, 0.36), BetaLaw(2, 3), sure(0.34)], 1),  # window 1
        "noise-then-truth": plain(100, [first_then((0.0, 0.6), (x, x + 0.02), dice)
            for x in (0.1, 0.14, 0.12, 0.2, 0.17)]),  # the first piece is noise, the last is quiet
        "truth-then-noise": plain(100, [first_then((x, x + 0.02), (0.0, 0.8), dice)
            for x in (0.06, 0.02, 0.1, 0.15, 0.12)]),  # the other way round
        "caps-tripling-lies": loose([1, 3, 9, 27, 81], 100, [LumpLaw(0.3, "begin"), Coins(0.34, "middle"),
            BetaLaw(2, 3.2, "begin"), LumpLaw(0.42, "middle"), *leaving((0.95, 0.72))]),  # better, worse caps
    }  # fmt: skip
    horizons = {
        "push-notices-4": 10_000, "search-ads-two": 10_000, "articles-read-down-16": 5000,
        "gym-offers-4": 6000, "hotel-prices-9": 12_000, "box-by-post-5": 8000, "meal-stars-12": 4000,
        "charity-letters-5": 15_000, "app-first-week-3": 3000, "festival-tickets-4": 5000,
        "window-half-of-3000": 3000, "window-2400-of-6000": 6000, "k300-in-6000-rounds": 6000,
        "teaser-rates-8": 5000, "silent-until-the-last-day": 8000,
    }  # fmt: skip
    return {
        name: (problem, horizons.get(name, HORIZON), SEED + i)
        for i, (name, problem) in enumerate(problems.items())
    }
