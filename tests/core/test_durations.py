"""One way to read a length of time, and one to write it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accrual.core.durations import UNITS, parse_duration, parse_length, show_duration, show_length
from accrual.core.errors import InputError
from accrual.live.config import window_of
from accrual.service.settings import load


@given(st.integers(1, 9999), st.sampled_from(list(UNITS)))
def test_every_unit_is_read_alike_everywhere(count, unit):
    text = f"{count}{unit}"
    seconds = count * UNITS[unit]
    assert parse_duration(text) == parse_length(text, timestamps=True) == seconds
    if seconds < 1e10:
        assert window_of(text) == (False, seconds)


def test_a_setting_takes_a_duration():
    assert load(environment={"ACCRUAL_STOP_SECONDS": "2min", "ACCRUAL_BODY_SECONDS": "5"}).stop_seconds == 120


@pytest.mark.parametrize(
    "text", ["", "d", "-1d", "0d", "3 days", "1e3s", "nan", "infd", "5.5.5h", "3D", "5m"]
)
def test_what_is_no_duration_is_one_line(text):
    with pytest.raises(InputError, match="such as"):
        parse_duration(text)
    with pytest.raises(InputError, match="such as"):
        parse_length(text, timestamps=True)


def test_zero_only_where_it_makes_sense():
    assert parse_duration("0s", least=0.0) == 0.0
    assert parse_duration(timedelta(hours=1)) == 3600.0


@given(st.floats(1e-3, 1e8))
def test_what_is_written_can_be_read(seconds):
    assert parse_duration(show_duration(seconds)) == pytest.approx(seconds, rel=1e-3)
    assert show_length(seconds, timestamps=False).endswith(" units")
