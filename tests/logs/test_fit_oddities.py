"""What is odd about a log is said, what cannot be read may be skipped, and the window suits the data."""

from __future__ import annotations

import csv
import math
import re

import numpy as np
import pandas as pd
import pytest

import accrual as ac
from accrual.cli import app
from accrual.core.errors import InputError
from accrual.core.interval import Interval
from accrual.logs.fit import fit_log
from accrual.logs.fitted import Arm, Sample, best_arm
from accrual.logs.open_log import open_log

DAY = 86_400.0


def log_of(size=400, days=100, **changes):
    """Decisions over so many days, each paying 1 after three days on average; columns may be changed."""
    dice = np.random.default_rng(3)
    start = pd.Timestamp("2024-01-01 00:00:00.5")
    arms = np.where(dice.random(size) < 0.5, "a", "b")
    decisions = pd.DataFrame({"id": [f"D{i}" for i in range(size)], "arm": arms})
    decisions["at"] = start + pd.to_timedelta(np.sort(dice.random(size)) * days * DAY, unit="s")
    pieces = pd.DataFrame({"decision": decisions["id"], "value": dice.random(size)})
    pieces["at"] = decisions["at"] + pd.to_timedelta(dice.exponential(3 * DAY, size), unit="s")
    for name, value in changes.items():
        table, _, column = name.partition("_")
        frame = {"d": decisions, "p": pieces}[table]
        frame[column] = value(frame[column]) if callable(value) else value
    return decisions, pieces


def odd(decisions, pieces, **options) -> str:
    with open_log(decisions, pieces, **options) as log:
        return " | ".join(log.odd)


def test_nothing_is_odd_about_a_plain_log():
    assert odd(*log_of()) == ""


def test_pieces_that_end_long_before_decisions():
    decisions, pieces = log_of()
    cut = pieces[pieces["at"] < decisions["at"].iloc[250]]
    said = odd(decisions, cut)
    assert "before the last decision" in said
    assert "--end '2024-" in said
    assert odd(decisions, cut, end=str(cut["at"].max())) == ""


def test_orphans_that_differ_by_spaces_or_capitals():
    decisions, pieces = log_of(p_decision=lambda ids: ids.str.lower() + "  ")
    with pytest.raises(InputError, match="they differ by spaces or capitals"):
        open_log(decisions, pieces)
    decisions, pieces = log_of()
    pieces.loc[:49, "decision"] = pieces.loc[:49, "decision"] + " "
    said = "50 pieces without a decision have a decision's id except for spaces or capitals"
    assert said in odd(decisions, pieces)
    pieces.loc[:49, "decision"] = "nobody"
    assert "50 of 400 pieces have no decision in the log" in odd(decisions, pieces)


def test_uneven_propensities_are_not_odd():
    dice = np.random.default_rng(1)
    decisions, pieces = log_of()
    decisions["propensity"] = dice.uniform(0.1, 0.9, len(decisions))
    assert odd(decisions, pieces) == ""


def test_pieces_that_mostly_repeat_others():
    decisions, pieces = log_of()
    assert "repeat another to the digit" in odd(decisions, pd.concat([pieces] * 3))


def test_ages_in_days_read_as_seconds():
    decisions, pieces = log_of()
    pieces = pieces.drop(columns="at").assign(age=np.random.default_rng(2).exponential(3.0, len(pieces)))
    said = odd(decisions, pieces)
    assert "if they are days say --age-unit d, if hours --age-unit h, if seconds --age-unit s" in said
    assert odd(decisions, pieces, age_unit="s") == odd(decisions, pieces, age_unit="d") == ""


@pytest.mark.parametrize("name", ["NA", "None", "null", "nan"])
def test_arms_that_mean_nothing(name):
    decisions, pieces = log_of(d_arm=lambda arms: arms.replace("b", name))
    assert f"an arm is called '{name}'" in odd(decisions, pieces)


def test_arms_that_differ_by_spaces_or_capitals():
    decisions, pieces = log_of()
    decisions.loc[:99, "arm"] = "A "
    said = "arms differ only by spaces or capitals, and count as different: 'A ' and 'a'"
    assert said in odd(decisions, pieces)


def test_no_piece_inside_the_window_is_one_line(capsys, tmp_path):
    decisions, pieces = log_of()
    pieces["at"] += pd.Timedelta("1h")
    with (
        open_log(decisions, pieces) as log,
        pytest.raises(InputError, match=r"30 means 30 s here: write 30d"),
    ):
        fit_log(log, window=30)


