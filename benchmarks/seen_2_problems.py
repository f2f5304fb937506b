"""More problems for the default policy, written without knowledge of how the policy works.

They were the fresh set until runs on them were looked into. About a third are ordinary, a third hard and a
third strange. The set for judging is fresh_problems.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt
from benchmarks.seen_1_problems import G, any_kind, fans, leaving, loose, lumps, mix, over, plain, sure

from accrual.core.arrays import Floats
from accrual.problems.laws import BernoulliLaw as Coins
from accrual.problems.laws import BetaLaw, EmpiricalLaw, Law, LeavingLaw, LumpLaw, ScaledLaw, UniformLaw
from accrual.problems.problem import Problem
from accrual.problems.spreads import BetaBinomial, Boltzmann, Zipf

SEED, HORIZON = 91_000_000, 20_000
USERS = 1000  # logged decisions of an arm, where they are made with dice
Dice = np.random.Generator


def each(window: int, law: Callable[..., Law], *arms: tuple[float, ...], groups: int = G) -> Problem:
    """Make arms with caps of 1: the law of each from its numbers."""
    return plain(window, [law(*numbers) for numbers in arms], groups)


def at(*ages: int, groups: int = G) -> Floats:
    """Make a spread that is even over these groups."""
    return np.asarray(np.bincount(ages, minlength=groups) / len(ages))


def until_cap(rows: npt.ArrayLike) -> Law:
    """Make a law of logged rows; a user who has paid 1 in all pays nothing more."""
    return EmpiricalLaw(np.diff(np.minimum(np.cumsum(rows, axis=1), 1.0), axis=1, prepend=0.0))


def baskets(dice: Dice, rate: float, fade: float, size: float, tail: float = 0.7) -> Law:
    """Orders come at a rate that may fade; their sizes have a long tail."""
    orders = dice.random((USERS, G)) < rate * fade ** np.arange(G)
    return until_cap(orders * size * np.exp(tail * dice.standard_normal((USERS, G))))


def chain(dice: Dice, first: float, more: float, worth: float = 0.05) -> Law:
    """Each customer brings `more` others a group later, on average."""
    came = [dice.poisson(first, USERS)]
    while len(came) < G:
        came.append(dice.poisson(more * came[-1]))
    return until_cap(worth * np.stack(came, axis=1))


def sessions(dice: Dice, come: float, go_on: float, pay: float) -> Law:
    """Players pay while they play: they go on with one chance, and come back with another."""
    on, played = np.ones(USERS, bool), np.zeros((USERS, G))
    for g in range(G):
        played[:, g] = on
        on = dice.random(USERS) < np.where(on, go_on, come)
    return until_cap(pay * played)


def card(dice: Dice, visit: float, every: int, small: float, bonus: float) -> Law:
    """Some come often and some rarely; each visit pays a little, and each `every`-th a bonus too."""
    came = dice.random((USERS, G)) < dice.beta(3 * visit, 3 - 3 * visit, (USERS, 1))
    return until_cap(small * came + bonus * (came & (np.cumsum(came, axis=1) % every == 0)))


def moody(dice: Dice, like: float, dislike: float, groups: int = G) -> Law:
    """Each user has a chance to pay of their own, the same in all groups."""
    return EmpiricalLaw((dice.random((USERS, groups)) < dice.beta(like, dislike, (USERS, 1))) / groups)


def budget(dice: Dice, total: float) -> Law:
    """What a user spends in all hardly varies; when it is spent varies a lot."""
    return EmpiricalLaw((total + dice.uniform(-0.03, 0.03, (USERS, 1))) * dice.dirichlet([0.15] * G, USERS))


def instalments(buy: float, fail: float, deposit: float, months: int = 12) -> Law:
    """Who buys pays a deposit, then equal instalments until they fail."""
    rest = months - 1
    return LeavingLaw([buy, *[1 - fail] * rest], 1.0, [deposit, *[(1 - deposit) / rest] * rest])


def members(join: float, stay: float, every: int, months: int = 24) -> Law:
    """Who joins pays a fee every so many months, and may leave before each but the first."""
    stays = [join, *(1.0 if month % every else stay for month in range(1, months))]
    return LeavingLaw(stays, 1.0, at(*range(0, months, every), groups=months))


def seen_2() -> dict[str, tuple[Problem, int, int]]:
    """The problems by name; the comment at the end of each says what it is."""
    dice = np.random.default_rng(SEED)
    orders, players, likes = partial(baskets, dice), partial(sessions, dice), partial(moody, dice)
    winter, maturity = (1 + 0.8 * np.cos(np.arange(12) * np.pi / 6)) / 12, [0.1, *[0.0] * 38, 0.9]
    songs, sellers, smooth = dice.random((24, 2)), dice.random((120, 2)), dice.uniform(1, 3, 250).round(2)
    few = [0.3 + 0.01 * (i // 20) if i % 20 == 7 else 0.05 + 0.1 * dice.random() for i in range(400)]
    problems = {
        # Ordinary ones.
        "news-articles": plain(48, [Coins(p, Boltzmann(fade)) for p, fade in [(0.3, 0.6), (0.42, 0.15),
            (0.35, 0.9), (0.25, 0.3), (0.38, 1.2), (0.46, 0.4), (0.2, 0.1), (0.4, 0.25)]], 24),  # quick decay
        "podcast-ads": plain(150, [LeavingLaw([1.0, pilot, *[stay] * 13], 0.85) for pilot, stay in
            [(0.5, 0.97), (0.7, 0.9), (0.85, 0.8), (0.4, 0.99), (0.6, 0.96)]], 15),  # many hear only one
        "monthly-or-yearly": Problem([1.0] * 5, 480, 24, [members(0.3, 0.95, 1), members(0.15, 0.6, 12),
            members(0.22, 0.75, 12), members(0.25, 0.93, 1), members(0.2, 0.9, 3)], "first"),  # fees
        "clinic-visits": plain(84, [BetaLaw(np.linspace(*ends, 14).tolist(), 2, at(0, 1, 3, 7, 13, groups=14))
            for ends in [(1, 3), (2, 2), (3, 1), (1.5, 4.5)]], 14),  # scores at five visits; some rise
        "shop-baskets": each(200, orders, (0.1, 1, 0.08), (0.15, 0.93, 0.1), (0.06, 1, 0.19),
            (0.25, 0.85, 0.07), (0.08, 1, 0.09), (0.12, 0.97, 0.11)),  # repeat orders, more or less loyal
        "display-ads-12": plain(30, [LumpLaw(0.02 + 0.003 * (i * 5 % 12), Zipf(0.5 + 0.15 * i))
            for i in range(12)], 30),  # a sale in a few of a hundred, most of them soon
        "energy-savings": Problem([120, 120, 150, 90], 360, 12, [BetaLaw(a, b, winter) for a, b in
            [(11, 14), (9, 11), (8, 15), (10, 9)]]),  # more in winter; quiet, and small gaps
        "delivery-tips": plain(20, [mix((100 - a - b, over(0, groups=10)), (a, over(now, 0, 1, 10)),
            (b, over(later, 6, 9, 10))) for a, b, now, later in [(30, 20, 0.2, 0.5), (10, 50, 0.2, 0.4),
            (50, 5, 0.3, 0.5), (20, 35, 0.3, 0.6), (0, 40, 1, 0.5)]], 10),  # at once or on delivery
        "b2b-renewals": Problem([90, 120, 60, 200], 3000, 3, [LeavingLaw(stay) for stay in [(0.3, 0.5, 0.8),
            (0.15, 0.9, 0.95), (0.45, 0.6, 0.8), (0.1, 0.85, 0.95)]], "first"),  # three yearly contracts
        "seller-payouts": Problem(range(100, 600, 50), 56, 8, [BetaLaw(2.0, b) for b in
            (1.2, 2.8, 4, 4.2, 7.5, 8.5, 9, 9, 15, 17)], "first"),  # a payout a week; ten sellers, own caps
        "two-headlines": plain(12, lumps(0.11, 0.13, spread=Boltzmann(0.5)), 12),  # an A/B test of clicks
        "loyalty-card": each(200, partial(card, dice), (0.3, 5, 0.02, 0.12), (0.4, 10, 0.02, 0.2),
            (0.25, 3, 0.01, 0.1), (0.5, 8, 0.025, 0.05), (0.35, 4, 0.01, 0.13)),  # bonus points
        "instalments": Problem([3, 5, 8, 12, 20], 360, 12, [instalments(*arm) for arm in [(0.5, 0.01, 0.1),
            (0.36, 0.03, 0.3), (0.31, 0.05, 0.1), (0.15, 0.02, 0.2), (0.09, 0.05, 0.5)]]),  # caps are prices
        "playlists-24": Problem([30.0] * 24, 60, 15, leaving(*((0.8 + 0.19 * stay, 0.35 + 0.6 * play)
            for stay, play in songs), groups=15)),  # 24 playlists, each with skips and leaving of its own
        "game-sessions": each(140, players, (0.1, 0.6, 0.05), (0.05, 0.9, 0.05), (0.3, 0.3, 0.05),
            (0.15, 0.7, 0.06), (0.02, 0.8, 0.1), (0.2, 0.8, 0.045)),  # pieces come in runs
        "reviews": each(100, likes, (0.6, 1.4), (2, 3.5), (0.3, 0.5), (4, 7), (1, 1.4)),  # liked or not
        "guessed-caps": loose([2.0] * 7, 80, [LumpLaw(0.2), LumpLaw(0.3, "begin"), UniformLaw("begin"),
            Coins(0.4, "middle"), BetaLaw(1, 2), BetaLaw(2, 1.7), LumpLaw(0.45)]),  # all twice too large
        "short-ab-test": each(40, orders, (0.08, 0.95, 0.2), (0.1, 0.95, 0.2)),  # 2,000 rounds, two shops
        # Hard ones.
        "patrons": plain(300, [mix((1000 - a - b, over(0)), (a, over(0.06, 0, 2)), (b, over(1, 1))) for a, b
            in [(500, 20), (100, 45), (300, 30), (800, 10), (200, 62), (600, 15), (50, 50)]]),  # rare kinds
        "sure-among-59": plain(100, [*lumps(*np.linspace(0.1, 0.38, 59).round(3).tolist(), spread="middle"),
            sure(0.42)]),  # the best of 60 arms always pays the same; the others are coins
        "sparse-nine": plain(160, lumps(0.001, 0.002, 0.0015, 0.003, 0.001, 0.002, 0.0025, 0.007, 0.004,
            spread="middle_end")),  # of a thousand decisions, one to seven pay
        "sparse-orders": Problem([5.0] * 6, 100, G, [orders(rate, 1, 0.06, 1.2) for rate in
            (0.0002, 0.0004, 0.0003, 0.001, 0.0006, 0.0001)]),  # as rare, with a long tail of sizes
        "k400-few-good": plain(20, lumps(*few)),  # 20 of 400 arms are good, and differ by a hundredth each
        "k120-leaving": plain(60, [LeavingLaw((0.2 + 0.6 * join,) + (0.8 + 0.2 * stay,) * 14)
            for join, stay in sellers], 15),  # 120 sellers: who buys comes back until they leave
        "k250-smooth": plain(100, [BetaLaw(float(a), 2.0, "begin_middle")
            for a in smooth]),  # smooth pieces, many arms near the best
        "uptime": plain(200, leaving((0.985, 1), (0.99, 1), (0.994, 1), (0.998, 1), (0.98, 1))),  # near caps
        "hair-smooth": plain(160, [BetaLaw(a, 3.0, "end")
            for a in (3.0, 3.02, 3.05, 3.1, 2.95, 3.17)]),  # gaps of a two-hundredth, quiet and late
        "w8000-instalments": each(8000, partial(instalments, months=40), (0.6, 0.05, 0.1),
            (0.35, 0.004, 0.02), (0.5, 0.02, 0.05), (0.7, 0.1, 0.2), (0.4, 0.01, 0.1),
            groups=40),  # long credits, of which some fail
        "w5000-milestones": plain(5000, [LeavingLaw(step, 1.0, [0.05, 0.1, 0.15, 0.3, 0.4]) for step in
            [(0.9, 0.6, 0.6, 0.6, 0.9), (0.5, 0.9, 0.9, 0.9, 0.9), (0.8, 0.8, 0.8, 0.5, 0.5),
            (0.6, 0.7, 0.9, 0.95, 1)]], 5),  # who gets to a step is paid for it; the last steps pay most
        "gifts": each(100, orders, (0.05, 1, 0.1, 0.3), (0.05, 1, 0.06, 0.9), (0.05, 1, 0.05, 1.8),
            (0.05, 1, 0.09, 0.6)),  # the arm with the smallest usual gift has the longest tail, and is best
        "fixed-budgets": each(100, partial(budget, dice), (0.4,), (0.46,), (0.44,), (0.5,), (0.52,), (0.42,),
            (0.48,)),  # wild pieces, quiet totals
        "snowballs": plain(100, [LeavingLaw((1.0,) + (stay,) * 19, 1, BetaBinomial(grow, 1)) for stay, grow in
            [(0.93, 1), (0.955, 2), (0.965, 4), (0.98, 8)]]),  # pay grows; the best begins low
        "referral-chains": each(120, partial(chain, dice), (0.5, 0.5), (0.2, 0.8), (0.12, 1.0), (0.8, 0.2),
            (0.4, 0.7)),  # customers bring customers; most bring none
        "caps-2-to-50": loose([2, 5, 10, 20, 50, 3], 120, [Coins(0.4, "begin"), LumpLaw(0.42, "middle"),
            BetaLaw(2, 2.4), *leaving((0.93, 0.75)), UniformLaw("end"), Coins(0.45, "uniform")]),  # six kinds
        "lure-of-40": plain(80, [Coins([0.9 - 0.02 * i] * 4 + [0.2 + 0.01 * (i * 7 % 40)] * 16) for i in
            range(40)]),  # forty arms, and what is seen early says little about the rest
        "short-forty": loose([1, 4] * 20, 40, lumps(*(0.02 + 0.01 * (i * 7 % 40)
            for i in range(40)))),  # 3,000 rounds, forty arms; every other cap is four times too large
        # Strange ones.
        "k100-now-or-next": plain(2, [LumpLaw(0.1 + 0.004 * (i * 37 % 100), [0.01 * i, 1 - 0.01 * i])
            for i in range(100)], 2),  # a window of two rounds; arms pay in the first or in the second
        "maturity": Problem([1.0] * 5, 200, 40, [BetaLaw([3.0] * 39 + [last], 2.0, maturity)
            for last in (1.0, 2.0, 3.0, 2.5, 1.5)], "first"),  # alike at first; nine tenths come at the end
        "all-sure": plain(100, [sure(0.3 + 0.02 * (i * 5 % 12), ("very_begin", "end", "uniform")[i % 3])
            for i in range(12)]),  # no noise at all: every decision of an arm pays the same
        "day-and-night": plain(30, [Coins(p, at(*range(i % 2, 30, 2), groups=30)) for i, p in
            enumerate((0.3, 0.36, 0.42, 0.33, 0.38, 0.46))], 30),  # pay at even ages or at odd ones
        "honest-and-lying": each(100, fans, (50, 0.6, 0.2), (50, 0.1, 0.75), (50, 0.45, 0.45), (50, 0.9, 0.0),
            (50, 0.05, 0.95), (50, 0.65, 0.3)),  # the same first piece promises, warns or says nothing
        "beyond-members": each(30_000, partial(likes, groups=30), (1, 3), (3, 6), (0.4, 0.5), (2, 3), (5, 15),
            groups=30),  # three times the horizon; users keep their habits for good
        "beyond-pensions": plain(15_000, [Coins([p] * 10 + [q] * 20) for p, q in [(0.5, 0.3), (0.4, 0.5),
            (0.3, 0.65), (0.45, 0.35), (0.35, 0.3)]], 30),  # longer than the horizon; an early lure
        "in-cents": Problem([4900, 9900, 19900, 29900, 49900], 100, G, lumps(0.3, 0.17, 0.07, 0.068, 0.031,
            spread="middle")),  # large sums, true caps
        "dead-giants": Problem([1, 1, 1, 1, 200, 200, 80, 500], 100, G,
            lumps(0.3, 0.5, 0.4, 0.45, 0.0, 0.0, 0.0, 0.0005)),  # caps promise much; the giants pay nothing
        "sure-but-when": plain(100, [ScaledLaw(LumpLaw(1.0, speed), m) for m, speed in [(0.5, "uniform"),
            (0.53, "begin"), (0.56, "middle"), (0.6, "end"), (0.45, "very_begin")]]),  # one sure piece
        "k2-quiet-or-late": plain(500, [sure(0.1, "begin"), LumpLaw(0.13, "very_end")]),  # sure, or best
        "same-mean-but-one": plain(100, [any_kind(i, 0.36 if i == 14 else 0.3)
            for i in range(20)]),  # twenty arms of four kinds, all of one mean but for one
        "short-long-window": plain(2000, [Coins(0.4, "begin"), UniformLaw("end"), BetaLaw(2, 2.6),
            LumpLaw(0.6, "middle_end")]),  # 5,000 rounds, a window of 2,000
    }  # fmt: skip
    horizons = {"short-ab-test": 2000, "short-forty": 3000, "short-long-window": 5000}
    return {
        name: (problem, 10_000 if "beyond" in name else horizons.get(name, HORIZON), SEED + i)
        for i, (name, problem) in enumerate(problems.items())
    }
