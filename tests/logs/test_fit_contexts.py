"""Does the best arm depend on the context? Logs whose truth is known."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

import accrual as ac
from accrual.core.errors import InputError
from accrual.core.interval import Interval, mean_interval
from accrual.core.reward_model import Observed, cross_fit, scores
from accrual.logs.fitted import Fitted, Personalising

BASE = np.array([1.0, 1.05, 0.95])


def tables(n: int, seed: int, effect: float, by_context: bool = False) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A log of three arms: a pays `effect` more to the new, c pays it more in the US, b pays best for all."""
    dice = np.random.default_rng(seed)
    countries = np.array(["de", "us", "fr", None])
    country = countries[dice.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])]
    new, visits = dice.random(n) < 0.5, dice.poisson(5, n)
    odds = np.exp(np.outer(new * by_context, [-0.8, 0.0, 0.8]))
    chance = odds / odds.sum(axis=1, keepdims=True)
    arm = (chance.cumsum(axis=1) < dice.random((n, 1))).sum(axis=1)
    mean = BASE[arm] + effect * ((arm == 2) & (country == "us")) + effect * ((arm == 0) & new)
    total, part = mean * dice.gamma(2.0, 0.5, n), dice.random(n)
    decisions = pd.DataFrame(
        {
            "id": np.arange(n), "arm": np.array(["a", "b", "c"])[arm], "at": 10 * np.arange(n),
            "country": country, "new": new, "visits": visits, "user": dice.permutation(n),
            "zip": [f"{code:05d}" for code in dice.integers(1000, 1020, n)],
            "p": chance[np.arange(n), arm],
        }
    )  # fmt: skip
    pieces = pd.DataFrame(
        {
            "decision": np.repeat(np.arange(n), 2),
            "value": np.stack([total * part, total - total * part], axis=1).ravel(),
            "age": dice.integers(0, 1000, 2 * n),
        }
    )  # fmt: skip
    return decisions, pieces


def worth(found: Fitted) -> Personalising:
    assert found.contexts is not None
    return found.contexts


def value(found: Fitted) -> Interval:
    told = worth(found).value
    assert told is not None
    return told


def fitted(log: tuple[pd.DataFrame, pd.DataFrame], context: list[str], **more: Any) -> Fitted:
    columns = {"propensity": "p"} if "p" in log[0] else {}
    return ac.fit(*log, columns, window=1000, groups=5, context=context, **more)


def test_a_log_whose_best_arm_depends_on_the_context_says_so_and_for_whom(tmp_path):
    found = fitted(tables(12_000, 1, 0.6, by_context=True), ["country", "new", "visits"])
    contexts = worth(found)
    assert value(found).low > 0.0
    assert {(one.part, one.arm) for one in contexts.winners} >= {("country=us", "c")}
    line = next(line for line in found.summary().splitlines() if line.startswith("Does the best arm"))
    assert "yes; chosen by a linear model" in line
    assert "propensities are taken to be right" in line
    found.save(tmp_path / "problem.json")
    assert worth(Fitted.load(tmp_path / "problem.json")).winners[0].part == contexts.winners[0].part


def test_useless_contexts_are_no_sign():
    log = tables(6000, 2, 0.0)
    found = fitted((log[0].drop(columns="p"), log[1]), ["country", "new"], uniform=True)
    assert value(found).low <= 0.0
    assert worth(found).winners == ()
    assert "no sign of it" in found.summary()
    assert "As given, every arm had the same chance" in found.summary()


def test_without_propensities_it_says_what_is_assumed_or_refuses():
    plain, chosen = tables(6000, 3, 0.3), tables(6000, 3, 0.3, by_context=True)
    even = fitted((plain[0].drop(columns="p"), plain[1]), ["new"])
    assert "it is assumed that it chose arms without regard to the context" in even.summary()
    uneven = fitted((chosen[0].drop(columns="p"), chosen[1]), ["new"])
    assert worth(uneven).value is None
    assert "this log cannot tell: the log chose arms by the context (new)" in uneven.summary()


def test_propensities_that_do_not_fit_are_not_believed():
    decisions, pieces = tables(6000, 3, 0.3, by_context=True)
    found = fitted((decisions.assign(p=0.9), pieces), ["new"])
    assert worth(found).value is None
    assert "the propensities do not fit the log" in found.summary()


def test_an_arm_that_some_never_see_is_not_judged():
    """Only the new see arm a, by certain rules: nothing tells what it would pay others."""
    decisions, pieces = tables(6000, 4, 0.3)
    decisions["arm"] = np.where(decisions.new, "a", "b")
    found = fitted((decisions.assign(p=1.0), pieces), ["new"])
    assert worth(found).value is None


