"""What verdicts say over the whole life of a bandit: when arms drift, come, go by hand, or change places."""

import math

import numpy as np
import pytest
from tests.postgres import server

import accrual as ac
from accrual.core.jit.compiler import kernel
from accrual.core.random import floor_coin, pair
from accrual.evaluate import plan as plans
from accrual.evaluate.plan import even_shares
from accrual.live.commit import Decide
from accrual.live.watch.alarms import ChangedArm
from accrual.live.watch.evidence import CHECK, LAST, SCORED, SKIPPED, comparison_error, no_evidence, score
from accrual.live.watch.sequences import estimates
from accrual.live.watch.verdicts import verdict
from accrual.live.watch.watcher import Pace
from accrual.policies.floor import drawn
from accrual.store.backends import make_tables
from accrual.store.base import AddArm, NewDecisions

PACE = Pace(10, 1.0, 10.0)
MOST = 0.05 + 2 * math.sqrt(0.05 * 0.95 / 200)  # of 200 runs: the error, and two standard errors


def fresh(arms, floor, number=0):
    shares = even_shares(arms, floor)
    return shares, no_evidence(np.tile([0.0, 1.0], (arms, 1)), shares.least, comparison_error(number), 0)


@kernel
def play(evidence, shares, means, pick, key, start, stop):
    """Score decisions that are all or nothing; `means` is decisions x arms."""
    for i in range(start, stop):
        arm, chance = drawn(shares, pick, floor_coin(key[0], key[1], i))
        u, _ = pair(key, i, 0, 0)
        score(evidence, arm, 1.0 if u < means[i, arm] else 0.0, chance)


