"""The index of a bandit's keys in a SQLite file. Random keys cost no more than keys that grow.

A B-tree stores keys in order, so each random key falls on another page, and SQLite writes every such page
twice. This index is log-structured. The keys since the last run are in memory. Some ten thousand keys make a
run: their hashes, sorted, cut into pages and written at once. A filter in memory says which runs may have a
key, so for most new keys nothing is read from the disk. A hash that is found is only a hint: the row that it
leads to decides.

The index follows from the tables of events. What is missing in it is made from them.
"""

from __future__ import annotations

import hashlib
import sqlite3
import struct
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from accrual.store.base import digest
from accrual.store.events import ChangeRow, DecisionRow, Kind, PieceRow
from accrual.store.sqlite.checksums import checked_row, columns_of, damaged

BATCH, PIECE, CLOSING, OF_ARM = range(4)  # what has a key: a batch, a piece, a closing, an arm's change

_RUN = 1 << 16  # keys
_EVENTS = 4 * _RUN  # at most, since the last run: so that opening reads few events
_PAGES = 64  # of a run
_SLOTS = 1 << 20  # bits of a run's filter
_PROBES = 6  # bits that a key sets; for about one new key in a thousand, other keys have set all its bits
_LOW, _TOP = _SLOTS - 1, 64 - 6
_ENTRY = np.dtype([("hash", "<u8"), ("place", "<i8")])
_WIDER = {1: np.uint16, 2: np.uint32, 4: np.uint64}
_CHUNK = 20_000

_ODD, _ALL = 0x9E3779B97F4A7C15, 2**64 - 1
_hash = hashlib.blake2b
_number = struct.Struct("<Q").unpack

Bits = npt.NDArray[np.unsignedinteger]


def hash_of(kind: int, subject: int, key: str) -> int:
    """Return 64 bits for a key of one kind; for a piece's key also of its decision."""
    (of_key,) = _number(_hash(key.encode(), digest_size=8).digest())
    return (of_key ^ (4 * subject + kind) * _ODD) & _ALL  # type: ignore[no-any-return]


def hash_of_change(kind: int, subject: int) -> int:
    """Return 64 bits for the closing of a decision, or for the adding or retiring of an arm."""
    return hash_of(CLOSING if kind == Kind.CLOSE else OF_ARM, subject, str(kind))


def _slots(hashes: npt.NDArray[np.uint64]) -> Iterator[npt.NDArray[np.intp]]:
    """Yield, for each probe, where in a filter the bits of some hashes are."""
    step = (hashes >> np.uint64(32)) | np.uint64(1)
    for i in range(_PROBES):
        yield ((hashes + np.uint64(i) * step) & np.uint64(_LOW)).astype(np.intp)


