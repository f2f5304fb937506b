"""Logs as they are found: every case is read right, asked about, or refused with what to type."""

from __future__ import annotations

import datetime as dt
import json
import tempfile
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import accrual as ac
from accrual.cli import app
from accrual.cli.logs.fit import show
from accrual.core.errors import InputError
from accrual.logs.log import Log
from accrual.logs.open_log import open_log
from accrual.logs.read import (
    DECISION_GUESSES,
    PIECE_GUESSES,
    TimeColumn,
    TimeOptions,
    assign,
    open_source,
    run,
)

DAY = 86_400.0
START = dt.datetime(2024, 1, 5, 12, 30, tzinfo=dt.UTC)
# Decisions over a year; each paid 2 three days later, and every third 1 more after 20 days.
MOMENTS = [START + dt.timedelta(days=9 * i) for i in range(40)]
PAID = [(i, when + dt.timedelta(days=3), 2.0) for i, when in enumerate(MOMENTS)]
PAID += [(i, when + dt.timedelta(days=20), 1.0) for i, when in enumerate(MOMENTS) if i % 3 == 0]
RIGHT = {3 * DAY: 40, 20 * DAY: 14}  # ages of pieces, and how many there are of each


def epoch(scale):
    return lambda x: round(x.timestamp() * scale)


def written(style):
    return lambda x: x.strftime(style)


# How times are written, and what must come of it: "read", or what a refusal says.
TIMES = {
    "ISO": (written("%Y-%m-%d %H:%M:%S"), "read"),
    "ISO with T and Z": (written("%Y-%m-%dT%H:%M:%SZ"), "read"),
    "ISO with an offset": (lambda x: x.astimezone(dt.timezone(dt.timedelta(hours=2))).isoformat(), "read"),
    "ISO with a space before the offset": (written("%Y-%m-%d %H:%M:%S +0000"), "read"),
    "ISO basic": (written("%Y%m%dT%H%M%S"), "read"),
    "decimal comma in the seconds": (written("%Y-%m-%dT%H:%M:%S,000"), "read"),
    "dates": (written("%Y-%m-%d"), "read"),
    "slashes, the year first": (written("%Y/%m/%d"), "read"),
    "points, the year first": (written("%Y.%m.%d"), "read"),
    "German dates": (written("%d.%m.%Y"), "read"),
    "British dates": (written("%d/%m/%Y %H:%M"), "read"),
    "American dates": (written("%m/%d/%Y %I:%M %p"), "read"),
    "words": (written("%d %b %Y %H:%M:%S"), "read"),
    "web server": (written("%d/%b/%Y:%H:%M:%S +0000"), "read"),
    "C library": (written("%a %b %d %H:%M:%S %Y"), "read"),
    "seconds": (epoch(1), "read"),
    "milliseconds": (epoch(1e3), "read"),
    "microseconds": (epoch(1e6), "read"),
    "nanoseconds": (epoch(1e9), "read"),
    "yyyymmdd": (lambda x: int(x.strftime("%Y%m%d")), "read"),
    "yyyymmddHHMMSS": (lambda x: int(x.strftime("%Y%m%d%H%M%S")), "read"),
    "yyyymm": (lambda x: int(x.strftime("%Y%m")), "--time-format %Y%m"),
    "yyyyww": (lambda x: int(x.strftime("%G%V")), "--time-format %G%V"),
    "yyyyddd": (lambda x: int(x.strftime("%Y%j")), "--time-format %Y%j"),
    "yyyymmddHH": (lambda x: int(x.strftime("%Y%m%d%H")), "--time-format %Y%m%d%H"),
    "yyyymmddHHMM": (lambda x: int(x.strftime("%Y%m%d%H%M")), "--time-format %Y%m%d%H%M"),
    "yymmdd": (lambda x: int(x.strftime("%y%m%d")), "--time-format %y%m%d"),
    "yymmddHH": (lambda x: int(x.strftime("%y%m%d%H")), "--time-format %y%m%d%H"),
    "ddmmyyyy": (written("%d%m%Y"), "--time-format %d%m%Y"),
    "dd-Mon-yy": (written("%d-%b-%y"), "--time-format %d/%m/%y or %d-%b-%y"),
    "Oracle": (lambda x: x.strftime("%d-%b-%y %I.%M.%S %p").upper(), "years of two digits"),
    "mmddyyyy without its zeros": (lambda x: int(x.strftime("%m%d%Y")), "--time-format %m%d%Y"),
    "ddmmyyyy without its zeros": (lambda x: int(x.strftime("%d%m%Y")), "--time-format %d%m%Y"),
    "ddmmyy without its zeros": (lambda x: int(x.strftime("%d%m%y")), "--time-format %d%m%y"),
    "yyddd": (lambda x: int(x.strftime("%y%j")), "--time-format %y%j"),
    "yyyymmddHHMMSS and microseconds": (written("%Y%m%d%H%M%S%f"), "--time-format %Y%m%d%H%M%S%f"),
    "month and year": (written("%Y-%m"), "say how it is written"),
    "the hour alone": (written("%Y-%m-%d %H"), "say how it is written"),
    "the month in full": (written("%A, %B %d, %Y"), "say how it is written"),
    "ISO weeks": (written("%G-W%V-%u"), "--time-format"),
    "quarters": (lambda x: f"{x.year}-Q{(x.month + 2) // 3}", "--time-format"),
}  # fmt: skip
COARSE = ("yyyymm", "yyyyww", "dd-Mon-yy", "ISO weeks", "quarters")  # told or not, days are not told apart
FILES = ("csv", "csv;", "bom", "jsonl", "json", "parquet", "frame")
GUESSES = {"decisions": DECISION_GUESSES, "pieces": PIECE_GUESSES}
NAMES = (("at", "at"), ("timestamp", "event_time"), ("Decision Time", "rewardAt"))


