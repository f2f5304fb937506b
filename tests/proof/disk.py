"""A disk that keeps only what was synced (`disk.c`): how to run under it, and what a power cut leaves."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SECTOR = 512


def under(module: str, library: Path, *arguments: object) -> Any:
    """Run a module with the disk preloaded. What it prints, as JSON."""
    done = subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)],
        env=os.environ | {"LD_PRELOAD": str(library)},
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout)


def compiled(folder: Path) -> Path | None:
    """The disk, compiled; None where there is no compiler."""
    compiler = shutil.which("cc")
    library = folder / "disk.so"
    if compiler is None or sys.platform != "linux":
        return None
    source = Path(__file__).with_suffix(".c")
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


def watch(live: Path, disk: Path) -> None:
    """From now on `disk` keeps what is synced of `live`; what is there counts as synced."""
    disk.mkdir()
    ctypes.CDLL(None).disk_watch(os.fsencode(live.resolve()), os.fsencode(disk.resolve()))


def cut(where: str, after: int) -> None:
    """Kill this process at a call on a file whose name ends with `where`, after so many others."""
    ctypes.CDLL(None).disk_cut(os.fsencode(where), ctypes.c_long(after))


def fail(error: int, where: str = "", after: int = 0) -> None:
    """From then on fail all calls on such files, with this errno; 0 ends it."""
    ctypes.CDLL(None).disk_fail(error, os.fsencode(where), ctypes.c_long(after))


def until_cut(life: Callable[[int], None]) -> bytes:
    """Fork a process that does `life` until the power goes. What it wrote to the file it is given."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            life(writing)
        except BaseException:
            traceback.print_exc()
        os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read()
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        raise RuntimeError("the process ended before the power went")
    return told


def survivors(live: Path, disk: Path, into: Path, coin: np.random.Generator | None = None) -> None:
    """Put into a new folder what is on the disk after a power cut.

    Nothing that was not synced; or, with a coin, each sector, length and name that was not synced
    as it was or as it had become, as the coin falls.
    """
    lines = (line.split(" ", 1) for line in (disk / "names").read_text().splitlines())
    synced = {name: inode for inode, name in lines}
    latest = {path.name: str(path.stat().st_ino) for path in live.iterdir()}
    into.mkdir()
    for name in sorted(synced.keys() | latest.keys()):
        inode = synced.get(name)
        if coin is not None and coin.random() < 0.5:
            inode = latest.get(name)
        if inode is None:
            continue
        kept, now = disk / inode, live / name if latest.get(name) == inode else disk / "old" / inode
        content = kept.read_bytes() if kept.exists() else b""
        (into / name).write_bytes(content if coin is None else _mixed(content, now.read_bytes(), coin))


def _mixed(old: bytes, new: bytes, coin: np.random.Generator) -> bytes:
    length = len(old) if coin.random() < 0.5 else len(new)
    sectors = -(-max(len(old), len(new)) // SECTOR)
    a, b = (np.frombuffer(x.ljust(sectors * SECTOR, b"\0"), np.uint8).reshape(-1, SECTOR) for x in (old, new))
    return np.where(coin.random((sectors, 1)) < 0.5, a, b).tobytes()[:length]
