"""Music sessions as a log: a session is a decision, and every quarter of a song heard is a piece.

The tables are those of the Music Streaming Sessions Dataset. Each of up to twenty songs pays 1 for
every quarter heard. The four skip flags are nested (very briefly, briefly, most of it, not to the
end), so they cut a song into five levels: 0, 1, 2, 3 or 4 quarters. Songs after the end of the
session pay nothing. A session's arm is the value of a column in its first song.
"""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accrual.core.errors import InputError, need, unknown

SONGS = 20
QUARTERS = 4
ROUNDS = SONGS * QUARTERS  # of a session, one for each quarter of a song

FLAGS = ("skip_1", "skip_2", "skip_3", "not_skipped")
NEEDED = ("session_id", "session_position", "session_length", *FLAGS)

Levels = npt.NDArray[np.int8]


def read(path: str | Path, column: str = "context_type") -> dict[str, Levels]:
    """Read the sessions by value of `column`: sessions x songs, the quarters heard, -1 where none was played.

    Parameters
    ----------
    path : path
        A CSV file (plain or .gz), or a folder of them.
    column : str
        Whose values are the arms.
    """
    sessions: dict[str, list[Levels]] = {}
    for file in _files(Path(path)):
        for value, levels in _read(file, column).items():
            sessions.setdefault(value, []).append(levels)
    return {value: np.concatenate(parts) for value, parts in sessions.items()}


def tables(sessions: dict[str, Levels]) -> tuple[Any, Any, int]:
    """Make decisions and pieces as Arrow tables, and give the round at which the log ends.

    Sessions have no clock that would say which came first: they take turns, arm by arm, one a round,
    and a quarter of a song takes a round.
    """
    pa = need("pyarrow", "fit")
    arms = sorted(sessions)
    arm = np.repeat(np.arange(len(arms)), [len(sessions[name]) for name in arms])
    turn = np.concatenate([np.arange(len(sessions[name])) for name in arms])
    order = np.lexsort((arm, turn))
    levels = np.concatenate([sessions[name] for name in arms])[order]
    session, song = np.nonzero(levels > 0)
    heard = levels[session, song]
    first = np.cumsum(heard) - heard
    quarter = np.arange(heard.sum()) - np.repeat(first, heard)
    decisions = pa.table(
        {
            "id": np.arange(len(arm)),
            "arm": np.array(arms, dtype=object)[arm[order]],
            "at": np.arange(len(arm)),
        }
    )
    pieces = pa.table(
        {
            "decision": np.repeat(session, heard),
            "value": np.ones(len(quarter)),
            "age": QUARTERS * np.repeat(song, heard) + quarter,
        }
    )
    return decisions, pieces, len(arm) + ROUNDS


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.name.endswith((".csv", ".csv.gz")))
        if not files:
            raise InputError(f"{path} holds no .csv or .csv.gz file")
        return files
    if not path.is_file():
        raise InputError(f"there is no file or folder {path}")
    return [path]


def _read(file: Path, column: str) -> dict[str, Levels]:
    """Read the sessions of one file by value of `column`: sessions x songs, -1 where none was played."""
    pa, arrow_csv = need("pyarrow", "frames"), need("pyarrow.csv", "frames")
    names = _header(file)
    for name in NEEDED:
        if name not in names:
            raise InputError(f"{file}: column {name!r} is missing (it has: {', '.join(names)})")
    if column not in names:
        raise InputError(f"{file}: {unknown('column', column, names)}")
    wanted = [*NEEDED, column]
    try:
        table = arrow_csv.read_csv(
            file,
            read_options=arrow_csv.ReadOptions(use_threads=False),  # errors then name the row
            parse_options=arrow_csv.ParseOptions(ignore_empty_lines=False),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=wanted, column_types=dict.fromkeys(wanted, pa.string())
            ),
        )
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{file}: {' '.join(str(error).split())}") from error
    if table.num_rows == 0:
        raise InputError(f"{file} has a header and no rows")
    text = {name: np.asarray(table.column(name).to_numpy(), dtype=object) for name in wanted}
    position = _numbers(file, "session_position", text, 1, SONGS)
    length = _numbers(file, "session_length", text, 1, SONGS)
    _refuse(file, "session_position", text, position > length, "beyond the session's length")
    flag = {name: _flags(file, name, text) for name in FLAGS}
    level = np.select(
        [flag["skip_1"], flag["skip_2"], flag["skip_3"], ~flag["not_skipped"]], [0, 1, 2, 3], QUARTERS
    )
    ids, session = np.unique(text["session_id"].astype(str), return_inverse=True)
    place = session * SONGS + position - 1
    _, first = np.unique(place, return_index=True)
    again = np.ones(len(place), bool)
    again[first] = False
    _refuse(file, "session_position", text, again, "given twice in its session")
    levels = np.full((len(ids), SONGS), -1, np.int8)
    levels.reshape(-1)[place] = level
    # A session's arm is that of its first song.
    order = np.lexsort((position, session))
    opening = order[np.searchsorted(session[order], np.arange(len(ids)))]
    arm = text[column][opening].astype(str)
    return {str(value): levels[arm == value] for value in np.unique(arm)}


def _header(file: Path) -> list[str]:
    opened: Any = gzip.open if file.name.endswith(".gz") else open
    try:
        with opened(file, "rt", encoding="utf-8-sig", newline="") as lines:
            return next(csv.reader(lines), [])
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{file} is not readable as CSV: {error}") from error


def _numbers(file: Path, name: str, text: dict[str, Any], least: int, most: int) -> npt.NDArray[np.int64]:
    known = {str(n): n for n in range(least, most + 1)}
    numbers = np.array([known.get(value, -1) for value in text[name]], np.int64)
    _refuse(file, name, text, numbers < 0, f"not a whole number from {least} to {most}")
    return numbers


def _flags(file: Path, name: str, text: dict[str, Any]) -> npt.NDArray[np.bool_]:
    known = {"true": 1, "false": 0, "1": 1, "0": 0}
    flags = np.array([known.get(str(value).lower(), -1) for value in text[name]], np.int64)
    _refuse(file, name, text, flags < 0, "neither true nor false")
    return np.asarray(flags == 1)


def _refuse(file: Path, name: str, text: dict[str, Any], bad: npt.NDArray[np.bool_], why: str) -> None:
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InputError(f"{file}, row {row + 2} (the header is row 1), column {name!r}: "
                         f"{text[name][row]!r} is {why}")  # fmt: skip
