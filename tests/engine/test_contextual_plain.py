"""A policy with contexts, written again with numpy, has the regret that the simulator computes."""

from typing import Any

import numpy as np

import accrual as ac
from accrual.engine.general_feed import GeneralRunFeed, count_pieces, world_of

PROBLEM = ac.Problem(
    [6.4, 6.4],
    window=30,
    laws=[ac.LinearLaw([0.5, 0.2, 0.0], [0, 0.3, 0]), ac.LinearLaw([0.4, 0.0, 0.3], [0.5, 0, 0])],
    contexts=ac.Contexts(numbers=1, flags=[0.4]),
)
ARMS, WIDTH = 2, 3


class PlainLinUCB:
    """`accrual.LinUCB`, which learns a decision's total when its window has closed."""

    def __init__(self) -> None:
        self.made, self.cap = 0, PROBLEM.caps[0]
        self.gram = np.tile(np.eye(WIDTH), (ARMS, 1, 1))
        self.response = np.zeros((ARMS, WIDTH))
        self.pulls, self.learned = np.zeros(ARMS), np.zeros(ARMS)

    def choose(self, x):
        self.made += 1
        index = []
        for arm in range(ARMS):
            inverse = np.linalg.inv(self.gram[arm])
            value = inverse @ self.response[arm] @ x + 0.1 * self.cap * np.sqrt(x @ inverse @ x)
            # In turn, as long as nothing is known of an arm.
            index.append(value if self.learned[arm] else 1e6 - self.pulls[arm])
        arm = int(np.argmax(index)) if self.made > ARMS else self.made - 1
        self.pulls[arm] += 1
        return arm

    def learn(self, x, arm, total):
        self.gram[arm] += np.outer(x, x)
        self.response[arm] += total * x
        self.learned[arm] += 1


def play(learner: PlainLinUCB, horizon: int, key: tuple[int, int]) -> float:
    """Play one run, (seed, number), decision by decision; return the regret."""
    world, window = world_of(PROBLEM), PROBLEM.window
    source = GeneralRunFeed(world, key, horizon)
    draws, means = source.read(horizon), source.means
    closing: list[tuple[Any, int, float]] = []  # in the order in which windows close
    regret = 0.0
    for i in range(horizon):
        x = draws.x[window + i].copy()
        arm = learner.choose(x)
        regret += float(means[i].max() - means[i, arm])
        pieces = count_pieces(world.arrays, world.caps, arm, means[i, arm], draws.u[i])
        closing.append((x, arm, 0.1 * pieces))
        if i >= window - 1:  # the window's first round is the decision's own
            learner.learn(*closing[i - window + 1])
    return regret


def test_a_learner_written_again_has_the_same_regret():
    """Contexts, luck, and when a total is known are the simulator's; regrets agree to rounding."""
    expected = ac.simulate(PROBLEM, [ac.LinUCB()], 900, runs=2, seed=5, checkpoints=1).final_regret[0]
    found = [play(PlainLinUCB(), 900, (5, run)) for run in range(2)]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
