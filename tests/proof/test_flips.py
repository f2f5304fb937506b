"""One wrong byte anywhere: never a wrong number, never a signal, and one line that says what is damaged."""

from __future__ import annotations

import os
import re
from collections import Counter
from typing import Any

import numpy as np
import pytest
from tests.proof import flips

from accrual.store.address import Address
from accrual.store.sqlite import file as sqlite_file

LONG = int(os.environ.get("FLIPS", "20000"))  # fewer, where there is less time
FLIPS = [pytest.param(40, id="quick"), pytest.param(LONG, id="long", marks=pytest.mark.slow)]


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        flips.shrink(patch.setattr)
        yield flips.make(tmp_path_factory.mktemp("flips"))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # of Python 3.12 on: there are threads
@pytest.mark.parametrize("count", FLIPS)
def test_a_wrong_byte_is_never_a_wrong_number(stores, count, folder, say):
    """Half of them in a closed store, with its snapshot; the rest in the three files that a kill leaves."""
    chance = np.random.default_rng(count)
    found: Counter[str] = Counter()
    for number in range(count):
        made = stores[number % 2]
        name = "plays.db" if number % 4 != 3 else "plays.db-wal" if number % 40 != 3 else "plays.db.last"
        body = bytearray(made.files[name])
        at = int(chance.integers(len(body)))
        body[at] ^= int(chance.integers(1, 256))
        place = folder / str(number)
        flips.put(place, made.files | {name: bytes(body)})
        outcome = flips.outcome(place, made)
        found[f"{name}: {outcome}"] += 1
        # A wrong note is no note, and the log is whole. A snapshot or a page that nobody reads may be wrong.
        assert outcome in (("same",) if name == "plays.db.last" else ("same", "refused")), (
            number,
            at,
            outcome,
        )
        for file in place.iterdir():
            file.unlink()
        place.rmdir()
    say(f"flips: {count} wrong bytes, {dict(found)}")
    assert found["plays.db: refused"] > count / 20
    assert found["plays.db: same"] > 0
    assert found["plays.db-wal: refused"] > count / 20


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_without_checksums_a_wrong_number_would_be_seen(stores, folder, monkeypatch, say):
    """The control: pages are not checked, and bytes of keys are wrong, in rows and in the index of keys."""
    connect = sqlite_file.connect_sqlite

    def unchecked(address: Address, mode: str) -> Any:
        connection = connect(address, mode)
        connection.execute("PRAGMA checksum_verification = OFF")
        return connection

    monkeypatch.setattr(sqlite_file, "connect_sqlite", unchecked)
    found: Counter[str] = Counter()
    for number, key in enumerate(re.finditer(rb"piece 1[0-4] 3", stores[0].files["plays.db"])):
        body = bytearray(stores[0].files["plays.db"])
        body[key.end() - 1] ^= 4
        flips.put(folder / str(number), {"plays.db": bytes(body)})
        found[flips.outcome(folder / str(number), stores[0]).partition(":")[0]] += 1
    say(f"flips, control, pages are not checked: {dict(found)}")
    assert found["wrong"] > 0
