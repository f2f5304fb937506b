"""Problems with contexts: a generator, and the ones that figures are given for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from accrual.contextual import Contexts, ContextualProblem, Link, Pay
from accrual.core.errors import unknown, whole
from accrual.policy.age_lin_ts import AgeLinTS
from accrual.policy.age_ts import AgeTS
from accrual.policy.base import Policy
from accrual.policy.catalog import parse
from accrual.policy.habits_lin import EarlyLinTS, PiecesLinTS
from accrual.policy.lin_ts import LinTS
from accrual.policy.lin_ucb import LinUCB

SpreadBy = Literal["same", "context", "arm", "both"]
SPREADS: tuple[SpreadBy, ...] = ("same", "context", "arm", "both")
_ALPHAS = (0.02, 0.05, 0.1)  # of LinTS, in caps: the best of three is shown


def generate(
    features: int,
    arms: int,
    spread: SpreadBy = "same",
    link: Link = "linear",
    pay: Pay = "pieces",
    active: int | None = None,
    strength: float = 0.08,
    seed: int = 0,
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

    Examples
    --------
    >>> problem = generate(features=3, arms=2, spread="context")
    >>> problem.contexts.width, problem.window
    (4, 2000)
    """
    if spread not in SPREADS:
        raise unknown("spread", spread, SPREADS)
    features = whole("features", features, 0, 100)
    dice = np.random.default_rng(seed)
    effects = strength * dice.normal(size=(arms, 1 + features))
    # A piece's age is u to the power of exp(-speed), times the window: this makes speeds differ by about 0.6.
    speeds = 0.6 / math.sqrt(1 + features) * dice.normal(size=(arms, 1 + features))
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
    return ContextualProblem(Contexts(numbers=features), effects, 2000, speeds, link, pay)


PROBLEMS: dict[str, ContextualProblem] = {
    "ctx-same": generate(9, 5, seed=201),
    "ctx-cross": generate(9, 5, spread="both", seed=202),
    "ctx-sparse": generate(9, 5, pay="once", active=3, strength=0.05, seed=203),
    "ctx-big": generate(29, 50, spread="context", strength=0.05, seed=204),
}


def usual_policies(names: Sequence[str] = ()) -> dict[str, dict[str, Policy]]:
    """Return what to compare on a problem with contexts, row by row: the variants of each row.

    Examples
    --------
    >>> list(usual_policies(["AgeLinTS"]))
    ['no delay', 'AgeLinTS', 'no context']
    """
    rows: dict[str, dict[str, Policy]] = {
        "no delay": {"AgeLinTS": AgeLinTS(immediate=True)},
        "AgeLinTS": {"": AgeLinTS()},
        "AgeLinTS(waiting)": {"": AgeLinTS(buckets=1)},
        "LinTS(waiting)": {f"{alpha:g}": LinTS(alpha=alpha) for alpha in _ALPHAS},
        "LinUCB(waiting)": {"": LinUCB()},
        "first tenth": {"": EarlyLinTS()},
        "pieces as rewards": {"": PiecesLinTS()},
        "no context": {"": AgeTS()},
    }
    if not names:
        return rows
    chosen = {name: rows.get(name) or {"": parse(name)} for name in names}
    return {"no delay": rows["no delay"], **chosen, "no context": rows["no context"]}
