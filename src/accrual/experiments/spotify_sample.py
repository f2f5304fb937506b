"""A synthetic sample in the schema of the Music Streaming Sessions Dataset.

The data set itself cannot be shipped. This sample has its columns, its session lengths and its
four skip flags, and nothing else of it: how much is listened to decays over the positions of a
session and differs between the six contexts by numbers written below. Every id in it says
"synthetic". ``python -m accrual.experiments.spotify_sample FILE.csv.gz`` writes one.
"""

from __future__ import annotations

import csv
import gzip
import io
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

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
    # Uniforms of a counter-based generator only: no numpy release changes what they are.
    rng = np.random.Generator(np.random.Philox(seed))
    shares = np.cumsum([context.share for context in CONTEXTS])
    for number in range(sessions):
        _session(rows, f"synthetic-{number:06d}", rng.random((21, 6)), shares)
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0, compresslevel=6) as packed:
        packed.write(text.getvalue().encode())


def _session(rows: Any, name: str, u: np.ndarray, shares: np.ndarray) -> None:
    context = CONTEXTS[min(int(np.searchsorted(shares, u[20, 0], side="right")), len(CONTEXTS) - 1)]
    length = 10 + int(11 * u[20, 1])
    hour, premium, shuffle = int(24 * u[20, 2]), u[20, 3] < 0.8, u[20, 4] < 0.3
    mood = 0.16 * (u[20, 5] - 0.5)  # one listener hears more of everything than another
    started = "clickrow"
    for position in range(1, length + 1):
        chance = min(max(context.interest + mood - context.decay * (position - 1), 0.0), 1.0)
        missed = np.flatnonzero(u[position - 1, :4] >= chance)
        quarters = int(missed[0]) if len(missed) else 4
        ended = "trackdone" if quarters == 4 else "fwdbtn"
        track = f"t_synthetic-{int(TRACKS * u[position - 1, 4] ** 2):05d}"
        pause = u[position - 1, 5]
        flags = (quarters < 1, quarters < 2, quarters < 3, quarters == 4)
        skips = [str(flag).lower() for flag in flags]
        pauses = [int(pause < 0.8), int(pause >= 0.8), int(pause >= 0.95)]
        listener = [str(shuffle).lower(), hour, "2018-07-15", str(premium).lower()]
        ways = [context.name, started, ended]
        rows.writerow([name, position, length, track, *skips, 0, *pauses, 0, 0, *listener, *ways])
        started = ended


if __name__ == "__main__":
    write(Path(sys.argv[1]))
