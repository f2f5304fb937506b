"""A log, opened: every format gives the same tables, and what is wrong with one is said in a line."""

from __future__ import annotations

import gzip
import io
import resource

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import accrual as ac
from accrual.cli import app
from accrual.core.durations import parse_length
from accrual.core.errors import InputError
from accrual.logs.fit import fit_log
from accrual.logs.open_log import open_log

DECISIONS = "id,arm,at\n1,a,0\n2,b,1\n3,a,2\n"
PIECES = "decision,value,at\n3,1.0,4\n1,0.5,0\n1,0.25,3\n"
ROWS = [(0, 0.0, 0.5), (0, 3.0, 0.25), (2, 2.0, 1.0)]


def rows(*sources, **options):
    with open_log(*sources, **options) as log:
        return log.query("SELECT decision, age, value FROM pieces ORDER BY ALL")


@pytest.fixture
def write(tmp_path):
    """Write text or bytes to a file and give its path."""

    def to(name: str, content: str | bytes) -> str:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return to


def parquet(text: str) -> bytes:
    out = io.BytesIO()
    pd.read_csv(io.StringIO(text)).to_parquet(out)
    return out.getvalue()


# --- what can be read -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ending", "encode"),
    [
        ("csv", str.encode),
        ("csv", lambda text: ("\ufeff" + text.replace("\n", "\r\n")).encode()),
        ("tsv", lambda text: text.replace(",", "\t").encode()),
        ("csv", lambda text: text.replace(",", ";").encode()),
        ("csv.gz", lambda text: gzip.compress(text.encode())),
        ("parquet", parquet),
    ],
    ids=["csv", "bom and crlf", "tabs", "semicolons", "gzip", "parquet"],
)
def test_every_format_gives_the_same(write, ending, encode):
    decisions, pieces = write(f"d.{ending}", encode(DECISIONS)), write(f"p.{ending}", encode(PIECES))
    assert rows(decisions, pieces) == ROWS


def test_a_folder_of_parts(write, tmp_path):
    head, *lines = PIECES.splitlines(keepends=True)
    for i, line in enumerate(lines):
        write(f"parts/{i}.csv", head + line)
    write("parts/_SUCCESS", "")
    assert rows(write("d.csv", DECISIONS), tmp_path / "parts") == ROWS


@pytest.mark.parametrize(
    "make", [pd.DataFrame, pl.DataFrame, pa.table, lambda data: pl.DataFrame(data).lazy()]
)
def test_frames(make):
    decisions = make({"id": [1, 2, 3], "arm": ["a", "b", "a"], "at": [0, 1, 2]})
    pieces = make({"decision": [3, 1, 1], "value": [1.0, 0.5, 0.25], "at": [4, 0, 3]})
    assert rows(decisions, pieces) == ROWS


def test_one_joined_table(write):
    joined = "id,arm,time,value,age\n3,a,2,1.0,2\n1,a,0,0.5,0\n2,b,1,,\n1,a,0,0.25,3\n"
    with open_log(write("j.csv", joined)) as log:
        assert log.query("SELECT * FROM pieces ORDER BY ALL") == ROWS
        assert log.counts.decisions == 3
        assert log.columns["age"] == "age"


def test_names_of_any_kind_never_reach_a_query(write):
    decisions = 'id,"arm"");DROP TABLE x;--",at\n1,a,0\n2,b\'";,1\n3,a,2\n'
    told = {"arm": 'arm");DROP TABLE x;--'}
    with open_log(write("log [1]*'.csv", decisions), write("p.csv", PIECES), columns=told) as log:
        assert log.arms == ("a", "b'\";")
        assert log.counts.pieces == 3