def tables(style, names=("at", "at")):
    decisions = pd.DataFrame({"id": range(40), "arm": ["a", "b"] * 20, names[0]: map(style, MOMENTS)})
    decision, when, value = zip(*PAID, strict=True)
    return decisions, pd.DataFrame({"decision": decision, names[1]: map(style, when), "value": value})


def saved(table, kind, path):
    """Write a table as a file of some kind, and return what to give to `open_log`."""
    if kind == "frame":
        return table
    if kind.startswith("csv"):
        table.to_csv(path, index=False, sep=kind[3:] or ",")
    elif kind == "bom":
        path.write_bytes(table.to_csv(index=False).encode("utf-8-sig"))
    elif kind == "parquet":
        table.to_parquet(path)
    else:
        table.to_json(path, orient="records", lines=kind == "jsonl")
    return path


def ages(log):
    return dict(log.query("SELECT age, count(*) FROM pieces GROUP BY age ORDER BY age"))


@pytest.fixture(scope="module")
def log():
    """An open log without tables, for its database."""
    with Log(tempfile.TemporaryDirectory(), "500MB") as log:
        yield log


def ages_by_hand(log, tables, kind, folder, names, options=None):
    """Return the ages of pieces and how many have each, from the two columns of times alone."""
    folder.mkdir()
    ticks, like = [], ""
    for table, name, what, role in zip(tables, names, GUESSES, ("at", "piece_at"), strict=True):
        connection = log.connection.cursor()
        source = open_source(connection, saved(table, kind, folder / f"{what}.x"), what, folder)
        column = assign(source, GUESSES[what], {})[role]
        assert source.names[column] == name, "another column"
        found = TimeColumn(connection, source, column, role, options, like)
        assert found.timestamps, "taken for plain numbers"
        query = f"SELECT TRY_CAST(c0 AS INTEGER), {found.tick} FROM {source.scan}"
        ticks.append(run(connection, query, source).fetchall())
        assert None not in dict(ticks[-1]).values(), "cells that were not read"
        like = found.style
    decided = dict(ticks[0])
    return dict(Counter((tick - decided[id_]) / 1e6 for id_, tick in ticks[1]))


