"""The Spotify setting: listening sessions as decisions that pay song by song.

A decision recommends a kind of playlist; its reward is what one logged session of that kind listened to. Each
of up to twenty songs is a group of four rounds and pays 1 for every quarter heard (`accrual.logs.convert`
reads them). A session belongs to the kind of playlist of its first song (the data set's `context_type`).

The data set itself, the Music Streaming Sessions Dataset, cannot be shipped. `write_sample` writes a
synthetic sample with its columns, its session lengths and its four skip flags, and nothing else of it: how
much is listened to decays over the positions of a session and differs between the six kinds of playlist by
the numbers in `KINDS`. Every id in the sample says "synthetic".
"""

from __future__ import annotations

import csv
import gzip
import io
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from accrual.core.errors import InputError
from accrual.problems.laws import EmpiricalLaw
from accrual.problems.problem import Problem

ARMS = 6
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


class PlaylistKind(NamedTuple):
    """How a kind of playlist is listened to."""

    name: str
    share: float  # of the sessions
    interest: float  # chance of hearing the next quarter of the first song
    decay: float  # of that chance, per position


KINDS = (
    PlaylistKind("user_collection", 0.34, 0.905, 0.006),
    PlaylistKind("editorial_playlist", 0.22, 0.850, 0.006),
    PlaylistKind("catalog", 0.18, 0.815, 0.007),
    PlaylistKind("radio", 0.12, 0.785, 0.007),
    PlaylistKind("personalized_playlist", 0.08, 0.750, 0.008),
    PlaylistKind("charts", 0.06, 0.710, 0.008),
)


def spotify(path: str | Path | None = None, column: str = "context_type") -> Problem:
    """Make the Spotify setting: six kinds of playlist, twenty songs, each a group of four rounds.

    Parameters
    ----------
    path : path, optional
        A CSV file (plain or .gz) of the Music Streaming Sessions Dataset, or a folder of them.
        Without it the problem is made from a synthetic sample with the same columns.
    column : str
        The column whose values are the arms: the six with the most songs played.

    Examples
    --------
    >>> problem = spotify()
    >>> len(problem.arms), problem.window, problem.groups
    (6, 80, 20)
    """
    from accrual.logs.convert import ROUNDS, SONGS, read  # late: it loads all that reads logs

    if path is None:
        return _synthetic(column)
    tables = read(path, column)
    # Most songs first; the name settles ties, so the order never depends on the files' order.
    ranked = sorted(tables, key=lambda value: (-int((tables[value] >= 0).sum()), value))[:ARMS]
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
def _synthetic(column: str) -> Problem:
    with tempfile.TemporaryDirectory() as folder:
        sample = Path(folder) / "synthetic.csv.gz"
        write_sample(sample)
        return spotify(sample, column)


def write_sample(path: str | Path, sessions: int = SESSIONS, seed: int = SEED) -> None:
    """Write a sample of `sessions` sessions to `path` as gzipped CSV, the same bytes every time."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    # Uniforms of a counter-based generator only: no numpy release changes what they are. Of each
    # session's 21 rows, one for each song and the last for the session itself.
    u = np.random.Generator(np.random.Philox(seed)).random((sessions, 21, 6))
    shares = np.cumsum([kind.share for kind in KINDS])
    kind = np.minimum(np.searchsorted(shares, u[:, 20, 0], side="right"), len(KINDS) - 1)
    mood = 0.16 * (u[:, 20, 5] - 0.5)  # one listener hears more of everything than another
    interest, decay = (np.array([getattr(c, name) for c in KINDS])[kind] for name in ("interest", "decay"))
    chance = np.clip((interest + mood)[:, None] - decay[:, None] * np.arange(20), 0.0, 1.0)
    missed = u[:, :20, :4] >= chance[:, :, None]
    quarters = np.where(missed.any(axis=2), missed.argmax(axis=2), 4)
    for number in range(sessions):
        head = (f"synthetic-{number:06d}", KINDS[kind[number]].name)
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
