"""Wherever a log lies: files, folders, archives, databases and a live bandit's store give the same tables."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import sqlite3
import zipfile
from contextlib import closing

import duckdb
import numpy as np
import pandas as pd
import psycopg
import pyarrow as pa
import pytest
from tests import postgres

import accrual as ac
from accrual.cli import app
from accrual.core.errors import InputError
from accrual.logs.open_log import open_log

DECISIONS = pd.DataFrame({"id": ["1", "2", "3"], "arm": ["a", "NA", "a"], "at": [0, 1, 2]})
PIECES = pd.DataFrame({"decision": ["3", "1", "1"], "value": [1.0, 0.5, 0.25], "at": [4, 0, 3]})
ROWS = [(0, 0.0, 0.5), (0, 3.0, 0.25), (2, 2.0, 1.0)]


def rows(*sources, **options):
    with open_log(*sources, **options) as log:
        assert log.arms == ("NA", "a")
        return log.query("SELECT decision, age, value FROM pieces ORDER BY ALL")


def csv(frame) -> bytes:
    return str(frame.to_csv(index=False)).encode()


def lines(frame) -> bytes:
    return str(frame.to_json(orient="records", lines=True)).encode()


def zipped(data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("folder/table.csv", data)
        archive.writestr("__MACOSX/._table.csv", b"junk")
    return out.getvalue()


FORMS = {
    "jsonl": lines,
    "json array": lambda frame: json.dumps(frame.to_dict("records")).encode(),
    "jsonl.gz": lambda frame: gzip.compress(lines(frame)),
    "csv.bz2": lambda frame: bz2.compress(csv(frame)),
    "csv.zst": lambda frame: pa.compress(csv(frame), "zstd", asbytes=True),
    "csv.zip": lambda frame: zipped(csv(frame)),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same(form, tmp_path):
    for name, frame in (("d", DECISIONS), ("p", PIECES)):
        (tmp_path / f"{name}.x").write_bytes(FORMS[form](frame))
    assert rows(tmp_path / "d.x", tmp_path / "p.x") == ROWS


def test_patterns_and_hives_folders(tmp_path):
    (tmp_path / "d.csv").write_bytes(csv(DECISIONS))
    for day, part in PIECES.groupby("at"):
        folder = tmp_path / "pieces" / f"at={day}"
        folder.mkdir(parents=True)
        part.drop(columns="at").to_parquet(folder / "part-0.parquet")
        (tmp_path / f"p{day}.csv").write_bytes(csv(part))
    assert rows(tmp_path / "d.csv", tmp_path / "pieces") == ROWS
    assert rows(tmp_path / "d.csv", str(tmp_path / "p*.csv")) == ROWS
    with pytest.raises(InputError, match="no file fits the pattern"):
        open_log(tmp_path / "d.csv", str(tmp_path / "q*.csv"))


def test_the_row_of_a_hive_file_is_named(tmp_path):
    (tmp_path / "d.csv").write_bytes(csv(DECISIONS))
    folder = tmp_path / "pieces" / "at=3"
    folder.mkdir(parents=True)
    pd.DataFrame({"decision": ["1", "1"], "value": ["1", "much"]}).to_csv(folder / "a.csv", index=False)
    with pytest.raises(InputError, match=r"at=3/a.csv: row 2: column 'value' \(value\) is 'much'"):
        open_log(tmp_path / "d.csv", tmp_path / "pieces")


@pytest.fixture
def filled(tmp_path):
    """The same two tables in a SQLite and in a DuckDB file."""
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        DECISIONS.to_sql("shown", connection, index=False)
        PIECES.to_sql("paid out", connection, index=False)
    with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
        connection.register("d", DECISIONS)
        connection.register("p", PIECES)
        connection.execute('CREATE TABLE shown AS FROM d; CREATE TABLE "paid out" AS FROM p')
    return tmp_path


@pytest.mark.parametrize("place", ["sqlite:///{}/x.db", "duckdb:///{}/x.duckdb"])
def test_databases_by_address(filled, place):
    url = place.format(filled)
    assert rows(f"{url}?decisions=shown&pieces=paid out") == ROWS
    assert rows(f"{url}?decisions=shown", f'{url}?pieces=SELECT * FROM "paid out"') == ROWS
    with pytest.raises(InputError, match="unknown table 'show'; did you mean 'shown'"):
        open_log(f"{url}?decisions=show")
    with pytest.raises(InputError, match=r"say which tables: .*; it has paid out, shown"):
        open_log(url)
    with pytest.raises(InputError, match=r"no such column|not found"):
        open_log(f"{url}?decisions=SELECT nope FROM shown")
    with pytest.raises(InputError, match="unknown part of the address"):
        open_log(f"{url}?decision=shown")


def test_a_column_of_mixed_cells_is_text(tmp_path):
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        connection.execute("CREATE TABLE d (id, arm, at)")
        connection.executemany("INSERT INTO d VALUES (?, ?, ?)", [(1, "a", 0), ("x7", 9, 1), (3, "a", 2.0)])
        connection.execute("CREATE TABLE p AS SELECT 'x7' AS decision, 1.5 AS value, 4 AS at")
        connection.commit()
    with open_log(f"sqlite:///{tmp_path}/x.db?decisions=d&pieces=p") as log:
        assert log.arms == ("9", "a")
        assert log.query("SELECT decision, age, value FROM pieces") == [(1, 3.0, 1.5)]


def test_postgresql_by_address():
    server = postgres.server()
    url = server.database()
    _fill(url)
    sign = "&" if "?" in url else "?"
    assert rows(f"{url}{sign}decisions=shown&pieces=paid") == ROWS
    with pytest.raises(InputError, match="unknown table 'shwn'"):
        open_log(f"{url}{sign}decisions=shwn")


def _fill(url: str) -> None:
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE shown (id text, arm text, at int)")
        cursor.execute("CREATE TABLE paid (decision text, value numeric, at int)")
        cursor.executemany("INSERT INTO shown VALUES (%s, %s, %s)", DECISIONS.values.tolist())
        cursor.executemany("INSERT INTO paid VALUES (%s, %s, %s)", PIECES.values.tolist())


def test_a_live_bandits_own_store(tmp_path, capsys):
    url = f"sqlite:///{tmp_path}/plays.db"
    dice = np.random.default_rng(0)
    paid = {"jazz": 0.0, "rock": 0.0}
    made = {"jazz": 0, "rock": 0}
    with ac.Bandit(arms=["jazz", "rock"], window=4, policy="UCB1", store=url, name="plays") as bandit:
        for _ in range(200):
            decision = bandit.decide()
            value = float(dice.random() < 0.6) / 2
            made[decision.arm] += 1
            bandit.observe(decision.id, value, age=0)
            paid[decision.arm] += value
    assert app.run(["fit", url, "--bandit", "plays", "--groups", "4", "-o", str(tmp_path / "x.json")]) == 0
    fitted = ac.Fitted.load(tmp_path / "x.json")
    assert {arm.name: arm.decisions for arm in fitted.arms} == made
    for arm in fitted.arms:  # every decision has completed the first group, and all reward is in it
        assert arm.mean is not None
        assert arm.mean.value == pytest.approx(paid[arm.name] / made[arm.name])
    assert app.run(["fit", url, "--bandit", "play"]) == 2
    assert "unknown bandit 'play'; did you mean 'plays'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (b"SQLite format 3\0", "a SQLite database: write sqlite:///FILE"),
        (b"\0" * 8 + b"DUCK" + b"\0" * 8, "a DuckDB database: write duckdb:///FILE"),
        (b"ARROW1\0\0", "an Arrow file: read it with pandas or polars"),
        (b"Obj\x01", "an Avro file"),
        (b"\xd0\xcf\x11\xe0", "an Excel file"),
        (b"\xfd7zXZ\0", "an xz file: unpack it"),
        (b"\x80\x05\x95", "a pickle, which is never read"),
    ],
)
def test_what_is_not_read_is_named(tmp_path, start, message):
    (tmp_path / "d.bin").write_bytes(start + b"some more")
    with pytest.raises(InputError, match=message):
        open_log(tmp_path / "d.bin")


def test_addresses_that_are_not_read(tmp_path):
    with pytest.raises(InputError, match=r"mysql:// is not supported; these are: sqlite://, duckdb://"):
        open_log("mysql://host/db")
    with pytest.raises(InputError, match=r"needs DuckDB's extension httpfs|must end in one of"):
        open_log("https://example.com/log.txt")
    with pytest.raises(InputError, match="give the store's address"):
        open_log(tmp_path / "d.csv", bandit="plays")


def test_excel_is_named(tmp_path):
    with zipfile.ZipFile(tmp_path / "d.xlsx", "w") as archive:
        archive.writestr("[Content_Types].xml", "x")
    with pytest.raises(InputError, match="an Excel file: read it with pandas"):
        open_log(tmp_path / "d.xlsx")
