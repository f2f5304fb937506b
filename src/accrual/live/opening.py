"""Find a bandit in its store, or make it there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from accrual.core.errors import InputError
from accrual.live.archive import refuse_archived
from accrual.live.asks import is_finite
from accrual.live.config import Config, Options, compare, read, with_limits
from accrual.live.prior import imported
from accrual.store.backends import open_store
from accrual.store.base import AddArm, BanditRow, Requests, Store
from accrual.store.memory import MemoryStore


@contextmanager
def opened_store(store: str | Store | None) -> Iterator[tuple[Store, bool]]:
    """Give the store, and whether it is the bandit's own to close; it is closed if the block fails."""
    place, owned = _opened(store)
    try:
        yield place, owned
    except BaseException:
        if owned:
            place.close()
        raise


def _opened(store: str | Store | None) -> tuple[Store, bool]:
    if store is None:
        return MemoryStore(), True
    if isinstance(store, str):
        return open_store(store), True
    if isinstance(store, type) or not hasattr(store, "find"):
        raise InputError(f"store must be an address, such as 'sqlite:///plays.db', or a store, not {store!r}")
    return store, False


def found_or_created(store: Store, name: str, given: Config, options: Options) -> tuple[BanditRow, Config]:
    """Return the bandit of this name, made if there is none, and its configuration.

    A bandit that is there already must have been made with the same configuration as is given.
    """
    row = store.find(name)
    if row is None:
        now = _first_time(options.get("clock", store.clock))
        history: list[Requests] = []
        if "prior" in options:
            now, given, history = imported(options["prior"], given, now)
        row = _created(store, name, given, now, history)
    refuse_archived(row)
    if "prior" in options and not (row.config.get("imported") or row.config.get("old_arms")):
        raise InputError(f"the bandit {name!r} was made without a prior, which it cannot be given later")
    if row.config != given.written():
        if "seed" not in options:
            given = given._replace(seed=row.config["seed"])
        playing = [
            AddArm(arm.name, arm.cap, arm.window, arm.about)
            for arm in store.arms(row.number)
            if not arm.retired
        ]
        compare(name, given, row.config, playing, store.features(row.number))
        given = with_limits(read(row.config, given.policy, name), options, name)
    return row, given


def _first_time(clock: Callable[[], float]) -> float:
    """Read a clock that may be a user's own, and check what it gives."""
    now = clock()
    if not is_finite(now):
        raise InputError(f"clock must give the time in seconds, as time.time does, not {now!r}")
    return float(now)


def _created(store: Store, name: str, given: Config, now: float, history: Sequence[Requests]) -> BanditRow:
    """Make a bandit in the store; or return the one that another worker has made in this moment."""
    try:
        return store.create(name, given.written(), given.arms, given.rounds, now, history)
    except InputError:
        row = store.find(name)
        if row is None:
            raise
        return row
