"""The disk that keeps only what was synced is what it says, or the proofs that stand on it prove nothing."""

from __future__ import annotations

import errno
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.proof import disk


def test_only_what_was_synced_survives(library, tmp_path):
    assert disk.under("tests.proof.test_disk", library, tmp_path) == {
        "cut": "sync synced\n",
        "before": "as it was",  # written to, not synced
        "forgotten": "\0\0two".ljust(
            515, "\0"
        ),  # its first sync failed: what that should have written is lost
        "synced": "one",  # and not what was written later
        "unlinked": "still here",  # the folder was not synced since
    }  # and not `nameless`, whose content was synced, but not the folder


def test_a_coin_decides_over_what_was_not_synced():
    old, new = bytes(4096), b"\1" * 2048
    mixes = [disk._mixed(old, new, np.random.default_rng(seed)) for seed in range(40)]
    assert {len(mix) for mix in mixes} == {2048, 4096}
    assert all(len(set(mix[i : i + 512])) == 1 for mix in mixes for i in range(0, len(mix), 512))
    assert len(set(mixes)) > 20


def _life(live: Path, shadow: Path) -> None:
    def write(name: str, text: str, at: int = 0) -> int:
        file = os.open(live / name, os.O_RDWR | os.O_CREAT)
        os.pwrite(file, text.encode(), at)
        return file

    disk.watch(live, shadow)
    disk.cut("synced", after=3)
    write("before", "something else")
    disk.fail(errno.EIO, "forgotten", after=1)
    file = write("forgotten", "one", at=512)
    with pytest.raises(OSError, match="Input/output error"):
        os.fsync(file)
    disk.fail(0)
    os.pwrite(file, b"two", 2)
    os.fsync(file)
    file = write("synced", "one")
    os.fsync(os.open(live, os.O_RDONLY))
    os.unlink(live / "unlinked")
    os.fsync(write("nameless", "one"))
    os.fsync(file)
    os.pwrite(file, b"two", 0)
    os.fsync(file)  # does not return


def _main(root: Path) -> None:
    live, shadow, left = root / "live", root / "disk", root / "left"
    live.mkdir()
    (live / "before").write_text("as it was")
    (live / "unlinked").write_text("still here")
    disk.until_cut(lambda _: _life(live, shadow))
    disk.survivors(live, shadow, left)
    contents = {path.name: path.read_text() for path in left.iterdir()}
    print(json.dumps({"cut": (shadow / "cut").read_text(), **contents}))


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