@pytest.mark.parametrize("kind", FILES)
def test_every_way_to_write_times_in_every_kind_of_file(kind, log, tmp_path):
    wrong: dict[tuple[Any, ...], Any] = {}
    for number, (name, (style, wanted)) in enumerate(TIMES.items()):
        # Every way meets every kind of file, and column names in turn.
        names = NAMES[(number + FILES.index(kind)) % len(NAMES)]
        given = tables(style, names)
        try:
            said = ages_by_hand(log, given, kind, tmp_path / str(number), names)
        except (InputError, AssertionError) as error:
            said = str(error)
        if said != RIGHT if wanted == "read" else wanted not in said:
            wrong[name, names] = said
        if wanted.startswith("--time-format") and name not in COARSE:
            told = TimeOptions(format=wanted.split()[1])
            said = ages_by_hand(log, given, kind, tmp_path / f"{number} told", names, told)
            if said != RIGHT:
                wrong[name, names, told.format] = said
    assert wrong == {}


@pytest.mark.parametrize("kind", FILES)
def test_kinds_of_files(kind, tmp_path):
    style, _ = TIMES["British dates"]
    given = [saved(x, kind, tmp_path / f"{i}.x") for i, x in enumerate(tables(style))]
    with open_log(*given) as log:
        assert log.timestamps
        assert ages(log) == RIGHT


