"""Yet more problems for the default policy, written without knowledge of how the policy works.

They were the fresh set until runs on them were looked into. Half are ordinary, a quarter hard and a quarter
strange. The set for judging is fresh_problems.py.
"""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
from benchmarks.seen_1_problems import G, leaving, loose, lumps, mix, over, plain, sure
from benchmarks.seen_3_problems import USERS, Dice, alike, dated, logged

from accrual.problems.laws import BernoulliLaw as Coins
from accrual.problems.laws import BetaLaw, EmpiricalLaw, Law, LeavingLaw, LumpLaw, ScaledLaw, UniformLaw
from accrual.problems.problem import Problem
from accrual.problems.spreads import BetaBinomial, Boltzmann, Zipf

SEED, HORIZON = 641_000_000, 20_000


def tired(dice: Dice, click: float, after: float, worth: float, groups: int = G) -> Law:
    """Each click of a user makes their next one less likely, by the factor `after`."""
    chance, clicks = np.full(USERS, click), np.zeros((USERS, groups))
    for g in range(groups):
        clicks[:, g] = dice.random(USERS) < chance
        chance *= after ** clicks[:, g]
    return logged(worth * clicks)


def adopted(dice: Dice, alone: float, copied: float, friends: int = 30, groups: int = G) -> Law:
    """Each of some friends buys it once: of themselves, or the sooner the more others have it."""
    have, new = np.zeros(USERS, np.int64), np.zeros((USERS, groups))
    for g in range(groups):
        bought = dice.binomial(friends - have, np.minimum(alone + copied * have / friends, 1.0))
        new[:, g], have = bought, have + bought
    return EmpiricalLaw(new / friends)


def seated(dice: Dice, begin: float, leave: float, join: float, most: int = 30, groups: int = G) -> Law:
    """An office pays for its seats; some are given up, and others added at the office's own rate."""
    seats, hire, paid = dice.poisson(begin, USERS), dice.exponential(join, USERS), np.zeros((USERS, groups))
    for g in range(groups):
        paid[:, g] = seats = np.minimum(seats, most)
        seats = dice.binomial(seats, 1.0 - leave) + dice.poisson(hire)
    return EmpiricalLaw(paid / (most * groups))


def tidal(dice: Dice, level: float, swing: float, period: float, groups: int = G) -> Law:
    """They come more often at some times than at others, and each begins at a time of their own."""
    wave = np.cos(2 * np.pi * (np.arange(groups) / period + dice.random((USERS, 1))))
    return EmpiricalLaw((dice.random((USERS, groups)) < level * (1 + swing * wave)) / groups)


