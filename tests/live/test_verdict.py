"""Floors, propensities and verdicts: hand-checked numbers, and the same bits after a refold."""

import math

import numpy as np
import pytest
from tests.postgres import server

import accrual as ac
from accrual.core.errors import InputError
from accrual.evaluate.plan import trials
from accrual.live.verify_snapshots import learned, refold, same_bits
from accrual.live.watch.evidence import BETS, DOWN, LOW, SCORED, SKIPPED, UP, WEIGHTS, no_evidence, score
from accrual.live.watch.sequences import arm_bounds, pair_bounds, sums_of
from accrual.live.watch.verdicts import verdict
from accrual.live.watch.watcher import Pace
from accrual.policies.floor import Limits, drawn, limits_of, propensity
from accrual.store.backends import make_tables

PACE = Pace(0, 1.0, 10.0)


def evidence_of(rows, least=0.05, arms=2):
    evidence = no_evidence(np.tile([0.0, 1.0], (arms, 1)), np.full(arms, least), 0.05, 0)
    for arm, total, chance in rows:
        score(evidence, arm, total, chance)
    return evidence


def test_wealth_by_hand():
    evidence = evidence_of([(0, 1.0, 0.95), (1, 0.0, 0.05), (0, 0.25, 0.95)])
    # h is 0.5 before the first decision, then the mean of the totals and one half.
    s = [(1.0 - 0.5) / 0.95, (0.0 - 1.5 / 2) / 0.05, (0.25 - 1.5 / 3) / 0.95]
    for j, bet in enumerate(BETS * 0.05):
        up = math.log(1 + bet * s[0]) + math.log(1 + bet * s[2])
        assert evidence.logs[0, UP, j] == pytest.approx(up, abs=1e-15)
        assert evidence.logs[1, DOWN, j] == pytest.approx(math.log(1 - bet * s[1]), abs=1e-15)
    assert WEIGHTS.sum() == pytest.approx(1.0)
    assert evidence.counts[SCORED] == 3


def test_no_bet_can_lose_everything():
    """Whatever totals come, and with the least propensity, every factor stays above 0."""
    dice = np.random.default_rng(0)
    rows = [(int(arm), float(total), 0.05) for arm, total in dice.integers(2, size=(500, 2))]
    evidence = evidence_of(rows)
    assert np.isfinite(evidence.logs).all()
    above = evidence_of([(0, 7.0, 0.05)])
    assert above.counts[2] == 1  # cut off at the cap, and counted
    assert above.heights[0, 3] == 1.0


def test_a_pair_is_beaten_when_its_interval_leaves_0():
    """The bounds that the sequences use are those of the wealth itself at 0, and hold the plain mean."""
    dice = np.random.default_rng(1)
    rows = []
    for _ in range(3000):
        arm = 1 if dice.random() < 0.9 else 0
        rows.append((arm, float(dice.random() < (0.3, 0.5)[arm]), (0.1, 0.9)[arm]))
    evidence = evidence_of(rows, least=0.1)
    low = pair_bounds(evidence, sums_of(evidence), np.array([1, 0]), np.array([0, 1]))
    won = evidence.beaten[1, 0] > 0
    assert won
    assert not evidence.beaten[0, 1]
    assert 0.0 < low[-1, 0] < 0.2 < -low[-1, 1]
    ends = arm_bounds(evidence, UP, 40.0), arm_bounds(evidence, DOWN, 40.0)
    assert (ends[0] < [0.3, 0.5]).all()
    assert (ends[1] > [0.3, 0.5]).all()
    assert (ends[1] - ends[0] < 0.25).all()
    found = verdict(evidence, [0, 1], "ab".__getitem__, PACE)
    assert (found.winner, found.contenders, found.retirable) == ("b", ["b"], ["a"])
    assert found.pairs[0].interval == (low[-1, 0], -low[-1, 1])


def test_without_a_floor_nothing_is_said():
    found = verdict(evidence_of([(0, 1.0, 0.0)], least=0.0), [0, 1], "ab".__getitem__, PACE)
    assert found.winner is None
    assert "no floor" in found.reason
    assert found.skipped == 1
    lowered = evidence_of([(0, 1.0, 0.01)])
    assert lowered.counts[LOW] == 1
    assert "below" in verdict(lowered, [0, 1], "ab".__getitem__, PACE).reason


