"""What is odd about contexts is said in one line each: leaks, what is missing, kinds that were misread."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import accrual as ac
from accrual.logs.open_log import open_log
from accrual.logs.read.oddity_checks import context_oddities

SIZE = 1200


def log_of():
    """Decisions of two arms chosen evenly, of which a third pay 1; columns that are fine as contexts."""
    dice = np.random.default_rng(3)
    arm = np.where(dice.random(SIZE) < 0.5, "a", "b")
    decisions = pd.DataFrame({"id": range(SIZE), "arm": arm, "at": range(SIZE)})
    decisions["country"] = dice.choice(["de", "us", "fr"], SIZE)
    decisions["new"] = dice.random(SIZE) < 0.4
    decisions["age"] = dice.integers(18, 80, SIZE)
    decisions["income"] = dice.gamma(2.0, 1000.0, SIZE).round(2)
    decisions["p"] = 0.5
    paid = dice.random(SIZE) < 1 / 3
    pieces = pd.DataFrame({"decision": np.flatnonzero(paid), "value": 1.0, "age": 1.0})
    return decisions, pieces, paid


def said(decisions, pieces, *context, **more):
    with open_log(decisions, pieces, context=list(context), **more) as log:
        return context_oddities(log)


def test_nothing_is_odd_about_plain_contexts():
    decisions, pieces, _ = log_of()
    decisions["few"] = np.where(np.arange(SIZE) % 50, decisions.country, None)
    assert (
        said(decisions, pieces, "country", "new", "age", "income", "few", columns={"propensity": "p"}) == []
    )


def test_contexts_that_follow_from_the_arm_or_decide_it():
    decisions, pieces, _ = log_of()
    decisions["price"] = np.where(decisions.arm == "a", 9.5, 12.0)
    (line,) = said(decisions, pieces, "price")
    assert line.startswith("context 'price' follows from the arm")
    decisions["page"] = decisions.arm + (np.arange(SIZE) % 2).astype(str)
    (line,) = said(decisions, pieces, "page")
    assert line.startswith("context 'page' decides the arm")


def test_contexts_that_were_written_after_the_decision():
    decisions, pieces, paid = log_of()
    decisions["ordered"] = paid.astype(int)
    assert len(said(decisions, pieces, "ordered")) == 1
    decisions["bought"], decisions["sum"] = paid, np.where(paid, 4.99, 0.0) + np.arange(SIZE) % 3 * 0.01
    decisions["clicked"] = paid | (np.arange(SIZE) % 3 == 0)
    assert "context 'bought' explains 100% of what decisions pay: was it written" in said(
        decisions, pieces, "bought"
    )[0]  # fmt: skip
    assert "context 'sum' explains 100% of what" in said(decisions, pieces, "sum")[0]
    (line,) = said(decisions, pieces, "clicked")
    assert "'clicked' is 'false' in" in line
    assert "decisions of which none paid" in line


def test_contexts_that_are_missing_for_one_arm():
    decisions, pieces, _ = log_of()
    decisions["plan"] = np.where(decisions.arm == "b", None, decisions.country)
    (line,) = said(decisions, pieces, "plan")
    assert "is missing in 100% of the decisions of the arm 'b' and in 0% of the others" in line


def test_propensities_that_do_not_fit_by_context():
    decisions, pieces, _ = log_of()
    dice = np.random.default_rng(4)
    decisions["arm"] = np.where(dice.random(SIZE) < np.where(decisions.new, 0.8, 0.5), "a", "b")
    (line,) = said(decisions, pieces, "new", "country", columns={"propensity": "p"})
    assert line.startswith("propensities do not fit the log: where 'new' is 'true', the decisions of the arm")
    right = np.where(decisions.new, np.where(decisions.arm == "a", 0.8, 0.2), 0.5)
    assert said(decisions.assign(p=right), pieces, "new", "country", columns={"propensity": "p"}) == []


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (lambda d: np.where(np.arange(SIZE) % 100, "web", "app"), "is 'web' in 99.0% of the decisions"),
        (lambda d: np.where(np.arange(SIZE) % 2, d.country, d.country.str.upper() + " "), "'DE ' and 'de'"),
        (lambda d: np.where(np.arange(SIZE) % 9, d.country, "N/A"), "has the level 'N/A' (134 decisions)"),
        (
            lambda d: 10_000 + 137 * (np.arange(SIZE) % 30),
            "30 whole numbers look like codes: if they are, say",
        ),
        (lambda d: np.where(np.arange(SIZE) % 60, d.age.astype(str), "n/k"), "20 of its 1,200 cells are not"),
        (
            lambda d: np.where(np.arange(SIZE) % 9, d.age, -1),
            "is -1 in 134 decisions and otherwise not below 0",
        ),
    ],
)
def test_columns_that_may_have_been_misread(column, words):
    decisions, pieces, _ = log_of()
    (line,) = said(decisions.assign(odd=column(decisions)), pieces, "odd")
    assert "'odd'" in line
    assert words in line


def test_codes_by_their_name_unless_the_kind_is_told():
    decisions, pieces, _ = log_of()
    decisions["device_type"] = np.arange(SIZE) % 5
    assert "say device_type:levels" in said(decisions, pieces, "device_type")[0]
    assert said(decisions, pieces, "device_type:levels") == []
    assert said(decisions, pieces, "device_type:number") == []


def test_a_fit_says_them_among_its_other_oddities():
    decisions, pieces, paid = log_of()
    decisions["bought"] = paid
    found = ac.fit(decisions.drop(columns="p"), pieces, window=20, groups=2, context=["bought"], uniform=True)
    assert any(line.startswith("odd: context 'bought' explains") for line in found.summary().splitlines())
