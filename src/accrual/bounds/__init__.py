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

from accrual.bounds.lower_bounds import lower as lower
from accrual.bounds.lower_bounds import lower_free_chances as lower_free_chances
from accrual.bounds.lower_bounds import lower_printed as lower_printed
from accrual.bounds.lower_bounds import lower_smooth as lower_smooth
from accrual.bounds.lower_bounds import theorem1_factor as theorem1_factor
from accrual.bounds.short_window import truncation_loss as truncation_loss
from accrual.bounds.upper_bounds import beats as beats
from accrual.bounds.upper_bounds import beats_from as beats_from
from accrual.bounds.upper_bounds import dominates as dominates
from accrual.bounds.upper_bounds import upper_ageucb as upper_ageucb
from accrual.bounds.upper_bounds import upper_delayed_ucb1 as upper_delayed_ucb1
from accrual.bounds.upper_bounds import upper_tpucbfr as upper_tpucbfr
from accrual.bounds.upper_bounds import upper_tpucbfrg as upper_tpucbfrg
from accrual.bounds.upper_bounds import upper_ucb1 as upper_ucb1
