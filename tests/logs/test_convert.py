"""Other tables as logs: transactions and music sessions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import accrual as ac
from accrual.cli.app import run
from accrual.logs.convert import AmountRanges, read_sessions, session_log, transaction_log
from accrual.logs.fit import fit_log
from accrual.logs.open_log import open_log
from accrual.studies.paper import music_sessions, spotify

SALES = """Customer ID,InvoiceDate,amount,country
b,2024-03-01 10:00:00,7,FR
a,2024-03-02 09:00:00,30,DE
a,2024-03-02 09:00:00,25,DE
,2024-03-02 09:30:00,99,DE
a,2024-03-05 09:00:00,4.5,FR
c,2024-03-06 00:00:00,12,FR
b,2024-03-09 10:00:00,3,DE
a,2024-03-04 09:00:00,1.5,FR
"""


@pytest.fixture
def sales(tmp_path):
    path = tmp_path / "sales.csv"
    path.write_text(SALES)
    return path


def decided(decisions) -> dict[str, str]:
    return {row["id"]: row["arm"] for row in decisions.to_pylist()}


def test_first_purchases_decide_and_later_ones_pay(sales):
    """By hand. The first purchase of a is two rows of the same moment, 55 together."""
    decisions, pieces, notes = transaction_log(sales, AmountRanges.parse("amount=10,50"))
    assert decided(decisions) == {"b": "amount below 10", "a": "amount from 50", "c": "amount 10 to 50"}
    assert decisions["id"].to_pylist() == ["b", "a", "c"]  # in order of time
    assert [(row["decision"], row["value"], row["at"].day) for row in pieces.to_pylist()] == [
        ("a", 1.5, 4), ("a", 4.5, 5), ("b", 3.0, 9),
    ]  # fmt: skip
    assert "1 of 8 rows have no customer and are left out" in notes
    assert any("customer = Customer ID" in note for note in notes)


def test_any_column_is_an_arm(sales):
    assert decided(transaction_log(sales, "country")[0]) == {"b": "FR", "a": "DE", "c": "FR"}


def test_columns_may_be_told(sales):
    decisions, _, _ = transaction_log(sales, "country", {"amount": "amount", "customer": "country"})
    assert decided(decisions) == {"FR": "FR", "DE": "DE"}


def test_a_bound_belongs_to_the_range_above_it():
    frame = pd.DataFrame({"customer": ["a", "b", "a"], "time": [0, 0, 1], "amount": [10.0, 9.99, 1.0]})
    assert decided(transaction_log(frame, AmountRanges.parse("amount=10"))[0]) == {
        "a": "amount from 10",
        "b": "amount below 10",
    }


def test_the_log_goes_on_to_a_fit(tmp_path, capsys):
    dice = np.random.default_rng(0)
    customer = dice.integers(0, 200, 3000)
    time = np.datetime64("2024-01-01") + dice.integers(0, 86400 * 200, 3000).astype("timedelta64[s]")
    frame = pd.DataFrame({"customer": customer, "time": time, "amount": dice.uniform(1, 60, 3000).round(2)})
    frame.to_csv(tmp_path / "sales.csv", index=False)
    line = ["convert", "transactions", str(tmp_path / "sales.csv"), "--cut=amount=20,40"]
    assert run([*line, "-o", str(tmp_path / "log")]) == 0
    assert "200 decisions and 2,800 pieces" in capsys.readouterr().out
    with open_log(tmp_path / "log" / "decisions.parquet", tmp_path / "log" / "pieces.parquet") as log:
        fitted = fit_log(log, window="60d", groups=6)
    assert [arm.name for arm in fitted.arms] == ["amount below 20", "amount 20 to 40", "amount from 40"]
    assert sum(arm.decisions for arm in fitted.arms) == 200
    # Later purchases come evenly: 60 days of 200 at 15 purchases of 30.5 each.
    assert all(abs(arm.mean.value - 137) < 30 for arm in fitted.known if arm.mean)


BAD = {
    "time": (SALES.replace("2024-03-05 09:00:00", "soon"), "row 5: column 'InvoiceDate' (time) is 'soon'"),
    "amount": (SALES.replace("4.5", "much"), "row 5: column 'amount' (amount) is 'much'"),
    "nan": (SALES.replace("4.5", "nan"), "row 5: column 'amount' (amount) is 'nan'"),
    "zones": (
        SALES.replace("2024-03-06 00:00:00", "2024-03-06 00:00:00+01:00"),
        "some times have a time zone",
    ),
    "column": (
        SALES.replace("amount", "sum", 1),
        "no column for amount; it has 'Customer ID', 'InvoiceDate'",
    ),
    "rows": (SALES.split("\n", maxsplit=1)[0] + "\n", "it has a header and no rows"),
    "nobody": ("customer,time,amount,country\n,1,2,x\n", "no row with a customer"),
    "once": ("customer,time,amount,country\na,1,2,x\nb,1,2,y\n", "no customer comes back"),
    "arm": (
        SALES.replace("30,DE", "30,").replace("25,DE", "25,"),
        "column 'country' (arm) needs a value in the first purchase of",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_tables_are_one_line_and_leave_nothing(tmp_path, capsys, what):
    text, message = BAD[what]
    (tmp_path / "sales.csv").write_text(text)
    line = ["convert", "transactions", str(tmp_path / "sales.csv"), "--arm=country"]
    assert run([*line, f"--out={tmp_path / 'log'}"]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("accrual: ")
    assert message in printed
    assert printed.count("\n") == 1
    assert not (tmp_path / "log").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["transactions", "SALES"], "either --arm COLUMN or --cut COLUMN=NUMBERS"),
        (["transactions", "SALES", "--arm=country", "--cut=amount=3"], "either --arm COLUMN or --cut"),
        (["transactions", "SALES", "--arm=county"], "no column 'county' (for arm); it has 'Customer ID'"),
        (["transactions", "SALES", "--cut=amount"], "a cut must be written like amount=10,50"),
        (["transactions", "SALES", "--cut=amount=5,5"], "with rising numbers"),
        (["transactions", "SALES", "--cut=amount=inf"], "with rising numbers"),
        (["transactions", "SALES", "--cut=country=1"], "column 'country' (arm) needs a number"),
        (["transactions", "SALES", "--arm=country", "--column=price=amount"], "unknown column role 'price'"),
        (["transaction", "SALES"], "unknown kind of table 'transaction'; did you mean 'transactions'"),
        (["sessions", "SALES", "--cut=amount=3"], "--cut, --column and the options"),
        (["sessions", "SALES"], "column 'session_id' is missing"),
        (["transactions", "nowhere.csv", "--arm=x"], "there is no such file or folder"),
    ],
)
def test_bad_words_are_one_line_and_leave_nothing(sales, tmp_path, capsys, words, message):
    words = [str(sales) if word == "SALES" else word for word in words]
    assert run(["convert", *words, f"--out={tmp_path / 'log'}"]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "log").exists()


# Music sessions: the log, fitted, is the paper's setting.


def test_the_log_of_sessions_is_the_spotify_setting(tmp_path, capsys):
    sample = tmp_path / "sample.csv.gz"
    music_sessions.write_sample(sample, sessions=400)
    assert run(["convert", "sessions", str(sample), "-o", str(tmp_path / "log")]) == 0
    assert "--window 80 --groups 20 --end 480" in capsys.readouterr().out
    with open_log(
        tmp_path / "log" / "decisions.parquet", tmp_path / "log" / "pieces.parquet", end=480
    ) as log:
        fitted = fit_log(log, window=80, groups=20, cap=80)
    setting, problem = spotify(sample), fitted.to_problem(80, 20)
    assert fitted.open == 0
    assert set(problem.arms) == set(setting.arms)
    for name in setting.arms:
        mine, theirs = problem.arms.index(name), setting.arms.index(name)
        assert problem.caps[mine] == setting.caps[theirs] == 80
        one, two = (np.asarray(law.rows) for law in (problem.arm_laws[mine], setting.arm_laws[theirs]))  # type: ignore[attr-defined]
        assert one[np.lexsort(one.T)] == pytest.approx(two[np.lexsort(two.T)], abs=1e-9)


def test_quarters_are_pieces_by_hand():
    levels = {"x": np.array([[2, -1] + [-1] * 18], np.int8), "y": np.array([[0, 3] + [-1] * 18] * 2, np.int8)}
    decisions, pieces, end = session_log(levels)
    assert decisions["arm"].to_pylist() == ["x", "y", "y"]
    found = [(row["decision"], row["age"]) for row in pieces.to_pylist()]
    assert found == [(0, 0), (0, 1), (1, 4), (1, 5), (1, 6), (2, 4), (2, 5), (2, 6)]
    assert end == 83


def test_a_folder_without_tables(tmp_path):
    with pytest.raises(ac.InputError, match="holds no"):
        read_sessions(tmp_path)


def test_files_are_parquet(sales, tmp_path):
    assert run(["convert", "transactions", str(sales), "--arm=country", "-o", str(tmp_path / "log")]) == 0
    assert pq.read_table(tmp_path / "log" / "pieces.parquet").num_rows == 3
