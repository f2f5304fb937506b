"""Problems with contexts: a generator, and those of the gallery."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np

from accrual.core.errors import InputError, unknown, whole
from accrual.policies.age_lin import AgeLinTS
from accrual.policies.age_prior import AgePrior
from accrual.policies.base import Policy
from accrual.problems.contexts import ARMS_MOST, WIDTH_MOST, Contexts, ContextualProblem, Link, Pay

SpreadBy = Literal["same", "context", "arm", "both"]
SPREADS: tuple[SpreadBy, ...] = ("same", "context", "arm", "both")
WINDOW, SPEED = 2000, 0.6

# What stands beside every result of a problem with contexts: learning from totals at once, and the
# policy that a bandit plays which knows no context.
FLOOR, NO_CONTEXT = "no delay", "no context"
BESIDE: dict[str, Policy] = {FLOOR: AgeLinTS(immediate=True), NO_CONTEXT: AgePrior()}


def generate(  # noqa: PLR0913  (each choice of a generator has a default)
    features: int,
    arms: int,
    spread: SpreadBy = "same",
    link: Link = "linear",
    pay: Pay = "pieces",
    active: int | None = None,
    strength: float = 0.08,
    seed: int = 0,
    *,
    window: int = WINDOW,
    speed: float = SPEED,
) -> ContextualProblem:
    """Make a problem with contexts of uniform numbers, by chance.

    Parameters
    ----------
    features, arms : int
    spread : {"same", "context", "arm", "both"}
        What the speed of pay depends on: nothing, the context, the arm, or each arm's own effect of contexts.
    link : {"linear", "logistic"}
    pay : {"pieces", "once"}
    active : int, optional
        How many of the features matter; all unless given.
    strength : float
        Standard deviation of an arm's level and of its effects: in rewards, or in logits.
    seed : int
    window : int
    speed : float
        How much speeds differ: their standard deviation, where they depend on the context and the arm.

    Examples
    --------
    >>> problem = generate(features=3, arms=2, spread="context")
    >>> problem.contexts.width, problem.window
    (4, 2000)
    """
    if spread not in SPREADS:
        raise unknown("spread", spread, SPREADS)
    features, arms = whole("features", features, 0, WIDTH_MOST - 1), whole("arms", arms, 1, ARMS_MOST)
    for name, value in (("strength", strength), ("speed", speed)):
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise InputError(f"{name} must be a number from 0 on, not {value!r}")
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
    return ContextualProblem(Contexts(numbers=features), effects, window, speeds, link, pay)


def _visitors() -> ContextualProblem:
    """Make four courses for visitors: new or not, on a phone or not, from one of four countries."""
    contexts = Contexts(flags=[0.6, 0.5], levels=[[0.4, 0.3, 0.2, 0.1]])
    effects = [
        # constant, new, phone, four countries: the chance that a course is bought
        [0.10, 0.08, 0.04, 0.00, 0.02, 0.00, 0.00],  # a short course
        [0.20, -0.08, -0.05, 0.02, 0.00, 0.00, 0.04],  # a long one
        [0.14, 0.00, 0.06, -0.04, 0.03, 0.05, 0.00],  # one to listen to
        [0.16, 0.00, 0.00, 0.00, 0.00, -0.06, 0.08],  # one in two languages
    ]
    # Who is new decides soon; the long course is bought late.
    late = [0.0, 0.8, 0.0, 0.0]
    speeds = [[level, -0.6, 0.0, 0.0, 0.0, 0.0, 0.0] for level in late]
    return ContextualProblem(
        contexts, effects, WINDOW, speeds, pay="once", arms=["short", "long", "audio", "two languages"]
    )


class Case(NamedTuple):
    """A problem with contexts, for the gallery."""

    title: str
    stresses: str  # what is hard about it
    problem: ContextualProblem
    runs: int = 20


CASES: dict[str, Case] = {
    "ctx-same": Case(
        "Contexts, one even spread",
        "five arms, nine features; the best arm depends on the context, the speed of pay does not",
        generate(9, 5, seed=201),
    ),
    "ctx-cross": Case(
        "Speed by context and arm",
        "the same, but each arm pays early or late in contexts of its own",
        generate(9, 5, spread="both", seed=202),
    ),
    "ctx-sparse": Case(
        "Six of nine features useless",
        "a decision pays 1 or nothing; three of nine features matter",
        generate(9, 5, pay="once", active=3, strength=0.05, seed=203),
    ),
    "ctx-big": Case(
        "29 features, 50 arms",
        "1,500 effects to learn from 20,000 decisions; contexts change the speed",
        generate(29, 50, spread="context", strength=0.05, seed=204),
        runs=10,
    ),
    "ctx-context": Case(
        "Speed by context",
        "some visitors pay early and some late, whatever the arm",
        generate(9, 5, spread="context", seed=205),
    ),
    "ctx-arm": Case(
        "Speed by arm",
        "some arms pay early and some late, whoever it is for",
        generate(9, 5, spread="arm", seed=206),
    ),
    "ctx-logistic": Case(
        "Logistic means",
        "a decision pays 1 or nothing, with a chance that is not linear in the context",
        generate(9, 5, spread="both", link="logistic", pay="once", strength=0.5, seed=207),
    ),
    "ctx-useless": Case(
        "Useless contexts",
        "arms differ in level alone: nine features that say nothing",
        generate(9, 5, active=0, seed=208),
    ),
    "ctx-wide": Case(
        "29 features, five arms",
        "many features for each arm",
        generate(29, 5, spread="both", strength=0.05, seed=209),
    ),
    "ctx-arms": Case(
        "Three features, fifty arms",
        "few decisions for each arm",
        generate(3, 50, spread="both", seed=210),
    ),
    "ctx-visitors": Case(
        "Visitors of four countries",
        "yes and no, and levels; new visitors decide soon, and one course is bought late",
        _visitors(),
    ),
}
PROBLEMS: dict[str, ContextualProblem] = {id: case.problem for id, case in CASES.items()}
