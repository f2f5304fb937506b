"""Other libraries meet the decisions and pieces that the simulator plays."""

import numpy as np
from benchmarks.peer_contexts import play

import accrual as ac

PROBLEM = ac.ContextualProblem(
    ac.Contexts(numbers=1, flags=[0.4]), [[0.5, 0.2, 0.0], [0.4, 0.0, 0.3]], 30, [[0, 0.3, 0], [0.5, 0, 0]]
)


class PlainLinUCB:
    """`accrual.LinUCB`, written again with numpy as a learner of another library."""

    def __init__(self) -> None:
        self.made, self.cap = 0, PROBLEM.caps[0]
        self.gram = np.tile(np.eye(3), (2, 1, 1))
        self.response = np.zeros((2, 3))
        self.pulls, self.learned = np.zeros(2), np.zeros(2)

    def choose(self, x):
        self.made += 1
        index = []
        for arm in range(2):
            inverse = np.linalg.inv(self.gram[arm])
            value = inverse @ self.response[arm] @ x + 0.1 * self.cap * np.sqrt(x @ inverse @ x)
            # In turn, as long as nothing is known of one.
            index.append(value if self.learned[arm] else 1e6 - self.pulls[arm])
        arm = int(np.argmax(index)) if self.made > 2 else self.made - 1
        self.pulls[arm] += 1
        return arm, 1.0

    def learn(self, x, arm, chance, reward):
        self.gram[arm] += np.outer(x, x)
        self.response[arm] += reward * x
        self.learned[arm] += 1


def test_a_learner_written_again_has_the_same_regret():
    """Visitors, luck, and when a total is known are the simulator's; regrets agree to rounding."""
    expected = ac.simulate(PROBLEM, [ac.LinUCB()], 900, runs=2, seed=5, checkpoints=1).final_regret[0]
    found = [play(PlainLinUCB(), PROBLEM, 900, (5, run), each_piece=False) for run in range(2)]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


class Listener(PlainLinUCB):
    """One that notes what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[int, float]] = []

    def learn(self, x, arm, chance, reward):
        self.told.append((self.made, reward))


def test_pieces_come_one_by_one_and_add_up_to_totals():
    by_total, by_piece = Listener(), Listener()
    for listener, each_piece in ((by_total, False), (by_piece, True)):
        play(listener, PROBLEM, 300, (5, 0), each_piece)
    # A window has 30 rounds, of which the first is the decision's own.
    assert [made for made, _ in by_total.told] == list(range(30, 301))
    assert {reward for _, reward in by_piece.told} == {0.1}
    paid = sum(reward for _, reward in by_total.told)
    assert 0 < paid < sum(reward for _, reward in by_piece.told) < 1.3 * paid  # some windows are still open
