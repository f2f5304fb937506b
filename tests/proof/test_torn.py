"""A write-ahead log that ends anywhere: the history up to there. One with a wrong byte amid it: refused."""

from __future__ import annotations

import bisect
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from tests.proof import load

from accrual.core.errors import InputError
from accrual.store.base import StoreDamaged

BEFORE, AFTER = 40, 120  # appends in the database itself, and in the log
TEARS = [pytest.param(200, id="quick"), pytest.param(10_000, id="long", marks=pytest.mark.slow)]


@pytest.fixture(scope="module")
def torn(tmp_path_factory):
    """A database, its log and its note, as after a kill; and the log's length after each append."""
    folder = tmp_path_factory.mktemp("torn")
    store, bandit = load.start(folder / "plays.db")
    with closing(store):
        for number in range(BEFORE):
            store.append(bandit.number, load.items(number), 0.0)
    store, bandit = load.start(folder / "plays.db")
    log, lengths = folder / "plays.db-wal", []
    with closing(store):
        for number in range(BEFORE, BEFORE + AFTER):
            store.append(bandit.number, load.items(number), 0.0)
            lengths.append(log.stat().st_size)
        assert lengths == sorted(set(lengths))  # no checkpoint has begun it anew
        return *((folder / f"plays.db{end}").read_bytes() for end in ("", "-wal", ".last")), lengths


def tear(log: bytes, at: int, chance: np.random.Generator) -> tuple[bytes, bool]:
    """The log up to a byte; then nothing, or noughts, or noise, or all of it with this byte wrong.

    And whether it is the last: then it was damaged, and no power cut left it so.
    """
    rest = len(log) - at
    kind = chance.integers(4)
    wrong = bytes([log[at] ^ int(chance.integers(1, 256))])
    return log[:at] + [b"", bytes(rest), chance.bytes(rest), wrong + log[at + 1 :]][kind], kind == 3


def intact(log: bytes, damaged: bytes) -> int:
    """The length of what they share, from the start: at most some bytes beyond the tear are so by chance."""
    a, b = (np.frombuffer(text, np.uint8)[: len(damaged)] for text in (log, damaged))
    return int(np.argmax(np.append(a != b, True)))


def find(folder: Path, database: bytes, log: bytes = b"", note: bytes = b"") -> int:
    for file in folder.iterdir():
        file.unlink()
    for end, body in {"": database, "-wal": log, ".last": note}.items():
        (folder / f"plays.db{end}").write_bytes(body)
    return load.kept(folder / "plays.db")


@pytest.mark.parametrize("tears", TEARS)
def test_a_torn_log_gives_the_history_up_to_there_or_is_refused(torn, tears, folder, say):
    database, log, note, lengths = torn
    chance = np.random.default_rng(tears)
    counts, refused = [], 0
    for at in chance.integers(len(log), size=tears).tolist():
        damaged, acknowledged = tear(log, at, chance)
        before = bisect.bisect_right(lengths, intact(log, damaged))
        if acknowledged:
            with pytest.raises(StoreDamaged, match="events that were acknowledged are lost"):
                find(folder, database, damaged, note)
            refused += 1
            continue
        found = find(folder, database, damaged)
        assert found == BEFORE + before
        counts.append(found - BEFORE)
    say(
        f"torn log: {tears} tears, {refused} refused, the others with {min(counts)} to {max(counts)} of "
        f"{AFTER} appends, none wrong"
    )


@pytest.mark.parametrize("tears", TEARS)
def test_a_wrong_history_would_be_seen_here(torn, tears, folder, say):
    """The control: wrong bytes in the database itself, which its checksums find, or SQLite, or this test."""
    database, log, *_ = torn
    assert find(folder, database, log) == BEFORE + AFTER
    database = (folder / "plays.db").read_bytes()  # with all that was in the log
    chance = np.random.default_rng(tears)
    flips, seen = tears, 0
    for at in chance.integers(len(database), size=flips).tolist():
        try:
            seen += (
                find(folder, database[:at] + bytes([database[at] ^ 1]) + database[at + 1 :]) < BEFORE + AFTER
            )
        except (OSError, InputError, sqlite3.DatabaseError):
            seen += 1
    say(f"torn log, control, a byte of the database itself: {flips} flips, {seen} seen")
    assert seen  # how often depends on where the bytes fall: much of a page is unused
