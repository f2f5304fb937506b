"""Every policy of the catalog passes the published suite, and one that does not learn fails it."""

import pytest

from accrual.core.jit import njit
from accrual.core.random import pair
from accrual.policy.base import Functions
from accrual.policy.catalog import CATALOG
from accrual.policy.ucb1 import UCB1, closed, decided
from accrual.testing import PolicySuite


def _suite(name: str) -> type[PolicySuite]:
    def make_policy(self):
        return CATALOG[name].example()

    return type(f"Test{name}", (PolicySuite,), {"make_policy": make_policy, "__module__": __name__})


# One class for each row of the catalog: a new policy is tested by being listed.
globals().update({f"Test{name}": _suite(name) for name in CATALOG})


@njit
def half_at_random(params, stats, arm, moment):
    at_random, _ = pair((moment.seed, moment.run), moment.round, 0, 0)
    lot, _ = pair((moment.seed, moment.run), moment.round, 1 + arm, 0)
    return lot if at_random < 0.5 else stats.mean[arm]


class HalfAtRandom(UCB1):
    """Epsilon-greedy with an epsilon of a half, told every total at once."""

    functions = Functions(index=half_at_random, decided=decided, closed=closed)


class SuiteOfHalfAtRandom(PolicySuite):
    def make_policy(self):
        return HalfAtRandom()


def test_a_policy_that_explores_for_ever_is_not_sublinear():
    with pytest.raises(AssertionError):
        SuiteOfHalfAtRandom().test_regret_is_sublinear_on_an_easy_problem()
