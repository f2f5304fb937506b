"""One answer to which group an age is in: for the spread, the problem, a replay's ledger and a log's end."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accrual as ac
from accrual.core.groups import group_ends, group_of, is_closed, is_within
from accrual.live.ledger import Ledger
from accrual.logs.fit import fit_log
from accrual.logs.open_log import open_log

AGES = (0.29, 0.57, 0.58)  # of 1 in 100 groups: floating-point products fall just short of 29, 57 and 58


@pytest.mark.parametrize("age", AGES)
def test_spread_problem_and_ledger_agree(age):
    decisions = pd.DataFrame({"id": range(40), "arm": ["a", "b"] * 20, "at": np.arange(40) / 8})
    pieces = pd.DataFrame({"decision": range(40), "value": 1.0, "age": age})
    with open_log(decisions, pieces, end=10.0) as log:
        fitted = fit_log(log, window=1.0, groups=100)
    expected = round(100 * age)
    assert int(np.argmax(fitted.spread.value)) == expected
    problem = fitted.to_problem(window=100)
    assert int(np.argmax(problem.group_means[0])) == expected
    ledger = Ledger(ac.TPUCBEW(alpha=100), [1.0, 1.0], 100, span=1.0)
    assert int(np.searchsorted(ledger._edges, age, side="right")) == expected


@given(st.integers(1, 400), st.integers(0, 400), st.floats(1e-3, 1e9))
def test_the_start_of_a_group_is_in_it(groups, k, window):
    k = min(k, groups)
    for age in (k * window / groups, k * (window / groups), window / groups * k):
        assert group_of(age, window, groups) == k
    ends = group_ends(np.arange(1, groups + 1), groups, window)
    assert ends[-1] == window
    if k < groups:
        assert np.searchsorted(ends, k * (window / groups), side="right") == k


def test_a_decision_is_closed_from_the_windows_end_on():
    assert is_closed([0.3 - 1e-3, 0.1 + 0.2, 0.1 * 3, 0.3], 0.3).tolist() == [False, True, True, True]
    assert is_within([0.0, 0.1 * 3], [0.3, 0.3]).tolist() == [True, False]
