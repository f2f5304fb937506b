"""Every policy of the catalog passes the published suite, and one that does not learn fails it."""

import inspect
import math

import numpy as np
import pytest

from accrual.core.errors import InputError
from accrual.core.jit import njit
from accrual.core.random import pair
from accrual.live.ledger import Ledger
from accrual.policies.base import Functions
from accrual.policies.catalog import CATALOG, CONTEXTUAL
from accrual.policies.ucb1 import UCB1, closed, decided
from accrual.testing import PolicySuite


def _suite(name: str) -> type[PolicySuite]:
    def make_policy(self):
        return CATALOG[name].example()

    return type(f"Test{name}", (PolicySuite,), {"make_policy": make_policy, "__module__": __name__})


# One class for each row of the catalog: a new policy is tested by being listed.
globals().update({f"Test{name}": _suite(name) for name in CATALOG})


_MAY_BE_LEFT_OUT = {"clusters", "half_life"}
_SETTINGS = [
    (name, setting)
    for name, kind in (CATALOG | CONTEXTUAL).items()
    for setting in inspect.signature(kind).parameters
]


@pytest.mark.parametrize(("name", "setting"), _SETTINGS)
def test_a_wrong_setting_is_refused_in_one_clear_line(name, setting):
    kind = (CATALOG | CONTEXTUAL)[name]
    usual = {one: getattr(kind.example(), one) for one in inspect.signature(kind).parameters}
    wrong = [object(), "x", [[]], math.nan, -1, 10**400, ("a",), {"a": 1}]
    wrong += [] if setting in _MAY_BE_LEFT_OUT else [None]
    wrong += [] if isinstance(usual[setting], bool) else [True]
    for value in wrong:
        with pytest.raises(InputError) as refused:
            kind(**usual | {setting: value})
        assert "\n" not in str(refused.value)


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


@pytest.mark.parametrize("total", [2.0, 1e8, 1e17, 1e40])
def test_thompson_sampling_has_a_finite_index_for_totals_above_the_cap(total):
    """A total of more than about 1e16 caps leaves no variance beside the square of the mean."""
    ledger = Ledger(CATALOG["ThompsonSampling"].example(), caps=[1.0, 1.0], window=2)
    for now in range(1, 30):
        (decision,) = ledger.decide(now)
        ledger.observe(decision.id, total, age=0)
    ledger.choose(30.0)
    assert np.isfinite(ledger.statistics.values).all()
