"""True, False and text are no numbers, wherever a number is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import accrual as ac
from accrual.core.arrays import as_numbers
from accrual.core.errors import as_number, whole
from accrual.logs.estimate.tail import window_for


@pytest.mark.parametrize("value", [True, np.True_, np.array(False), "3", b"3", None, [3], 10**400])
def test_what_is_not_a_number(value: Any) -> None:
    assert np.isnan(as_number(value))
    with pytest.raises(ac.InputError, match="n must be a whole number of at least 0, not"):
        whole("n", value, 0)


@pytest.mark.parametrize("value", [3, 3.0, np.float32(3), np.int8(3), np.array(3.0)])
def test_numbers_of_every_kind_are_taken(value: Any) -> None:
    assert as_number(value) == whole("n", value, 0) == 3.0


def test_arrays_of_numbers() -> None:
    assert as_numbers([[1, 2], [3, 4.5]]).tolist() == [[1.0, 2.0], [3.0, 4.5]]
    for odd in ([True, False], ["1"], "12", [[1], [1, 2]], None, object()):
        assert np.isnan(as_numbers(odd))


def _bandit(**options: Any) -> ac.Bandit:
    return ac.Bandit(arms=["a", "b"], window=8, **options)


def _decided() -> ac.Bandit:
    bandit = _bandit()
    bandit.decide()
    return bandit


GIVEN: dict[str, tuple[Callable[[Any], object], str]] = {
    "reward": (lambda x: _decided().observe(0, x, age=0), "a piece's value must be a finite number"),
    "age": (lambda x: _decided().observe(0, 1.0, age=x), "a piece's age must be 0 or more"),
    "at": (lambda x: _decided().observe(0, 1.0, at=x), "a piece's time must be a finite number"),
    "cap": (lambda x: ac.Bandit(arms={"a": x, "b": 1.0}, window=8), "cap .*must be a number from"),
    "added cap": (lambda x: _bandit().add_arm("c", cap=x), "cap .*must be a number from"),
    "window": (lambda x: ac.Bandit(arms=["a"], window=x), "window must be a whole number"),
    "groups": (lambda x: _bandit(groups=x), "groups must be a whole number"),
    "floor": (lambda x: _bandit(floor=x), "a floor must be a share"),
    "share": (lambda x: _bandit(shares={"a": (0.0, x)}), "the shares of 'a' must be two"),
    "skew": (lambda x: _bandit(skew=x), "skew must be a number of seconds"),
    "margin": (lambda x: _bandit(floor=0.1, streams={"r": {"margin": x}}), "the margin of guardrail 'r'"),
    "caps": (lambda x: ac.Problem(caps=[x], window=8), "caps must be a list of numbers"),
    "law": (lambda x: ac.BetaLaw(x, 1).means(4), "must be one number or 4"),
    "spread": (ac.spread.Zipf, "a Zipf spread's s must be 0 or more"),
    "shares of a spread": (lambda x: ac.TPUCBFRG(alpha=1, spread=[x]), "must be a list of numbers"),
    "difference": (lambda x: ac.plan(0.3, difference=x), "the difference must be a positive number"),
    "horizon": (lambda x: ac.bounds.upper_ucb1(ac.paper.setting1(), x), "horizon must be a number"),
    "share of a tail": (lambda x: window_for(lambda age: age, x), "share must be"),
}  # fmt: skip


@pytest.mark.parametrize(("give", "says"), GIVEN.values(), ids=GIVEN)
def test_true_is_no_number(give: Callable[[Any], object], says: str) -> None:
    with pytest.raises(ac.InputError, match=says) as refused:
        give(True)
    assert "\n" not in str(refused.value)