def test_an_arm_that_is_dropped_is_noticed():
    """Every second decision of an arm is lost: it is chosen less often than its propensities say."""
    dice = np.random.default_rng(2)
    rows = []
    for _ in range(6000):
        arm = int(dice.random() < 0.5)
        if arm == 0 or dice.random() < 0.5:
            rows.append((arm, float(dice.random() < 0.3), 0.5))
    found = verdict(evidence_of(rows, least=0.5), [0, 1], "ab".__getitem__, PACE)
    assert "b was chosen less often than its propensities say" in found.warnings
    fair = [(int(dice.random() < 0.5), float(dice.random() < 0.3), 0.5) for _ in range(6000)]
    assert verdict(evidence_of(fair, least=0.5), [0, 1], "ab".__getitem__, PACE).warnings == []
    silent = [*fair, *((1, 0.0, 0.5) for _ in range(60))]
    (warning,) = verdict(evidence_of(silent, least=0.5), [0, 1], "ab".__getitem__, PACE).warnings
    assert "closed decisions of b paid nothing" in warning


def test_propensities_are_those_of_the_coin():
    shares = limits_of(0.2, {"a": (0.3, 0.6)}, ["a", "b", "c"]).shares(np.ones(3, bool))
    for pick in range(3):
        chances = [propensity(shares, pick, arm) for arm in range(3)]
        assert sum(chances) == pytest.approx(1.0)
        assert 0.3 - 1e-12 <= chances[0] <= 0.6 + 1e-12
        grid = (np.arange(10_000) + 0.5) / 10_000
        coins = [drawn(shares, pick, u) for u in grid]
        assert all(chance == propensity(shares, pick, arm) for arm, chance in coins)
        seen = np.bincount([arm for arm, _ in coins], minlength=3) / 10_000
        assert seen == pytest.approx(chances, abs=2e-4)
    assert Limits(0.1).shares(np.array([True, False, True])).least.tolist() == [0.05, 0.0, 0.05]


@pytest.mark.parametrize(
    ("floor", "shares", "said"),
    [
        (1.5, None, "from 0 to 1"),
        (0.1, {"x": (0.1, 0.2)}, "unknown arm"),
        (0.1, {"a": (0.5, 0.2)}, "must be two"),
        (0.0, {"a": (0.7, 1.0), "b": (0.7, 1.0)}, r"add up to 1\.4; lower them, to 1 or less in all"),
        (0.0, {"a": (0.0, 0.2), "b": (0.0, 0.2)}, r"add up to 0\.4, .*; raise them, to 1 or more in all"),
        (0.5, {"a": (0.0, 0.1)}, r"greatest share, 0\.1; take a floor of 0\.2 or less"),
        (0.1, ["a"], "must be a mapping"),
    ],
)
def test_limits_that_cannot_be(floor, shares, said):
    with pytest.raises(InputError, match=said):
        limits_of(floor, shares, ["a", "b"])


def play(bandit, decisions, seed=0):
    dice = np.random.default_rng(seed)
    made = []
    for _ in range(decisions):
        one = bandit.decide()
        made.append(one)
        if dice.random() < {"a": 0.2, "b": 0.6}[one.arm]:
            bandit.observe(one.id, 1.0, age=0)
    return made


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_refold_gives_the_same_verdict_to_the_bit(tmp_path, kind):
    store = f"sqlite:///{tmp_path}/plays.db" if kind == "sqlite" else server().database()
    make_tables(store)
    with ac.Bandit(["a", "b"], window=20, store=store, floor=0.2, seed=3) as bandit:
        made = play(bandit, 700)
        before = bandit.state().verdict
        ledger = {name: array.copy() for name, array in learned(bandit._follower.ledger).items()}
        again = bandit.decide(key="k")
        assert bandit.decide(key="k") == again  # with its propensity
        assert again.propensity in (0.1, 0.9)
        assert bandit.explain(made[-1].id).exact
        assert bandit.explain(made[-1].id).propensity == made[-1].propensity
    assert before.winner == "b"
    assert {one.propensity for one in made} == {0.1, 0.9}
    if kind == "sqlite":  # the same coins as in memory; PostgreSQL's workers have salts of their own
        assert play(ac.Bandit(["a", "b"], window=20, floor=0.2, seed=3), 700) == made
    with ac.Bandit.open(store) as other:
        row = other._store.find("bandit")
        assert row is not None
        fresh = refold(other._store, row, other._config.ledger(), other._follower.position - 1)
        assert same_bits(learned(fresh), ledger)
        evidence = fresh.watched[1]
        assert verdict(evidence, fresh.arms.in_play, other._name, Pace(20, 1.0, 20.0)) == before


