"""Other logs: a told column wins, times are recognised and said, and what is ambiguous is refused."""

from __future__ import annotations

import datetime as dt

import pandas as pd
import pytest

from accrual.core.errors import InputError
from accrual.logs.open_log import open_log

DAY = 86_400.0
STARTS = [dt.datetime(2024, 1, 5), dt.datetime(2024, 1, 28), dt.datetime(2024, 3, 2)]


def log_of(style, hours=(36, 0, 240), **options):
    """Three decisions and a piece of each, their times written by `style`; the ages in hours."""
    decisions = pd.DataFrame({"id": [1, 2, 3], "arm": ["a", "b", "a"], "at": [style(x) for x in STARTS]})
    paid = [style(x + dt.timedelta(hours=h)) for x, h in zip(STARTS, hours, strict=True)]
    pieces = pd.DataFrame({"decision": [1, 2, 3], "value": 1.0, "at": paid})
    with open_log(decisions, pieces, **options) as log:
        return log.timestamps, [row[0] / 3600 for row in log.query("SELECT age FROM pieces")], log.notes


def epoch(scale):
    return lambda x: int(x.replace(tzinfo=dt.UTC).timestamp() * scale)


# --- roles ------------------------------------------------------------------------------------

CLINIC = pd.DataFrame(
    {
        "decision_id": [1, 1, 2, 3],
        "id": [901, 902, 903, 904],  # the row's own
        "arm": ["a", "a", "b", "a"],
        "time": ["2024-01-01 08:00", "2024-01-01 08:00", "2024-01-02 09:00", "2024-01-03 10:00"],
        "age": [71, 71, 64, 58],  # the patient's, in years
        "event_time": ["2024-01-02 08:00", "2024-01-03 08:00", "2024-01-02 10:00", "2024-01-03 10:30"],
        "value": [1.0, 2.0, 3.0, 4.0],
    }
)


def test_a_told_time_is_never_thrown_away_for_a_column_called_age():
    with open_log(CLINIC, columns={"piece_at": "event_time"}) as log:
        ages = log.query("SELECT age FROM pieces ORDER BY decision, age")
        assert ages == [(DAY,), (2 * DAY,), (3600.0,), (1800.0,)]
        assert "age" not in log.columns


def test_an_age_and_a_time_are_refused_with_both_options():
    with pytest.raises(InputError, match=r"--column age=age or --column piece_at=event_time"):
        open_log(CLINIC)
    pieces = CLINIC[["decision_id", "age", "event_time", "value"]]
    decisions = CLINIC[["decision_id", "arm", "time"]].drop_duplicates()
    with pytest.raises(InputError, match=r"--column age=age or --column piece_at=event_time"):
        open_log(decisions, pieces)
    with pytest.raises(InputError, match="for age or for piece_at, not for both"):
        open_log(decisions, pieces, columns={"age": "age", "piece_at": "event_time"})


def test_what_is_missing_and_what_is_ambiguous_are_said_together():
    unnamed = CLINIC.rename(columns={"time": "admitted", "value": "cost"})
    with pytest.raises(InputError) as error:
        open_log(unnamed)
    for option in ("at=COLUMN", "value=COLUMN", "age=age", "piece_at=event_time"):
        assert f"--column {option}" in str(error.value)


def test_decision_id_goes_before_id_where_rows_are_pieces():
    with open_log(CLINIC, columns={"piece_at": "event_time"}) as log:
        assert log.columns["id"] == "decision_id"
        assert log.counts.decisions == 3
    with open_log(
        CLINIC[["decision_id", "arm", "time"]].drop_duplicates(), CLINIC.drop(columns=["age", "arm", "time"])
    ) as log:
        assert log.columns["decision"] == "decision_id"
        assert log.counts.pieces == 4


def test_all_that_is_missing_is_said_at_once_with_the_options_to_type():
    decisions = pd.DataFrame({"who": [1], "what": ["a"], "when": [0]})
    pieces = pd.DataFrame({"who": [1], "much": [1.0]})
    with pytest.raises(InputError) as error:
        open_log(decisions, pieces)
    said = str(error.value)
    for option in ("id", "arm", "at", "decision", "value", "piece_at"):
        assert f"--column {option}=COLUMN" in said
    assert "\n" not in said
    with pytest.raises(
        InputError, match="--column id=COLUMN --column arm=COLUMN --column at=COLUMN --column"
    ):
        open_log(decisions)


