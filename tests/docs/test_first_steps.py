"""Mistakes of the first hour, at the public names: each gets one line that says what would be right."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

import accrual as ac

loose: Any = ac  # whose arguments mypy does not check: they are wrong
PROBLEM = ac.Problem(caps=[1.0, 1.0], window=6, groups=3)
POLICIES = [ac.UCB1()]
LOG = (
    pd.DataFrame({"id": range(40), "arm": ["a", "b"] * 20, "at": range(40)}),
    pd.DataFrame({"decision": range(40), "value": [1.0, 0.0] * 20, "age": 3}),
)


def bandit(arms: Any = ("jazz", "rock"), window: Any = 10, **options: Any) -> Any:
    return loose.Bandit(arms, window, **options)


def problem(caps: Any = (1.0, 1.0), **options: Any) -> Any:
    return loose.Problem(**{"caps": caps, "window": 6, "groups": 3, **options})


def simulate(problem: Any = PROBLEM, policies: Any = POLICIES, **options: Any) -> Any:
    return loose.simulate(problem, policies, **{"horizon": 100, "runs": 1, **options})


NAMES = (
    "arms must be names, such as ['jazz', 'rock'], or names with their caps, such as "
    "{'jazz': 40, 'rock': 40}, not "
)
CAPS = "caps must be a list of numbers, one for each arm, such as [1.0, 1.0], not "
MISTAKES: list[tuple[Callable[[], Any], str]] = [
    (lambda: bandit(3), f"{NAMES}3"),
    (lambda: bandit(None), f"{NAMES}None"),
    (
        lambda: bandit([["jazz", "rock"]]),
        "the name of an arm must be text of 1 to 200 characters, none of them a control character, not [",
    ),
    (
        lambda: bandit({"jazz", "rock"}),
        "arms must be a list or a mapping, whose order is kept; a set has none",
    ),
    (
        lambda: bandit(80, ["jazz", "rock"]),
        "window must be a whole number from 1 to 2147483648, not ['jazz', 'rock']",
    ),
    (lambda: bandit(policy=ac.AgeIMED), "AgeIMED is the class of a policy; make a policy of it: AgeIMED()"),
    (
        lambda: bandit(policy=ac.TPUCBFR),
        "TPUCBFR is the class of a policy; make a policy of it: TPUCBFR(alpha=...)",
    ),
    (lambda: bandit(policy=3), "3 is not a policy; write for example 'AgePrior' or ac.AgePrior()"),
    (lambda: bandit(policy="ageimed"), "unknown policy 'ageimed'; did you mean 'AgeIMED'?"),
    (lambda: bandit(store=3), "store must be an address, such as 'sqlite:///plays.db', or a store, not 3"),
    (lambda: bandit(clock=3), "clock must be a function that returns the time in seconds, not 3"),
    (
        lambda: bandit(clock=datetime.datetime.now),
        "clock must return the time in seconds, as time.time does, not dat",
    ),
    (lambda: bandit(window="9d", skew="5s"), "skew must be a number of seconds, not '5s'"),
    (lambda: bandit(allow_negative="no"), "allow_negative must be True or False, not 'no'"),
    (
        lambda: ac.Bandit.open(loose.UCB1),
        "store must be an address, such as 'sqlite:///plays.db', or a store, not <c",
    ),
    (
        lambda: bandit().observe(loose.Bandit(["a"], 9).decide(), 0.5),
        "give the id of a decision, not the decision: 0",
    ),
    (lambda: bandit().explain(77), "no decision has the id 77"),
    (lambda: ac.Fitted.load("nosuch.json"), "nosuch.json: No such file or directory"),
    (lambda: bandit().retire_arm(loose.UCB1()), "unknown arm UCB1() (one of: jazz, rock)"),
    (lambda: problem(3), f"{CAPS}3"),
    (lambda: problem("12"), f"{CAPS}'12'"),
    (lambda: problem(["1", "2"]), f"{CAPS}['1', '2']"),
    (lambda: problem({"jazz": 1.0}), f"{CAPS}{{'jazz': 1.0}}"),
    (lambda: problem([[1, 2], [3, 4]]), f"{CAPS}[[1, 2], [3, 4]]"),
    (lambda: problem(laws=[0.2, 0.3]), "laws must be reward laws such as BernoulliLaw(0.2), not 0.2"),
    (lambda: problem(laws="beta"), "laws must be reward laws such as BernoulliLaw(0.2), not 'beta'"),
    (lambda: problem(arms=2), "arms must be a list of names, such as ['jazz', 'rock'], not 2"),
    (lambda: problem(arms="ab"), "arms must be a list of names, such as ['jazz', 'rock'], not 'ab'"),
    (lambda: problem(division=3), "unknown division 3 (one of: even, first)"),
    (lambda: PROBLEM.regret([1]), "pulls must be 2 numbers, one for each arm, not [1]"),
    (lambda: simulate("setting1"), "problem must be a Problem, such as ac.paper.setting1(), not 'setting1'"),
    (
        lambda: simulate(ac.paper.setting1),
        "problem must be a Problem, such as ac.paper.setting1(), not function",
    ),
    (lambda: simulate(POLICIES, PROBLEM), "problem must be a Problem, such as ac.paper.setting1(), not list"),
    (
        lambda: simulate(loose.fit(*LOG)),
        "problem must be a Problem, such as ac.paper.setting1(), not Fitted; its method",
    ),
    (lambda: simulate(policies=[ac.UCB1]), "UCB1 is the class of a policy; make a policy of it: UCB1()"),
    (lambda: simulate(policies={1: ac.UCB1()}), "the label of a policy must be text, not 1"),
    (lambda: simulate(device=0), "unknown device 0 (one of: cpu, cuda)"),
    (lambda: ac.log_rounds(0), "horizon must be a whole number from 1 to 2147483647, not 0"),
    (
        lambda: loose.compare(LOG, [ac.UCB1], runs=2),
        "UCB1 is the class of a policy; make a policy of it: UCB1()",
    ),
]


@pytest.mark.parametrize(("mistake", "says"), MISTAKES, ids=[str(i) for i in range(len(MISTAKES))])
def test_a_mistake_gets_one_line(mistake, says):
    with pytest.raises(ac.InputError) as raised:
        mistake()
    assert str(raised.value).startswith(says)
    assert "\n" not in str(raised.value)


def test_a_bandit_that_is_refused_is_not_in_the_store(tmp_path):
    store = f"sqlite:///{tmp_path}/plays.db"
    with pytest.raises(ac.InputError, match="clock must return the time"):
        bandit(store=store, clock=datetime.datetime.now)
    with pytest.raises(ac.InputError, match="unknown bandit 'bandit': there is no bandit"):
        ac.Bandit.open(store)