def test_json_dates_that_can_be_two_are_asked_about(tmp_path):
    # DuckDB would read them as it likes.
    path = tmp_path / "log.jsonl"
    rows = [
        {"id": i, "arm": "ab"[i % 2], "at": f"0{1 + i % 9}/02/2024", "value": 1, "piece_at": "10/10/2024"}
        for i in range(30)
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(InputError, match=r"two ways.*--time-format %d/%m/%Y or --time-format %m/%d/%Y"):
        open_log(path)


def varied(pieces):
    return pieces.assign(value=np.arange(len(pieces)) / 7)


def later(pieces, hours):
    return pieces.assign(at=pieces["at"] + pd.Timedelta(hours, "h"))


# What a log is like, how it is made from the plain one, and what is said: in a refusal, or in an odd line.
ODD = {
    "rows twice": (lambda d, p: (d, pd.concat([p, p])), "54 of 108 pieces repeat another"),
    "a fifth of the rows twice": (
        lambda d, p: (d, pd.concat([varied(p), varied(p)[::5]])), "11 of 65 pieces repeat another"
    ),
    "half of the ids in capitals": (
        lambda d, p: (d.assign(id="k" + d["id"].astype(str)),
                      p.assign(decision=np.where(p.index % 2, "K", "k") + p["decision"].astype(str))),
        "have a decision's id except for spaces or capitals",
    ),
    "ages in days": (lambda d, p: (d, p.drop(columns="at").assign(age=[3] * 40 + [20] * 14)), "--age-unit d"),
    "ages in days, and a short log": (
        lambda d, p: (d.assign(at=MOMENTS[0] + pd.to_timedelta(d["id"], unit="h")),
                      p.drop(columns="at").assign(age=[3] * 40 + [20] * 14)),
        "--age-unit d",
    ),
    "a point before thousands": (
        lambda d, p: (d.astype(str), p.assign(value=["1.250", *["999"] * 53]).astype(str)),
        "if the point separates thousands, say --decimal ','",
    ),
    "running totals": (
        lambda d, p: (d, pd.concat([later(p[:40].assign(value=k), k) for k in (1, 2, 3)])),
        "if each is the total so far, take the differences",
    ),
    "a type of event": (
        lambda d, p: (d, pd.concat([p, later(p, 1)]).assign(event_id="click")),
        "'event_id' is not taken for the key of pieces",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_what_looks_wrong_is_asked_about(name):
    change, said = ODD[name]
    decisions, pieces = tables(lambda x: x)
    with open_log(*change(decisions, pieces)) as log:
        assert said in " | ".join(log.odd)
    with open_log(decisions, pieces) as log:
        assert log.odd == []


def one_table(decisions, pieces):
    return decisions.merge(pieces.rename(columns={"decision": "id", "at": "piece_at"}), on="id", how="left")


def test_an_inner_join_is_asked_about():
    decisions = pd.DataFrame({"id": range(90), "arm": list("abc") * 30, "at": np.arange(90.0)})
    payers = np.flatnonzero(np.arange(90) % 3)
    pieces = pd.DataFrame({"decision": payers, "at": payers + 2.5, "value": 1.0})
    whole = one_table(decisions, pieces)
    with open_log(whole) as log:
        assert log.odd == []
        assert (log.counts.decisions, log.counts.pieces) == (90, 60)
    with open_log(whole.dropna()) as log:
        assert "as after an inner join, the means are too high" in log.odd[0]


def test_the_rows_own_id_is_not_taken_for_the_decisions():
    decisions = pd.DataFrame({"id": range(6), "arm": list("ababab"), "at": range(6)})
    conversions = pd.DataFrame({"id": [1, 2, 3], "assignment_id": [5, 5, 4], "value": 1.0, "at": [6, 7, 8]})
    with pytest.raises(
        InputError, match=r"no column for decision.*'assignment_id'.*--column decision=COLUMN"
    ):
        open_log(decisions, conversions)
    with open_log(decisions, conversions, {"decision": "assignment_id"}) as log:
        assert log.query("SELECT DISTINCT decision FROM pieces ORDER BY 1") == [(4,), (5,)]


def test_a_persons_age_is_not_a_pieces():
    decisions, pieces = tables(lambda x: x.timestamp() / DAY)
    people = pieces.drop(columns="at").assign(age=20 + pieces["decision"] % 50)
    with pytest.raises(InputError, match=r"may be a person's age: say --column age=age if"):
        open_log(decisions, people)
    with open_log(decisions, people, {"age": "age"}) as log:
        assert log.counts.pieces == 54
    unpaid = people.assign(
        value=people["value"].where(people.index % 9 > 0)
    )  # a row without a piece has an age too
    joined = decisions.merge(unpaid.rename(columns={"decision": "id"}), on="id")
    with pytest.raises(InputError, match="may be a person's age"):
        open_log(joined)
    with open_log(decisions, people.assign(age=people["age"] - 20)) as log:  # begins at 0, as delays do
        assert log.counts.pieces == 54


def test_dates_on_one_side_and_a_time_zone():
    decisions, pieces = tables(lambda x: x.replace(tzinfo=None))
    dates = pieces.assign(at=pieces["at"].dt.date)
    with pytest.raises(InputError, match="--timezone would move one and not the other"):
        open_log(decisions, dates, timezone="Asia/Tokyo")
    with open_log(decisions, dates) as log:
        assert sorted(ages(log)) == [2.4791666666666665 * DAY, 19.479166666666668 * DAY]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_lengths_of_time_in_parquet(unit, tmp_path):
    decisions, pieces = tables(lambda x: x)
    decisions.to_parquet(tmp_path / "d.parquet")
    days = pa.array(([3] * 40 + [20] * 14), pa.int64())
    length = pa.array(
        [x.as_py() * 86_400 * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit] for x in days]
    )
    table = pa.table(
        {"decision": pieces["decision"], "value": pieces["value"], "age": length.cast(pa.duration(unit))}
    )
    pq.write_table(table, tmp_path / "p.parquet")
    with open_log(tmp_path / "d.parquet", tmp_path / "p.parquet") as log:
        assert ages(log) == RIGHT


def test_decimals_and_categories_in_parquet(tmp_path):
    decisions, pieces = tables(lambda x: x)
    decisions["arm"] = decisions["arm"].astype("category")
    decisions.to_parquet(tmp_path / "d.parquet")
    money = pa.array(pieces["value"]).cast(pa.decimal128(12, 2))
    pq.write_table(pa.Table.from_pandas(pieces).set_column(2, "value", money), tmp_path / "p.parquet")
    with open_log(tmp_path / "d.parquet", tmp_path / "p.parquet") as log:
        assert log.arms == ("a", "b")
        assert log.query("SELECT sum(value) FROM pieces") == [(94.0,)]


def test_refunds_are_never_dropped_as_unreadable(tmp_path, monkeypatch, capsys):
    decisions, pieces = tables(lambda x: x)
    pieces = pieces.astype({"value": object})
    pieces.loc[[3, 5], "value"] = -2.0
    pieces.loc[7, "value"] = "much"
    paths = [str(saved(x, "csv", tmp_path / name)) for x, name in ((decisions, "d.csv"), (pieces, "p.csv"))]
    monkeypatch.chdir(tmp_path)
    assert app.run(["fit", *paths, "--bad-rows=skip", "--window=30d", "--groups=3"]) == 0
    lines = [" ".join(block.split()) for block in capsys.readouterr().out.split("odd: ")]
    assert lines[1].startswith(
        "rows are left out (2): value (value) is below 0: say --allow-negative if these are refunds"
    )
    assert lines[2].startswith("rows are left out (1): value (value) is not a finite number")
    with open_log(paths[0], paths[1], bad_rows="skip", allow_negative=True) as log:
        assert log.rejected == {"value (value) is not a finite number": 1}
        assert log.signed


def test_copies_of_a_decision_are_left_out_and_contradictions_are_listed():
    decisions, pieces = tables(lambda x: x)
    with open_log(pd.concat([decisions, decisions[:7]]), pieces) as log:
        assert (log.counts.decisions, log.counts.copies) == (40, 7)
    fitted = ac.fit(pd.concat([decisions, decisions[:7]]), pieces, window="30d", groups=3)
    assert "left out, rows of decisions that are copies of another: 7" in fitted.summary()
    other = decisions[:2].assign(arm="c")
    with pytest.raises(
        InputError, match=r"has 0, 1 more than once, in rows that contradict each other \(2 ids\)"
    ):
        open_log(pd.concat([decisions, other]), pieces)


def test_a_log_in_which_few_pay_is_not_odd():
    # Once 84 % of such logs were told that their pieces end before their decisions. The chance is now below
    # exp(-7) where decisions pay evenly over time: none of 20.
    dice = np.random.default_rng(7)
    for _ in range(20):
        at = np.sort(dice.random(500)) * 100.0
        decisions = pd.DataFrame({"id": range(500), "arm": dice.integers(2, size=500), "at": at})
        owner = np.sort(dice.choice(450, size=5, replace=False))
        pieces = pd.DataFrame({"decision": owner, "value": 1.0, "at": at[owner] + dice.random(5)})
        with open_log(decisions, pieces) as log:
            assert log.odd == []


def test_fit_replay_and_compare_say_the_same_of_the_reading(tmp_path, monkeypatch, capsys):
    decisions, pieces = tables(written("%d/%m/%Y"))
    decisions = pd.concat([decisions.assign(id=decisions["id"] + 40 * k) for k in range(10)])
    pieces = pd.concat([pieces.assign(decision=pieces["decision"] + 40 * k) for k in range(10)])
    pieces["decision"] = np.where(np.arange(540) % 9 == 0, 9999, pieces["decision"])
    paths = [str(saved(x, "csv", tmp_path / name)) for x, name in ((decisions, "d.csv"), (pieces, "p.csv"))]
    said = (
        "odd: 60 of 540 pieces have no decision in the log", "columns guessed from their names: id = id",
        "at (at): times written dd/mm/yyyy (recognised)", "left out, pieces without a decision: 60",
    )  # fmt: skip
    with open_log(paths[0], paths[1]) as log:
        fitted = ac.fit_log(log, window="30d", groups=3)
        judged = ac.replay(log, "always a", uniform=True, window="30d", groups=3)
        compared = ac.compare(fitted, ["DelayedUCB1"], runs=2, horizon=200)
    for found in (fitted, judged, compared):
        for line in said:
            assert line in found.summary()
        assert said[0] in found._repr_html_()
    monkeypatch.chdir(tmp_path)
    options = ["--window=30d", "--groups=3"]
    for command in (["fit"], ["replay", "--uniform", "--always=a"], ["compare", "--runs=2", "--horizon=200"]):
        assert app.run([command[0], *paths, *options, *command[1:]]) == 0
        printed = " ".join(capsys.readouterr().out.split())
        for line in said:
            assert line in printed
    page = (tmp_path / "out/compare/report.html").read_text()
    assert all(line in page for line in said)


def joined_csv(path, nothing):
    """Write one table of decisions and pieces, with a word in the cells of decisions that paid nothing."""
    decisions, pieces = tables(written("%Y-%m-%d %H:%M:%S"))
    unpaid = decisions[:4].assign(id=[90, 91, 92, 93])
    one_table(pd.concat([decisions, unpaid]), pieces).to_csv(path, index=False, na_rep=nothing)
    return path


def test_words_for_nothing(tmp_path):
    path = joined_csv(tmp_path / "log.csv", "n.d.")
    with open_log(path, na=["NA", "n.d."]) as log:
        assert (log.counts.decisions, log.counts.pieces) == (44, 54)
        assert ages(log) == RIGHT
    path = joined_csv(tmp_path / "log.csv", "NA")  # not times with a time zone, as "NA" has letters
    with pytest.raises(InputError, match=r"\(piece_at\) is 'NA', not a timestamp.*say --na NA\)$"):
        open_log(path)
    with pytest.raises(InputError, match="na must be a list of words"):
        open_log(path, na="NA")
    decisions, pieces = tables(epoch(1e3))
    pieces = pieces.astype(str)
    pieces.loc[0, "at"] = "NA"  # which does not hide that the others are milliseconds
    with pytest.raises(InputError, match=r"row 1: column 'at' \(piece_at\) is 'NA', not one of the millisec"):
        open_log(decisions, pieces)


# How a value is written, the decimal sign that is told, and what it is; None where it is refused.
NUMBERS = [
    ("6,97", ",", 6.97), ("6.970,25", ",", 6970.25), ("1.234.567", ",", 1234567.0), ("7", ",", 7.0),
    ("1,250.5", ".", 1250.5), ("6.97", ".", 6.97), ("1,5e3", ",", 1500.0),
    ("6.97", ",", None), ("6,97", ".", None), ("1.25.000", ",", None), ("6,97", None, None),
    ("1,250", None, None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "decimal", "value"), NUMBERS)
def test_decimal_signs(text, decimal, value, tmp_path):
    decisions, pieces = tables(written("%Y-%m-%d"))
    pieces = pieces.assign(value="1")
    pieces.loc[7, "value"] = text
    given = [saved(x, "csv;", tmp_path / f"{i}.csv") for i, x in enumerate((decisions, pieces))]
    if value is None:
        hint = "--decimal" if decimal is None else "not a finite number$"
        with pytest.raises(InputError, match=rf"row 8: column 'value' \(value\) is .*{hint}"):
            open_log(*given, decimal=decimal)
        return
    with open_log(*given, decimal=decimal) as log:
        assert log.query("SELECT sum(value) FROM pieces") == [(53 + value,)]


def test_decimal_commas_in_times_and_contexts(tmp_path):
    decisions = pd.DataFrame({
        "id": range(40), "arm": ["a", "b"] * 20, "at": [f"{i},5" for i in range(40)],
        "size": [f"{i % 7},25" for i in range(40)],
    })  # fmt: skip
    pieces = pd.DataFrame({"decision": range(40), "value": "0,5", "at": [f"{i},75" for i in range(40)]})
    given = [saved(x, "csv;", tmp_path / f"{i}.csv") for i, x in enumerate((decisions, pieces))]
    with open_log(*given, decimal=",", context=["size"]) as log:
        assert ages(log) == {0.25: 40}
        assert log.query("SELECT max(CAST(context_0 AS DOUBLE)) FROM decisions") == [(6.25,)]


def test_clocks_that_differ():
    decisions, pieces = tables(lambda x: x)
    early = pieces.assign(at=pieces["at"] - pd.to_timedelta([3 * DAY + i % 4 for i in range(54)], unit="s"))
    with pytest.raises(
        InputError,
        match=r"is '2024-01-14 12:29:59.*', which is before its decision's time \(30 pieces are so, by "
        r"up to 3 s; if clocks differ, say --skew 3s\)",
    ):
        open_log(decisions, early)
    with open_log(decisions, early, skew="3s") as log:
        assert (log.counts.pieces, log.counts.early) == (54, 30)
        assert "30 pieces come up to 3 s before their decision: they count at age 0" in log.notes
        assert log.query("SELECT count(*) FROM pieces WHERE age = 0") == [(40,)]
    with pytest.raises(InputError, match=r"row 4: column 'at' \(piece_at\) is .*, which is before"):
        open_log(decisions, early, skew="2s")
    with pytest.raises(InputError, match="skew must be a positive number, or with timestamps such as 30d"):
        open_log(decisions, early, skew="2m")


# Rows of start, stop and status: follow-ups of 100 to 400 days, in which events come back.


def follow_ups(seed=4):
    dice = np.random.default_rng(seed)
    rows = []
    for i in range(80):
        last, start = float(dice.integers(100, 400)), 0.0
        while start < last:
            stop = start + np.ceil(dice.exponential(80.0 + 120.0 * (i % 2)))
            rows.append((i, "ab"[i % 2], start, min(stop, last), int(stop <= last), 40))
            start = stop
    return pd.DataFrame(rows, columns=["id", "arm", "tstart", "tstop", "status", "age"])


def mean_cumulative(rows, arm, window):
    own = rows[rows["arm"] == arm]
    last = own.groupby("id")["tstop"].max()
    events = own.loc[(own["status"] == 1) & (own["tstop"] < window), "tstop"]
    return sum(1.0 / (last >= age).sum() for age in events)


def on_days(rows):
    start = pd.Timestamp("2024-03-01") + pd.to_timedelta(rows["id"], unit="D")
    days = {name: start + pd.to_timedelta(rows[name], unit="D") for name in ("tstart", "tstop")}
    return rows.assign(**days)


START_STOP: dict[str, Any] = {
    "ages": (lambda x: x, {}, 300),
    "moments": (on_days, {}, "300d"),
    "numbers that are moments": (
        lambda x: x.assign(tstart=x["tstart"] + x["id"], tstop=x["tstop"] + x["id"]),
        {"columns": {"at": "tstart"}}, 300,
    ),
    "a time of the decision": (
        lambda x: x.assign(at=on_days(x)["tstart"].groupby(x["id"]).transform("min")),
        {"age_unit": "d"}, "300d",
    ),
    "words": (lambda x: x.assign(status=x["status"].map({1: "TRUE", 0: "FALSE"})), {}, 300),
}  # fmt: skip


@pytest.mark.parametrize("name", START_STOP)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_start_stop_and_status(name, kind, tmp_path):
    change, options, window = START_STOP[name]
    rows = follow_ups()
    with open_log(saved(change(rows), kind, tmp_path / "rows.x"), **options) as log:
        fitted = ac.fit_log(log, window, groups=3)
    for arm in fitted.arms:
        assert arm.mean is not None
        assert arm.mean.value == pytest.approx(mean_cumulative(rows, arm.name, 300), rel=1e-9)
    assert "rows of start, stop and status are 80 decisions" in fitted.summary()


def test_start_stop_and_a_value():
    rows = follow_ups()
    with open_log(rows.assign(amount=2.5)) as log:
        assert log.query("SELECT DISTINCT value FROM pieces") == [(2.5,)]
        assert log.counts.pieces == rows["status"].sum()


def test_an_event_at_time_0_of_survival_data_counts():
    """Half of the decisions of each arm have an event: at 4, or at 0."""
    i = np.arange(200)
    time = np.where(i % 4 == 0, 4, np.where(i % 4 == 1, 0, 10))
    rows = pd.DataFrame({"id": i, "arm": np.where(i % 2, "b", "a"), "time": time, "status": (i % 4 < 2) * 1})
    fitted = ac.fit(rows, columns={"stop": "time"}, window=8)
    assert [arm.mean and arm.mean.value for arm in fitted.known] == pytest.approx([0.5, 0.5])


def test_a_time_and_a_status_in_each_row(tmp_path):
    rows = follow_ups().drop_duplicates("id").drop(columns="tstart")
    path = saved(rows.rename(columns={"tstop": "time"}), "csv", tmp_path / "rows.csv")
    with pytest.raises(
        InputError, match=r"survival data do, say --column stop=COLUMN --column status=status"
    ):
        open_log(path)
    fitted = ac.fit(path, columns={"stop": "time"}, window=60, groups=2)
    for arm in fitted.arms:
        assert arm.mean is not None
        assert arm.mean.value == pytest.approx(mean_cumulative(rows, arm.name, 60), rel=1e-9)
    assert "ends at a piece: if nothing can come after it, as after a death" in fitted.summary()


NOT_FOLLOWED = {
    "late": (lambda x: x.assign(tstart=x["tstart"] + 5, tstop=x["tstop"] + 5), "starts at 5, not at 0: if"),
    "a gap": (lambda x: x.drop(index=1), "does not start where the one before stops"),
    "backwards": (lambda x: x.assign(tstart=x["tstop"], tstop=x["tstart"]), "is before its start"),
    "codes": (lambda x: x.assign(status=x["status"] + 1), r"\(status\) is '2', not 1 where a piece came"),
    "arms": (lambda x: x.assign(arm=["c", *x["arm"][1:]]), "changes its arm"),
    "no arm": (lambda x: x.drop(columns="arm"), r"no column for arm \(what was chosen\); it has .*'tstop'"),
    "no unit": (lambda x: x.assign(at=on_days(x)["tstart"]), "say their unit, such as --age-unit d"),
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_FOLLOWED)
def test_follow_ups_that_cannot_be_used(name):
    change, said = NOT_FOLLOWED[name]
    rows = follow_ups()
    rows = rows[rows.groupby("id")["id"].transform("size") > 2].reset_index(drop=True)
    with pytest.raises(InputError, match=said):
        open_log(change(rows))


def test_the_largest_total_is_of_closed_decisions_as_the_quantile_is():
    decisions = pd.DataFrame({"id": range(60), "arm": ["a", "b"] * 30, "at": np.arange(60.0)})
    pieces = pd.DataFrame({"decision": range(60), "value": 1.0, "age": 1.0})
    pieces.loc[58, "value"] = 9.0  # of a decision that is still open
    fitted = ac.fit(decisions, pieces, window=10, groups=2)
    cap = fitted.arms[0].cap
    assert cap is not None
    assert (cap.observed, cap.quantile, cap.used) == (1.0, 1.0, 9.0)


@pytest.mark.parametrize(("groups", "rows"), [(10, 10), (11, 6), (60, 10)])
def test_a_table_of_the_spread_has_at_most_ten_rows(groups, rows, capsys):
    decisions = pd.DataFrame({"id": range(400), "arm": ["a", "b"] * 200, "at": np.arange(400.0)})
    pieces = pd.DataFrame({"decision": range(400), "value": 1.0, "age": np.arange(400.0) % 60.0})
    fitted = ac.fit(decisions, pieces, window=60 if groups != 11 else 66, groups=groups)
    show(fitted, 5)
    table = capsys.readouterr().out.partition("spread: ")[2].splitlines()[3:]
    shown = [line.split() for line in table[: [*map(bool, table), False].index(False)]]
    assert len(shown) == rows
    assert sum(float(line[3]) for line in shown) == pytest.approx(1.0, abs=0.005)  # digits of ten rows


def test_rows_of_the_spread_are_those_of_as_many_groups():
    dice = np.random.default_rng(3)
    decisions = pd.DataFrame({"id": range(300), "arm": ["a", "b"] * 150, "at": np.arange(300.0)})
    ages = np.floor(dice.exponential(20.0, 700))
    pieces = pd.DataFrame({"decision": dice.integers(300, size=700), "value": dice.random(700), "age": ages})
    fine, coarse = (ac.fit(decisions, pieces, window=60, groups=groups).spread for groups in (60, 10))
    last, *shares = zip(*fine.rows, strict=True)
    assert last == tuple(range(6, 61, 6))
    np.testing.assert_allclose(shares, [coarse.value, coarse.low, coarse.high], rtol=1e-6)
