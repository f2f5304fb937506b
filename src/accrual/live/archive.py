"""Archive and delete bandits: an archived bandit stays stored but closed; a deleted one is erased later."""

from __future__ import annotations

import math

from accrual.core.durations import UNITS, exact_duration, parse_duration
from accrual.core.errors import InputError, unknown
from accrual.live.clock import SteadyClock
from accrual.store.base import ARCHIVED, ERASE_AT, BanditRow, Store, StoreDamaged, may_be_erased

GRACE = "7d"  # unless another is given
GRACE_LEAST = 3600.0  # seconds: long enough for every worker, and a person, to notice
GRACE_MOST = 100 * UNITS["y"]  # seconds: a bandit to be stored for longer can be archived


def archive(store: Store, name: str) -> BanditRow:
    """Archive a bandit: nobody can open it until it is restored; its events stay stored.

    A deleted bandit that has not been erased is archived too, and will not be erased.

    Examples
    --------
    >>> import accrual as ac
    >>> from accrual.store.memory import MemoryStore
    >>> store = MemoryStore()
    >>> bandit = ac.Bandit(["jazz", "rock"], window=80, store=store, name="plays")
    >>> _ = archive(store, "plays")
    >>> ac.Bandit.open(store, "plays")
    Traceback (most recent call last):
    accrual.core.errors.InputError: the bandit 'plays' is archived; restore it to use it again
    >>> _ = restore(store, "plays")
    >>> ac.Bandit.open(store, "plays").arms
    ['jazz', 'rock']
    """
    row = found(store, name)
    if ARCHIVED in row.config and ERASE_AT not in row.config:
        return row
    return store.amend(row.number, {ARCHIVED: row.config.get(ARCHIVED, store.clock()), ERASE_AT: None})


def restore(store: Store, name: str) -> BanditRow:
    """Restore a bandit that was archived or deleted, as it was."""
    return store.amend(found(store, name).number, {ARCHIVED: None, ERASE_AT: None})


def delete(store: Store, name: str, grace: str = GRACE, clock: SteadyClock | None = None) -> BanditRow:
    """Archive a bandit, and let it be permanently erased once a time such as ``"7d"`` has passed.

    Parameters
    ----------
    clock : SteadyClock, optional
        The clock of a long-lived process: while its time has leapt, it raises `StoreError`.
    """
    row = found(store, name)
    seconds = parse_duration(grace, "grace", most=GRACE_MOST)
    if seconds < GRACE_LEAST:
        raise InputError(f"grace must be at least {exact_duration(GRACE_LEAST)}, not {grace!r}")
    now = store.clock() if clock is None else clock(-math.inf)
    return store.amend(row.number, {ARCHIVED: row.config.get(ARCHIVED, now), ERASE_AT: now + seconds})


def erase_due(store: Store, clock: SteadyClock | None = None) -> list[str]:
    """Erase the deleted bandits whose time has come; return their names.

    Parameters
    ----------
    clock : SteadyClock, optional
        The clock of a long-lived process: while its time has leapt, it raises `StoreError`, and nothing is
        erased.
    """
    erased = []
    now = store.clock() if clock is None else clock(-math.inf)
    for name in store.names():
        try:
            row = store.find(name)
        except StoreDamaged:  # opening it reports the damage
            continue
        if row is not None and may_be_erased(row.config, now) and store.erase(row.number, now):
            erased.append(name)
    return erased


def refuse_archived(row: BanditRow) -> None:
    """Raise an error if a bandit is archived."""
    if ARCHIVED in row.config:
        raise InputError(f"the bandit {row.name!r} is archived; restore it to use it again")


def found(store: Store, name: str) -> BanditRow:
    """Return the bandit of this name, or raise an error that names those there are."""
    row = store.find(name)
    if row is None:
        raise unknown("bandit", name, store.names())
    return row
