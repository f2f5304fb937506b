"""A write-ahead log that ends anywhere, or has a wrong byte: the history up to there, and no further."""

from __future__ import annotations

import bisect
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from tests.proof import load

from accrual.core.errors import InputError

BEFORE, AFTER = 40, 120  # appends in the database itself, and in the log
TEARS = [pytest.param(200, id="quick"), pytest.param(10_000, id="long", marks=pytest.mark.slow)]


@pytest.fixture(scope="module")
def torn(tmp_path_factory):
    """A database and its log, as if the process had died; and the log's length after each append."""
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
        return (folder / "plays.db").read_bytes(), log.read_bytes(), lengths


def tear(log: bytes, at: int, chance: np.random.Generator) -> bytes:
    """The log up to a byte; then nothing, or noughts, or noise; or all of it with this byte wrong."""
    rest = len(log) - at
    return (
        log[:at]
        + [
            b"",
            bytes(rest),
            chance.bytes(rest),
            bytes([log[at] ^ int(chance.integers(1, 256))]) + log[at + 1 :],
        ][chance.integers(4)]
    )


def intact(log: bytes, damaged: bytes) -> int:
    """The length of what they share, from the start: at most some bytes beyond the tear are so by chance."""
    a, b = (np.frombuffer(text, np.uint8)[: len(damaged)] for text in (log, damaged))
    return int(np.argmax(np.append(a != b, True)))


def find(folder: Path, database: bytes, log: bytes = b"") -> int:
    for file in folder.iterdir():
        file.unlink()
    (folder / "plays.db").write_bytes(database)
    (folder / "plays.db-wal").write_bytes(log)
    return load.kept(folder / "plays.db")


@pytest.mark.parametrize("tears", TEARS)
def test_a_torn_log_gives_the_history_up_to_there(torn, tears, folder, say):
    database, log, lengths = torn
    chance = np.random.default_rng(tears)
    counts = []
    for at in chance.integers(len(log), size=tears).tolist():
        damaged = tear(log, at, chance)
        found = find(folder, database, damaged)
        assert found == BEFORE + bisect.bisect_right(lengths, intact(log, damaged))
        counts.append(found - BEFORE)
    say(f"torn log: {tears} tears, all open, {min(counts)} to {max(counts)} of {AFTER} appends, none wrong")


@pytest.mark.parametrize("tears", TEARS)
def test_what_no_checksum_covers_is_seen_here(torn, tears, folder, say):
    """The control: wrong bytes in the database itself, which has no checksums."""
    database, log, _ = torn
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
