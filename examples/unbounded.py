"""Rewards that never quite end: how long a window to keep.

Three arms pay once, or not at all; when they pay has no upper limit, and the best arm is slow. A
window cuts the slow arm off the most. With a short one another arm looks best, which costs every
decision for good; with a long one a learner that waits for it to close knows nothing for a long time. AgeIMED
learns from every age as soon as it is reached, so it can afford a long window.

Before that a pilot tries the arms in turn and says, without the truth, how much each window misses.

Run it: python examples/unbounded.py
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

import accrual as ac
from accrual.bounds import truncation_loss
from accrual.live.ledger import Ledger
from accrual.logs.estimate import Tail, estimate_tail, payments, window_for
from accrual.problems.spreads import Continuous

WORTH = np.array([0.30, 0.33, 0.40])  # the chance that a decision pays, sooner or later
TYPICAL = [20.0, 20.0, 60.0]  # rounds until it does, on average
PILOT, HORIZON = 15_000, 20_000
SLOW = 2

Floats = npt.NDArray[np.float64]
Cdf = Callable[[Floats], Floats]
Draw = Callable[[np.random.Generator, int], float]


def fades(typical: float) -> Cdf:
    return lambda age: 1 - np.exp(-age / typical)


def within(window: int, cdfs: Sequence[Cdf]) -> tuple[ac.Problem, Floats]:
    """What a learner with this window is up against, and the share of each arm that it never sees."""
    cuts = [Continuous(cdf, window) for cdf in cdfs]
    tails = np.array([cut.tail for cut in cuts])
    laws = [ac.LumpLaw(p * (1 - tail), cut) for p, tail, cut in zip(WORTH, tails, cuts, strict=True)]
    return ac.Problem([1.0] * len(cdfs), window, groups=20, laws=laws), tails


def pilot(window: int, draw: Draw) -> tuple[Floats, list[Tail]]:
    """Each arm's mean in the window and its tail, from decisions of all arms in turn."""
    dice = np.random.default_rng(1)
    ledger = Ledger(ac.AgeIMED(), caps=[1.0] * len(WORTH), window=window)
    for now in range(PILOT):
        (decision,) = ledger.decide(now, arm=now % len(WORTH))
        if dice.random() < WORTH[decision.arm]:
            ledger.observe(decision.id, 1.0, age=draw(dice, decision.arm))
    ledger.tick(PILOT + window)
    stats, edges = ledger.stats, ledger.policy.edges(window)
    means = stats.paid / stats.seen
    counts = [payments(*arm) for arm in zip(stats.seen, stats.paid, stats.square, strict=True)]
    tails = [estimate_tail(m / m.sum(), edges, n) for m, n in zip(means, counts, strict=True)]
    return means.sum(axis=1), tails


cdfs = [fades(typical) for typical in TYPICAL]
print(f"A window of {window_for(cdfs[SLOW]):.0f} rounds catches 99 % of the slow arm.\n")
print("         the slow arm's tail            loss per decision    regret, in full rewards")
print("window   truth   pilot, interval          truth   at most     AgeIMED   IMED, waiting")
for window in (20, 40, 80, 160, 320, 1280, 5120):
    problem, tails = within(window, cdfs)
    means, guesses = pilot(window, lambda dice, arm: dice.exponential(TYPICAL[arm]))
    loss = WORTH.max() - WORTH[problem.means.argmax()]
    most = truncation_loss(means, [guess.high for guess in guesses])
    result = ac.simulate(problem, [ac.AgeIMED(), ac.IMED()], HORIZON, runs=10, checkpoints=1)
    regret = (result.pulls @ (WORTH.max() - WORTH)).mean(axis=1)
    slow = guesses[SLOW]
    print(
        f"{window:6d}{tails[SLOW]:8.3f}{slow.share:8.3f}, {slow.low:.3f} to {slow.high:.3f}"
        f"{loss:9.3f}{most:10.3f}{regret[0]:12.0f}{regret[1]:16.0f}"
    )

print("\nA power law instead: of what is to come, ever less comes in a round, and no window bounds it.")
print("window   truth   pilot, interval        seen to be heavier")
for window in (40, 160, 640):
    truth = (1 + window / 20) ** -0.7
    slow = pilot(window, lambda dice, arm: 20 * dice.pareto(0.7))[1][SLOW]
    print(f"{window:6d}{truth:8.3f}{slow.share:8.3f}, {slow.low:.3f} to {slow.high:.3f}      {slow.heavier}")
