"""The gallery's problems: each is hard for policies in a way in which the paper's settings are not.

Every problem is ours, except Setting 1, which is here as the familiar one. `ENTRIES` holds the problems as
data and `problem` returns one by its id. `generate` makes problems with contexts.
`accrual.studies.gallery` plays the problems.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from accrual.core.errors import not_negative, unknown, whole
from accrual.problems import families
from accrual.problems.contexts import ARMS_MOST, CONTEXT_LAWS, WIDTH_MOST, Contexts, LinearLaw, Pay
from accrual.problems.families import lumps, plain
from accrual.problems.laws import BernoulliLaw, Law, LeavingLaw, LumpLaw, ScaledLaw, UniformLaw
from accrual.problems.paper import setting1
from accrual.problems.problem import Problem

LISTENING_DAYS = 59
_LISTENING = "listening"  # a problem to simulate, which `accrual gallery` does not play

SpreadBy = Literal["same", "context", "arm", "both"]
SPREADS: tuple[SpreadBy, ...] = ("same", "context", "arm", "both")
WINDOW, SPEED = 2000, 0.6


@dataclass(frozen=True)
class Entry:
    """One problem of the gallery, and how long to play it."""

    id: str  # its name, which does not change
    title: str
    stresses: str  # what is hard about it
    problem: Problem
    horizon: int = 100_000
    runs: int = 20
    seed: int = 0


def problem(name: str) -> Problem:
    """Return the problem with this id, or the listening service; ``accrual.gallery[name]`` does the same.

    Examples
    --------
    >>> problem("sparse") == ENTRIES["sparse"].problem
    True
    >>> problem("ctx-same").contexts.width
    10
    >>> len(problem("listening").caps)
    200
    """
    if name == _LISTENING:
        return listening_by_decision()
    if name not in ENTRIES:
        raise unknown("problem of the gallery", name, [*ENTRIES, _LISTENING])
    return ENTRIES[name].problem


def select(only: Sequence[str] = ()) -> list[Entry]:
    """Return the entries with these ids or beginnings of ids (``w5000``); without any, return all.

    Examples
    --------
    >>> [entry.id for entry in select(["k2", "w5000"])]
    ['w5000-early', 'w5000-even', 'w5000-late', 'k2']
    """
    for word in only:
        if not _matches(word):
            raise unknown("problem of the gallery", word, ENTRIES)
    chosen = {id for word in only for id in _matches(word)}
    return [entry for id, entry in ENTRIES.items() if id in chosen or not only]


def _matches(word: str) -> list[str]:
    return [id for id in ENTRIES if id == word or id.startswith(f"{word}-")]


def generate(  # noqa: PLR0913  (each choice of a generator has a default)
    features: int,
    arms: int,
    spread: SpreadBy = "same",
    link: str = "linear",
    pay: Pay = "pieces",
    active: int | None = None,
    strength: float = 0.08,
    seed: int = 0,
    *,
    window: int = WINDOW,
    speed: float = SPEED,
) -> Problem:
    """Make a random problem whose contexts are uniform numbers.

    Parameters
    ----------
    features, arms : int
    spread : {"same", "context", "arm", "both"}
        What the speed of pay depends on: nothing, the context, the arm, or the context in another way for
        each arm.
    link : {"linear", "logistic"}
    pay : {"pieces", "once"}
    active : int, optional
        How many of the features matter; all unless given.
    strength : float
        Standard deviation of an arm's level and of its effects: in rewards, or in logits.
    seed : int
    window : int
    speed : float
        How much speeds differ: their standard deviation if they depend on the context and the arm.

    Examples
    --------
    >>> problem = generate(features=3, arms=2, spread="context")
    >>> problem.contexts.width, problem.window
    (4, 2000)
    """
    if spread not in SPREADS:
        raise unknown("spread", spread, SPREADS)
    if link not in CONTEXT_LAWS:
        raise unknown("link", link, CONTEXT_LAWS)
    features, arms = whole("features", features, 0, WIDTH_MOST - 1), whole("arms", arms, 1, ARMS_MOST)
    strength, speed = not_negative("strength", strength), not_negative("speed", speed)
    dice = np.random.default_rng(whole("seed", seed, 0))
    effects = strength * dice.normal(size=(arms, 1 + features))
    # A piece's age is u to the power of exp(-speed), times the window.
    speeds = speed / math.sqrt(1 + features) * dice.normal(size=(arms, 1 + features))
    if active is not None:
        effects[:, 1 + whole("active", active, 0, features) :] = 0.0
    if link == "linear":
        effects[:, 0] += 1.0 if pay == "pieces" else 0.15
    else:
        effects[:, 0] -= 2.0
    if spread == "same":
        speeds[:] = 0.0
    elif spread == "context":
        speeds[:] = speeds[0]
        speeds[:, 0] = 0.0
    elif spread == "arm":
        speeds[:, 1:] = 0.0
    laws = [CONTEXT_LAWS[link](*rows, pay) for rows in zip(effects, speeds, strict=True)]
    cap = 6.4 if pay == "pieces" else 1.0
    return Problem([cap] * arms, window, laws=laws, contexts=Contexts(numbers=features))


def listening_by_decision(seed: int = 1, differ: float = 0.4, batch: int = 50) -> Problem:
    """Make the service of `accrual.studies.gallery.listening` as a problem of rounds.

    Each of a day's `batch` decisions is a round.

    Examples
    --------
    >>> problem = listening_by_decision()
    >>> problem.window, problem.groups
    (2950, 59)
    """
    laws = families.listeners(200, 100 + seed, LISTENING_DAYS, differ)
    return Problem([float(LISTENING_DAYS)] * len(laws), LISTENING_DAYS * batch, LISTENING_DAYS, laws)


def _crowd(levels: Sequence[Law], best: Law, arms: int, winners: int) -> Problem:
    """Make `arms` arms that have these levels in turn, except `winners` of them, spaced evenly."""
    laws = [levels[arm % len(levels)] for arm in range(arms)]
    for place in range(1, winners + 1):
        laws[place * arms // (winners + 1)] = best
    return plain(100, laws)


def _playlists() -> Problem:
    # Twenty songs of four rounds, a reward of 1 a round. Listeners who stay longer skip more.
    stay = (0.86, 0.89, 0.92, 0.95, 0.98, 1.0)
    plays = (0.92, 0.77, 0.63, 0.50, 0.39, 0.33)
    laws = [LeavingLaw((1.0,) + (s,) * 19, p) for s, p in zip(stay, plays, strict=True)]
    return Problem([80.0] * 6, 80, 20, laws)


def _long(spread: str) -> Problem:
    return families.long_window([0.3 + arm / 30 for arm in range(10)], spread)


def _loose() -> Problem:
    true = setting1()
    return Problem([4 * cap for cap in true.caps], true.window, true.groups, ScaledLaw(UniformLaw(), 0.25))


def _late() -> Problem:
    early = [BernoulliLaw(p, "begin") for p in (0.45, 0.5, 0.5)]
    return plain(100, [*early, BernoulliLaw(0.6, "end")])


def _newer(id: str, title: str, stresses: str, problem: Problem, horizon: int = 30_000) -> Entry:
    return Entry(id, title, stresses, problem, horizon, seed=1)


def _by_context(id: str, title: str, stresses: str, problem: Problem, runs: int = 20) -> Entry:
    return Entry(id, title, stresses, problem, 20_000, runs, seed=1)


def _visitors() -> Problem:
    """Make four courses for visitors: new or not, on a phone or not, from one of four countries."""
    contexts = Contexts(flags=[0.6, 0.5], levels=[[0.4, 0.3, 0.2, 0.1]])
    effects = [
        # constant, new, phone, four countries: the chance that a course is bought
        [0.10, 0.08, 0.04, 0.00, 0.02, 0.00, 0.00],  # a short course
        [0.20, -0.08, -0.05, 0.02, 0.00, 0.00, 0.04],  # a long one
        [0.14, 0.00, 0.06, -0.04, 0.03, 0.05, 0.00],  # one to listen to
        [0.16, 0.00, 0.00, 0.00, 0.00, -0.06, 0.08],  # one in two languages
    ]
    # New visitors buy soon; the long course is bought late.
    late = [0.0, 0.8, 0.0, 0.0]
    laws = [
        LinearLaw(row, [level, -0.6, 0.0, 0.0, 0.0, 0.0, 0.0], "once")
        for row, level in zip(effects, late, strict=True)
    ]
    arms = ["short", "long", "audio", "two languages"]
    return Problem([1.0] * 4, WINDOW, laws=laws, arms=arms, contexts=contexts)


_LIST = [
    Entry("setting1", "The paper's Setting 1", "the familiar case: ten arms, even spread", setting1()),
    Entry(
        "playlist",
        "Playlists that listeners leave",
        "groups depend on each other: a listener who leaves pays nothing more",
        _playlists(),
    ),
    Entry("late-best", "The best arm pays late", "arms differ in speed, and the early ones lure", _late()),
    Entry(
        "lump",
        "Lump payments",
        "a decision pays once, at any age, or never",
        plain(100, lumps(0.3, 0.35, 0.4, 0.45, 0.5, 0.6, spread="uniform")),
    ),
    Entry(
        "sparse",
        "Sparse rewards",
        "about one decision in a hundred pays",
        plain(100, lumps(*[0.006] * 9, 0.015)),
    ),
    Entry(
        "k100",
        "A hundred arms with small gaps",
        "many arms, one of them a little better",
        _crowd(lumps(*(0.43 + level / 100 for level in range(11))), LumpLaw(0.55, "begin_middle"), 100, 1),
    ),
    Entry(
        "w5000-early",
        "Window 5000, early spread",
        "a quarter of the horizon passes before a total is known",
        _long("begin"),
        horizon=20_000,
    ),
    Entry("w5000-even", "Window 5000, even spread", "the same, half of it later", _long("uniform"), 20_000),
    Entry("w5000-late", "Window 5000, late spread", "the same, nearly all of it late", _long("end"), 20_000),
    Entry("caps4", "Caps four times too large", "Setting 1, with caps that no reward comes near", _loose()),
    Entry(
        "equal",
        "All arms equal",
        "nothing to learn: regret is 0, and the arms should share the decisions",
        plain(100, lumps(*[0.3] * 10)),
    ),
    Entry("k2", "Two arms", "nothing to pool over, and a small gap", plain(100, lumps(0.5, 0.55))),
    Entry(
        "k1000",
        "A thousand arms",
        "twenty decisions an arm; ten arms are best",
        _crowd(lumps(*(0.05 * level for level in range(1, 11))), LumpLaw(0.6, "begin_middle"), 1000, 10),
        horizon=20_000,
        runs=5,
    ),
    _newer(
        "late-surprise",
        "A late surprise",
        "arms alike for nineteen twentieths of the window, and a last payment that decides",
        families.late_surprise([0.25, 0.35, 0.3, 0.55, 0.2], share=0.35, early=0.4),
    ),
    _newer(
        "at-cap",
        "The best arm always pays its cap",
        "a mean at the cap itself, which nothing can exceed",
        plain(100, lumps(0.75, 0.85, 0.65, 1.0, 0.8)),
    ),
    _newer(
        "near-cap",
        "All arms near their caps",
        "totals vary little, and little can still be won",
        plain(100, lumps(0.88, 0.93, 0.91, 0.97, 0.94)),
    ),
    _newer(
        "jackpot",
        "A rare jackpot",
        "the best arm pays rarely but much, beside small steady pay",
        families.jackpot([0.03, 0.025, 0.03, 0.028], chance=0.05),
    ),
    _newer(
        "hidden-jackpot",
        "A jackpot in disguise",
        "the best arm pays small steady totals like the others, and once in fifty times the whole cap",
        families.hidden_jackpot([0.03, 0.034, 0.032], base=0.028, one_in=50),
    ),
    _newer(
        "lure",
        "An early lure",
        "the first quarter of a long window promises more than the rest pays",
        families.lure([0.75, 0.55, 0.65, 0.35, 0.45], [0.25, 0.35, 0.2, 0.55, 0.4]),
    ),
    _newer(
        "mixed-caps",
        "Caps of very different size",
        "means alike under caps from 1 to 150, most of them far too large",
        families.mixed_caps([1.0, 3.0, 20.0, 60.0, 150.0, 5.0], [0.6, 0.5, 0.55, 0.6, 0.75, 0.65]),
    ),
    _newer(
        "bimodal",
        "Early or late, nothing between",
        "arms pay at the beginning or at the end of the window, each in its own shares",
        families.bimodal([0.35, 0.4, 0.45, 0.5, 0.3], [0.8, 0.7, 0.3, 0.2, 0.95]),
    ),
    _newer(
        "two-speeds",
        "Two speeds",
        "some arms pay early and some late, with means that overlap",
        families.two_speeds([0.35, 0.55, 0.45, 0.5], [0.4, 0.6, 0.5, 0.45], window=100),
    ),
    _newer(
        "needle",
        "A needle among a hundred arms",
        "98 arms are alike, one is good and one a little better",
        families.needle(100, usual=0.25, second=0.5, best=0.55),
    ),
    _newer(
        "heavy-tails",
        "Heavy tails",
        "many small totals and a few as large as the cap",
        families.heavy_tails([0.03, 0.035, 0.025, 0.05, 0.04]),
    ),
    _newer(
        "delay-2",
        "A fixed delay, two arms",
        "the whole reward after exactly fifty rounds, and a short horizon",
        families.fixed_delay([0.45, 0.6]),
        horizon=3_000,
    ),
    _newer(
        "delay-10",
        "A fixed delay, ten arms",
        "the whole reward after exactly fifty rounds, and a short horizon",
        families.fixed_delay([0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.4, 0.3, 0.6]),
        horizon=5_000,
    ),
    _newer(
        "beyond-early",
        "A window longer than the horizon, early pay",
        "no total is ever known",
        families.long_window([0.35, 0.4, 0.5, 0.45, 0.6], "begin", window=15_000),
        horizon=10_000,
    ),
    _newer(
        "beyond-late",
        "A window longer than the horizon, late pay",
        "no total is ever known, and most reward would come after the horizon",
        families.long_window([0.35, 0.4, 0.5, 0.45, 0.6], "end", window=15_000),
        horizon=10_000,
    ),
    _by_context(
        "ctx-same",
        "Contexts, one even spread",
        "five arms, nine features; the best arm depends on the context, the speed of pay does not",
        generate(9, 5, seed=201),
    ),
    _by_context(
        "ctx-cross",
        "Speed by context and arm",
        "the same, but each arm pays early or late in contexts of its own",
        generate(9, 5, spread="both", seed=202),
    ),
    _by_context(
        "ctx-sparse",
        "Six of nine features useless",
        "a decision pays 1 or nothing; three of nine features matter",
        generate(9, 5, pay="once", active=3, strength=0.05, seed=203),
    ),
    _by_context(
        "ctx-big",
        "29 features, 50 arms",
        "1,500 effects to learn from 20,000 decisions; contexts change the speed",
        generate(29, 50, spread="context", strength=0.05, seed=204),
        runs=10,
    ),
    _by_context(
        "ctx-context",
        "Speed by context",
        "some visitors pay early and some late, whatever the arm",
        generate(9, 5, spread="context", seed=205),
    ),
    _by_context(
        "ctx-arm",
        "Speed by arm",
        "some arms pay early and some late, whatever the context",
        generate(9, 5, spread="arm", seed=206),
    ),
    _by_context(
        "ctx-logistic",
        "Logistic means",
        "a decision pays 1 or nothing, with a chance that is not linear in the context",
        generate(9, 5, spread="both", link="logistic", pay="once", strength=0.5, seed=207),
    ),
    _by_context(
        "ctx-useless",
        "Useless contexts",
        "arms differ in level alone: nine features that say nothing",
        generate(9, 5, active=0, seed=208),
    ),
    _by_context(
        "ctx-wide",
        "29 features, five arms",
        "many features for each arm",
        generate(29, 5, spread="both", strength=0.05, seed=209),
    ),
    _by_context(
        "ctx-arms",
        "Three features, fifty arms",
        "few decisions for each arm",
        generate(3, 50, spread="both", seed=210),
    ),
    _by_context(
        "ctx-visitors",
        "Visitors of four countries",
        "yes and no, and levels; new visitors decide soon, and one course is bought late",
        _visitors(),
    ),
]  # fmt: skip
ENTRIES: dict[str, Entry] = {entry.id: entry for entry in _LIST}
