"""A fresh set of problems for the default policy, whose author had not seen how AgePrior works.

None is in the older sets. Six in ten are ordinary, three in ten hard and the others strange. They are for
judging: the policy is not to be changed after a look at its runs on them.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from benchmarks.seen_1_problems import G, leaving, loose, lumps, mix, over, plain, sure
from benchmarks.seen_3_problems import USERS, Dice, alike, dated, logged

from accrual.problems.laws import BernoulliLaw as Coins
from accrual.problems.laws import BetaLaw, EmpiricalLaw, Law, LeavingLaw, LumpLaw, UniformLaw
from accrual.problems.problem import Problem
from accrual.problems.spreads import BetaBinomial, Boltzmann, Zipf

SEED, HORIZON = 20_265_000, 20_000


def cohort(dice: Dice, do: float, exam: float, groups: int = G) -> Law:
    """Each week's task pays a little, and an exam half; who misses two tasks in a row is out."""
    done = dice.random((USERS, groups)) < dice.beta(8 * do, 8 - 8 * do, (USERS, 1))
    missed = np.pad(~done[:, 1:] & ~done[:, :-1], ((0, 0), (1, 0)))
    there = np.cumsum(missed, axis=1) == 0
    rows = done * there * 0.5 / groups
    rows[:, -1] += 0.5 * there[:, -1] * (dice.random(USERS) < exam)
    return EmpiricalLaw(rows)


def replayed(dice: Dice, like: float, tail: float, worth: float, groups: int = G) -> Law:
    """Who likes it plays it again after times of any length, often soon and sometimes very late."""
    ages = np.cumsum(dice.pareto(tail, (USERS, 40)), axis=1) - 1
    plays = (np.floor(ages)[:, :, None] == np.arange(groups)).sum(axis=1)
    return logged(worth * plays * (dice.random((USERS, 1)) < like))


