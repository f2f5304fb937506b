"""The Spotify setting: listening sessions as decisions that pay song by song.

A decision recommends a context (a kind of playlist); its reward is what one logged session of
that context listened to. Each of up to twenty songs is a group of four rounds and pays 1 for
every quarter heard (`accrual.fit.sessions` reads them). A session belongs to the context of its
first song.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from accrual.core.errors import InputError
from accrual.experiments import spotify_sample
from accrual.fit.sessions import ROUNDS, SONGS, read
from accrual.laws import EmpiricalLaw
from accrual.problem import Problem

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
    tables = read(path, column)
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
        spotify_sample.write(sample)
        return load(sample, column, arms)
