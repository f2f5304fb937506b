"""The process of plain Python that the suites ask."""

import os
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numba import config

import accrual as ac
from accrual.evaluate.replay import judging
from accrual.policies.catalog import CATALOG, CONTEXTUAL
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


PLAIN = [kind.example() for kind in CATALOG.values()]
CHOOSE_BY_CONTEXT = [kind.example() for kind in CONTEXTUAL.values()]


class Everything:
    """What one does with policies, each time with every policy of the catalog that can do it."""

    def simulate(self):
        result = ac.simulate(ac.Problem([1.0, 2.0], 12, 4), PLAIN, horizon=30, runs=1)
        return result.final_regret.tolist()

    def simulate_with_contexts(self):
        policies = [policy for policy in PLAIN if policy.feedback != "pieces"] + CHOOSE_BY_CONTEXT
        result = ac.simulate(generate(3, 2, seed=1, window=12), policies, horizon=30, runs=1)
        return result.final_regret.tolist()

    def live(self):
        told = []
        for policy in PLAIN + CHOOSE_BY_CONTEXT:
            features: dict[str, Any] = {"features": {"new": bool}} if policy.contextual else {}
            context = {"new": True} if policy.contextual else None
            streams = {"refunds": ac.Guardrail(margin=0.1)}
            bandit = ac.Bandit([*"ab"], 12, policy=policy, floor=0.1, seed=1, streams=streams, **features)
            for _ in range(20):
                decision = bandit.decide(context=context)
                bandit.observe(decision.id, 0.5, age=0)
            bandit.observe(decision.id, 1.0, age=0, stream="refunds")
            bandit.close_decision(decision.id)
            told.append([repr(bandit.state()), repr(bandit.explain(decision.id))])
        return told

    def log(self):
        dice, n = np.random.default_rng(0), 260
        columns = {"decision": range(n), "arm": dice.choice([*"ab"], n), "at": np.arange(n, dtype=float)}
        pieces = {"age": dice.integers(0, 12, n), "value": dice.random(n), "new": dice.integers(0, 2, n) > 0}
        return pd.DataFrame(columns | pieces)

    def compare(self):
        fitted = ac.fit(self.log(), window=12, groups=4)
        return repr(ac.compare(fitted, PLAIN, runs=2, horizon=30))

    def replay(self):
        policies = [policy for policy in PLAIN if not policy.immediate] + CHOOSE_BY_CONTEXT
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(judging, "REPEATS", 2)  # for time's sake
            return repr(ac.replay(self.log(), policies, uniform=True, window=12, groups=4, context=["new"]))


@pytest.mark.parametrize("what", ["simulate", "simulate_with_contexts", "live", "compare", "replay"])
def test_everything_works_in_plain_python_with_every_policy(what):
    """Other tests ask for the same bits. This one runs everything, and needs nothing to be compiled."""
    assert in_plain_python(Everything(), what)
