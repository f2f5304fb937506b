"""The suite for policies.

Subclass it in a test file, say how to make the policy, and pytest does the rest::

    from accrual.testing import PolicySuite

    class TestMine(PolicySuite):
        def make_policy(self):
            return Mine(alpha=4)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar
from unittest import SkipTest

import numpy as np

from accrual.core.arrays import Floats
from accrual.engine.recording import record
from accrual.engine.simulate import simulate
from accrual.live.bandit import Bandit
from accrual.live.ledger import Decision, Ledger
from accrual.policies.base import Moment, Policy, is_numbered, no_refresh
from accrual.policies.ucb1 import UCB1
from accrual.problems.laws import BernoulliLaw, BetaLaw, UniformLaw
from accrual.problems.problem import Problem
from accrual.testing.plain_python import in_plain_python

_PLAIN_ROUNDS = 120
_SEED = 11  # of the runs that are recomputed, because a policy's survey may draw random numbers
_ROUNDS = 700


def small_problem(division: str = "even") -> Problem:
    """Make three arms with different laws and a window of 12 in 4 groups."""
    return Problem(
        caps=[1.0, 2.0, 1.5],
        window=12,
        groups=4,
        laws=[UniformLaw(), BetaLaw([1, 2, 3, 4], 2.0, spread=[0.4, 0.3, 0.2, 0.1]), BernoulliLaw(0.3)],
        division=division,  # type: ignore[arg-type]
    )


def easy_problem() -> Problem:
    """Make four arms with means far apart."""
    return Problem(caps=[1.0] * 4, window=12, groups=4, laws=[BernoulliLaw(p) for p in (0.1, 0.9, 0.3, 0.2)])


class PolicySuite(ABC):
    """What any policy must do, whatever its formula.

    The window of the suite's problems is 12, so a policy with groups of its own needs a number
    of them that divides 12.

    Attributes
    ----------
    explores : bool
        Set it to True for a policy that gives a fixed share of the rounds to arms at random. Its regret grows
        with time, so `test_regret_is_sublinear_on_an_easy_problem` is skipped; and chance may let an arm wait
        longer, so `test_arms_that_nothing_is_known_of_are_taken_in_turn` allows 64 decisions in place of 16.
    """

    explores: ClassVar[bool] = False

    @abstractmethod
    def make_policy(self) -> Policy:
        """Make the policy under test."""

    def test_same_choices_in_plain_python(self) -> None:
        """Compiled and interpreted, the choices and the statistics are the same to the bit."""
        assert in_plain_python(self, "_fingerprint") == self._fingerprint()

    def test_same_result_for_any_split(self) -> None:
        """Threads, the split of the runs and the order of the policies change nothing."""
        policies = {"it": self.make_policy(), "other": UCB1()}
        turned = dict(reversed(list(policies.items())))
        whole = simulate(small_problem(), policies, 500, runs=4, seed=3, threads=1)
        halves = [
            simulate(small_problem(), turned, 500, runs=half, seed=3, threads=2)
            for half in (range(2), range(2, 4))
        ]
        joined = np.concatenate([half.regret[1] for half in halves])
        np.testing.assert_array_equal(whole.regret[0], joined)

    def test_same_choices_for_any_span(self) -> None:
        """Where the engine pauses makes no difference."""
        dice = np.random.default_rng(1)
        long = record(small_problem(), self.make_policy(), _ROUNDS)
        short = record(
            small_problem(), self.make_policy(), _ROUNDS, spans=lambda most: int(dice.integers(1, 40))
        )
        np.testing.assert_array_equal(long.arms, short.arms)
        for name, value in _arrays(long.stats).items():
            np.testing.assert_array_equal(value, _arrays(short.stats)[name], err_msg=name)

    def test_chooses_known_arms_and_tries_each(self) -> None:
        """Every choice is an arm; the first rounds try each arm once, in order."""
        for problem in (small_problem(), easy_problem()):
            arms = record(problem, self.make_policy(), _ROUNDS).arms
            assert arms.min() >= 0
            assert arms.max() < len(problem.caps)
            assert list(arms[: len(problem.caps)]) == list(range(len(problem.caps)))

    def test_regret_is_sublinear_on_an_easy_problem(self) -> None:
        """The second half of the run costs at most half as much as the first, and little at all.

        A policy that explores a fixed share of the rounds at random costs as much in each half: it sets
        `explores`, and this is skipped. Guessing costs the mean gap a round. With regret in proportion to the
        logarithm of the rounds the second half would cost a twelfth of the first; half leaves room for
        policies that are still settling and for the noise of 10 runs.
        """
        if self.explores:
            raise SkipTest("it explores a fixed share of the rounds, so its regret grows with time")
        problem = easy_problem()
        horizon = 6000
        result = simulate(problem, [self.make_policy()], horizon, runs=10, seed=5, checkpoints=2)
        first, both = result.regret[0].mean(axis=0)
        assert both - first < 0.5 * first
        assert both - first < 0.1 * 0.5 * horizon * problem.gaps.mean()

    def test_arms_that_nothing_is_known_of_are_taken_in_turn(self) -> None:
        """While nothing has arrived of any arm, no arm is left out, in a million decisions.

        Of any 16 decisions in a row, each of four arms with the same cap gets at least one; of any 64, if the
        policy `explores`. A policy that expects more of some arms may choose these more often, and the others
        still have their turn.
        `accrual.policies.scalars.in_turn` is the index to return while nothing is known about an arm.
        """
        ledger = Ledger(self.make_policy(), caps=[1.0] * 4, window=12)
        arms = np.array(ledger.make(0.0, 1_000_000))
        for arm in range(4):
            waits = np.diff(np.flatnonzero(arms == arm), prepend=-1, append=len(arms))
            assert waits.max() <= (64 if self.explores else 16), (
                f"arm {arm} waited for {waits.max()} decisions"
            )

    def test_a_new_arm_gets_its_share_of_a_batch(self) -> None:
        """Of a batch, an arm that has just been added gets one decision in as many as there are arms."""
        ledger = Ledger(self.make_policy(), caps=[1.0] * 2, window=12)
        for now in range(1, 200):
            (decision,) = ledger.decide(now)
            ledger.observe(decision.id, 0.5 + 0.1 * decision.arm, age=0)
        new = [ledger.add_arm(1.0), ledger.add_arm(1.0)]
        arms = [decision.arm for decision in ledger.decide(200, n=600)]
        assert [arms.count(arm) for arm in new] == [150, 150]

    def test_the_estimate_of_closed_decisions_is_their_plain_mean(self) -> None:
        """On random problems, `Bandit.state` says of an arm what its closed decisions paid on average.

        With a policy that forgets, and learns every age, the average is weighted by its half-life.
        """
        dice = np.random.default_rng(13)
        now = 0.0

        def clock() -> float:
            return now

        for _ in range(5):
            caps = {name: float(dice.uniform(0.5, 20.0)) for name in "abc"}
            bandit = Bandit(caps, "12s", 12, self.make_policy(), seed=1, clock=clock)
            decisions: list[Decision[str]] = []
            totals: dict[int, float] = {}
            for _ in range(int(dice.integers(8, 80))):
                now += float(dice.uniform(0.0, 1.0))
                decisions.append(bandit.decide())
                totals[decisions[-1].id] = 0.0
                paying = decisions[int(dice.integers(len(decisions)))]
                value = float(dice.uniform(0.0, 0.2)) * caps[paying.arm]
                if not bandit.observe(paying.id, value).late:
                    totals[paying.id] += value
            now += 13.0
            bandit.add_arm("another")  # an event, which moves the bandit's time on
            for arm in bandit.state().arms[:3]:
                ids = np.array([decision.id for decision in decisions if decision.arm == arm.name])
                weights = np.exp2(ids / (self.make_policy().half_life or np.inf))
                mean = np.average([totals[id_] for id_ in ids], weights=weights)
                assert arm.estimate is not None
                np.testing.assert_allclose(arm.estimate, mean, rtol=1e-9, atol=1e-12)

    def test_statistics_equal_a_brute_force_recomputation(self) -> None:
        """At random rounds, the statistics are those of the whole history, piece by piece."""
        histories: list[Any] = []
        found: list[dict[str, Any]] = []
        for division in ("even", "first"):
            problem = small_problem(division)
            for horizon in np.random.default_rng(7).integers(20, 400, size=4):
                recording = record(problem, self.make_policy(), int(horizon), seed=_SEED)
                histories.append([division, recording.arms.tolist(), recording.pieces.tolist()])
                found.append(_arrays(recording.stats))
        # In plain Python, because a call from Python would compile the policy's functions once more.
        for expected, stats in zip(in_plain_python(self, "_recomputed", histories), found, strict=True):
            for name, value in stats.items():
                np.testing.assert_allclose(value, expected[name], rtol=1e-9, atol=1e-9, err_msg=name)

    def _fingerprint(self) -> Any:
        """Return the choices of a short run and its last statistics, as plain data."""
        recording = record(small_problem(), self.make_policy(), _PLAIN_ROUNDS, seed=2)
        # JSON has no infinity, so numbers travel as their hexadecimal text, which is exact too.
        stats = {
            name: [float(x).hex() for x in value.ravel()] for name, value in _arrays(recording.stats).items()
        }
        return [recording.arms.tolist(), stats]

    def _recomputed(self, histories: Sequence[tuple[str, list[int], list[list[float]]]]) -> list[Any]:
        """Return the statistics after each of some histories (division, arms, pieces), as plain data."""
        found = []
        for division, arms, pieces in histories:
            stats = _brute_force(small_problem(division), self.make_policy(), arms, np.array(pieces))
            found.append({name: value.tolist() for name, value in _arrays(stats).items()})
        return found


def _arrays(stats: Any) -> dict[str, Floats]:
    return {name: np.asarray(value) for name, value in stats._asdict().items()}


def _brute_force(problem: Problem, policy: Policy, arms: Sequence[int], pieces: Floats) -> Any:
    """Fold the whole history from nothing, reading every piece on its own."""
    params = policy.params(np.array(problem.caps), problem.window)
    stats = policy.stats(params)
    functions, window, horizon = policy.functions, problem.window, len(arms)
    edges = [0, *policy.edges(window)]
    lag = 0 if policy.immediate else window - 1

    def paid(decision: int, age: int) -> float:
        return math.fsum(pieces[decision, :age])

    for t in range(horizon):
        if functions.refresh is not no_refresh:
            if stats.due[0] <= 0:
                functions.refresh(params, stats)
            stats.due[0] -= 1
        if t >= len(problem.caps):
            _survey(policy, params, stats, t + 1)
        stats.pulls[arms[t]] += 1
        functions.decided(params, stats, arms[t])
        if policy.feedback == "totals" and t >= lag:
            functions.closed(params, stats, arms[t - lag], paid(t - lag, window))
        if policy.feedback == "groups":
            for g, (low, high) in enumerate(pairwise(edges)):
                s = t - (high - 1)
                if s >= 0:
                    if is_numbered(stats):
                        stats.finishing[g] = s
                    functions.finished(params, stats, arms[s], g, paid(s, low), paid(s, high))
    if policy.feedback == "pieces":
        stats.observed[:] = 0.0
        for s, arm in enumerate(arms):
            stats.observed[arm] += paid(s, min(window, horizon - s))
    return stats


def _survey(policy: Policy, params: Any, stats: Any, round_: int) -> None:
    policy.functions.survey(params, stats, Moment(round_, math.log(round_ - 1), _SEED, 0))
