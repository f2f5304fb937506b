"""SQLite's write-ahead log, checked before SQLite reads it.

SQLite ends the log at the first frame whose checksum is wrong, because a power cut leaves the last
transaction half written. But a frame in the middle may have been damaged; then SQLite would drop all the
transactions after it without a word. They can be found, because the checksum of each frame continues that of
the frame before. (The format: https://sqlite.org/fileformat2.html#walformat)
"""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt

from accrual.store.base import StoreDamaged

_HEADER = 32  # bytes of the file's own head ...
_FRAME = 24  # ... and of a frame's
_MAGIC = 0x377F0682

Words = npt.NDArray[np.uint32]
Flags = npt.NDArray[np.bool_]


def check_wal(path: str, address: object) -> None:
    """Raise `StoreDamaged` for a log in which whole transactions come after something that is damaged.

    Damage in the last transaction looks like a power cut during it: SQLite leaves that transaction out.
    """
    with open(path, "rb") as file:
        body = file.read()
    at = lost(body)
    if at is not None:
        raise StoreDamaged(
            f"{address}: damaged: about byte {at:,} of {os.path.basename(path)}, and there are transactions "
            "after it; accrual db recover saves what comes before it"
        )


def lost(body: bytes) -> int | None:
    """Return the byte at which a log is damaged, if transactions after it would be lost; otherwise None."""
    if len(body) < _HEADER + _FRAME:
        return None
    head = np.frombuffer(body[:_HEADER], ">u4")
    order, size = "<u4" if not int(head[0]) & 1 else ">u4", int(head[2])
    whole = int(head[0]) & ~1 == _MAGIC and size in (512 << i for i in range(8))
    if whole:
        added, _ = _weights(body[: _HEADER - 8], _HEADER - 8, order)
        whole = added[0].tolist() == head[6:8].tolist()
    if not whole:  # the header itself is damaged: try both byte orders, with pages of the usual size
        commits = [_frames(body, head, 4096, one, False)[1] for one in ("<u4", ">u4")]
        return 0 if any(one[1:].any() for one in commits) else None
    good, commit = _frames(body, head, size, order, True)
    if good.all():
        return None
    first = int(np.argmin(good))
    at = _HEADER + first * (_FRAME + size)
    # The first commit after it may be the end of the same transaction, if a part of that was never synced. It
    # is another transaction if the damaged frame was to end its own and is not left over from before the log
    # was restarted: in a frame that is left over, both salts differ.
    differing = sum(a != b for a, b in zip(body[at + 8 : at + 16], body[16:24], strict=True))
    ends = differing <= 1 and any(body[at + 4 : at + 8])
    return at if commit[first:].sum() > (0 if ends else 1) else None


def _frames(body: bytes, head: Words, size: int, order: str, whole: bool) -> tuple[Flags, Flags]:
    """Return which frames' checksums follow from the frame before, and which of these end a transaction.

    Each frame is checked against the frame before it, right or wrong. `whole` says that the header of the log
    is right, so that a frame must also have the two salts of that header.
    """
    count = (len(body) - _HEADER) // (_FRAME + size)
    if not count:
        return np.zeros(0, np.bool_), np.zeros(0, np.bool_)
    frames = np.frombuffer(body, np.uint8, count * (_FRAME + size), _HEADER).reshape(count, _FRAME + size)
    stored = _words(frames[:, 16:24])
    before = np.vstack([head[6:8].astype(np.uint32)[None, :], stored[:-1]])
    data = np.concatenate([frames[:, :8], frames[:, _FRAME:]], axis=1)
    added, (a, b, c, d) = _weights(data.tobytes(), size + 8, order)
    now = np.stack([a * before[:, 0] + b * before[:, 1], c * before[:, 0] + d * before[:, 1]], axis=1) + added
    salts = _words(frames[:, 8:16])  # they change whenever the log restarts
    good = (now == stored).all(axis=1) & (not whole or (salts == head[4:6]).all(axis=1))
    return good, good & (_words(frames[:, 4:8])[:, 0] > 0)


def _words(part: npt.NDArray[np.uint8]) -> Words:
    return np.ascontiguousarray(part).view(">u4").astype(np.uint32)


def _weights(data: bytes, each: int, order: str) -> tuple[Words, tuple[np.uint32, ...]]:
    """Return what each part of `each` bytes adds to a checksum, and the matrix to multiply the old one with.

    SQLite's checksum takes two words at a time: `s0 += x0 + s1; s1 += x1 + s0`. That is linear, so all
    parts can be computed at once.
    """
    words = np.frombuffer(data, order).astype(np.uint32).reshape(-1, each // 4)
    power = (1, 0, 0, 1)
    rows = []
    for _ in range(each // 8):
        p, q, r, s = power
        rows.append(((p + q, q), (r + s, s)))
        power = ((p + q) % 2**32, (p + 2 * q) % 2**32, (r + s) % 2**32, (r + 2 * s) % 2**32)
    weights = np.array(rows[::-1], np.uint64).astype(np.uint32)  # pairs x (s0, s1) x (x0, x1)
    first = weights[:, 0, :].reshape(-1)
    second = weights[:, 1, :].reshape(-1)
    added = np.stack(
        [(words * first).sum(axis=1, dtype=np.uint32), (words * second).sum(axis=1, dtype=np.uint32)], axis=1
    )
    return added, tuple(np.uint32(one) for one in power)