def test_columns_without_a_name_are_told_by_position(tmp_path):
    (tmp_path / "d.csv").write_text(",arm,at\n1,a,0\n2,b,1\n3,a,2\n")
    (tmp_path / "p.csv").write_text("decision,value,at\n1,1,1\n")
    with open_log(tmp_path / "d.csv", tmp_path / "p.csv", columns={"id": "#1"}) as log:
        assert log.counts.decisions == 3
    with pytest.raises(InputError, match=r"it has #1 \(no name\), 'arm'"):
        open_log(tmp_path / "d.csv", tmp_path / "p.csv")
    with pytest.raises(InputError, match="no column #7"):
        open_log(tmp_path / "d.csv", tmp_path / "p.csv", columns={"id": "#7"})


# --- times ------------------------------------------------------------------------------------

STYLES = {
    "yyyymmdd as a number": (lambda x: int(x.strftime("%Y%m%d")), (24, 0, 240), "yyyymmdd (recognised)"),
    "yyyymmdd as text": (lambda x: x.strftime("%Y%m%d"), (24, 0, 240), "yyyymmdd (recognised)"),
    "yyyymmddHHMMSS": (lambda x: int(x.strftime("%Y%m%d%H%M%S")), (36, 0, 240), "yyyymmddHHMMSS"),
    "epoch s": (epoch(1), (36, 0, 240), "seconds since 1970 (recognised)"),
    "epoch ms": (epoch(1e3), (36, 0, 240), "milliseconds since 1970"),
    "epoch us": (epoch(1e6), (36, 0, 240), "microseconds since 1970"),
    "epoch ns as text": (lambda x: str(epoch(1e9)(x)), (36, 0, 240), "nanoseconds since 1970"),
    "epoch s with fractions": (lambda x: epoch(1)(x) + 0.25, (36, 0, 240), "seconds since 1970"),
    "iso": (lambda x: x.isoformat(), (36, 0, 240), ""),
    "day first": (lambda x: x.strftime("%d/%m/%Y %H:%M"), (36, 0, 240), "dd/mm/yyyy HH:MM (recognised)"),
    "month first": (lambda x: x.strftime("%m/%d/%Y"), (24, 0, 240), "mm/dd/yyyy (recognised)"),
    "german": (lambda x: x.strftime("%d.%m.%Y"), (24, 0, 240), "dd.mm.yyyy (recognised)"),
    "words": (lambda x: x.strftime("%d %b %Y"), (24, 0, 240), "dd Mon yyyy (recognised)"),
}


@pytest.mark.parametrize("name", STYLES)
def test_times_are_recognised_and_said(name):
    style, hours, said = STYLES[name]
    timestamps, ages, notes = log_of(style, (36, 0, 240))
    assert timestamps
    assert sorted(ages) == sorted(hours)
    assert said in " ".join(notes)


def test_what_can_be_two_dates_is_refused_with_both():
    early = [dt.datetime(2024, 1, 5), dt.datetime(2024, 2, 6), dt.datetime(2024, 3, 7)]
    decisions = pd.DataFrame({"id": [1, 2, 3], "arm": list("aba"), "at": [f"{x:%d/%m/%Y}" for x in early]})
    pieces = pd.DataFrame({"decision": [1], "value": 1.0, "at": ["06/01/2024"]})
    with pytest.raises(InputError, match=r"two ways.*%d/%m/%Y or --time-format %m/%d/%Y"):
        open_log(decisions, pieces)
    with open_log(decisions, pieces, time_format="%d/%m/%Y") as log:
        assert log.query("SELECT age FROM pieces") == [(DAY,)]
    decisions["at"] = ["05/01/2024", "06/02/2024", "28/02/2024"]  # now the decisions can only be one
    with open_log(decisions, pieces) as log:
        assert log.query("SELECT age FROM pieces") == [(DAY,)]