@kernel
def false_pairs(evidence, shares, means, key):
    """Count the looks at which an arm is said to pay more on average so far, and did not."""
    found = 0
    sums = np.zeros(means.shape[1])
    for i in range(len(means)):
        arm, chance = drawn(shares, i // 400 % means.shape[1], floor_coin(key[0], key[1], i))
        u, _ = pair(key, i, 0, 0)
        score(evidence, arm, 1.0 if u < means[i, arm] else 0.0, chance)
        sums += means[i]
        if (i + 1) % CHECK == 0:
            for a in range(len(sums)):
                for b in range(len(sums)):
                    if evidence.beaten[a, b] > 0 and evidence.spans[a, b, LAST] == i and sums[a] <= sums[b]:
                        found += 1
    return found


def drifting(world, run):
    """Return what arms pay, decision by decision, in a world that drifts."""
    dice, time = np.random.default_rng([7, run]), np.arange(3000)
    if world == "wait, then catch up":  # a pays less at first, then more, but never more on average
        more = np.where(time < 300, -0.3, 0.3 * 300 / 2700)
        return np.stack([0.4 + more, np.full(3000, 0.4)], axis=1)
    if world == "in turns":
        swap = 0.25 * np.sign(np.sin(2 * np.pi * (time + 0.5) / 500))
        return np.stack([0.5 - swap, 0.5 + swap, np.full(3000, 0.5)], axis=1)
    steps = dice.normal(0.0, 0.01, (3000, 4)).cumsum(axis=0)
    return np.clip(0.5 + steps, 0.0, 1.0)


@pytest.mark.parametrize("world", ["wait, then catch up", "in turns", "random walks"])
def test_what_is_said_of_the_average_is_seldom_false_whatever_drifts(world):
    """At most 5 % of 200 bandits ever say something false of any pair, and two standard errors."""
    wrong = 0
    for run in range(200):
        means = drifting(world, run)
        shares, evidence = fresh(means.shape[1], 0.4)
        wrong += false_pairs(evidence, shares, means, (3, run)) > 0
    assert wrong / 200 <= MOST


def test_an_arm_that_is_beaten_does_not_win_and_changed_places_are_said():
    means = np.repeat([[0.5, 0.3], [0.3, 0.5]], [4000, 12_000], axis=0)
    shares, evidence = fresh(2, 0.2)
    named = []
    for start in range(0, 16_000, 250):
        play(evidence, shares, means, 0, (1, 0), start, start + 250)
        found = verdict(evidence, [0, 1], "ab".__getitem__, PACE)
        named.append(found.winner)
        assert found.winner not in found.retirable
        for one in found.pairs:
            assert found.winner is None or one.behind is None
    assert named[15] == "a"  # before they change places
    assert found.winner is None
    assert (found.contenders, found.retirable, found.changed) == (["a", "b"], [], ["a", "b"])
    (one,) = found.pairs
    assert {one.first, one.second} == {"a", "b"}
    assert found.sentence.startswith(
        "No verdict: a and b have changed places. On average from decision 0 to "
    )
    assert "You may stop" not in found.sentence


def test_a_circle_of_arms_has_no_winner():
    """Over different decisions a beats b, b beats c and c beats a: nobody may be retired."""
    _, evidence = fresh(3, 0.3)
    for a, b in ((0, 1), (1, 2), (2, 0)):
        evidence.beaten[a, b] = 16
    found = verdict(evidence, [0, 1, 2], "abc".__getitem__, PACE)
    assert (found.winner, found.contenders, found.retirable) == (None, ["a", "b", "c"], [])


def test_a_sentence_names_its_decisions_and_the_past_once_the_alarm_is_up():
    shares, evidence = fresh(2, 0.4)
    play(evidence, shares, np.tile([0.2, 0.7], (640, 1)), 1, (1, 0), 0, 640)
    found = verdict(evidence, [0, 1], "ab".__getitem__, PACE)
    begins = "You may stop: b paid more than every other arm in play, on average from decision 0 to 639."
    assert found.sentence.startswith(begins)
    assert found.pairs[0].ahead == (0, 639)
    alarms = [ChangedArm("a", 700, 0.9, 0.2)]
    later = verdict(evidence, [0, 1], "ab".__getitem__, PACE, alarms)
    assert later.winner == "b"
    assert later.sentence.startswith(
        "b paid more than every other arm in play, on average from decision 0 to"
    )
    assert "since then arms pay differently, a (known by decision 700)" in later.sentence


def test_all_comparisons_of_a_bandit_share_the_error():
    assert sum(map(comparison_error, range(100_000))) <= 0.05
    bandit = ac.Bandit(["a", "b"], window=5, floor=0.4, streams={"refunds": ac.Guardrail()})
    ledger = bandit._follower.ledger
    for number in range(3):
        bound = (2 + number) * (1 + number) / comparison_error(number)
        _, evidence, guards = ledger.watched
        assert evidence.unit[1] == pytest.approx(bound)
        assert guards.evidence.unit[0, 1] == pytest.approx(bound)
        bandit.add_arm(f"new {number}")


def test_sixty_comparisons_seldom_have_a_false_winner():
    """Two equal arms in each of 60 comparisons one after the other: at most 5 % of 200 bandits ever."""
    means = np.full((600, 2), 0.3)
    wrong = 0
    for run in range(200):
        for number in range(60):
            shares, evidence = fresh(2, 0.4, number)
            play(evidence, shares, means, number % 2, (number, run), 0, 600)
            if evidence.beaten.any():
                wrong += 1
                break
    assert wrong / 200 <= MOST


def test_arms_that_are_retired_by_hand_seldom_leave_a_false_winner():
    """Of ten equal arms the two most separated are kept: at most 5 % of 200 bandits have a winner."""
    means = np.full((2400, 10), 0.3)
    wrong = 0
    for run in range(200):
        shares, evidence = fresh(10, 1.0)
        play(evidence, shares, means, 0, (2, run), 0, 2400)
        difference, errors = estimates(evidence)
        kept = np.unravel_index(np.argmax(difference / np.where(errors > 0, errors, np.inf)), errors.shape)
        found = verdict(evidence, sorted(int(arm) for arm in kept), "abcdefghij".__getitem__, PACE)
        wrong += found.winner is not None
    assert wrong / 200 <= MOST


def test_what_was_found_stays_found_when_an_arm_comes():
    bandit = ac.Bandit(["a", "b"], window=5, floor=0.4, seed=3)
    dice = np.random.default_rng(0)

    def play_live(decisions):
        for _ in range(decisions):
            one = bandit.decide()
            bandit.observe(one.id, float(dice.random() < {"a": 0.1, "b": 0.7, "c": 0.1}[one.arm]), age=0)

    play_live(400)
    assert bandit.state().verdict.winner == "b"
    bandit.add_arm("c")
    found = bandit.state().verdict
    assert (found.winner, found.contenders, found.retirable) == (None, ["b", "c"], ["a"])
    play_live(900)
    found = bandit.state().verdict
    assert found.winner == "b"
    ranges = {one.second: one.ahead for one in found.pairs}
    assert ranges["c"] is not None
    assert ranges["c"][0] >= 400  # the new comparison
    bandit.retire_arm("c")
    assert bandit.state().verdict.winner == "b"


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgresql"])
def test_decisions_of_a_worker_that_does_not_know_the_new_arm_do_not_count(tmp_path, kind):
    url = {"memory": lambda: None, "sqlite": lambda: f"sqlite:///{tmp_path}/plays.db"}.get(
        kind, lambda: server().database()
    )()
    if url is not None:
        make_tables(url)
    with ac.Bandit(["a", "b"], window=5, store=url, floor=0.5, seed=1) as bandit:
        bandit.decide(n=10)
        store, number, seen = bandit._store, bandit._row.number, bandit._follower.position
        store.append(number, [AddArm("c", 1.0, 5.0)], bandit.queue.now())
        stale = NewDecisions((0,) * 7, (5.0,) * 7, seen, propensities=(0.75,) * 7)
        fresh_ones = stale._replace(seen=seen + 1)
        store.append(number, [stale, fresh_ones], bandit.queue.now())
        bandit.catch_up()
        assert bandit._follower.ledger.arms.known[0] == seen + 1
        bandit.decide(n=20)
        counts = bandit._follower.ledger.watched[1].counts
        assert counts[SKIPPED] == 7
        assert counts[SCORED] + counts[SKIPPED] == 7 + 7 + 20 - 5
        row = store.decision(number, 10)
        assert row is not None
        assert row.propensity == 0.75  # it is kept all the same


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_decision_that_is_answered_again_throws_no_coin(tmp_path, kind):
    """The other decisions of its commit, and those after, are what they would have been without it."""
    plain, retried = (
        ac.Bandit(
            ["a", "b"], window=5, floor=1.0, seed=4,
            store=None if kind == "memory" else f"sqlite:///{tmp_path}/{name}.db",
        )
        for name in ("plain", "retried")
    )  # fmt: skip
    made = []
    for bandit in (plain, retried):
        with bandit:
            first = bandit.decide(key="k")
            arms = []
            for number in range(60):
                asks = [Decide(), Decide(key=f"new {number}")]
                if bandit is retried:
                    asks = [Decide(1, "k"), asks[0], Decide(1, "k"), *asks[1:], Decide(1, f"new {number}")]
                answers = bandit.submit(asks)
                again = [answer for answer in answers if answer.status.value == "again"]
                assert len(again) == (3 if bandit is retried else 0)
                arms += [answer.arms for answer in answers if answer.status.value == "stored"]
                arms.append((bandit.arms.index(bandit.decide().arm),))
            assert bandit.explain(100).exact
            made.append((first, arms))
    assert made[0] == made[1]


def test_the_loss_and_the_decisions_to_go_are_within_reason():
    """At every look: no more is lost than the best-paid arm has paid, and some decisions must still close."""
    shares, means = even_shares(3, 0.1), np.tile([0.345, 0.3, 0.2], (6000, 1))
    fell = ranges = 0
    for run in range(6):
        _, evidence = fresh(3, 0.1)
        for start in range(0, 6000, 20):
            play(evidence, shares, means, 0, (5, run), start, start + 20)
            found = verdict(evidence, [0, 1, 2], "abc".__getitem__, PACE)
            counts, paid = evidence.heights[:-1, 0], evidence.heights[:-1, 3]
            assert found.loss_if_stopped <= (paid / np.maximum(counts, 1)).max() + 1e-12
            if found.winner:
                assert found.decisions_to_go is None
                fell += 1
                break
            if found.decisions_to_go is not None:
                least, most = found.decisions_to_go
                assert least >= 1
                assert most is None or most >= least
                assert found.time_to_go is not None
                ranges += 1
    assert ranges > 100


def test_the_decisions_to_go_hold_in_most_tests():
    """What it took lies in the range said after 400 and 1,600 decisions, in seven of ten of 60 tests."""
    shares, means = even_shares(2, 0.2), np.tile([0.3, 0.4], (20_000, 1))
    held = []
    for run in range(60):
        _, evidence = fresh(2, 0.2)
        said = []
        for start, stop in ((0, 400), (400, 1600), (1600, 20_000)):
            play(evidence, shares, means, 1, (6, run), start, stop)
            found = verdict(evidence, [0, 1], "ab".__getitem__, PACE)
            if found.decisions_to_go is not None:
                said.append((stop, *found.decisions_to_go))
        fell = evidence.beaten[1, 0] or math.inf
        held += [least <= fell - at <= (most or math.inf) for at, least, most in said if fell > at]
    assert np.mean(held) >= 0.7


def test_a_plan_plays_fewer_tests_with_the_other_floors(monkeypatch):
    played = []

    def one(shares, tables, settings, run):
        played.append(float(shares.least[0]))
        return 100 + run

    monkeypatch.setattr(plans, "_test", one)
    plan = ac.plan(0.3, 0.2, 0.1)
    counts = {share: played.count(share) for share in set(played)}
    assert sorted(counts.values()) == [200] * 4 + [1000]
    assert counts[0.05] == 1000
    assert plan.lines[0].half is not None
