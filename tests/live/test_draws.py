"""The draws of live policies: different in every worker and bandit, and the same again from the log."""

import numpy as np
import pytest
from tests.postgres import server

import accrual as ac
from accrual.store.memory import MemoryStore

ARMS = ["jazz", "rock"]


def next_arm(bandit, salt=None):
    """The arm that the bandit would choose now."""
    ledger = bandit._follower.ledger
    return ledger.choose(ledger.decisions + 1.0, 1, 1.0, bandit.queue._salt if salt is None else salt)[0]


@pytest.mark.parametrize("policy", ["AgeTS", "ThompsonSampling"])
def test_workers_with_the_same_statistics_draw_numbers_of_their_own(policy):
    """Two equal arms, so independent draws agree in half of 200 decisions: 100, and 4 standard errors of
    7. With one salt for both they agree in all. Every decision is explained from the log, to the bit."""
    url = server().tables()
    with (
        ac.Bandit(ARMS, window=4, policy=policy, store=url, seed=7) as one,
        ac.Bandit(ARMS, window=4, policy=policy, store=url, seed=7) as two,
    ):
        agreed = control = 0
        for i in range(200):
            one.catch_up(), two.catch_up()
            agreed += next_arm(one) == next_arm(two)
            control += next_arm(one, salt=0) == next_arm(two, salt=0)
            decision = (one, two)[i % 2].decide()
            (one, two)[i % 2].observe(decision.id, 0.5, age=0)
        one.catch_up()
        assert all(one.explain(id_).exact for id_ in range(0, 200, 7))
    assert control == 200
    assert 72 <= agreed <= 128


def test_two_bandits_with_one_seed_draw_numbers_of_their_own():
    store = MemoryStore()
    jazz, rock = (ac.Bandit(ARMS, window=4, policy="AgeTS", store=store, name=name, seed=7) for name in "ab")
    arms: list[list[str]] = []
    for bandit in (jazz, rock):
        arms.append([])
        for _ in range(200):
            decision = bandit.decide()
            bandit.observe(decision.id, 0.5, age=0)
            arms[-1].append(decision.arm)
    assert np.mean(np.array(arms[0]) == np.array(arms[1])) < 0.75  # 0.5, and 7 standard errors


def test_a_seed_that_was_not_given_is_drawn_and_kept():
    store = MemoryStore()
    first = ac.Bandit(ARMS, window=4, store=store)
    assert ac.Bandit(ARMS, window=4, store=store)._config.seed == first._config.seed
    assert ac.Bandit(ARMS, window=4)._config.seed != first._config.seed
