"""Regret bounds as functions of the horizon, to read or to draw over regret curves.

Every bound takes one horizon or an array of rounds and answers with a float or an array. Sums run
over the arms whose mean is short of the best one's; where there are none, every bound is zero.

Upper bounds are finite-time: they hold at each horizon, for one policy, under its assumptions.
Lower bounds are asymptotic: regret divided by ln T ends up no smaller than the bound divided by
ln T; early on, regret may be below them. Each holds for the policies that are uniformly efficient on
one class of problems, that is, whose regret on every problem of the class is o(T^x) for all x > 0.
The larger the class, the fewer such policies there are and the greater the bound:

- `lower` is for problems in which all groups of an arm pay with one common chance;
- `lower_free_chances` is for problems in which every group has a chance of its own.

`truncation_loss` is another kind: what a window that is too short costs any policy, per decision.
"""

from accrual.bounds.lower_bounds import (
    lower,
    lower_free_chances,
    lower_printed,
    lower_smooth,
    theorem1_factor,
)
from accrual.bounds.short_window import truncation_loss
from accrual.bounds.upper_bounds import (
    beats,
    beats_from,
    dominates,
    upper_ageucb,
    upper_delayed_ucb1,
    upper_tpucbfr,
    upper_tpucbfrg,
    upper_ucb1,
)

__all__ = [
    "beats",
    "beats_from",
    "dominates",
    "lower",
    "lower_free_chances",
    "lower_printed",
    "lower_smooth",
    "theorem1_factor",
    "truncation_loss",
    "upper_ageucb",
    "upper_delayed_ucb1",
    "upper_tpucbfr",
    "upper_tpucbfrg",
    "upper_ucb1",
]