@pytest.mark.parametrize("style", ["%d/%m/%y", "%y-%m-%d %H:%M"])
def test_years_of_two_digits_are_refused(style):
    with pytest.raises(InputError, match="years of two digits"):
        log_of(lambda x: x.strftime(style))
    assert sorted(log_of(lambda x: x.strftime(style), (24, 0, 240), time_format=style)[1]) == [0, 24, 240]


def test_six_digits_that_are_all_dates_are_refused_and_rounds_are_not():
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=i) for i in range(40)]
    decisions = pd.DataFrame({"id": range(40), "arm": ["a", "b"] * 20, "at": [f"{x:%y%m%d}" for x in days]})
    pieces = pd.DataFrame({"decision": [1], "value": 1.0, "at": ["240109"]})
    with pytest.raises(InputError, match="--time-format %y%m%d; or --time-unit number"):
        open_log(decisions, pieces)
    decisions["at"] = range(240_101, 240_141)
    with open_log(decisions, pieces) as log:
        assert not log.timestamps


def test_numbers_stay_numbers_when_told():
    timestamps, ages, _ = log_of(epoch(1), time_unit="number")
    assert not timestamps
    assert sorted(age * 3600 for age in ages) == [0, 129_600, 864_000]


def test_decisions_and_pieces_in_different_units_are_refused():
    decisions = pd.DataFrame({"id": [1, 2], "arm": ["a", "b"], "at": [epoch(1)(x) for x in STARTS[:2]]})
    pieces = pd.DataFrame({"decision": [1], "value": 1.0, "at": [epoch(1e3)(STARTS[1])]})
    with pytest.raises(InputError, match="counts ms since 1970, and the decisions' times count s"):
        open_log(decisions, pieces)


def test_a_time_zone_is_told():
    decisions = pd.DataFrame(
        {"id": [1, 2], "arm": ["a", "b"], "at": ["2024-03-31 01:30", "2024-03-31 03:30"]}
    )
    pieces = pd.DataFrame({"decision": [1], "value": 1.0, "at": ["2024-03-31 03:30"]})
    with open_log(decisions, pieces, timezone="Europe/Berlin") as log:
        assert log.query("SELECT age FROM pieces") == [(3600.0,)]  # the clocks went forward in between
        assert "times have no time zone: taken as Europe/Berlin" in log.notes
    with pytest.raises(InputError, match="unknown time zone 'Berlin'"):
        open_log(decisions, pieces, timezone="Berlin")


def test_dates_stay_whole_days_in_any_time_zone():
    decisions = pd.DataFrame({"id": [1, 2], "arm": ["a", "b"], "at": ["2024-03-30", "2024-03-31"]})
    pieces = pd.DataFrame({"decision": [1], "value": 1.0, "at": ["2024-04-01"]})
    with open_log(decisions, pieces, timezone="Europe/Berlin") as log:
        assert log.query("SELECT age FROM pieces") == [(2 * DAY,)]
        assert log.resolution == DAY


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time_unit": "min"}, "unknown unit of time 'min'"),
        ({"time_unit": "s", "time_format": "%Y"}, "exclude each other"),
        ({"time_format": "%Q"}, "is not a time format"),
        ({"age_unit": "month"}, "unknown unit of age 'month'"),
        ({"bad_rows": "drop"}, "unknown way with bad rows 'drop'"),
        ({"timezon": "UTC"}, "unknown option 'timezon'; did you mean 'timezone'"),
    ],
)
def test_bad_options_are_one_line(options, message):
    with pytest.raises(InputError, match=message):
        log_of(lambda x: x.strftime("%Y%m%d"), (24, 0, 240), **options)


def test_an_end_is_written_as_the_logs_times_are():
    decisions = pd.DataFrame({"id": [1, 2, 3], "arm": list("aba"), "at": [20240105, 20240128, 20240302]})
    pieces = pd.DataFrame({"decision": [1], "value": 1.0, "at": [20240107]})
    for end in ("20240201", 20240201, "2024-02-01"):
        with open_log(decisions, pieces, end=end) as log:
            assert log.counts.decisions == 2
