"""What a fit says about large totals, clusters and mean cumulative curves."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from tests.logs.drawn_logs import estimated, means_of

import accrual as ac
from accrual.core.errors import InputError
from accrual.core.interval import Interval
from accrual.evaluate.compare.arm_differences import means as compared_means
from accrual.logs.estimate.cumulative_means import arm_mean, keep_total
from accrual.logs.fitted import risk_places


def log_of(totals, arms=("a", "b"), ages=3.0, **columns):
    """A log in which decision i of the arms in turn pays totals[i] at one age, all closed."""
    count = len(totals)
    decisions = pd.DataFrame(
        {
            "id": range(count),
            "arm": [arms[i % len(arms)] for i in range(count)],
            "at": range(count),
            **columns,
        }
    )
    pieces = pd.DataFrame({"decision": range(count), "value": totals, "age": ages})
    return decisions, pieces[pieces["value"] != 0.0]


def fitted_to(totals, window=10, groups=2, **options):
    decisions, pieces = log_of(totals, **options.pop("columns", {}))
    return ac.fit(decisions, pieces, window=window, groups=groups, end=len(totals) + 20, **options)


def whales(seed=0, count=1200):
    dice = np.random.default_rng(seed)
    return np.where(dice.random(count) < 1 / 200, 200.0, 1.0) * dice.exponential(1.0, count)


def test_a_heap_keeps_the_largest_totals():
    heap = np.full(5, -np.inf)
    for total in np.random.default_rng(1).permutation(40).astype(float):
        if total > heap[0]:
            keep_total(heap, total)
    assert sorted(heap) == [35, 36, 37, 38, 39]


def test_a_mean_that_rests_on_few_decisions_is_said_to():
    totals = whales()
    fitted = fitted_to(totals)
    careful = fitted.summary().splitlines()[0]
    assert careful.startswith("careful: much of what was paid came from a few large decisions: of a (")
    assert "--cap-totals" in careful
    for a, arm in enumerate(fitted.arms):
        own = np.sort(totals[a::2])[::-1]
        assert arm.large_totals.largest == pytest.approx(own[0] / own.sum())
        assert arm.large_totals.ten == pytest.approx(own[:10].sum() / own.sum())
        away = (own - own.mean()) ** 2
        assert arm.large_totals.variance == pytest.approx(away.max() / away.sum())
        assert arm.large_totals.index == pytest.approx(1.0 / np.log(own[:60] / own[60]).mean())
    table = fitted.table()
    assert table["heavy"].all()
    assert table["in_ten"].tolist() == pytest.approx([arm.large_totals.ten for arm in fitted.arms])


def test_arms_without_large_totals_are_warned_of_if_others_have_them():
    totals = np.random.default_rng(2).exponential(1.0, 1200)
    assert not fitted_to(totals).table()["heavy"].any()
    totals[100] = 900.0  # of a
    fitted = fitted_to(totals)
    assert fitted.table()["heavy"].all()
    assert "and b may pay as much in decisions that the log does not have" in fitted.cautions[0]


@pytest.mark.parametrize("law", ["exponential", "uniform", "standard_normal"])
def test_totals_that_behave_are_not_warned_of(law):
    # Of 40 logs of 600 none, where one in a hundred would be by the table in docs/measured/large_totals.md.
    done, arm = np.ones(600, np.int64), np.zeros(600, np.int64)
    for seed in range(40):
        totals = np.abs(getattr(np.random.default_rng(seed), law)(size=600))
        assert not estimated(totals[:, None], done, arm, totals.max()).large_totals(0).heavy


def test_large_totals_are_warned_of_by_compare_and_replay():
    decisions, pieces = log_of(whales())
    fitted = ac.fit(decisions, pieces, window=10, groups=2, end=1220)
    found = ac.compare(fitted, ["AgePrior"], runs=2, horizon=50)
    assert "large decisions" in found.summary().splitlines()[0]
    judged = ac.replay((decisions, pieces), "always a", uniform=True, window=10)
    assert "large decisions" in judged.summary().splitlines()[0]


def test_capped_totals_are_stated_and_cut_the_last_pieces():
    decisions = pd.DataFrame({"id": range(40), "arm": ["a", "b"] * 20, "at": range(40)})
    pieces = pd.DataFrame(
        {"decision": np.repeat(range(40), 3), "value": [1.0, 4.0, 5.0] * 40, "age": [1, 2, 8] * 40}
    )
    fitted = ac.fit(decisions, pieces, window=10, groups=2, end=60, cap_totals=4)
    assert fitted.table()[["mean", "cap"]].values.tolist() == [[4.0, 4.0], [4.0, 4.0]]
    assert fitted.spread.value == (1.0, 0.0)
    assert fitted.cautions[0].startswith(
        "totals are capped at 4, as asked: 40 decisions had more at some age, and 240 of the 400"
    )
    uncapped = ac.fit(decisions, pieces, window=10, groups=2, end=60)
    assert not any("capped at" in line for line in uncapped.cautions)
    with ac.open_log(decisions, pieces, cap_totals=20) as log:
        assert log.query("SELECT sum(value) FROM pieces") == [(400.0,)]


def test_refunds_after_the_cap_count_from_what_was_paid():
    decisions = pd.DataFrame({"id": range(4), "arm": ["a", "b"] * 2, "at": range(4)})
    pieces = pd.DataFrame(
        {"decision": np.repeat(range(4), 3), "value": [3.0, 4.0, -5.0] * 4, "age": [1, 2, 3] * 4}
    )
    with ac.open_log(decisions, pieces, cap_totals=4, allow_negative=True) as log:
        values = [row[0] for row in log.query("SELECT value FROM pieces WHERE decision = 0 ORDER BY age")]
    assert values == [3.0, 1.0, -2.0]  # 3, then 7 of which 4 count, then 2


@pytest.mark.parametrize("cap", [0, -1, math.inf, "x"])
def test_a_cap_of_totals_must_be_a_number_above_0(cap):
    with pytest.raises(InputError, match="cap_totals must be a positive number"):
        fitted_to(np.ones(40), cap_totals=cap)


def test_errors_of_clusters_are_those_of_their_sums():
    """Against plain numbers: the scores of closed decisions, added up by user."""
    dice = np.random.default_rng(3)
    user = dice.integers(30, size=400)
    totals = dice.lognormal(0.0, 0.6, 30)[user] * dice.exponential(1.0, 400)
    columns = {"columns": {"user": user}}
    plain, clustered = fitted_to(totals, **columns), fitted_to(totals, cluster="user", **columns)
    for a, (one, other) in enumerate(zip(plain.arms, clustered.arms, strict=True)):
        own, who = totals[a::2], user[a::2]
        sums = np.bincount(who, own - own.mean()) / len(own)
        count = len(np.unique(who))
        error = math.sqrt((sums**2).sum() * count / (count - 1))
        assert other.mean.value == one.mean.value == pytest.approx(own.mean())
        assert other.clusters == count
        assert one.clusters is None
        width = (other.mean.high - other.mean.low) / (2.0 * error)
        assert 1.9 < width < 2.8  # Student's quantiles, and Hall's skewness
        assert other.mean.low < one.mean.low < one.mean.high < other.mean.high
    assert any("share their user and pay alike" in line for line in clustered.warnings)


def test_clusters_of_one_decision_each_change_nothing():
    totals = np.random.default_rng(4).exponential(1.0, 200)
    ages = np.random.default_rng(5).random(200) * 10.0
    options = {"columns": {"ages": ages, "own": range(200)}}
    plain, clustered = fitted_to(totals, **options), fitted_to(totals, cluster="own", **options)
    none = {"ages": ages, "own": [None] * 200}  # a decision without one is a cluster of its own
    alone = fitted_to(totals, cluster="own", columns=none)
    for one, other, third in zip(plain.arms, clustered.arms, alone.arms, strict=True):
        assert (third.mean, third.curve, third.spread) == (other.mean, other.curve, other.spread)
        # The number of clusters corrects once more, by 1 in 200.
        assert other.mean.low == pytest.approx(one.mean.low, rel=0.01)
        assert other.curve.high == pytest.approx(one.curve.high, rel=0.01)
        assert other.spread.low == pytest.approx(one.spread.low, rel=0.05)


def test_clusters_in_several_parts_are_the_same(monkeypatch):
    user = np.random.default_rng(6).integers(25, size=300)
    totals = np.random.default_rng(7).exponential(1.0, 300)
    options = {"cluster": "user", "columns": {"user": user}}
    whole = fitted_to(totals, **options)
    monkeypatch.setattr("accrual.logs.estimate.clusters._NUMBERS_MOST", 14)
    for one, other in zip(fitted_to(totals, **options).arms, whole.arms, strict=True):
        assert (one.mean, one.curve, one.spread) == (other.mean, other.curve, other.spread)


def test_means_of_clusters_hold_where_those_of_decisions_do_not():
    """Bursts share a level: 100 logs of 50 bursts of 20 decisions; 0.065 is three standard errors of 0.95."""
    hits = []
    for seed in range(100):
        dice = np.random.default_rng([8, seed])
        burst = np.repeat(np.arange(50), 20)
        pay = (dice.lognormal(0.0, 0.7, 50)[burst] * dice.exponential(1.0, 1000))[:, None]
        done, arm = np.ones(1000, np.int64), np.zeros(1000, np.int64)
        found = (means_of(estimated(pay, done, arm, pay.max(), cluster))[0] for cluster in (None, burst))
        hits.append([mean.low <= math.exp(0.245) <= mean.high for mean in found])
    plain, clustered = np.mean(hits, axis=0)
    assert plain < 0.75
    assert clustered > 0.885


def test_compare_counts_clusters_for_less():
    user = np.repeat(np.arange(40), 10)
    totals = np.random.default_rng(9).lognormal(0.0, 0.7, 40)[user]
    plain, clustered = (
        fitted_to(totals, cluster=cluster, columns={"user": user}).arms for cluster in (None, "user")
    )
    drawn = [totals[::2], totals[1::2]]
    assert (compared_means(clustered, drawn).decisions < 0.5 * compared_means(plain, drawn).decisions).all()


def test_replay_adds_up_clusters():
    user = np.repeat(np.arange(60), 10)
    totals = np.random.default_rng(10).lognormal(0.0, 0.7, 60)[user]
    tables = log_of(totals, user=user)
    policies = ["always a", "AgeTS"]
    plain = ac.replay(tables, policies, uniform=True, window=10)
    with ac.open_log(*tables, cluster="user") as log:
        clustered = ac.replay(log, policies, uniform=True, window=10)
    for one, other in zip(plain.lines, clustered.lines, strict=True):
        assert other.reward.value == pytest.approx(one.reward.value)
        if one.policy != "AgeTS":
            assert other.reward.high - other.reward.low > 1.3 * (one.reward.high - one.reward.low)


def test_a_column_of_clusters_that_is_not_there_is_named():
    with pytest.raises(InputError, match="no column 'user' \\(for cluster\\)"):
        fitted_to(np.ones(40), cluster="user")


def test_curves_are_cumulative_means_and_end_at_the_mean():
    totals = np.random.default_rng(11).exponential(1.0, 200)
    ages = np.random.default_rng(12).random(200) * 10.0
    decisions, pieces = log_of(totals, ages=ages)
    fitted = ac.fit(decisions, pieces, window=10, groups=5, end=220)
    frame = fitted.to_frame()
    assert frame["age"].tolist() == [2, 4, 6, 8, 10] * 2
    for a, arm in enumerate(fitted.arms):
        own = frame[frame["arm"] == arm.name]
        by_age = [totals[a::2][ages[a::2] < age].sum() / 100 for age in own["age"]]
        assert own["mean"].tolist() == pytest.approx(by_age)
        assert (own["low"] < own["mean"]).all()
        assert (own["mean"] < own["high"]).all()
        assert Interval(*own.iloc[-1][["mean", "low", "high"]].tolist()) == arm.mean
        assert own["followed"].tolist() == [100] * 5


def test_curves_hold_the_truth_at_every_age():
    """Pieces at a constant rate, three in ten decisions open: 0.95 ± 0.04 of 5 x 100 points, which depend on
    each other."""
    hits = []
    for seed in range(100):
        dice = np.random.default_rng([13, seed])
        pay = dice.poisson(0.4, (150, 5)).astype(np.float64)
        done = np.minimum((dice.random(150) / 0.3 * 5).astype(np.int64), 5)
        found = estimated(pay, done, np.zeros(150, np.int64), pay.sum(axis=1).max())
        for g, mean in enumerate(np.cumsum(found.of(0).group_means)):
            one = arm_mean(float(mean), found.scores(0, g), np.inf, signed=False, plain=False)
            hits.append(one.low <= 0.4 * (g + 1) <= one.high)
    assert 0.91 < np.mean(hits) < 0.99


def test_the_file_keeps_curves_and_large_totals(tmp_path):
    fitted = fitted_to(whales(), cluster="user", columns={"user": np.arange(1200) // 3})
    fitted.save(tmp_path / "problem.json")
    loaded = ac.Fitted.load(tmp_path / "problem.json")
    for one, other in zip(fitted.arms, loaded.arms, strict=True):
        assert (one.curve, one.large_totals, one.clusters) == (
            other.curve,
            other.large_totals,
            other.clusters,
        )
    assert set(json.loads((tmp_path / "problem.json").read_text())["arms"][0]["curve"]) == {
        "value", "low", "high", "followed",
    }  # fmt: skip


def test_the_picture_has_numbers_followed_and_the_window_within():
    fitted = fitted_to(np.random.default_rng(14).exponential(1.0, 100), window=100)
    figure = fitted.plot()
    curves, _, arrived = figure.axes
    assert {"a", "b", "50"} <= {text.get_text() for text in curves.texts}
    (window,) = (line for line in arrived.lines if line.get_label() == "window")
    assert window.get_xdata()[0] < arrived.get_xlim()[1]


def test_instant_reward_comes_at_once():
    times = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(100) * 3600.123, "s")
    decisions = pd.DataFrame({"id": range(100), "arm": ["a", "b"] * 50, "at": times})
    pieces = pd.DataFrame({"decision": range(100), "value": 1.0, "age": 0.0})
    fitted = ac.fit(decisions, pieces, end="2024-02-01")
    assert fitted.window == 1.0
    summary = fitted.summary()
    assert "half of a decision's reward has come at once and 90 % at once" in summary
    assert "99 % of that comes at once" in summary
    assert "e-" not in summary


def test_where_curves_are_written():
    assert risk_places(5) == [0, 1, 2, 3, 4]
    assert all(risk_places(groups)[-1] == groups - 1 for groups in range(1, 100))


def test_totals_of_which_refunds_leave_nothing_can_be_capped():
    decisions = pd.DataFrame({"id": range(40), "arm": ["a", "b"] * 20, "at": range(40)})
    pieces = pd.DataFrame(
        {"decision": [i // 2 for i in range(80)], "value": [5.0, -5.0] * 40, "age": [1, 2] * 40}
    )
    with ac.open_log(decisions, pieces, allow_negative=True, cap_totals=np.float64(3)) as log:
        assert "40 decisions had more at some age, and 0 of the 0 paid in all is left out" in log.capped
    with pytest.raises(ac.InputError, match="cap_totals must be a positive number, not True"):
        ac.open_log(decisions, pieces, allow_negative=True, cap_totals=True)


def test_one_cluster_of_all_decisions_is_refused_by_its_name():
    decisions = pd.DataFrame({"id": range(40), "arm": ["a", "b"] * 20, "at": range(40), "shop": "one"})
    pieces = pd.DataFrame({"decision": range(40), "value": 1.0, "age": 1})
    with pytest.raises(ac.InputError, match="fewer than two arms have decisions in two clusters of 'shop'"):
        ac.fit(decisions, pieces, window=5, end=100, cluster="shop")
