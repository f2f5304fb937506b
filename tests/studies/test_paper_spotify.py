"""The loader of the streaming sessions, and the synthetic sample."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import numpy as np
import pytest

import accrual as ac
from accrual.studies.paper import music_sessions
from accrual.studies.paper.music_sessions import spotify

SAMPLE_300 = "579c3ef1f5f5228c9851d1563949735691df95d9817de3aa23e8a98e2283684a"
HEAD = "session_id,session_position,session_length,skip_1,skip_2,skip_3,not_skipped,context_type"


def row(session: str, position: int, quarters: int, context: str, length: int = 20) -> str:
    flags = (quarters < 1, quarters < 2, quarters < 3, quarters == 4)
    return ",".join([session, str(position), str(length), *(str(flag).lower() for flag in flags), context])


def write(path: Path, lines: list[str]) -> Path:
    text = "\n".join([HEAD, *lines]) + "\n"
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


GOOD = [
    row("s1", 1, 4, "radio"),
    row("s1", 2, 2, "radio"),
    row("s1", 4, 0, "charts"),
    row("s2", 2, 3, "charts"),
    row("s2", 1, 1, "charts"),
    row("s3", 1, 0, "radio"),
]


@pytest.mark.parametrize("name", ["log.csv", "log.csv.gz"])
def test_quarters_by_hand(tmp_path, name):
    problem = spotify(write(tmp_path / name, GOOD))
    # radio: s1 hears 4 and 2 quarters (its fourth song none), s3 nothing; charts: s2 hears 1 and 3.
    assert problem.arms == ("radio", "charts")
    assert (problem.window, problem.groups, problem.caps) == (80, 20, (80.0, 80.0))
    assert problem.group_means[0][:4] == pytest.approx([2.0, 1.0, 0.0, 0.0])
    assert problem.group_means[1][:4] == pytest.approx([1.0, 3.0, 0.0, 0.0])
    assert problem.group_means[:, 4:].max() == 0.0


def test_a_folder_is_the_files_in_it(tmp_path):
    write(tmp_path / "a.csv", GOOD[:3])
    write(tmp_path / "b.csv.gz", GOOD[3:])
    (tmp_path / "notes.txt").write_text("not data")
    whole = spotify(tmp_path)
    (tmp_path / "single").mkdir()
    single = spotify(write(tmp_path / "single" / "all.csv", GOOD))
    assert whole.arms == single.arms
    assert whole.means == pytest.approx(single.means)


def test_the_six_most_played_values_of_a_column_are_the_arms(tmp_path):
    lines = [row(f"s{n}-{k}", 1, 1, f"c{n}") for n in range(8) for k in range(n + 1)]
    assert spotify(write(tmp_path / "log.csv", lines)).arms == ("c7", "c6", "c5", "c4", "c3", "c2")


def test_missing_columns_are_named(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("session_id,session_position\na,1\n")
    with pytest.raises(ac.InputError, match=r"log\.csv: column 'session_length' is missing"):
        spotify(path)
    with pytest.raises(
        ac.InputError, match=r"log\.csv: unknown column 'context'; did you mean 'context_type'"
    ):
        spotify(write(path, GOOD), column="context")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "s9,zwei,20,true,true,true,false,radio",
            r"row 8 .*column 'session_position': 'zwei' is not a whole",
        ),
        (
            "s9,21,20,true,true,true,false,radio",
            "column 'session_position': '21' is not a whole number from 1",
        ),
        (
            "s9,15,12,true,true,true,false,radio",
            "column 'session_position': '15' is beyond the session's length",
        ),
        (
            "s9,1,20,true,maybe,true,false,radio",
            r"row 8 .*column 'skip_2': 'maybe' is neither true nor false",
        ),
        ("s9,1,,true,true,true,false,radio", "column 'session_length': '' is not a whole number"),
        (
            "s1,2,20,true,true,true,false,radio",
            r"row 8 .*'session_position': '2' is given twice in its session",
        ),
        ("\x00\x01 garbage", "Expected 8 columns, got 1"),
        ("", r"row 8 .*column 'session_position': '' is not a whole number"),
    ],
)
def test_garbage_rows_are_named_by_file_row_and_column(tmp_path, line, message):
    with pytest.raises(ac.InputError, match=message) as caught:
        spotify(write(tmp_path / "log.csv", [*GOOD, line]))
    assert "log.csv" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_are_none(tmp_path):
    with pytest.raises(ac.InputError, match="there is no file or folder"):
        spotify(tmp_path / "none.csv")
    with pytest.raises(ac.InputError, match=r"holds no \.csv"):
        spotify(tmp_path)
    with pytest.raises(ac.InputError, match="header and no rows"):
        spotify(write(tmp_path / "log.csv", []))
    broken = tmp_path / "broken.csv.gz"
    broken.write_bytes(gzip.compress(b"x" * 100_000)[:60])
    with pytest.raises(ac.InputError, match=r"broken\.csv\.gz"):
        spotify(broken)
    (tmp_path / "noise.csv").write_bytes(bytes(range(256)) * 20)
    with pytest.raises(ac.InputError, match=r"noise\.csv"):
        spotify(tmp_path / "noise.csv")
    with pytest.raises(ac.InputError, match="at least two different values"):
        spotify(write(tmp_path / "log.csv", GOOD[3:5]))


def test_the_sample_is_the_same_every_time_and_says_what_it_is(tmp_path):
    music_sessions.write_sample(tmp_path / "a.csv.gz", sessions=300)
    music_sessions.write_sample(tmp_path / "b.csv.gz", sessions=300)
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()
    text = gzip.decompress((tmp_path / "a.csv.gz").read_bytes())
    lines = text.decode().splitlines()
    assert lines[0].split(",") == list(music_sessions.COLUMNS)
    assert all(line.startswith("synthetic-") and ",t_synthetic-" in line for line in lines[1:])
    assert hashlib.sha256(text).hexdigest() == SAMPLE_300


def test_in_the_sample_listening_decays_and_contexts_differ():
    problem = ac.paper.spotify()
    assert set(problem.arms) == {kind.name for kind in music_sessions.KINDS}
    # No session has fewer than ten songs: within those, the drop is in listening, not in length.
    played = problem.group_means[:, :10]
    assert (played[:, :3].sum(axis=1) > played[:, 7:].sum(axis=1)).all()
    assert np.diff(np.sort(problem.means)).min() > 1.0
