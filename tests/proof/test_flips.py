"""One wrong byte anywhere: never a wrong number, never a signal, and one line that says what is damaged."""

from __future__ import annotations

import os
from collections import Counter

import numpy as np
import pytest
from tests.proof import flips

from accrual.core.errors import InputError
from accrual.store.base import StoreError

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
    """Half of them in a closed store, with its snapshot; the rest in a database and its log after a kill."""
    chance = np.random.default_rng(count)
    found: Counter[str] = Counter()
    lost = recovered = 0
    for number in range(count):
        made = stores[number % 2]
        in_log = number % 4 == 3
        body = bytearray(made.log if in_log else made.database)
        at = int(chance.integers(len(body)))
        body[at] ^= int(chance.integers(1, 256))
        place = folder / str(number)
        place.mkdir()
        (place / "plays.db").write_bytes(made.database if in_log else body)
        if made.log:
            (place / "plays.db-wal").write_bytes(body if in_log else made.log)
        outcome = flips.outcome(place, made)
        found[outcome] += 1
        if outcome == "without the last transaction":
            assert in_log, (number, at)  # which cannot be told from a power cut amid it
        else:
            assert outcome in ("same", "refused"), (number, at, outcome)
        if outcome == "refused" and number % 10 < 2:
            try:
                events, saved = flips.saved(place)
                truth = eval(made.histories[-1][2])
                assert saved == [] or saved == [column[:events] for column in truth], (number, at)
                recovered += 1
            except (InputError, StoreError):
                lost += 1  # not even the tables can be found
        for file in place.iterdir():
            file.unlink()
        place.rmdir()
    say(f"flips: {count} wrong bytes, {dict(found)}; recover: {recovered} saved a part, {lost} nothing")
    assert found["refused"] > count / 20
    assert found["same"] > count / 20
