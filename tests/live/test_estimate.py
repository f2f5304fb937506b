"""How an arm's pay divides over the ages, where some ages have not been reached."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from accrual.live.estimate import estimate, shared_spread

EDGES = np.array([1.0, 4.0, 9.0, 16.0, 25.0])
EVEN = np.diff(EDGES, prepend=0.0) / 25.0


def cells(seen, mean_pay):
    seen = np.array(seen, np.float64)
    paid = seen * np.array(mean_pay)
    return SimpleNamespace(seen=seen, paid=paid, growth=paid * 0.1)


def spread(seen, mean_pay, arm):
    known_cells = cells(seen, mean_pay)
    known = estimate(known_cells, shared_spread(known_cells, EDGES), arm)
    assert known is not None
    return known.spread


def test_ages_that_none_has_reached_pay_as_much_on_average():
    young = spread([[10, 0, 0, 0, 0], [5, 0, 0, 0, 0]], [[0.2, 0, 0, 0, 0], [0.1, 0, 0, 0, 0]], 0)
    assert young == pytest.approx(EVEN)


def test_ages_that_only_others_have_reached_pay_as_theirs_do():
    pay = np.array([0.5, 0.3, 0.1, 0.05, 0.05])
    seen = [[200] * 5, [200, 200, 0, 0, 0]]
    assert spread(seen, [pay, [0.25, 0.15, 0, 0, 0]], 1) == pytest.approx(pay, abs=0.01)


def test_an_arms_own_closed_decisions_outweigh_the_others():
    early, late = [0.8, 0.05, 0.05, 0.05, 0.05], [0.05, 0.05, 0.05, 0.05, 0.8]
    assert spread([[2000] * 5, [2000] * 5], [early, late], 1) == pytest.approx(late, abs=0.02)


def test_an_arm_that_has_paid_nothing_has_the_others_spread():
    pay = [0.5, 0.3, 0.1, 0.05, 0.05]
    assert spread([[200] * 5, [50] * 5], [pay, [0.0] * 5], 1) == pytest.approx(pay)