class KeyIndex:
    """The keys of one bandit. Only the writer has it: what it adds is committed with its transaction.

    Parameters
    ----------
    connection : sqlite3.Connection
        In a transaction.
    bandit : int
    head : int
        Where the log ends.
    """

    def __init__(self, connection: sqlite3.Connection, bandit: int, head: int) -> None:
        self._connection = connection
        self._bandit = bandit
        self._recent: dict[int, tuple[int, ...]] = {}
        self._runs: list[int] = []  # the last position of each
        self._banks: list[Bits] = []  # of each slot, a bit for each of up to 64 runs
        self._views: list[memoryview] = []
        self._since = 0  # the last run's position
        for seq, body, was in connection.execute(
            "SELECT seq, filter, digest FROM key_run WHERE bandit = ? ORDER BY seq", (bandit,)
        ):
            if digest(bandit, seq, body) != was:
                raise damaged(f"the filter of keys up to event {seq}")
            self._enter(seq, np.unpackbits(np.frombuffer(body, np.uint8)))
        self._read(self._since, head)

    def _read(self, after: int, head: int) -> None:
        """Add the keys of the events beyond the last run."""
        while after < head:
            upto = min(after + _CHUNK, head)
            for entry in hashes_between(self._connection, self._bandit, after, upto):
                self.add(*entry)
            after = upto
            self.flush(after)

    def find(self, hash_: int, kind: int) -> list[int]:
        """Return the rows that may have the key of this hash, the earliest first; mostly there are none.

        A row is given by its position, the row of a decision by its id. Another key may have the same hash.
        """
        found = self._recent.get(hash_, ())
        if self._views:
            found = (
                *(place for run in self._candidates(hash_) for place in self._places(run, hash_)),
                *found,
            )
        return [place >> 2 for place in found if place & 3 == kind] if found else []

    def add(self, hash_: int, kind: int, row: int) -> None:
        """Add a key: that of the event at this position, or of the decision of this id."""
        place = 4 * row + kind
        if hash_ in self._recent:
            self._recent[hash_] += (place,)
        else:
            self._recent[hash_] = (place,)

    def flush(self, head: int) -> None:
        """Make a run of the keys in memory if there are enough; they go up to the position `head`."""
        if len(self._recent) < _RUN and head - self._since < _EVENTS:
            return
        pairs = [(hash_, place) for hash_, places in self._recent.items() for place in places]
        entries = np.array(pairs, _ENTRY)
        entries.sort()
        bits = np.zeros(_SLOTS, np.uint8)
        for slots in _slots(entries["hash"]):
            bits[slots] = 1
        filter_ = np.packbits(bits).tobytes()
        bandit = self._bandit
        self._connection.execute(
            "INSERT INTO key_run VALUES (?, ?, ?, ?)", (bandit, head, filter_, digest(bandit, head, filter_))
        )
        firsts = np.arange(_PAGES, dtype=np.uint64) << np.uint64(_TOP)
        parts = np.split(entries, np.searchsorted(entries["hash"], firsts[1:]))
        self._connection.executemany(
            "INSERT INTO key_page VALUES (?, ?, ?, ?, ?)",
            [
                (bandit, head, page, part.tobytes(), digest(bandit, head * _PAGES + page, part.tobytes()))
                for page, part in enumerate(parts)
            ],
        )
        self._enter(head, bits)
        self._recent = {}

    def _enter(self, seq: int, bits: npt.NDArray[np.uint8]) -> None:
        """Take the filter of a run, which ends at position `seq`, into memory."""
        place = len(self._runs) % 64
        if place == 0:
            self._banks.append(np.zeros(_SLOTS, np.uint8))
        bank = self._banks[-1]
        if place == 8 * bank.itemsize:
            bank = bank.astype(_WIDER[bank.itemsize])
        bank |= bits.astype(bank.dtype) << bank.dtype.type(place)
        self._banks[-1] = bank
        self._views = [one.data for one in self._banks]
        self._runs.append(seq)
        self._since = seq

    def _candidates(self, hash_: int) -> list[int]:
        """Return the numbers of the runs that may have a hash."""
        found = []
        step = (hash_ >> 32) | 1
        for number, view in enumerate(self._views):
            bits, slot = -1, hash_
            for _ in range(_PROBES):
                bits &= view[slot & _LOW]
                if not bits:
                    break
                slot += step
            while bits > 0:
                low = bits & -bits
                found.append(64 * number + low.bit_length() - 1)
                bits ^= low
        return found

    def _places(self, run: int, hash_: int) -> list[int]:
        """Return the places that a run has for a hash."""
        seq, page = self._runs[run], hash_ >> _TOP
        found = self._connection.execute(
            "SELECT body, digest FROM key_page WHERE bandit = ? AND seq = ? AND page = ?",
            (self._bandit, seq, page),
        ).fetchone()
        if found is None or digest(self._bandit, seq * _PAGES + page, found[0]) != found[1]:
            raise damaged(f"page {page} of the keys up to event {seq}")
        entries = np.frombuffer(found[0], _ENTRY)
        hashes = entries["hash"]
        first = int(np.searchsorted(hashes, np.uint64(hash_), side="left"))
        last = int(np.searchsorted(hashes, np.uint64(hash_), side="right"))
        return entries["place"][first:last].tolist()  # type: ignore[no-any-return]


def hashes_between(
    connection: sqlite3.Connection, bandit: int, after: int, upto: int
) -> Iterator[tuple[int, int, int]]:
    """Yield the keys at positions beyond `after`, up to `upto`: hash, kind, and position or id."""
    where = (bandit, after, upto)
    between = "WHERE bandit = ? AND seq > ? AND seq <= ?"
    count = 0
    for row in connection.execute(f"SELECT {columns_of('piece')} FROM piece {between}", where):
        piece: PieceRow = checked_row("piece", row)
        count += 1
        if piece.key is not None:
            yield hash_of(PIECE, piece.decision, piece.key), PIECE, piece.seq
    for row in connection.execute(f"SELECT {columns_of('decision')} FROM decision {between}", where):
        decision: DecisionRow = checked_row("decision", row)
        count += 1
        if decision.key is not None and decision.part == 0:
            yield hash_of(BATCH, 0, decision.key), BATCH, decision.id
    for row in connection.execute(f"SELECT {columns_of('change')} FROM change {between}", where):
        change: ChangeRow = checked_row("change", row)
        count += 1
        index_kind = CLOSING if change.kind == Kind.CLOSE else OF_ARM
        yield hash_of_change(change.kind, change.subject), index_kind, change.seq
    if count != upto - after:
        raise damaged(f"an event between {after + 1} and {upto} is missing")