def regular(dice: Dice, wait: float, shape: float, loyal: float, worth: float, groups: int = G) -> Law:
    """They buy again after times that vary little or much, until they are loyal no more."""
    ages = np.cumsum(dice.gamma(shape, wait / shape, (USERS, groups)), axis=1)
    there = np.cumprod(dice.random((USERS, groups)) < loyal, axis=1)
    return logged(worth * ((ages[:, :, None] // 1 == np.arange(groups)) * there[:, :, None]).sum(axis=1))


def seen_5() -> dict[str, tuple[Problem, int, int]]:
    """The problems by name; the comment at the end of each says what it is."""
    dice = np.random.default_rng(SEED)
    u, days, one = (np.arange(USERS) + 0.5) / USERS, np.arange(28), (USERS, 1)
    brands, tastes, parts = dice.beta(2, 5, 60), 0.2 + 0.5 * dice.beta(2, 4, 240), dice.random((150, 3))
    crowd, guesses = dice.uniform(0.1, 0.4, 45), [3.0, 30.0, 5.0, 8.0, 24.0, 12.0, 4.0, 18.0]
    held, talent = np.r_[[0.0] * 4, Boltzmann(0.5).pmf(8)], 1.2 * dice.standard_normal((USERS, 1))
    dust = np.array(["1" in np.base_repr(g, 3) for g in range(27)])
    problems = {
        # Ordinary ones: products and their users.
        "dating-apps-5": plain(180, [EmpiricalLaw(fees / 18 * (days[:18] < met) + bonus * (days[:18] == met))
            for met, fees, bonus in [(dice.geometric(dice.beta(2, 2 / p - 2, one)), fees, bonus) for p, fees,
            bonus in [(0.1, 0.4, 0.3), (0.05, 0.5, 0.2), (0.2, 0.3, 0.5), (0.03, 0.35, 0.6), (0.15, 0.6,
            0.25)]]], 18),  # fees until they have met somebody, and then a bonus
        "savings-plans-4": plain(360, [logged(fee * np.exp(np.cumsum(drift + swing *
            dice.standard_normal((USERS, 24)), axis=1))) for fee, drift, swing in [(0.012, 0.02, 0.1), (0.017,
            -0.02, 0.05), (0.01, 0.03, 0.2), (0.015, 0.0, 0.15)]], 24),  # fees on what rises and falls
        "affiliates-6": plain(120, [logged(least * np.diff(np.floor(np.cumsum(dice.gamma(0.5, dice.gamma(2,
            rate / 12, one), (USERS, 12)), axis=1) / least), axis=1, prepend=0.0)) for rate, least in [(0.2,
            0.1), (0.3, 0.25), (0.35, 0.5), (0.25, 0.05), (0.4, 0.4), (0.15, 0.02)]], 12),  # paid in batches
        "clicks-that-tire-8": alike(56, partial(tired, dice), *((0.1 + 0.07 * i, 0.93 - 0.11 * (i * 3 % 8),
            0.1) for i in range(8)), groups=14),  # the more clicks at first, the sooner users have enough
        "gadgets-7": alike(200, partial(adopted, dice), (0.02, 0.2), (0.05, 0.05), (0.01, 0.3), (0.08, 0.0),
            (0.03, 0.1), (0.005, 0.4), (0.04, 0.15)),  # bought alone, or because friends have it
        "office-seats-5": alike(360, partial(seated, dice), (8, 0.05, 0.5), (14, 0.1, 0.6), (5, 0.02, 0.9),
            (11, 0.03, 0.1), (3, 0.0, 1.3), groups=12),  # from month to month fewer seats, or more
        "car-leases-6": Problem([24, 30, 36, 42, 50, 60], 240, 24, [LeavingLaw([sign, *[0.99] * 23], [*[1.0] *
            23, buy], [*[0.6 / 23] * 23, 0.4]) for sign, buy in [(0.6, 0.2), (0.5, 0.5), (0.3, 0.7), (0.4,
            0.1), (0.25, 0.3), (0.2, 0.6)]], "first"),  # rates, and then some buy the car
        "weekend-trips-9": alike(70, partial(tidal, dice), *((0.2 + 0.02 * i, 1 - 0.1 * i, 7) for i in (4, 0,
            7, 2, 8, 5, 1, 3, 6)), groups=35),  # by weekday, but each begins on another one
        "driving-tests-4": plain(90, [LumpLaw(1 - (1 - p) ** 3, np.r_[[0.0] * 3, p, [0.0] * 5, p * (1 - p),
            [0.0] * 7, p * (1 - p) ** 2] / (1 - (1 - p) ** 3)) for p in (0.25, 0.31,
            0.2, 0.28)], 18),  # a licence after one of three attempts, or none
        "orders-kept-10": Problem(range(20, 120, 10), 60, 12, lumps(*(0.52 * 0.82**i + 0.03 * (i == 4) for i
            in range(10)), spread=held)),  # paid once nothing can be sent back any more
        "auctions-3": Problem([20, 35, 60], 50, 10, [EmpiricalLaw(np.outer(np.maximum(1 + np.log(u) / bids,
            0), over(1.0, 9, 10, 10))) for bids in (6, 1.5, 0.9)]),  # the highest of a few bids, at the end
        "crowdfunding-7": plain(100, [EmpiricalLaw(np.outer(t * (t > goal), over(1.0, 18))) for t, goal in
            [(dice.beta(2, b, USERS), 0.2 + 0.04 * b) for b in (2, 2.5, 3, 4, 5, 6, 8)]]),  # in full, or not
        "two-checkouts": plain(60, [mix((1000 - n, over(0)), (n - more, over(0.3, 0, 2)), (more, over(0.3, 0,
            2) + over(0.7, 8))) for n, more in [(120, 20), (90, 45)]]),  # fewer buy, but buy more
        "milk-rounds-6": plain(112, leaving((0.97, 0.8), (0.99, 0.55), (0.94, 0.9), (0.98, 0.75), (0.9, 1.0),
            (1.0, 0.5), groups=28, spread=(days % 4 == 2) / 7), 28),  # every fourth day, until cancelled
        "audiobooks-11": plain(84, [EmpiricalLaw(np.clip(21 * dice.beta(0.4 + 0.16 * (i * 7 % 11), 0.9, one) -
            np.arange(21), 0, 1) / 21) for i in range(11)], 21),  # most hear little of a book, or all of it
        "home-policies-8": Problem(range(20, 60, 5), 288, 36, [LeavingLaw([1.2 - 0.1 * i, *(renew if g % 12 ==
            0 else 0.995 for g in range(1, 36))]) for i, renew in enumerate((0.6, 0.7, 0.95, 0.8, 0.75, 0.9,
            0.5, 0.85), 3)]),  # premiums, until cancelled, mostly after a year
        "price-rise-6": plain(160, [LeavingLaw([join, *[0.97] * 7, rise, *[0.96] * 7], 1.0, np.repeat([low,
            1], 8) / (8 * low + 8)) for join, rise, low in [(0.5, 0.8, 0.6), (0.6, 0.5, 0.4), (0.45, 0.95,
            0.8), (0.8, 0.3, 0.3), (0.75, 0.65, 0.2), (0.4, 1.0, 1.0)]], 16),  # a discount, then the full fee
        "quizzes-6": plain(50, [EmpiricalLaw((dice.random((USERS, 10)) < 1 / (1 + np.exp(np.linspace(*hard,
            10) - talent))) / 10) for hard in [(-2, 2), (-1, 1.5), (0, 0), (-3, 2.4), (1, -2),
            (2, -1)]], 10),  # questions get harder or easier; who is good is good at all
        "razors-5": alike(240, partial(regular, dice), (4, 9, 0.9, 0.12), (2, 4, 0.8, 0.1), (6, 20, 0.97,
            0.14), (3, 1, 0.85, 0.1), (8, 30, 1.0, 0.2), groups=24),  # as regular as clockwork or not
        "cinemas-16": Problem([80 + 15 * (i * 5 % 16) for i in range(16)], 56, 28, [Coins(0.7 - 0.03 * (i * 5
            % 16) + 0.01 * (i % 7), wave / wave.sum()) for i in range(16) for wave in [np.exp(-0.02 * i *
            days) * (1 + 3 * (days % 7 > 4))]]),  # weekends; fewer from week to week, and in large halls
        "wines-12": Problem([6, 7, 8, 9, 10, 12, 14, 16, 20, 25, 30, 40], 80, 16, [BetaLaw(0.8, b,
            "begin_middle") for b in (0.6, 0.8, 0.7, 1.3, 1, 1.4, 1.5, 2.5, 3.2, 4, 7, 9)]),  # by price
        "fun-runs-5": plain(140, [mix((100 - n, over(0)), (n - done, over(0.2, 0, 1)), (done, over(0.2, 0, 1)
            + over(gift, 12, 13))) for n, done, gift in [(50, 30, 0.5), (70, 20, 0.6), (40, 36, 0.4), (80, 60,
            0.2), (35, 32, 0.8)]]),  # an entry fee, and later gifts for those who have run
        # Hard ones.
        "k360-brands-by-size": plain(40, [LumpLaw(a * b, Boltzmann(0.1 + b)) for a, b in
            product(brands.tolist(), (0.9, 0.4, 0.7, 0.2, 0.5, 0.3))], 8),  # sixty brands, six sizes
        "k240-smooth": plain(20, [BetaLaw(5 * m, 5 - 5 * m, "end") for m in tastes.tolist()], 5),  # smooth
        "k150-now-soon-later": plain(45, [Coins(p, (0.2, 0.3, 0.5)) for p in parts.tolist()], 3),  # unrelated
        "w4500-regulars-6": alike(4500, partial(regular, dice), (2, 8, 0.9, 0.06), (1, 1, 0.8, 0.06), (4, 15,
            0.98, 0.08), (3, 3, 0.95, 0.07), (6, 30, 1.0, 0.13), (1.5, 2,
            0.93, 0.05), groups=30),  # who comes rarely stays for thousands of rounds
        "w1800-of-5000": plain(1800, [UniformLaw("middle"), BetaLaw(2.4, 2, "end"), BetaLaw(1, 2, "begin"),
            LumpLaw(0.45, "begin_middle"), Coins(0.3), BetaLaw(2, 2.4, Zipf(0.6))], 36),  # 2.8 windows in all
        "steady-among-lotteries-15": Problem([1.0, *[8.0] * 14], 90, 18, [BetaLaw(8, 10, "middle_end"),
            *lumps(*(0.02 + 0.0017 * (i * 5 % 14) for i in range(14)))]),  # the quiet one is the best
        "sixfold-beside-25": Problem([*[1.0] * 25, 6.0], 90, 18, [*(ScaledLaw(UniformLaw("begin"), 0.4 + 0.014
            * (i * 7 % 25)) for i in range(25)), LumpLaw(0.08, "end")]),  # the best pays rarely and late
        "caps-3-gadgets-6": loose([3.0] * 6, 160, [adopted(dice, *arm) for arm in [(0.03, 0.02), (0.01, 0.25),
            (0.05, 0.0), (0.004, 0.35), (0.02, 0.12), (0.012, 0.27)]]),  # three times what all friends pay
        "caps-3-to-30-eight": loose(guesses, 80, [(BetaLaw(8 * m, 8 - 8 * m, "middle"), LumpLaw(m, Zipf(1)),
            tidal(dice, m, 0.8, 5), Coins(m, "end"))[i % 4] for i, m in enumerate((0.3, 0.36, 0.33, 0.42,
            0.47, 0.27, 0.39, 0.3))]),  # four kinds, each cap too large in its own way
        "slow-burners-10": alike(300, partial(adopted, dice), *((0.04 * 0.8**i, 0.02 + 0.055 * i) for i in (3,
            7, 0, 5, 9, 1, 6, 2, 8, 4))),  # what sells at once stops; some take off much later
        "weibull-tails-8": plain(100, [EmpiricalLaw(dated(np.minimum(s * dice.weibull(k, USERS), 1),
            dice.uniform(0, G, USERS), G)) for s, k in [(0.1, 1), (0.05, 0.5), (0.02, 0.35), (0.12, 1.5),
            (0.06, 0.45), (0.08, 0.7), (0.01, 0.3), (0.13, 3)]]),  # one payment; wild arms and quiet ones
        "45-arms-in-3000": plain(24, [(LumpLaw(m), ScaledLaw(UniformLaw("end"), 2 * m), BetaLaw(4 * m, 4 - 4 *
            m))[i % 3] for i, m in enumerate(crowd.tolist())], 8),  # sixty-six rounds an arm
        # Strange ones.
        "third-from-two-6": plain(60, [EmpiricalLaw(np.stack([0.2 * a, 0.2 * b, 0.6 * ((a ^ b) == odd)],
            axis=1)) for a, b, odd in [(dice.random(USERS) < p, dice.random(USERS) < q, odd) for p, q, odd in
            [(0.5, 0.5, 1), (0.3, 0.8, 1), (0.6, 0.6, 0), (0.2, 0.1, 0), (0.7, 0.2, 1), (0.8,
            0.7, 0)]]], 3),  # the third comes if just one of two came, or not
        "cantor-dust-8": plain(54, [Coins(0.4 + 0.01 * (i * 3 % 8), (dust == i % 2) / (8, 19)[i % 2]) for i in
            range(8)], 27),  # paid at the ages of a Cantor set, or at all others
        "one-outage-6": plain(75, [EmpiricalLaw(((days[:25] < at) | (days[:25] >= at + off)) / 25) for at, off
            in [(dice.geometric(p, one), dice.exponential(wait, one)) for p, wait in [(0.02, 5), (0.1, 2),
            (0.05, 9), (0.01, 20), (0.2, 1), (0.04, 3)]]], 25),  # near the cap, but for one gap at any time
        "one-alive-of-75": plain(40, lumps(*(0.05 * (i == 58) for i in range(75)), spread="end")),  # 1 in 20
        "mirror-twins-12": plain(100, [BetaLaw(2 + m, 4, BetaBinomial(*ab)) for m in (0.3, 0.9, 0.0, 1.2, 0.6,
            1.5) for ab in [(1, 5), (5, 1)]]),  # each arm has a twin, whose pay comes in reverse
        "ladder-of-risks-5": Problem([1, 4, 16, 64, 256], 64, 16, lumps(0.5, 0.2, 0.075, 0.031, 0.004,
            spread="begin_middle")),  # the larger the rarer, and up to one rung the better
        "three-in-a-row-7": plain(72, [EmpiricalLaw(pay / 18 * (hit[:, 2:] & hit[:, 1:-1] & hit[:, :-2])) for
            hit, pay in [(dice.random((USERS, 20)) < p, pay) for p, pay in [(0.6, 1), (0.7, 0.8), (0.8, 0.5),
            (0.9, 0.4), (0.66, 0.85), (0.75, 0.75), (0.95, 0.32)]]], 18),  # a third hit in a row pays
        "patience-pays-6": plain(120, [EmpiricalLaw(np.diag(np.linspace(*ends, G))) for ends in [(0.0, 0.8),
            (0.5, 0.2), (0.1, 0.75), (0.6, 0.3), (0.3, 0.5), (0.05, 0.95)]]),  # the later the more, or less
        "palindromes-6": plain(80, [EmpiricalLaw(np.c_[half, half[:, ::-1] ^ turned] / G) for half, turned in
            [(dice.random((USERS, 10)) < p, turned) for p, turned in [(0.45, 0), (0.5, 1), (0.54, 0), (0.3,
            1), (0.48, 0), (0.4, 0)]]]),  # the second half is the first backwards, or its opposite
        "five-laws-in-16-shops": plain(60, [LumpLaw(0.3, "begin"), BetaLaw(3, 6), Coins(0.28, "end"),
            sure(0.25), tidal(dice, 0.37, 1, 4)] * 16),  # eighty arms, but no more than five kinds
        "told-at-once-6": Problem([2, 3, 4, 5, 6, 8], 90, 1, [BetaLaw(3, 2), UniformLaw(), LumpLaw(0.35),
            BetaLaw(0.7, 1.1), sure(0.27), BetaLaw(5, 14)]),  # one group: the first round says all
    }  # fmt: skip
    horizons = {
        "driving-tests-4": 8000, "auctions-3": 4000, "crowdfunding-7": 10_000, "quizzes-6": 3000,
        "price-rise-6": 10_000, "savings-plans-4": 6000, "wines-12": 5000, "k240-smooth": 10_000,
        "w1800-of-5000": 5000, "45-arms-in-3000": 3000, "told-at-once-6": 5000, "palindromes-6": 10_000,
    }  # fmt: skip
    return {
        name: (problem, horizons.get(name, HORIZON), SEED + i)
        for i, (name, problem) in enumerate(problems.items())
    }