def test_what_is_odd_stands_first(capsys, tmp_path):
    decisions, pieces = log_of(d_arm=lambda arms: arms.replace("b", "NA"))
    decisions.to_csv(tmp_path / "d.csv", index=False)
    pieces.to_csv(tmp_path / "p.csv", index=False)
    assert app.run(["fit", str(tmp_path / "d.csv"), str(tmp_path / "p.csv")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("odd: an arm is called 'NA'")
    assert [line.split(":")[0] for line in lines[1:6]] == [
        "How rewards arrive", "What early pieces tell", "How long to wait", "Which arm pays best",
        "What to do next",
    ]  # fmt: skip


# --- rows that cannot be read -----------------------------------------------------------------


def test_bad_rows_are_skipped_counted_and_listed(tmp_path, monkeypatch, capsys):
    decisions, pieces = log_of()
    decisions, pieces = decisions.astype(str), pieces.astype(str)
    decisions.loc[3, "at"] = "soon"
    pieces.loc[[7, 9], "value"] = [" =much()", ""]
    pieces.loc[11, "at"] = "2020-01-01"
    decisions.to_csv(tmp_path / "d.csv", index=False)
    pieces.to_csv(tmp_path / "p.csv", index=False)
    paths = [str(tmp_path / "d.csv"), str(tmp_path / "p.csv")]
    assert app.run(["fit", *paths]) == 2
    monkeypatch.chdir(tmp_path)
    assert app.run(["fit", *paths, "--bad-rows", "skip"]) == 0
    printed = capsys.readouterr().out
    for why in (
        "at (at) is not a timestamp",
        "value (value) is empty",
        "at (piece_at) is before its decision",
    ):
        assert f"odd: rows are left out (1): {why}" in " ".join(printed.split())
        assert f"left out, rows whose {why}" in " ".join(printed.split())
    with open(tmp_path / "bad-rows.csv", newline="") as file:
        listed = [(row["row"], row["role"], row["value"]) for row in csv.DictReader(file)]
    assert listed == [
        ("4", "at", "soon"), ("8", "value", "' =much()"), ("10", "value", ""),
        ("12", "piece_at", "2020-01-01"),
    ]  # fmt: skip
    with open_log(paths[0], paths[1], bad_rows="skip") as log:
        assert (log.counts.decisions, log.counts.pieces, log.counts.orphans) == (399, 396, 1)


# --- window and groups ------------------------------------------------------------------------


def test_a_years_log_whose_99_percent_age_is_46_seconds():
    dice = np.random.default_rng(1)
    size = 20_000
    at = pd.Timestamp("2023-01-01") + pd.to_timedelta(np.sort(dice.random(size)) * 365 * DAY, unit="s")
    decisions = pd.DataFrame({"id": np.arange(size), "arm": dice.integers(2, size=size), "at": at})
    owner = np.repeat(np.arange(size), 3)
    pieces = pd.DataFrame({"decision": owner, "value": 1.0})
    pieces["at"] = at.to_numpy()[owner] + pd.to_timedelta(dice.exponential(10.0, 3 * size), unit="s")
    fitted = ac.fit(decisions, pieces)
    found, truth = fitted.recommended.window, 10 * math.log(100)  # 46.05
    assert found.low < truth < found.high
    assert found.value == pytest.approx(truth, rel=0.03)  # sampling; the grid is a thousandth
    assert 45 <= fitted.window <= 48
    ages = np.sort((pieces["at"].to_numpy() - at.to_numpy()[owner]) / np.timedelta64(1, "s"))
    assert found.value == pytest.approx(np.quantile(ages, 0.99), rel=0.002)


def daily(size=3000):
    dice = np.random.default_rng(0)
    at = pd.Timestamp("2023-01-01") + pd.to_timedelta(dice.integers(0, 365, size), unit="D")
    decisions = pd.DataFrame({"id": range(size), "arm": dice.integers(2, size=size), "at": at})
    owner = np.repeat(np.arange(size), 3)
    age = np.floor(59 * dice.beta(0.6, 2.0, len(owner))).astype(int)
    pieces = pd.DataFrame({"decision": owner, "value": 1.0})
    pieces["at"] = at.to_numpy()[owner] + pd.to_timedelta(age, unit="D")
    return decisions, pieces


def test_groups_of_daily_data_are_whole_days():
    decisions, pieces = daily()
    fitted = ac.fit(decisions, pieces, window="59d")
    assert fitted.groups in {59, 30, 20, 15, 12, 10}
    assert (fitted.window / fitted.groups / DAY).is_integer()
    assert fitted.window >= 59 * DAY
    with pytest.raises(InputError, match="give 59 or 30 or 20 groups"):
        ac.fit(decisions, pieces, window="59d", groups=50)
    stretched = ac.fit(decisions, pieces, window="59d", groups=20)
    assert (stretched.window, stretched.groups) == (60 * DAY, 20)
    assert any("the window of 59 d is stretched to 60 d" in warning for warning in stretched.warnings)
    whole = ac.fit(decisions, pieces, window="60d", groups=20)
    assert not any("stretched" in warning for warning in whole.warnings)


# --- own windows ------------------------------------------------------------------------------


def test_follow_up_of_zero_is_allowed_and_counted():
    decisions = pd.DataFrame({"id": range(40), "arm": ["a", "b"] * 20, "at": range(40)})
    decisions["window"] = [0, 0, *[10] * 38]
    pieces = pd.DataFrame({"decision": range(40), "value": 5.0, "age": [0] * 40})
    fitted = ac.fit(decisions, pieces, end=60, groups=2)
    assert fitted.log["unfollowed"] == 2
    assert fitted.late == 2  # what the two paid came after their own windows
    assert [arm.mean.value for arm in fitted.arms if arm.mean] == [5.0, 5.0]
    assert "followed for no time at all: 2" in fitted.summary()


# --- words ------------------------------------------------------------------------------------


def test_one_frame_or_two_and_what_a_notebook_shows():
    decisions, pieces = log_of()
    joined = pieces.rename(columns={"decision": "id", "at": "piece_at"}).merge(decisions, on="id")
    one, two = ac.fit(joined, window="10d", groups=5), ac.fit(decisions, pieces, window="10d", groups=5)
    assert one.spread == two.spread
    table = two.table()
    assert list(table.index) == ["a", "b"]
    assert two.arms[0].mean is not None
    assert table.loc["a", "mean"] == two.arms[0].mean.value
    assert "<td>a</td>" in two._repr_html_()
    assert two.plot().axes[0].get_xlabel() == "age in days"
    assert two.summary().startswith("How rewards arrive: half of a decision's reward has come by age")


def test_arms_that_pay_alike_are_seldom_told_apart():
    # Five arms alike, 300 logs: "every other arm pays less" at most at 5 %, and three standard errors.
    dice = np.random.default_rng(8)
    claims = 0
    for _ in range(300):
        arms = []
        for name in "abcde":
            paid = dice.random(60) < 0.3
            error = 1.96 * paid.std(ddof=1) / math.sqrt(60)
            mean = Interval(float(paid.mean()), float(paid.mean() - error), float(paid.mean() + error))
            arms.append(
                Arm(name, 60, 60, mean, None, None, Sample(1.0, np.zeros(0, int), np.zeros(0), np.zeros(0)))
            )
        claims += "every other arm" in best_arm(tuple(arms))
    assert claims / 300 < 0.05 + 0.038


def test_a_table_is_no_wider_than_the_terminal_and_shows_twenty_arms(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "80")
    decisions, pieces = log_of(2000, d_arm=np.random.default_rng(1).integers(30, size=2000))
    decisions.to_csv(tmp_path / "d.csv", index=False)
    pieces.to_csv(tmp_path / "p.csv", index=False)
    words = ["fit", str(tmp_path / "d.csv"), str(tmp_path / "p.csv"), "--window", "10d"]
    assert app.run(words) == 0
    printed = capsys.readouterr().out
    assert app.run([*words, "--arms", "30"]) == 0
    everything = capsys.readouterr().out
    rows = [line for line in printed.splitlines() if re.match(r"\d+ +\d+ +\d+ +\d", line)]
    assert len(rows) == 20
    assert len(everything.splitlines()) == len(printed.splitlines()) + 10
    assert max(map(len, printed.splitlines())) <= 80


def test_the_ages_by_which_half_and_most_have_come():
    # Everything comes at the start of days 0, 7 and 14: nothing in between may be told.
    size = 600
    decisions = pd.DataFrame({"id": range(size), "arm": ["a", "b"] * (size // 2), "at": np.arange(size) / 7})
    parts = [
        pd.DataFrame({"decision": range(size), "value": value, "age": age})
        for age, value in ((0.01, 0.4), (7.01, 0.4), (14.01, 0.2))
    ]
    pieces = pd.concat(parts)
    fitted = ac.fit(decisions, pieces[pieces["age"] + pieces["decision"] / 7 < 80], end=80)
    assert "half of a decision's reward has come by age 7.0" in fitted.summary()
    assert "90 % by age 14.0" in fitted.summary()
