"""Yet more problems for the default policy, written without knowledge of how the policy works.

They were the fresh set until runs on them were looked into. Half are ordinary, a quarter hard and a quarter
strange. The set for judging is fresh_problems.py.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from benchmarks.seen_1_problems import G, leaving, loose, lumps, mix, over, plain, sure
from benchmarks.seen_3_problems import USERS, Dice, alike, counted, logged

from accrual.problems.laws import BernoulliLaw as Coins
from accrual.problems.laws import BetaLaw, EmpiricalLaw, Law, LeavingLaw, LumpLaw, UniformLaw
from accrual.problems.problem import Problem
from accrual.problems.spreads import BetaBinomial, Boltzmann, Zipf

SEED, HORIZON = 977_000_000, 20_000


def watched(dice: Dice, scale: float, shape: float, groups: int = G) -> Law:
    """Users pay evenly until they stop, after a time with a Weibull law, in groups."""
    stop = scale * dice.weibull(shape, (USERS, 1))
    return EmpiricalLaw(np.clip(stop - np.arange(groups), 0.0, 1.0) / groups)


def subscribed(dice: Dice, join: float, churn: float, groups: int = G) -> Law:
    """Some join, and leave at a rate of their own, so that those who are left leave more and more rarely."""
    leave = dice.beta(1.5, 1.5 / churn - 1.5, (USERS, 1)) * (np.arange(groups) > 0)
    stay = np.cumprod(dice.random((USERS, groups)) >= leave, axis=1)
    return EmpiricalLaw((dice.random((USERS, 1)) < join) * stay / groups)


def shopped(dice: Dice, rate: float, life: float, basket: float, groups: int = G) -> Law:
    """Each customer buys at a rate of their own, until one day they are a customer no more."""
    there = np.arange(groups) < dice.exponential(life, (USERS, 1))
    orders = dice.poisson(dice.exponential(rate, (USERS, 1)) * there)
    return logged(orders * basket * np.exp(0.5 * dice.standard_normal((USERS, groups))))


def burst(dice: Dice, size: float, peak: float, width: float, tail: float = 0.8, groups: int = G) -> Law:
    """One wave of visits of any size, which peaks sooner or later; what comes too late is lost."""
    wave = (np.arange(groups) - dice.gamma(4, peak / 4, (USERS, 1))) / width
    total = np.minimum(size * np.exp(tail * dice.standard_normal((USERS, 1))), 1.0)
    return logged(total * np.exp(-(wave**2)) / (width * np.sqrt(np.pi)))


def insured(dice: Dice, claim: float, worst: float, groups: int = G) -> Law:
    """A premium in each group, except that a claim eats the premiums of up to `worst` groups."""
    owed, paid = np.zeros(USERS), np.zeros((USERS, groups))
    for g in range(groups):
        owed = np.where(dice.random(USERS) < claim, dice.uniform(0.0, worst, USERS), owed - 1.0)
        paid[:, g] = owed <= 0.0
    return EmpiricalLaw(paid / groups)


def habit(dice: Dice, first: float, learn: float, most: float, groups: int = G) -> Law:
    """Who was active becomes more likely to be so again, up to `most`; who was not, less."""
    chance, active = np.full(USERS, first), np.zeros((USERS, groups))
    for g in range(groups):
        active[:, g] = dice.random(USERS) < chance
        chance += learn * (most * active[:, g] - chance)
    return EmpiricalLaw(active / groups)


def spent(dice: Dice, usual: float, people: float, months: float, groups: int = G) -> Law:
    """Spending varies by person and by month, both lognormally, and ends at the limit."""
    noise = people * dice.standard_normal((USERS, 1)) + months * dice.standard_normal((USERS, groups))
    return logged(usual / groups * np.exp(noise))


def seen_4() -> dict[str, tuple[Problem, int, int]]:
    """The problems by name; the comment at the end of each says what it is."""
    dice = np.random.default_rng(SEED)
    viewers, joiners, policies = partial(watched, dice), partial(subscribed, dice), partial(insured, dice)
    posts, sellers = dice.uniform((0.05, 2, 1), (0.3, 14, 4), (30, 3)), dice.beta(2, 3, (130, 2)).tolist()
    songs, rents, slots = dice.uniform((1, 0.7), (5, 1.6), (40, 2)), dice.random(20), dice.beta(1, 3, 100)
    thin, plateau, three = dice.random(400) ** 3, dice.integers(0, 3, 220), dice.dirichlet([4, 3, 2], 150)
    ranks, rare = dice.permutation(50) + 1.0, 0.002 + 0.02 * dice.beta(1, 2, 110)
    fewer, week = np.arange(1, 21) / np.arange(2, 22), np.cos(np.arange(28) * np.pi / 3.5)
    pieces, half = [dice.permutation(Zipf(1.2).pmf(24)) for _ in range(24)], over(0.5, 0, 1)
    alive = {4: 0.05, 14: 0.9, 24: 0.15, 34: 0.01, 44: 0.25, 54: 0.02}
    problems = {
        # Ordinary ones: products and their users.
        "video-titles-2": alike(20, viewers, (7, 0.8), (8, 0.9)),  # minutes watched of one video, two titles
        "magazine-prices-4": Problem([45, 60, 80, 100], 720, 24, [joiners(*arm, groups=24) for arm in
            [(0.4, 0.06), (0.34, 0.05), (0.3, 0.08), (0.2, 0.07)]], "first"),  # caps are two years' fees
        "repeat-shoppers-8": alike(180, partial(shopped, dice), (0.15, 8, 0.1), (0.1, 20, 0.08),
            (0.3, 4, 0.1), (0.2, 12, 0.09), (0.4, 3, 0.07), (0.05, 30, 0.2), (0.25, 6, 0.12), (0.1, 9, 0.15),
            groups=18),  # orders at a pace of the customer's own, for some time
        "tutors-5": plain(70, [EmpiricalLaw(np.outer(dice.beta(a, b, USERS), spread.pmf(14))) for a, b, spread
            in [(3, 3, Boltzmann(0.1)), (5, 4, Zipf(0.4)), (2, 3, BetaBinomial(3, 1)), (6, 4, BetaBinomial(6,
            2)), (4, 5, Zipf(1))]], 14),  # marks of fourteen lessons; talent shows in all alike
        "concert-halls-3": alike(90, partial(counted, dice), (1.6, 1.0, 0.0125), (0.7, 1.06, 0.0125),
            (5, 0.92, 0.0125), groups=30),  # 80 seats, booked early or late until they are sold out
        "posts-30": alike(24, partial(burst, dice), *posts.round(3).tolist(), groups=24),  # waves of shares
        "motor-policies-5": Problem([300, 340, 380, 420, 480], 360, 12, [policies(*arm, groups=12) for arm in
            [(0.01, 4), (0.02, 8), (0.05, 6), (0.04, 12), (0.1, 9)]], "first"),  # premiums, less claims
        "banners-16": plain(5, lumps(*(0.004 + 0.0011 * (i * 7 % 16) for i in range(16)),
            spread=Boltzmann(1.2)), 5),  # clicks, half a per cent to two
        "cafes-4": plain(84, [Coins((level + swing * week).tolist()) for level, swing in [(0.2, 0.2),
            (0.3, 0.3), (0.25, 0.05), (0.34, 0.2)]], 28),  # visits in four weeks; weekends differ
        "idle-games-10": plain(42, [LeavingLaw([1.0, *fewer**decay], play) for play, decay in [(0.6, 0.3),
            (0.7, 0.5), (0.5, 0.2), (0.8, 0.7), (0.9, 0.9), (0.4, 0.1), (0.55, 0.4), (0.65, 0.35),
            (0.75, 0.6), (0.45, 0.05)]], 21),  # the share of players falls like a power of the age
        "flight-extras-9": Problem(range(30, 120, 10), 60, 6, [Coins(0.62 - 0.055 * i, (0.3, 0.2, 0, 0, 0.1,
            0.4) if i % 2 else (0.6, 0.1, 0, 0, 0.1, 0.2)) for i in range(9)]),  # when booked or checked in
        "radio-songs-40": alike(6, viewers, *songs.round(2).tolist(), groups=6),  # minutes until switched off
        "newsletters-3": plain(52, leaving((0.97, 0.43), (0.99, 0.3), (0.93, 0.6), groups=26), 26),  # opened
        "delivery-fees-6": Problem([2, 3, 4, 5, 6, 8], 15, 5, [LumpLaw(p, BetaBinomial(1, 1 + i)) for i, p in
            enumerate((0.7, 0.5, 0.42, 0.31, 0.24, 0.12))]),  # ordered or not; the cheap ones think longer
        "languages-12": alike(56, partial(habit, dice), *((0.9 - 0.05 * i, 0.1 + 0.03 * (i * 5 % 12),
            0.8 + 0.015 * (i * 7 % 12)) for i in range(12)), groups=28),  # exercises become a habit or not
        "market-stalls-20": Problem(range(10, 50, 2), 30, 10, [BetaLaw(x, 8 - x, "middle") for x in
            (8 * (4 + 3 * rents) / np.arange(10, 50, 2)).round(3).tolist()]),  # the more room, the less full
        "bookshop-50": plain(100, lumps(*(0.12 * ranks**-0.7).round(4).tolist(),
            spread=BetaBinomial(1, 3))),  # a few sell well, most hardly
        "cashback-8": alike(240, partial(spent, dice), (0.2, 0.8, 0.4), (0.3, 0.4, 0.8), (0.15, 1, 0.6),
            (0.25, 0.9, 0.3), (0.36, 0.3, 0.6), (0.1, 1.5, 0.5), (0.28, 0.6, 0.5), (0.4, 0.5, 0.2),
            groups=12),  # what eight cards are used for, up to their limits
        "trial-then-fee-2": plain(28, [LeavingLaw([*[1.0] * 14, join, *[stay] * 13], 1.0, over(1.0, 14, 28,
            28)) for join, stay in [(0.3, 0.97), (0.4, 0.95)]], 28),  # two free weeks, then a fee a day
        "ad-slots-100": plain(12, lumps(*(0.01 + 0.05 * slots).round(4).tolist(),
            spread=Boltzmann(0.6)), 6),  # a hundred places for an ad, most of them poor
        "sellers-130": plain(150, [LeavingLaw([0.1 + 0.6 * buy, *[0.5 + 0.45 * stay] * 9])
            for buy, stay in sellers], 10),  # who buys comes back, until once they do not
        "museum-tours-5": plain(11, [LeavingLaw([1.0, *[stay - tire * i for i in range(10)]], p, spread)
            for stay, tire, p, spread in [(0.95, 0.01, 0.9, "uniform"), (0.9, 0.0, 1.0, "end"), (0.99, 0.03,
            0.8, "begin"), (0.93, 0.0, 0.95, "middle"), (1.0, 0.02, 0.7, "uniform")]], 11),  # stops heard
        # Hard ones: small gaps, much noise, many arms, long windows, caps too large.
        "k400-thin-top": plain(25, [LumpLaw(0.03 + 0.5 * x, ("begin", "uniform", "end")[i % 3])
            for i, x in enumerate(thin.round(4).tolist())], 5),  # few are good; fifty rounds an arm
        "k220-plateau": plain(60, [BetaLaw(3.4 if i == 180 else 2 + 0.3 * x, 4.0, "middle_end")
            for i, x in enumerate(plateau.tolist())], 12),  # smooth; three levels, and one arm above them
        "k110-rarely-pays": plain(80, lumps(*rare.round(5).tolist(), spread="uniform")),  # 0.2 to 2 per cent
        "w2500-slower-is-better": plain(2500, [Coins(0.3 + 0.04 * i, BetaBinomial(1 + i, 6 - i))
            for i in (2, 5, 0, 4, 1, 3)], 50),  # six speeds; who pays later pays more
        "w2000-of-5000": alike(2000, joiners, (0.7, 0.2), (0.5, 0.05), (0.6, 0.1), (0.4, 0.02), (0.9, 0.3),
            (0.65, 0.07), (0.3, 0.01), (0.8, 0.15), (0.55, 0.12), groups=40),  # two windows and a half
        "half-a-percent-apart-12": plain(64, lumps(*(0.5 + 0.005 * (i * 5 % 12) for i in range(12)),
            spread="middle_end"), 16),  # coins
        "a-whisker-2": plain(400, lumps(0.3, 0.32, spread="end")),  # two late coins
        "caps-40-of-all-kinds-7": loose([40.0] * 7, 80, [LumpLaw(0.36), BetaLaw(2, 3, "end"), UniformLaw(),
            Coins(0.44, "middle"), sure(0.41), LumpLaw(0.56, "middle_end"),
            *leaving((0.9, 0.8))]),  # no total comes near a cap
        "quiet-25-and-a-loud-best": plain(120, [*(BetaLaw(x, 8 - x) for x in np.linspace(1.5, 3.6,
            25).tolist()), LumpLaw(0.5, "end")], 24),  # the best is a late coin, the others are smooth
        "nearly-always-paid-13": alike(130, policies, *((0.002 + 0.001 * (i * 6 % 13), 4 + i % 4)
            for i in range(13)), groups=26),  # totals close to the caps, except for rare claims
        "renewal-cliff-18": plain(600, [LeavingLaw([1.0, *[0.98] * 12, 0.3 + 0.035 * (i * 5 % 18),
            *[0.98] * 6]) for i in range(18)]),  # all alike until the contract must be renewed
        "lognormal-9": alike(100, partial(spent, dice), *((0.015 + 0.005 * (i * 2 % 9), 2.2 - 0.15 * i, 0.5)
            for i in range(9))),  # the smaller the usual total, the longer its tail
        # Strange ones.
        "double-or-nothing-5": plain(80, [LeavingLaw([1.0, *[stay] * 7], 1.0, 2.0 ** np.arange(8) / 255)
            for stay in (0.6, 0.75, 0.7, 0.85, 0.8)], 8),  # each payment is twice the one before, or the end
        "prime-ages-10": plain(60, [Coins(0.3 + 0.02 * (n * 3 % 10), (np.arange(1, 61) % p == 0) / (60 // p))
            for n, p in enumerate((2, 3, 5, 7, 11, 13, 17, 19, 23, 29))], 60),  # at the multiples of a prime
        "same-totals-other-times-12": plain(160, [EmpiricalLaw(np.outer(np.linspace(0, 0.9 if i == 4 else 0.8,
            USERS), BetaBinomial(0.5 + i, 12 - i).pmf(G))) for i in range(12)]),  # one arm pays more
        "shuffled-pieces-24": plain(72, [Coins(0.48 if i == 9 else 0.36 + 0.02 * (i % 4), spread)
            for i, spread in enumerate(pieces)], 24),  # the same sizes of pieces, in orders of their own
        "dead-54-of-60": Problem([2.0 ** (i % 7) for i in range(60)], 50, 10, lumps(*(alive.get(i, 0.0)
            for i in range(60)), spread="middle")),  # most arms never pay; caps from 1 to 64, all true
        "scratch-cards-4": plain(40, [mix((1000 - a - b - c, over(0)), (a, over(0.02, 0, 1)), (b, over(0.2,
            2, 4)), (c, over(1.0, 19))) for a, b, c in [(300, 20, 4), (100, 80, 2), (600, 10, 1),
            (0, 0, 27)]]),  # small prizes at once, large ones at the end
        "millionths-5": Problem([3e-6, 5e-6, 2e-6, 8e-6, 4e-6], 100, G, [BetaLaw(3, 2, "begin"), Coins(0.42),
            LumpLaw(0.8), BetaLaw(1, 3.4, "end"), UniformLaw("middle")]),  # tiny units, true caps
        "half-is-certain-5": plain(120, [mix((100 - n, half), (n, half + over(0.5, 10)))
            for n in (20, 35, 28, 50, 38)]),  # half of the cap at once from all, the rest from some
        "echoes-7": plain(200, [EmpiricalLaw(np.outer(dice.beta(1 + 0.2 * (i * 4 % 7), 2, USERS), half +
            over(0.5, G - 1))) for i in range(7)]),  # the first payment comes again at the very end
        "nothing-half-or-all-150": plain(40, [mix((n, over(0)), (h, over(0.5, 0, 3)), (100 - n - h, over(1,
            12))) for n, h, _ in (100 * three).astype(int).tolist()]),  # soon half, late all, or nothing
        "cap-250-of-the-best-3": loose([1, 1, 250], 60, [LumpLaw(0.4, "middle"), BetaLaw(2, 3, "begin"),
            BetaLaw(3, 3, "end")]),  # the best arm alone has a cap that is much too large
    }  # fmt: skip
    horizons = {
        "video-titles-2": 12_000, "concert-halls-3": 8000, "radio-songs-40": 6000, "newsletters-3": 5000,
        "delivery-fees-6": 3000, "trial-then-fee-2": 6000, "museum-tours-5": 4000, "w2000-of-5000": 5000,
        "renewal-cliff-18": 10_000, "double-or-nothing-5": 10_000, "dead-54-of-60": 10_000,
    }  # fmt: skip
    return {
        name: (problem, horizons.get(name, HORIZON), SEED + i)
        for i, (name, problem) in enumerate(problems.items())
    }
