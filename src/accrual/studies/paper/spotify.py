"""The Spotify setting: listening sessions as decisions that pay song by song.

A decision recommends a context (a kind of playlist); its reward is what one logged session of
that context listened to. Each of up to twenty songs is a group of four rounds and pays 1 for
every quarter heard (`accrual.logs.convert` reads them). A session belongs to the context of its
first song.
"""

from __future__ import annotations

import csv
import gzip
import io
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from accrual.core.errors import InputError
from accrual.logs.convert import ROUNDS, SONGS, read_sessions
from accrual.problems.laws import EmpiricalLaw
from accrual.problems.problem import Problem

# A synthetic sample in the schema of the Music Streaming Sessions Dataset.
#
# The data set itself cannot be shipped. This sample has its columns, its session lengths and its
# four skip flags, and nothing else of it: how much is listened to decays over the positions of a
# session and differs between the six contexts by numbers written below. Every id in it says
# "synthetic". ``python -m accrual.studies.paper.spotify FILE.csv.gz`` writes one.

COLUMNS = (
    "session_id", "session_position", "session_length", "track_id_clean", "skip_1", "skip_2", "skip_3",
    "not_skipped", "context_switch", "no_pause_before_play", "short_pause_before_play",
    "long_pause_before_play", "hist_user_behavior_n_seekfwd", "hist_user_behavior_n_seekback",
    "hist_user_behavior_is_shuffle", "hour_of_day", "date", "premium", "context_type",
    "hist_user_behavior_reason_start", "hist_user_behavior_reason_end",
)  # fmt: skip

SESSIONS = 6000
SEED = 20190110
TRACKS = 2000


class Context(NamedTuple):
    """How a context is listened to."""

    name: str
    share: float  # of the sessions
    interest: float  # chance of hearing the next quarter of the first song
    decay: float  # of that chance, per position


CONTEXTS = (
    Context("user_collection", 0.34, 0.905, 0.006),
    Context("editorial_playlist", 0.22, 0.850, 0.006),
    Context("catalog", 0.18, 0.815, 0.007),
    Context("radio", 0.12, 0.785, 0.007),
    Context("personalized_playlist", 0.08, 0.750, 0.008),
    Context("charts", 0.06, 0.710, 0.008),
)


def write(path: Path, sessions: int = SESSIONS, seed: int = SEED) -> None:
    """Write a sample of `sessions` sessions to `path` as gzipped CSV, the same bytes every time."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    # Uniforms of a counter-based generator only: no numpy release changes what they are. Of each
    # session's 21 rows, one for each song and the last for the session itself.
    u = np.random.Generator(np.random.Philox(seed)).random((sessions, 21, 6))
    shares = np.cumsum([context.share for context in CONTEXTS])
    kind = np.minimum(np.searchsorted(shares, u[:, 20, 0], side="right"), len(CONTEXTS) - 1)
    mood = 0.16 * (u[:, 20, 5] - 0.5)  # one listener hears more of everything than another
    interest, decay = (np.array([getattr(c, name) for c in CONTEXTS])[kind] for name in ("interest", "decay"))
    chance = np.clip((interest + mood)[:, None] - decay[:, None] * np.arange(20), 0.0, 1.0)
    missed = u[:, :20, :4] >= chance[:, :, None]
    quarters = np.where(missed.any(axis=2), missed.argmax(axis=2), 4)
    for number in range(sessions):
        head = (f"synthetic-{number:06d}", CONTEXTS[kind[number]].name)
        _session(rows, head, u[number].tolist(), quarters[number].tolist())
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0, compresslevel=6) as packed:
        packed.write(text.getvalue().encode())


def _session(rows: Any, head: tuple[str, str], u: list[list[float]], quarters: list[int]) -> None:
    name, context = head
    length = 10 + int(11 * u[20][1])
    listener = [_flag(u[20][4] < 0.3), int(24 * u[20][2]), "2018-07-15", _flag(u[20][3] < 0.8), context]
    started = "clickrow"
    for position in range(1, length + 1):
        heard, (taste, pause) = quarters[position - 1], u[position - 1][4:]
        ended = "trackdone" if heard == 4 else "fwdbtn"
        track = f"t_synthetic-{int(TRACKS * taste**2):05d}"
        skips = [_flag(flag) for flag in (heard < 1, heard < 2, heard < 3, heard == 4)]
        pauses = [int(pause < 0.8), int(pause >= 0.8), int(pause >= 0.95)]
        rows.writerow([name, position, length, track, *skips, 0, *pauses, 0, 0, *listener, started, ended])
        started = ended


def _flag(value: bool) -> str:
    return "true" if value else "false"


if __name__ == "__main__":
    write(Path(sys.argv[1]))


ARMS = 6


def load(path: str | Path | None = None, column: str = "context_type", arms: int = ARMS) -> Problem:
    """Make a problem of the sessions in `path`; without one, of a synthetic sample.

    Parameters
    ----------
    path : path, optional
        A CSV file (plain or .gz), or a folder of them, with the columns of the Music Streaming
        Sessions Dataset.
    column : str
        Whose values are the arms.
    arms : int
        How many: those with the most songs played.
    """
    if path is None:
        return _synthetic(column, arms)
    tables = read_sessions(path, column)
    # Most songs first; the name settles ties, so the order never depends on the files' order.
    ranked = sorted(tables, key=lambda value: (-int((tables[value] >= 0).sum()), value))[:arms]
    if len(ranked) < 2:
        raise InputError(f"{path}: column {column!r} needs at least two different values to choose between")
    return Problem(
        caps=[ROUNDS] * len(ranked),
        window=ROUNDS,
        groups=SONGS,
        laws=[EmpiricalLaw(np.maximum(tables[value], 0) / ROUNDS) for value in ranked],
        arms=ranked,
    )


@cache
def _synthetic(column: str, arms: int) -> Problem:
    with tempfile.TemporaryDirectory() as folder:
        sample = Path(folder) / "synthetic.csv.gz"
        write(sample)
        return load(sample, column, arms)