def test_columns_are_guessed_and_said_or_told(write):
    decisions = write("d.csv", "Decision ID,Variant,ts\n1,a,0\n2,b,1\n3,a,2\n")
    pieces = write("p.csv", "decisionId,Reward,when\n3,1.0,4\n1,0.5,0\n1,0.25,3\n")
    with open_log(decisions, pieces, columns={"piece_at": "when"}) as log:
        assert log.columns["arm"] == "Variant"
        assert "arm = Variant" in log.notes[0]
        assert "when" not in log.notes[0]
    with pytest.raises(InputError, match=r"no column for piece_at .* it has 'decisionId', 'Reward', 'when'"):
        open_log(decisions, pieces)
    with pytest.raises(InputError, match=r"in Python with columns=\{'piece_at': COLUMN\}"):
        open_log(decisions, pieces)


def test_a_name_told_for_the_id_is_the_decisions_in_the_pieces_too(write):
    decisions = write("d.csv", "offer,arm,at\n1,a,0\n2,b,1\n3,a,2\n")
    pieces = write("p.csv", "value,offer,piece_at\n1.0,3,4\n0.5,1,0\n0.25,1,3\n")
    with open_log(decisions, pieces, columns={"id": "offer"}) as log:
        assert log.columns["decision"] == "offer"
        assert log.counts.pieces == 3


def test_ids_of_two_types_meet_as_text():
    decisions = pd.DataFrame({"id": ["1", "2", "3"], "arm": ["a", "b", "a"], "at": [0, 1, 2]})
    pieces = pd.DataFrame({"decision": [3, 1, 1], "value": [1.0, 0.5, 0.25], "at": [4, 0, 3]})
    assert rows(decisions, pieces) == ROWS


def test_arms_are_in_natural_order(write):
    decisions = write("d.csv", "id,arm,at\n1,10,0\n2,9,1\n3,x,2\n")
    with open_log(decisions, write("p.csv", PIECES)) as log:
        assert log.arms == ("9", "10", "x")


# --- time -------------------------------------------------------------------------------------

ZONED = "id,arm,at\n1,a,2024-03-31 01:30:00+01:00\n2,b,2024-03-31T03:30:00+02:00\n3,a,2024-03-31 02:00:00Z\n"


