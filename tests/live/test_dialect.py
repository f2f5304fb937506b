"""Python and HTTP speak one dialect: what JSON can write means the same to `ac.Bandit`."""

from __future__ import annotations

import datetime
import inspect
from typing import Any

import numpy as np
import pytest

import accrual as ac
from accrual.core.errors import InputError
from accrual.live.config import OpenOptions, Options
from accrual.service.messages import BanditIn, PieceIn

loose: Any = ac  # type checkers know what is not text
NOON = 1_795_003_200.0  # 18 November 2026, 12:00 UTC
GUARDED = {"floor": 0.1, "seed": 3, "policy": "UCB1"}


def config(**options: Any) -> Any:
    """What a store would keep of a bandit with these options."""
    return loose.Bandit(["a", "b"], "1d", **options)._config.written()


@pytest.mark.parametrize(
    ("as_in_json", "as_in_python"),
    [
        ({"features": {"new": "bool", "visits": [0, 50]}}, {"features": {"new": bool, "visits": (0, 50)}}),
        (
            {"streams": {"refunds": {"kind": "guardrail", "margin": 0.02, "action": "retire"}}},
            {"streams": {"refunds": ac.Guardrail(margin=0.02, action="retire")}},
        ),
        ({"streams": {"refunds": {}}}, {"streams": {"refunds": ac.Guardrail()}}),
        ({"shares": {"a": [0.1, 0.6]}}, {"shares": {"a": (0.1, 0.6)}}),
        ({"policy": "TPUCBFR(alpha=50)"}, {"policy": ac.TPUCBFR(alpha=50)}),
        ({"unit": None, "features": None, "prior": None}, {}),
    ],
)
def test_what_json_writes_and_what_python_writes_make_the_same_bandit(as_in_json, as_in_python):
    assert config(**GUARDED | as_in_json) == config(**GUARDED | as_in_python)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"streams": {"r": {"margn": 1}}}, "unknown setting of a guardrail 'margn'; did you mean 'margin'?"),
        ({"streams": {"r": {"kind": "rail"}}}, "unknown kind of stream 'rail'; did you mean 'guardrail'?"),
        ({"streams": {"r": {"action": "stop"}}}, "unknown action of a guardrail 'stop'"),
        ({"streams": {"r": {"cap": "x"}}}, "the cap of stream 'r' must be a number"),
        ({"features": {"new": "bol"}}, "must be levels, bool or a range, not 'bol'; for example {"),
    ],
)
def test_settings_that_cannot_be_are_said_in_one_line(options, says):
    with pytest.raises(InputError) as error:
        config(**GUARDED | options)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_options_of_a_bandit_are_those_of_http():
    """A new option that one door takes and the other does not is found here."""
    python = inspect.signature(ac.Bandit).parameters.keys()
    assert python - {"clock", "skew", "store"} == set(BanditIn.__struct_fields__)
    piece = list(inspect.signature(ac.Bandit.piece).parameters)[1:]
    assert [{"id": "decision"}.get(name, name) for name in piece] == list(PieceIn.__struct_fields__)


def test_options_are_shown_to_people_and_editors():
    for function, kind in ((ac.Bandit.__init__, Options), (ac.Bandit.open, OpenOptions)):
        shown = inspect.signature(function).parameters
        assert not any(one.kind is one.VAR_KEYWORD for one in shown.values())
        assert function.__doc__ is not None
        for name in kind.__annotations__:
            assert shown[name].kind is inspect.Parameter.KEYWORD_ONLY
            assert f"\n{name} : " in function.__doc__


def stamped(**when: Any) -> Any:
    """The age of a piece of a decision that was made at noon, sent a quarter of a day later."""
    now = [NOON]
    bandit = loose.Bandit(["a"], "1d", clock=lambda: now[0])
    decision = bandit.decide()
    now[0] += 21_600
    return bandit.observe(decision.id, 0.5, **when).age


HOUR = datetime.timedelta(hours=1)
AT_ONE = datetime.datetime(2026, 11, 18, 14, tzinfo=datetime.timezone(HOUR))


@pytest.mark.parametrize(
    "when",
    [
        {"age": 3600}, {"age": "1h"}, {"age": HOUR}, {"at": NOON + 3600}, {"at": AT_ONE},
        {"at": "2026-11-18T13:00:00Z"}, {"at": "2026-11-18T14:00+01:00"},
    ],
)  # fmt: skip
def test_an_age_and_a_time_are_written_as_people_write_them(when):
    assert stamped(**when) == 3600.0


@pytest.mark.parametrize(
    ("when", "says"),
    [
        ({"age": "soon"}, "a piece's age must be a time such as 60d, 12h or 30min"),
        ({"age": -HOUR}, "a piece's age must be a time such as 60d"),
        (
            {"at": "noon"},
            "a piece's time must be a time with its zone, such as 2026-11-18T12:30:00Z, not 'noon'",
        ),
        ({"at": AT_ONE.replace(tzinfo=None)}, "a piece's time must be a time with its zone"),
    ],
)
def test_an_age_or_a_time_that_cannot_be_read_is_refused(when, says):
    with pytest.raises(InputError, match=says):
        stamped(**when)


@pytest.mark.parametrize("when", [{"age": "1h"}, {"age": HOUR}, {"at": AT_ONE}, {"at": "2026-11-18T13:00Z"}])
def test_a_bandit_that_counts_rounds_takes_no_time(when):
    with pytest.raises(InputError, match=r"the bandit counts rounds: a piece's (age|time) must be a number"):
        loose.Bandit(["a"], 10).piece(0, 0.5, **when)


def test_policies_are_text_everywhere():
    problem = ac.Problem([1.0, 1.0], 4, 4)
    by_text = ac.simulate(problem, ["UCB1", "TPUCBFR(alpha=4)"], horizon=40, runs=2)
    by_object = ac.simulate(problem, {"UCB1": "UCB1", "TPUCBFR(4)": ac.TPUCBFR(4)}, horizon=40, runs=2)
    assert by_text.labels == by_object.labels == ("UCB1", "TPUCBFR(4)")
    np.testing.assert_array_equal(by_text.regret, by_object.regret)