def test_a_bandit_gets_a_floor_later_and_an_old_one_says_so(tmp_path):
    store = f"sqlite:///{tmp_path}/plays.db"
    with ac.Bandit(["a", "b"], window=20, store=store, seed=3) as bandit:
        play(bandit, 100)
        said = bandit.state().verdict
        assert "no floor" in said.reason
        assert said.skipped == 80
    with ac.Bandit.open(store, floor=0.2) as bandit:
        said = bandit.state().verdict
        assert "No propensity was recorded before, for 80 decisions" in said.sentence
        play(bandit, 700, seed=1)
        assert bandit.state().verdict.winner == "b"
        assert bandit.state().verdict.skipped == 100
    with ac.Bandit(["a", "b"], window=20, store=store, name="other", floor=0.2) as bandit:
        pass
    with pytest.raises(InputError, match=r"made with a floor of 0\.2; that cannot be changed"):
        ac.Bandit.open(store, "other", floor=0.1)


def test_decisions_are_scored_in_the_order_in_which_they_were_made():
    """An arm with a shorter window closes earlier, and waits for the decisions before it."""
    bandit = ac.Bandit(["a", "b"], window=20, floor=0.5, seed=1)
    bandit.add_arm("c", window=5)
    bandit.decide(n=8)
    evidence = bandit._follower.ledger.watched[1]
    assert evidence.counts[SCORED] == 0
    bandit.decide(n=60)
    assert evidence.counts[SCORED] == 68 - 20
    assert evidence.heights[-1, 0] == evidence.counts[SCORED]
    assert evidence.counts[SKIPPED] == 0


def test_equal_arms_seldom_have_a_winner_and_a_better_one_is_found():
    """At most 5 % and two standard errors of 200 runs, with a look in every round; power with a margin."""
    equal = ac.Problem([1.0] * 3, 50, 10, [ac.LumpLaw(0.3)] * 3)
    found = trials(equal, ac.AgeIMED(), 0.2, 1500, 200, seed=1)
    assert (found.winner >= 0).mean() <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 200)
    better = ac.Problem([1.0] * 2, 50, 10, [ac.LumpLaw(0.3), ac.LumpLaw(0.5)])
    found = trials(better, ac.AgeIMED(), 0.2, 2000, 50, seed=1)
    assert (found.winner == 1).mean() >= 0.9


def test_a_plan_holds_in_trials():
    """Half of 300 trials have a verdict by then: within 15 %, three standard errors of their median."""
    promise = ac.plan(0.3, 0.2, 0.3, window=20)
    problem = ac.Problem([1.0] * 2, 20, 10, [ac.LumpLaw(0.3), ac.LumpLaw(0.5)])
    found = trials(problem, ac.AgeIMED(), 0.3, 4000, 300, seed=2)
    when = np.where(found.winner == 1, found.round, 9999)
    half = promise.lines[0].half
    assert half is not None
    assert half + 20 == pytest.approx(float(np.median(when)), rel=0.15)
    with pytest.raises(InputError, match="between 0 and the cap"):
        ac.plan(0.9, 0.2)


def test_a_decision_drawn_by_the_floor_says_so():
    """Arm b pays nothing: all its later decisions are drawn at random, with half the floor as propensity."""
    bandit = ac.Bandit(["a", "b"], window=4, groups=1, floor=0.2, seed=3)
    for _ in range(300):
        d = bandit.decide()
        bandit.observe(d.id, 1.0 if d.arm == "a" else 0.0, age=0)
    why = [bandit.explain(id_) for id_ in range(150, 300)]
    drawn = [one for one in why if one.drawn]
    assert {one.arm for one in drawn} == {"b"}
    assert len(drawn) == sum(one.arm == "b" for one in why) > 5
    assert all(one.propensity == pytest.approx(0.1) for one in drawn)


def test_a_new_arm_begins_the_comparison_anew():
    bandit = ac.Bandit(["a", "b"], window=2, groups=1, floor=0.2)
    for _ in range(10):
        bandit.decide()
    assert bandit.state().verdict.began == 0
    bandit.add_arm("c")
    assert bandit.state().verdict.began == 10