@pytest.mark.parametrize(
    ("context", "words"),
    [
        (["user"], "is it an id? say user:number if it is a quantity"),
        (["user:levels"], "an id says nothing about the next decision"),
        (["arm"], "column 'arm' is arm, so it cannot be a context as well"),
        (["nation"], "no column 'nation'"),
        (["country:number"], "is given as a number, but some of its cells are not numbers"),
        (["when"], "for a time, give the hour"),
        (["same"], "has fewer than two values"),
        ("country", "must be a list of columns"),
    ],
)
def test_what_can_be_no_context_is_refused_in_one_line(context, words):
    decisions, pieces = tables(600, 5, 0.0)
    decisions = decisions.assign(when=pd.Timestamp("2024-01-01"), same=1)
    with pytest.raises(InputError, match=re.escape(words)) as refused:
        fitted((decisions, pieces), context)
    assert "\n" not in str(refused.value)


def test_what_kind_of_feature_a_column_is(tmp_path):
    """Also from a CSV file, where every cell is text."""
    decisions, pieces = tables(3000, 6, 0.0)
    many = np.random.default_rng(1).choice([f"t{i}" for i in range(150)], 3000)
    decisions = decisions.assign(town=many, visits=decisions.visits.where(decisions.visits != 3))
    decisions.to_csv(tmp_path / "decisions.csv", index=False)
    pieces.to_csv(tmp_path / "pieces.csv", index=False)
    context = ["country", "new", "visits", "zip", "town"]
    for log in ((decisions, pieces), (tmp_path / "decisions.csv", tmp_path / "pieces.csv")):
        found = ac.fit(*log, {"propensity": "p"}, window=1000, groups=5, context=context)
        words = worth(found).features
        assert words[0].startswith("country: 3 levels; missing in ")
        assert words[1] == "new: yes or no"
        assert words[2].startswith("visits: a number from 0 to ")
        assert "missing in" in words[2]
        assert words[3].startswith("zip: 19 levels; the 1 others")
        assert words[4].startswith("town: 19 levels; the 131 others, which are rarer, count as one")


def test_a_joined_table_and_a_context_that_changes_within_a_decision():
    decisions, pieces = tables(600, 7, 0.0)
    joined = pieces.merge(decisions, left_on="decision", right_on="id").drop(columns="decision")
    told = {"propensity": "p", "id": "id"}
    found = ac.fit(joined, None, told, window=1000, groups=5, context=["new"])
    assert worth(found).decisions == 600
    joined.loc[0, "new"] = not joined.loc[0, "new"]
    with pytest.raises(InputError, match="several values for decision 0"):
        ac.fit(joined, None, told, window=1000, groups=5, context=["new"])


def simulated(n: int, seed: int) -> tuple[Observed, np.ndarray]:
    """Contexts of two flags and a number; uneven propensities by context; what each arm truly pays."""
    dice = np.random.default_rng(seed)
    x = np.stack([np.ones(n), dice.random(n) < 0.5, dice.random(n) < 0.3, dice.random(n)], axis=1)
    truth = x @ np.array([[0.3, 0.1, 0.0, 0.0], [0.35, 0.0, 0.05, 0.0], [0.3, 0.0, 0.0, 0.08]]).T
    odds = np.exp(x @ np.array([[0.0, 0.5, 0.0, 0.5], [0.2, 0.0, 0.5, 0.0], [0.0, -0.5, 0.0, 0.0]]).T)
    chance = odds / odds.sum(axis=1, keepdims=True)
    arm = (chance.cumsum(axis=1) < dice.random((n, 1))).sum(axis=1)
    rows = np.arange(n)
    reward = (dice.random(n) < truth[rows, arm]).astype(np.float64)
    return Observed(x, arm, reward, chance[rows, arm], 3), truth


def test_the_interval_holds_the_truth():
    """150 logs of 1,500 decisions: 95 % with a standard error of 1.8 %, so within 90 % to 99.5 %.

    The truth is what the models of the folds would truly gain. `benchmarks/context_coverage.py` is the long
    form.
    """
    held, spread = 0, []
    for seed in range(150):
        seen, truth = simulated(1500, seed)
        found = cross_fit(seen, "forward")
        rows, single = np.flatnonzero(found.judged), found.single
        told = mean_interval(scores(seen, found, found.choice) - scores(seen, found, single))
        true = float((truth[rows, found.choice[rows]] - truth[rows, single[rows]]).mean())
        held += told.low <= true <= told.high
        spread.append(told.value - true)
    assert 0.90 * 150 <= held <= 0.995 * 150
    assert abs(np.mean(spread)) < 4 * np.std(spread) / np.sqrt(150)
