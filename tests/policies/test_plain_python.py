"""The process of plain Python that the suites ask."""

import os

import numpy as np
import pytest
from numba import config

import accrual as ac
from accrual.problems.gallery import generate
from accrual.testing.plain_python import in_plain_python


class Asked:
    def where(self, *given):
        print("not an answer")
        return [config.DISABLE_JIT, os.getpid(), *given]  # type: ignore[attr-defined]

    def fail(self):
        raise ValueError("no such arm")

    def end(self):
        os._exit(3)


def test_one_process_answers_all_and_says_what_went_wrong():
    compiled, first, *given = in_plain_python(Asked(), "where", 0.1, [1, "a\n"])
    assert (compiled, given) == (1, [0.1, [1, "a\n"]])
    assert first != os.getpid()
    with pytest.raises(AssertionError, match="ValueError: no such arm"):
        in_plain_python(Asked(), "fail")
    assert in_plain_python(Asked(), "where")[1] == first


def test_after_it_ended_another_is_started():
    _, first = in_plain_python(Asked(), "where")
    with pytest.raises(AssertionError, match="ended with exit code 3"):
        in_plain_python(Asked(), "end")
    assert in_plain_python(Asked(), "where")[1] != first


class WithContexts:
    """What decisions for whom come to, as exact text."""

    def bandit(self, policy):
        features = {"country": ["de", "us"], "new": bool, "visits": (0, 50)}
        bandit = ac.Bandit({"a": 1.0, "b": 2.0}, 12, policy=policy, features=features, seed=3, floor=0.1)
        dice = np.random.default_rng(0)
        arms = []
        for _ in range(60):
            context = {"country": "us", "new": bool(dice.integers(2)), "visits": int(dice.integers(50))}
            decision = bandit.decide(context=context)
            arms.append(decision.arm)
            bandit.observe(decision.id, float(dice.random()) / 2, age=0)
        bandit.explain(decision.id)
        return [*arms, *[float(arm.observed).hex() for arm in bandit.state().arms]]

    def simulation(self):
        policies = [ac.AgeLinTS(), ac.LinTS(), ac.LinUCB(), ac.AgePrior(half_life=30), ac.IMED()]
        result = ac.simulate(generate(3, 2, seed=1, window=20), policies, horizon=60, runs=1)
        return [float(regret).hex() for regret in result.final_regret[:, 0]]


@pytest.mark.parametrize("policy", ["AgeLinTS", "LinTS", "LinUCB"])
def test_a_bandit_with_features_in_plain_python(policy):
    assert in_plain_python(WithContexts(), "bandit", policy) == WithContexts().bandit(policy)


def test_a_simulation_with_contexts_in_plain_python():
    assert in_plain_python(WithContexts(), "simulation") == WithContexts().simulation()