@pytest.mark.parametrize("unit", ["ns", "us", "ms", "s"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_times_of_a_pandas_frame_in_every_unit_and_zone(unit, zone):
    start = pd.Timestamp("2024-05-01 12:00", tz=zone)
    at = pd.Series([start + pd.Timedelta(hours=i) for i in range(3)]).dt.as_unit(unit)
    frame = pd.DataFrame({"id": [1, 2, 3], "arm": ["a", "b", "a"], "at": at, "value": 1.0, "age": 60})
    assert frame["at"].dt.unit == unit
    with open_log(frame, age_unit="s") as log:
        assert log.first == start.timestamp()


def test_time_zones_become_utc(write):
    pieces = write("p.csv", "decision,value,at\n1,1,2024-03-31 03:00:00+02:00\n2,1,2024-03-31 01:30:00.5Z\n")
    with open_log(write("d.csv", ZONED), pieces) as log:
        assert log.query('SELECT id, "at" FROM decisions') == [
            ("1", 1711845000.0), ("2", 1711848600.0), ("3", 1711850400.0)
        ]  # fmt: skip
        assert log.query("SELECT age FROM pieces") == [(1800.0,), (0.5,)]
        assert log.zone == "given"


def test_no_time_zone_is_taken_as_utc_and_said(write):
    decisions = write("d.csv", "id,arm,at\n1,a,2024-01-01 00:00:00\n2,b,2024-01-02\n")
    pieces = write("p.csv", "decision,value,at\n1,1,2024-01-01 12:00\n")
    with open_log(decisions, pieces) as log:
        assert "times have no time zone: taken as UTC" in log.notes
        assert log.moment(log.first) == "2024-01-01 00:00:00+00:00"


def test_ages_are_exact_to_the_microsecond():
    start = pd.Timestamp("2024-01-01 00:00:00.123457")
    decisions = pd.DataFrame({"id": [1, 2], "arm": ["a", "b"], "at": [start, start]})
    pieces = pd.DataFrame({"decision": [1], "value": [1.0], "at": [start + pd.Timedelta("60s")]})
    assert rows(decisions, pieces) == [(0, 60.0, 1.0)]


def test_ages_in_days_and_as_durations(write):
    decisions = "id,arm,at\n1,a,2024-01-01 07:00:00\n2,b,2024-01-02 07:00:00\n"
    pieces = "decision,value,age\n1,1,1.5\n"
    assert rows(write("d.csv", decisions), write("p.csv", pieces), age_unit="d") == [(0, 129600.0, 1.0)]
    frame = pd.DataFrame({"decision": ["1"], "value": [1], "age": [pd.Timedelta("36h")]})
    assert rows(write("d.csv", decisions), frame) == [(0, 129600.0, 1.0)]
    assert parse_length("1.5d", timestamps=True) == parse_length(129600, timestamps=True)


def test_the_end_is_one_step_after_the_last_where_time_has_steps(write):
    with open_log(write("d.csv", DECISIONS), write("p.csv", PIECES)) as log:
        assert (log.first, log.end, log.resolution, log.rate) == (0.0, 5.0, 1.0, 1.0)
        assert log.query("SELECT followed FROM decisions") == [(5.0,), (4.0,), (3.0,)]
    dates = "id,arm,at\n1,a,2024-01-01\n2,b,2024-01-03\n"
    with open_log(write("d.csv", dates), write("p.csv", "decision,value,at\n1,1,2024-01-05\n")) as log:
        assert (log.resolution, log.moment(log.end)) == (86400.0, "2024-01-06 00:00:00+00:00")
    halves = DECISIONS.replace("a,2", "a,2.5")
    with open_log(write("d.csv", halves), write("p.csv", PIECES)) as log:
        assert (log.end, log.resolution) == (4.0, 0.0)


def test_what_is_after_a_given_end_is_left_out(write):
    with open_log(write("d.csv", DECISIONS), write("p.csv", PIECES), end=2) as log:
        assert log.counts.after_end == 3  # decision 3, its piece, and the piece of decision 1 at 3
        assert log.query("SELECT decision, age FROM pieces") == [(0, 0.0)]
    with pytest.raises(InputError, match="end must be a number, as the log's times are, not 'noon'"):
        open_log(write("d.csv", DECISIONS), write("p.csv", PIECES), end="noon")


# --- duplicates, orphans, own windows ---------------------------------------------------------


def test_repeats_of_a_key_are_dropped_and_counted(write):
    pieces = write(
        "p.csv", "decision,value,at,key\n1,1,3,x\n1,1,3,x\n1,5,1,x\n1,1,3,y\n3,1,3,x\n3,1,3,\n3,1,3,\n"
    )
    with open_log(write("d.csv", DECISIONS), pieces) as log:
        assert (log.counts.repeats, log.counts.conflicts, log.counts.identical) == (2, 1, 1)
        found = log.query("SELECT decision, age, value FROM pieces ORDER BY ALL")
        assert found == [(0, 1.0, 5.0), (0, 3.0, 1.0), *[(2, 1.0, 1.0)] * 3]  # the earliest of key x
    with pytest.raises(
        InputError, match="1 pieces have the decision and key of another piece but not its value"
    ):
        open_log(write("d.csv", DECISIONS), pieces, strict=True)


def test_identical_rows_without_a_key_are_kept_and_counted(write):
    with open_log(write("d.csv", DECISIONS), write("p.csv", PIECES + "1,0.5,0\n")) as log:
        assert (log.counts.identical, log.counts.pieces) == (1, 4)


def test_orphans_are_counted_or_refused(write):
    decisions, pieces = write("d.csv", DECISIONS), write("p.csv", PIECES + "17,1,3\n18,1,3\n")
    with open_log(decisions, pieces) as log:
        assert (log.counts.orphans, log.counts.pieces) == (2, 3)
    with pytest.raises(
        InputError, match=r"row 4: column 'decision' \(decision\) is '17', not the id of a decision \(2 "
    ):
        open_log(decisions, pieces, strict=True)


def test_a_decisions_own_window_ends_its_following(write):
    decisions = write("d.csv", "id,arm,at,window\n1,a,0,2\n2,b,1,10\n3,a,2,10\n")
    with open_log(decisions, write("p.csv", PIECES)) as log:
        assert log.has_window
        assert log.query("SELECT followed FROM decisions") == [(2.0,), (4.0,), (3.0,)]


def test_a_log_larger_than_its_memory(tmp_path):
    # 60 MB of pieces, and as much again to sort them, in 80 MB: DuckDB goes to disk.
    dice = np.random.default_rng(0)
    rounds = np.arange(50_000)
    decisions = pa.table({"id": rounds, "arm": rounds % 3, "at": rounds})
    owner = dice.integers(50_000, size=2_500_000)
    pq.write_table(
        pa.table({"decision": owner, "value": np.ones(len(owner)), "age": dice.random(len(owner))}),
        tmp_path / "p.parquet",
    )
    with open_log(decisions, tmp_path / "p.parquet", memory="80MB") as log:
        assert log.query("SELECT count(*), sum(value) FROM pieces") == [(2_500_000, 2_500_000.0)]


# --- what is wrong ----------------------------------------------------------------------------

BAD = {
    "missing column": ("id,arm\n1,a\n2,b\n", PIECES, r"d.csv: no column for at .*; it has 'id', 'arm'"),
    "unparsable time": (
        DECISIONS.replace("b,1", "b,soon"), PIECES,
        r"d.csv: row 2: column 'at' \(at\) is 'soon', not a number",
    ),
    "unparsable timestamp": (
        ZONED + "4,a,2024-13-41\n", PIECES, r"row 4: column 'at' \(at\) is '2024-13-41', not a timestamp",
    ),
    "mixed time zones": (
        ZONED + "4,a,2024-01-01 00:00:00\n", PIECES, "d.csv: some times have a time zone and some have none",
    ),
    "time zones in one table": (
        ZONED, "decision,value,at\n1,1,2024-05-01 00:00:00\n", "its times have no time zone and those of the",
    ),
    "numbers and timestamps": (ZONED, PIECES, r"holds numbers, but the decisions' times are timestamps"),
    "negative age": (
        DECISIONS, PIECES + "3,1,1\n",
        r"p.csv: row 4: column 'at' \(piece_at\) is '1', which is before its decision's time .*--skew",
    ),
    "an age below 0": (
        DECISIONS, "decision,value,age\n1,1,-2\n", r"row 1: column 'age' \(age\) is '-2', which is below 0",
    ),
    "no value": (DECISIONS, PIECES + "3,,5\n", r"p.csv: row 4: column 'value' \(value\) is empty, not a"),
    "nan": (DECISIONS, PIECES + "3,nan,5\n", r"row 4: column 'value' \(value\) is 'nan', not a finite"),
    "infinite": (DECISIONS, PIECES + "3,inf,5\n", r"row 4: column 'value' \(value\) is 'inf', not a finite"),
    "negative": (DECISIONS, PIECES + "3,-1,5\n", r"row 4: column 'value' \(value\) is '-1', .*--allow-neg"),
    "words": (DECISIONS, PIECES + "3,much,5\n", r"row 4: column 'value' \(value\) is 'much', not a finite"),
    "no owner": (DECISIONS, PIECES + ",1,5\n", r"row 4: column 'decision' \(decision\) is empty"),
    "one arm": (DECISIONS.replace("b", "a"), PIECES, r"column 'arm' \(arm\) holds only 'a'; a choice needs"),
    "no arm": (DECISIONS.replace("b", ""), PIECES, r"row 2: column 'arm' \(arm\) is empty, not an arm's"),
    "an id twice": (DECISIONS + "2,a,5\n", PIECES, r"column 'id' \(id\) has '2' more than once"),
    "empty file": ("", PIECES, "d.csv: the file is empty"),
    "no rows": ("id,arm,at\n", PIECES, "d.csv: it has a header and no rows; decisions are needed"),
    "no pieces": (DECISIONS, "decision,value,at\n", "p.csv: no pieces"),
    "no piece of these": (DECISIONS, "decision,value,at\nx,1,1\n", "has no id that is a decision's"),
    "not UTF-8": (DECISIONS.encode() + b"4,\xff\xfe,5\n", PIECES, "d.csv: line 5: not UTF-8 text"),
    "not UTF-8 at once": (DECISIONS.encode("utf-16"), PIECES, "d.csv: line 1: not UTF-8 text"),
    "a long line": (DECISIONS + "4," + "x" * (2 << 20) + ",5\n", PIECES, "line 5: longer than 1,048,576"),
    "a long first line": ("x" * (2 << 20), PIECES, "d.csv: line 1: longer than 1,048,576 bytes"),
    "more columns": (DECISIONS + "4,a,5,6\n", PIECES, "d.csv: line 5: 4 columns where the header has 3"),
    "an open quote": (DECISIONS + '4,"a,5\n', PIECES, "d.csv: line 5: a quote is opened and never closed"),
    "gzip cut short": (gzip.compress(DECISIONS.encode() * 9000)[:-20], PIECES, "the gzip file is broken"),
    "propensity": (
        "id,arm,at,propensity\n1,a,0,1\n2,b,1,0\n3,a,2,0.5\n", PIECES,
        r"row 2: column 'propensity' \(propensity\) is '0', not a number above 0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_said_in_one_line(name, write, capsys, tmp_path):
    decisions, pieces, message = BAD[name]
    paths = write("d.csv", decisions), write("p.csv", pieces)
    with pytest.raises(InputError, match=message):
        open_log(*paths)
    assert app.run(["fit", *paths, "-o", str(tmp_path / "out.json")]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert len(captured.err) < 500
    assert not (tmp_path / "out.json").exists()


def test_a_line_without_end_takes_no_memory(write, tmp_path):
    # 10 GB of zero bytes that the disk does not hold: the file is sparse.
    with (tmp_path / "d.csv").open("wb") as file:
        file.write(DECISIONS.encode())
        file.truncate(10 << 30)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError, match="line 5: a byte of zero"):
        open_log(tmp_path / "d.csv", write("p.csv", PIECES))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000  # kB


def test_a_long_line_is_noticed_before_it_is_read(write, tmp_path, monkeypatch):
    monkeypatch.setattr("accrual.logs.read.sources.LINE_MOST", 1 << 12)
    with pytest.raises(InputError, match=r"d.csv: line 5: longer than 4,096 bytes"):
        open_log(write("d.csv", DECISIONS + "x" * (1 << 14)), write("p.csv", PIECES))
    packed = gzip.compress((DECISIONS + "x" * (1 << 24)).encode())
    with pytest.raises(InputError, match=r"d.csv.gz: line 5: longer than 4,096 bytes"):
        open_log(write("d.csv.gz", packed), write("p.csv", PIECES))


def test_broken_parquet(write):
    whole = parquet(DECISIONS)
    with pytest.raises(InputError, match=r"d.parquet: not a whole Parquet file: it was cut short"):
        open_log(write("d.parquet", whole[:-30]), write("p.csv", PIECES))
    with pytest.raises(InputError, match=r"d.parquet: not a Parquet file \(it begins with b'id,a'"):
        open_log(write("d.parquet", DECISIONS), write("p.csv", PIECES))


def test_mixed_parts(write, tmp_path):
    write("parts/a.csv", PIECES)
    write("parts/b.parquet", parquet(PIECES))
    with pytest.raises(InputError, match=r"parts must be of one format, but a.csv and b.parquet are of two"):
        open_log(write("d.csv", DECISIONS), tmp_path / "parts")
    (tmp_path / "parts/b.parquet").write_text(PIECES.replace("value", "reward"))
    (tmp_path / "parts/b.parquet").rename(tmp_path / "parts/b.csv")
    with pytest.raises(InputError, match=r"b.csv: its columns are not those of .*a.csv"):
        open_log(write("d.csv", DECISIONS), tmp_path / "parts")


def test_joined_rows_must_agree(write):
    with pytest.raises(InputError, match=r"column 'arm' \(arm\) has several values for decision '1'"):
        open_log(write("j.csv", "id,arm,at,value,age\n1,a,0,1,1\n1,b,0,1,2\n2,b,1,,\n"))
    with pytest.raises(InputError, match=r"row 2: column 'value' \(value\) is empty"):
        open_log(write("j.csv", "id,arm,at,value,age\n1,a,0,1,1\n1,a,0,,2\n2,b,1,,\n"))


def test_other_mistakes(write, tmp_path):
    with pytest.raises(InputError, match="there is no such file or folder"):
        open_log(tmp_path / "none.csv", tmp_path / "none.csv")
    with pytest.raises(InputError, match="must be a path or a data frame"):
        open_log(17, 18)
    with pytest.raises(InputError, match="unknown column role 'arn'; did you mean 'arm'"):
        open_log(write("d.csv", DECISIONS), write("p.csv", PIECES), columns={"arn": "arm"})
    with pytest.raises(InputError, match="no column 'armm'"):
        open_log(write("d.csv", DECISIONS), write("p.csv", PIECES), columns={"arm": "armm"})
    with pytest.raises(InputError, match="a unit of age goes with timestamps"):
        open_log(write("d.csv", DECISIONS), write("p.csv", PIECES), age_unit="d")
    with pytest.raises(InputError, match="has a unit, but the log's times are plain numbers"):
        parse_length("3d", timestamps=False)


def test_negative_values_are_allowed_on_request(write):
    with open_log(write("d.csv", DECISIONS), write("p.csv", PIECES + "3,-1,5\n"), allow_negative=True) as log:
        assert log.signed
        assert log.counts.pieces == 4


# --- anything at all --------------------------------------------------------------------------

CELLS = st.one_of(
    st.integers(-3, 30).map(str), st.floats().map(str), st.sampled_from(
        ["", "a", "b", "2024-01-01", "2024-01-01 10:00:00+02", "1e308", "-1e308", "inf", '"', "\x00", "é",
         "null", "290000-01-01", "99999999999999999999", "true", "1,5", "\n", "epoch"]
    ),
)  # fmt: skip
TABLE = st.lists(st.lists(CELLS, min_size=3, max_size=3).map(",".join), max_size=12).map("\n".join)


@settings(max_examples=60)
@given(TABLE, TABLE, st.sampled_from([None, 3, "2d", 1e-9]), st.booleans())
def test_any_text_is_read_or_refused(tmp_path_factory, decisions, pieces, window, strict):
    folder = tmp_path_factory.mktemp("any")
    (folder / "d.csv").write_text("id,arm,at\n" + decisions, encoding="utf-8")
    (folder / "p.csv").write_text("decision,value,age\n" + pieces, encoding="utf-8")
    try:
        with open_log(folder / "d.csv", folder / "p.csv", strict=strict) as log:
            fit_log(log, window=window).save(folder / "x.json")
    except InputError:
        pass
    else:
        ac.Fitted.load(folder / "x.json")


@settings(max_examples=40)
@given(st.binary(max_size=200), st.sampled_from(["csv", "parquet", "csv.gz"]))
def test_any_bytes_are_read_or_refused(tmp_path_factory, data, ending):
    folder = tmp_path_factory.mktemp("any")
    (folder / f"d.{ending}").write_bytes(data)
    with pytest.raises(InputError):
        open_log(folder / f"d.{ending}")
