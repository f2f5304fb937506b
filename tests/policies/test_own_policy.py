"""The policies that the documentation has as examples pass the published suite; slips get one line."""

import doctest
import math
from pathlib import Path
from typing import Any

import pytest
from own_policy import PieceMOSS

import accrual as ac
from accrual.core.errors import InputError
from accrual.core.jit import njit
from accrual.policies.base import Functions
from accrual.testing import PolicySuite


class TestPieceMOSS(PolicySuite):
    def make_policy(self):
        return PieceMOSS()


def greedy():
    """The policy that docs/own_policy.md writes."""
    page = (Path(__file__).parents[2] / "docs/own_policy.md").read_text(encoding="utf-8")
    written: dict[str, Any] = {}
    for example in doctest.DocTestParser().get_examples(page):
        if example.source.startswith(("from", "import", "@njit", "class")):
            exec(example.source, written)
    return written["Greedy"]


class TestGreedy(PolicySuite):
    explores = True

    def make_policy(self, kind=greedy()):  # noqa: B008  (read once, because each reading is compiled anew)
        return kind()


def bare(params, stats, arm, moment):
    return 0.0


@njit
def short(params, stats, arm):
    return 0.0


@njit
def lost(params, stats, arm, moment):
    return math.nan


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"functions": Functions(index=bare)}, "index of PieceMOSS is not compiled; decorate it with acc"),
        ({"functions": Functions(index=short)}, "index of PieceMOSS must take 4 arguments .params, stats"),
        ({"functions": Functions(index=lost)}, "index of PieceMOSS for arm 0 is not a number in round 11"),
        ({"feedback": "piece"}, "unknown feedback of PieceMOSS 'piece'; did you mean 'pieces'"),
    ],
)
def test_a_slip_of_its_author_is_said_in_one_line(wrong, said):
    policy = type("PieceMOSS", (PieceMOSS,), wrong)()
    with pytest.raises(InputError, match=said):
        ac.simulate(ac.paper.setting1(), [policy], horizon=20, runs=1)
    if "functions" not in wrong or wrong["functions"].index is not lost:
        with pytest.raises(InputError, match=said):
            ac.Bandit(["a", "b"], window=20, policy=policy)