def milestones(dice: Dice, pace: float, fade: float, groups: int = G) -> Law:
    """Players progress at a pace of their own, ever slower; each of four steps pays more."""
    tempo = dice.gamma(3, pace / 3, (USERS, 1)) * fade ** np.arange(groups)
    steps = np.minimum(np.cumsum(dice.exponential(tempo), axis=1) // 5, 4).astype(np.int64)
    return EmpiricalLaw(np.diff(np.array([0.0, 0.1, 0.3, 0.6, 1.0])[steps], axis=1, prepend=0.0))


def refilled(dice: Dice, renew: float, back: float, groups: int = G) -> Law:
    """Doses come in packs of four; after each the next is begun at once, or some day, or never."""
    left, taken = np.full(USERS, 4), np.zeros((USERS, groups))
    for g in range(groups):
        taken[:, g] = left > 0
        again = dice.random(USERS) < np.where(left == 1, renew, back)
        left = np.where(left > 1, left - 1, 4 * again)
    return EmpiricalLaw(taken / groups)


def hired(dice: Dice, apply: float, meet: float, hire: float, stay: float, wait: float, groups: int) -> Law:
    """Applicants get through four steps or fewer, with a wait before each; later steps pay more."""
    reached = np.cumprod(dice.random((USERS, 4)) < (apply, meet, hire, stay), axis=1)
    ages = np.cumsum(dice.exponential(wait, (USERS, 4)), axis=1)
    parts = enumerate((0.05, 0.1, 0.35, 0.5))
    return EmpiricalLaw(sum(dated(part * reached[:, i], ages[:, i], groups) for i, part in parts))


def solved(dice: Dice, chance: float, wait: float, groups: int = G) -> Law:
    """A request is solved after one answer or more; each answer takes time and makes it worth less."""
    tries = dice.geometric(np.maximum(dice.beta(4 * chance, 4 - 4 * chance, USERS), 0.01))
    return EmpiricalLaw(dated(np.maximum(1.3 - 0.3 * tries, 0.0), dice.gamma(tries, wait), groups))


def streaks(dice: Dice, go: float, most: int, groups: int = G) -> Law:
    """The longer in a row a user has come, the more a visit pays, up to `most` times as much."""
    row, paid = np.zeros(USERS), np.zeros((USERS, groups))
    own = dice.beta(5 * go, 5 - 5 * go, USERS)
    for g in range(groups):
        row = (row + 1) * (dice.random(USERS) < own)
        paid[:, g] = np.minimum(row, most)
    return EmpiricalLaw(paid / (most * groups))


def kept(dice: Dice, rate: float, fade: float, keep: float, size: float, groups: int = G) -> Law:
    """Orders of all sizes are paid two groups later, unless they are sent back before."""
    there = dice.random((USERS, groups)) < rate * fade ** np.arange(groups)
    orders = there * (dice.random((USERS, groups)) < keep) * dice.gamma(2, size / 2, (USERS, groups))
    return logged(np.pad(orders, ((0, 0), (2, 0)))[:, :groups])


def given(dice: Dice, chance: float, usual: float, shape: float, wait: float, groups: int = G) -> Law:
    """At most one gift, log-logistic and at most the cap, after a wait."""
    odds = 1 / dice.uniform(0, 1, USERS) - 1
    gifts = np.minimum(usual * odds ** (1 / shape), 1.0) * (dice.random(USERS) < chance)
    return EmpiricalLaw(dated(gifts, dice.gamma(2, wait / 2, USERS), groups))


def ridden(dice: Dice, level: float, trend: float, weather: float, groups: int = G) -> Law:
    """Of eight bikes some are out each day; the weather is bad or good for days, and there is a trend."""
    mood, out = dice.standard_normal(USERS), np.zeros((USERS, groups))
    for g in range(groups):
        out[:, g] = dice.binomial(8, 1 / (1 + np.exp(-level - trend * g - weather * mood)))
        mood = 0.8 * mood + 0.6 * dice.standard_normal(USERS)
    return EmpiricalLaw(out / (8 * groups))


def launched(dice: Dice, size: float, middle: float, speed: float, groups: int = G) -> Law:
    """An audience grows along an S-curve to any size, sooner or later."""
    turn = middle * np.exp(0.3 * dice.standard_normal((USERS, 1)))
    most = np.minimum(size * np.exp(0.5 * dice.standard_normal((USERS, 1))), 1.0)
    return EmpiricalLaw(most / (1 + np.exp(-(np.arange(groups) - turn) / speed)) / groups)


def let(dice: Dice, find: float, leave: float, groups: int = G) -> Law:
    """A flat is empty for some months, then let until the tenant leaves."""
    begin = dice.geometric(find, (USERS, 1)) - 1
    end, month = begin + dice.geometric(leave, (USERS, 1)), np.arange(groups)
    return EmpiricalLaw(((month >= begin) & (month < end)) / groups)


def collected(dice: Dice, cards: int, draw: float, worth: float, groups: int = G) -> Law:
    """In a group they may draw one of some cards, which pays if they have not got it yet."""
    have, paid = np.zeros((USERS, cards), bool), np.zeros((USERS, groups))
    for g in range(groups):
        card = dice.integers(0, cards, USERS)
        paid[:, g] = new = ~have[np.arange(USERS), card] & (dice.random(USERS) < draw)
        have[np.arange(USERS), card] |= new
    return logged(worth * paid)


def gambled(dice: Dice, begin: float, lose: float, groups: int = G) -> Law:
    """A gambler wins or loses a coin at a time; who once has nine of them, and never had none, is paid."""
    coins = begin + np.cumsum(1 - 2 * (dice.random((USERS, groups)) < lose), axis=1)
    rich = np.maximum.accumulate((coins >= 9) & (np.minimum.accumulate(coins, axis=1) > 0), axis=1)
    return EmpiricalLaw(np.diff(rich.astype(np.float64), axis=1, prepend=0.0))


def fresh() -> dict[str, tuple[Problem, int, int]]:
    """The problems by name; the comment at the end of each says what it is."""
    dice = np.random.default_rng(SEED)
    one, hours = (USERS, 1), np.arange(24)
    winter = (1 + 0.7 * np.cos(np.pi * np.arange(12) / 6)) / 12
    awake = [np.exp(-0.15 * hours) * ((hour + hours) % 24 > 6) for hour in range(24)]
    targets, crowd = 0.01 + 0.16 * dice.beta(1.3, 5, 60), 0.5 * dice.beta(1.5, 4, 260)
    tastes, fair, few = dice.beta(3, 5, 180), dice.uniform(0.15, 0.45, 70), dice.uniform(0.02, 0.1, 48)
    few[[11, 30, 41]] = 0.3, 0.36, 0.33
    problems = {
        # Ordinary ones: what teams could have.
        "course-cohorts-4": alike(140, partial(cohort, dice), (0.8, 0.5), (0.9, 0.35), (0.72, 0.95), (0.84,
            0.6), groups=14),  # weekly tasks and an exam; two misses in a row and they are out
        "playlist-replays-12": alike(60, partial(replayed, dice), *((0.35 + 0.05 * (i * 5 % 12), 0.5 + 0.1 *
            (i * 7 % 12), 0.025) for i in range(12)), groups=30),  # heard again soon, or after a long time
        "ad-creatives-14": plain(30, [LumpLaw(0.012 + 0.003 * (i * 5 % 14), Boltzmann(0.1 + 0.05 * i)) for i
            in range(14)], 15),  # one sale in twenty to eighty
        "film-streaming-5": Problem([48, 72, 96, 120, 180], 360, 12, [LeavingLaw([join, *[stay] * 11], 1.0,
            [0.5 / 11.5, *[1 / 11.5] * 11]) for join, stay in [(0.6, 0.94), (0.5, 0.9), (0.42, 0.95), (0.3,
            0.92), (0.16, 0.97)]], "first"),  # the first month at half the price; five plans
        "shop-orders-kept-7": alike(120, partial(kept, dice), (0.1, 0.97, 0.9, 0.15), (0.3, 0.8, 0.6, 0.2),
            (0.05, 1.0, 0.95, 0.3), (0.2, 0.9, 0.8, 0.12), (0.15, 0.95, 0.5, 0.25), (0.4, 0.7, 0.85, 0.1),
            (0.08, 1.0, 0.7, 0.22), groups=24),  # of all sizes, paid when they can no longer be sent back
        "battle-passes-6": alike(84, partial(milestones, dice), (1.0, 0.97), (2.0, 0.85), (0.7, 1.0), (1.5,
            0.92), (3.0, 0.75), (0.5, 1.01), groups=28),  # four levels; some games are played less soon
        "pill-packs-5": alike(224, partial(refilled, dice), (0.8, 0.1), (0.92, 0.01), (0.7, 0.3), (0.5, 0.5),
            (0.85, 0.17), groups=28),  # adherence: the next pack at once, later or never
        "heat-pumps-4": Problem([900, 1100, 1000, 1400], 360, 12, [EmpiricalLaw(winter * np.clip(dice.beta(a,
            b, one) + 0.1 * dice.standard_normal((USERS, 12)), 0, 1)) for a, b in [(6, 7), (4, 7), (9, 10),
            (3, 7)]]),  # savings by house and season
        "job-boards-8": alike(240, partial(hired, dice), (0.5, 0.5, 0.4, 0.8, 3), (0.8, 0.3, 0.3, 0.7, 2),
            (0.3, 0.7, 0.6, 0.9, 4), (0.6, 0.5, 0.5, 0.6, 3), (0.9, 0.2, 0.5, 0.5, 1.5), (0.4, 0.6, 0.7,
            0.85, 5), (0.7, 0.4, 0.35, 0.9, 2.5), (0.2, 0.9, 0.7, 0.95, 6), groups=24),  # a hiring funnel
        "helpdesk-bots-6": alike(25, partial(solved, dice), (0.4, 1.0), (0.55, 3.0), (0.5, 0.5), (0.62, 5.0),
            (0.3, 0.3), (0.45, 1.5), groups=25),  # quick poor answers, or good ones that take their time
        "gym-streaks-5": alike(150, partial(streaks, dice), (0.6, 4), (0.7, 10), (0.5, 2), (0.65, 5), (0.4,
            1.5), groups=30),  # bonuses for coming day after day
        "thumbnails-3": plain(5, [LeavingLaw([look, *[on] * 4]) for look, on in [(0.42, 0.95), (0.6, 0.8),
            (0.56, 0.9)]], 5),  # looked at, and watched on or not; 3,000 rounds
        "push-hours-24": plain(24, [LumpLaw(0.05 + 0.035 * np.cos((hour - 19) * np.pi / 12), spread /
            spread.sum()) for hour, spread in enumerate(awake)], 24),  # an hour to send at; people sleep
        "bike-stations-9": alike(63, partial(ridden, dice), *((-1.0 + 0.15 * (i * 4 % 9), 0.04 * (i * 5 % 9) -
            0.16, 0.3 * (1 + i % 3)) for i in range(9)), groups=21),  # weather, and trends up and down
        "solar-leads-10": Problem(range(4, 44, 4), 1000, 20, lumps(*((0.5 + 0.07 * (i * 7 % 10)) / (4 + 4 * i)
            for i in range(10)), spread=BetaBinomial(3, 2))),  # sold or not, at ten prices, months later
        "ebook-samples-20": plain(60, [mix((1000 - 40 * n, over(0)), (40 * n - buy, over(0.05, 0, 3)), (buy,
            over(0.05, 0, 3) + over(0.95, 4, 8))) for i in range(20) for n, buy in [(5 + i * 7 % 20, 40 + 8 *
            (i * 11 % 20))]]),  # a sample is read, and perhaps the book bought
        "two-rankers": plain(8, [BetaLaw(0.5, b, Boltzmann(0.5)) for b in (0.9, 0.8)], 8),  # dwell times
        "donor-appeals-6": alike(100, partial(given, dice), (0.2, 0.1, 1.3, 4), (0.1, 0.3, 2.0, 8), (0.3,
            0.04, 1.0, 3), (0.15, 0.2, 3.0, 6), (0.4, 0.06, 1.6, 5), (0.12, 0.12, 1.1, 10)),  # heavy tails
        "ad-audiences-60": plain(40, [LumpLaw(p, BetaBinomial(1, 1 + i % 5)) for i, p in
            enumerate(targets.round(4).tolist())], 10),  # sixty target groups
        "small-loans-6": alike(480, lambda take, stay, fade, groups: LeavingLaw([take, *(stay - fade * g for g
            in range(1, groups))], 1.0, over(0.1, 0, 1, groups) + over(0.9, 1, groups, groups)), (0.7, 0.95,
            0.005), (0.5, 0.99, 0.002), (0.9, 0.9, 0.01), (0.6, 0.96, 0.0), (0.4, 1.0, 0.001), (0.8, 0.92,
            0.0), groups=24),  # interest, until it is paid back early, more and more do
        "conference-seats-5": plain(180, [mix((100 - n, over(0)), (n - come, over(deposit, 0, 1)), (come,
            over(deposit, 0, 1) + over(fee, 19))) for n, come, deposit, fee in [(50, 25, 0.2, 0.6), (30, 28,
            0.05, 0.75), (70, 12, 0.25, 0.5), (40, 30, 0.1, 0.9), (20, 18, 0.0, 1.0)]]),  # both ends
        "couriers-7": Problem([5, 6, 7, 8, 9, 10, 11], 10, 10, [UniformLaw("begin"), BetaLaw(2, 3, "middle"),
            Coins(0.45, "begin_middle"), LumpLaw(0.34, "middle"), BetaLaw(0.4, 0.9), LumpLaw(0.26, "begin"),
            BetaLaw(2, 7, "end")]),  # fees and tips of seven kinds, within ten rounds
        "gift-cards-6": plain(300, [EmpiricalLaw(dated(value * now, dice.exponential(wait, USERS), G) +
            dated(value * (1 - now), dice.exponential(3 * wait, USERS), G)) for sizes, wait in [((0.1, 0.25,
            0.5), 4), ((0.25, 0.25, 0.4), 2), ((0.1, 0.1, 1), 3), ((0.5, 0.5, 0.5), 12), ((0.2, 0.3, 0.4), 1),
            ((0.05, 0.3, 1), 7)] for value, now in [(dice.choice(sizes, USERS), dice.beta(0.5, 0.5,
            USERS))]]),  # cards of three values, spent in two parts; some never are
        "flats-to-let-8": Problem(range(96, 192, 12), 720, 24, [let(dice, *arm, groups=24) for arm in [(0.9,
            0.1), (0.5, 0.04), (0.7, 0.09), (0.3, 0.02), (0.35, 0.05), (0.2, 0.03), (0.25, 0.08), (0.08,
            0.01)]], "first"),  # the dearer the longer empty; caps are two years' rent
        "podcast-launches-9": alike(100, partial(launched, dice), *((0.2 + 0.06 * (i * 4 % 9), 3 + 1.5 * (i *
            4 % 9) - i, 1.5) for i in range(9)), groups=25),  # the larger the audience, the later
        "guessed-budgets-5": loose([2, 3, 1.5, 2.5, 4], 100, [BetaLaw(2, 3.5, "begin"), kept(dice, 0.15, 0.95,
            0.9, 0.2), LumpLaw(0.3, "middle"), *leaving((0.9, 0.9)), given(dice, 0.6, 0.3, 1.8, 5)]),  # caps
        "school-apps-15": plain(300, [BetaLaw(1 + 0.1 * (i * 4 % 15), 3) if i % 3 else LeavingLaw([1.0,
            *[0.9 + 0.006 * i] * 29], [*[0.7] * 12, *[0.2] * 6, *[0.7] * 12]) for i in range(15)], 30),  # use
        # Hard ones.
        "quiet-best-of-18": plain(90, [*lumps(*(0.2 + 0.011 * (i * 5 % 17) for i in range(17)),
            spread="middle"), BetaLaw(9, 12, "middle_end")], 18),  # coins, and the best is smooth
        "loud-second-of-11": plain(110, [*(BetaLaw(x, 10 - x, "begin") for x in (2.6, 3.4, 3.0, 4.4, 3.6, 2.2,
            3.2, 3.8, 2.8, 3.3)), LumpLaw(0.41, "end")], 11),  # the second best is a late coin
        "rare-payers-3-of-12": Problem([*[1.0] * 9, *[18.0] * 3], 72, 18, [*(sure(0.16 + 0.015 * (i * 4 % 9),
            "begin") for i in range(9)), *lumps(0.012, 0.021, 0.008, spread="middle")]),  # they pay 18
        "k180-smooth-and-coins": plain(50, [BetaLaw(6 * m, 6 - 6 * m, "begin_middle") if i % 3 else Coins(m,
            "end") for i, m in enumerate(tastes.round(4).tolist())], 10),  # a hundred rounds an arm
        "k260-half-pay-nothing": plain(35, lumps(*(m * (i % 2) for i, m in enumerate(
            crowd.round(4).tolist())), spread=Zipf(0.7)), 7),  # every second arm is dead
        "k70-any-speed": plain(140, [LumpLaw(m, BetaBinomial(1 + i % 7, 1 + i // 10)) for i, m in
            enumerate(fair.round(4).tolist())]),  # seventy coins, forty-nine speeds
        "k48-three-good": plain(100, [LumpLaw(m, "middle_end") if i % 2 else Coins(m, "middle") for i, m in
            enumerate(few.round(4).tolist())]),  # three that are good among forty-five that are not
        "w12000-of-12000": alike(12_000, partial(let, dice), (0.9, 0.1), (0.3, 0.02), (0.15, 0.01), (0.5,
            0.05), (0.7, 0.06), (0.07, 0.01), groups=40),  # as long as the horizon; the best begins late
        "w16000-of-10000": plain(16_000, [Coins(0.5, "begin"), LumpLaw(0.45, "begin_middle"), BetaLaw(2, 1.6,
            "middle"), UniformLaw(Zipf(0.5)), *leaving((0.96, 0.85))]),  # longer, and of five kinds
        "caps-12-of-eight": loose([12.0] * 8, 80, [BetaLaw(3, 5, "end"), LumpLaw(0.33, "middle"), *leaving(
            (0.95, 0.6), (0.9, 0.95)), UniformLaw("begin_middle"), streaks(dice, 0.6, 3), LumpLaw(0.43),
            BetaLaw(5, 8)]),  # twelve times too large, all of them
        "caps-5-to-30-six": loose([5, 30, 10, 20, 6, 15], 60, [Coins(m, spread) for m, spread in [(0.4,
            "begin"), (0.5, "end"), (0.45, "uniform"), (0.3, "middle"), (0.56, "middle_end"), (0.35,
            "begin")]]),  # the wrong caps promise all the same, or more
        "hair-apart-7": plain(75, [BetaLaw(4 * m, 4 - 4 * m, "begin_middle") if i % 2 else Coins(m, "middle")
            for i, m in enumerate((0.4, 0.404, 0.408, 0.398, 0.415, 0.406, 0.402))], 15),  # tiny gaps
        "late-best-early-lures-8": plain(600, [*(Coins([0.9 - 0.03 * i] * 3 + [0.25 + 0.01 * i] * 17) for i in
            range(7)), Coins([0.0] * 8 + [0.8] * 12)]),  # nothing for two fifths of the window, and then most
        # Strange ones.
        "hot-potatoes-7": plain(60, [EmpiricalLaw(dated(1.2 ** (hold - 12) * (dice.random(USERS) < (1 - pop)
            ** hold), hold, 12)) for hold, pop in [(np.minimum(dice.poisson(mean, USERS), 11) * 1.0, pop) for
            mean, pop in [(3, 0.05), (5, 0.1), (8, 0.12), (6, 0.06), (10, 0.15), (1, 0.0), (9, 0.09)]]],
            12),  # worth a fifth more each group that it is held, unless it bursts
        "records-6": plain(80, [logged(0.12 * (x >= np.maximum.accumulate(x, axis=1))) for x in
            [dice.standard_normal((USERS, G)) + drift * np.arange(G) for drift in (0.0, 0.05, -0.05, 0.08,
            0.02, -0.1)]]),  # paid whenever there is a new record, rarely after the first few
        "ruined-or-rich-8": alike(160, partial(gambled, dice), (3, 0.5), (5, 0.55), (4, 0.45), (6, 0.5), (2,
            0.35), (7, 0.58), (5, 0.46), (1, 0.3), groups=40),  # gamblers go on until they have nine or none
        "ahead-or-behind-5": plain(100, [EmpiricalLaw((np.cumsum(dice.standard_normal((USERS, 25)) + drift,
            axis=1) > 0) / 25) for drift in (0.0, 0.06, -0.05, 0.12, 0.03)], 25),  # nearly always, or never
        "collectors-9": alike(99, partial(collected, dice), *((6 + 4 * (i * 5 % 9), 0.95 - 0.07 * (i * 5 % 9),
            1 / 16) for i in range(9)), groups=33),  # each card pays if it is new, which fewer and fewer are
        "fibonacci-ages-8": plain(34, [Coins(0.3 + 0.02 * (i * 3 % 8), np.bincount([0, 1, 2, 4, 7, 12, 20,
            33][i // 2 :: 1 + i % 2], minlength=34) / len(range(i // 2, 8, 1 + i % 2))) for i in range(8)],
            34),  # at Fibonacci's ages, all or every other, from one of them on
    }  # fmt: skip
    horizons = {
        "thumbnails-3": 3000, "two-rankers": 10_000, "gym-streaks-5": 6000, "heat-pumps-4": 4000,
        "helpdesk-bots-6": 8000, "couriers-7": 5000, "conference-seats-5": 10_000, "gift-cards-6": 12_000,
        "w12000-of-12000": 12_000, "w16000-of-10000": 10_000, "records-6": 8000, "film-streaming-5": 15_000,
    }  # fmt: skip
    return {
        name: (problem, horizons.get(name, HORIZON), SEED + i)
        for i, (name, problem) in enumerate(problems.items())
    }
