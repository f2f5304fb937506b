"""Copy a bandit with its history under a new name, with other caps or a floor: a cap cannot be changed."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Any

from accrual.core.errors import InputError, positive, unknown
from accrual.live.archive import found
from accrual.live.config import read_config, with_limits
from accrual.store.backends import TableReader, open_reader, open_store
from accrual.store.base import (
    AddArm,
    CloseDecision,
    NewDecisions,
    NewPiece,
    Requests,
    RetireArm,
    StoredArm,
    StoreError,
    StoreRequest,
)
from accrual.store.events import ChangeRow, DecisionRow, Kind, PieceRow, quoted


def copy_bandit(
    url: str, old: str, new: str, caps: Mapping[str, float] | None = None, floor: float | None = None
) -> int:
    """Make the bandit `new` with all decisions and pieces of `old`, and return how many events it has.

    Every decision keeps its id, so pieces of decisions that are still pending can be sent to the new bandit.
    The old bandit stays as it is.

    Parameters
    ----------
    url : str
        The database.
    caps : mapping, optional
        New caps by the names of arms.
    floor : float, optional
        A floor, for a bandit that has none.

    Examples
    --------
    >>> import tempfile
    >>> import accrual as ac
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     url = f"sqlite:///{folder}/plays.db"
    ...     with ac.Bandit(["jazz", "rock"], window=80, store=url, name="plays") as bandit:
    ...         answer = bandit.observe(bandit.decide().id, 0.7, age=0)
    ...     count = copy_bandit(url, "plays", "plays-2", caps={"jazz": 5.0})
    ...     with ac.Bandit.open(url, "plays-2") as bandit:
    ...         count, [(arm.cap, arm.observed) for arm in bandit.state().arms]
    (4, [(5.0, 0.7), (1.0, 0.0)])
    """
    store = open_store(url)
    try:
        row = found(store, old)
        if store.find(new) is not None:
            raise InputError(f"there is a bandit {new!r} already; choose another name")
        arms = store.arms(row.number)
        wanted = {name: positive("a cap", cap) for name, cap in (caps or {}).items()}
        for name in wanted:
            if name not in [arm.name for arm in arms]:
                raise unknown("arm", name, [arm.name for arm in arms])
        arms = [arm._replace(cap=wanted.get(arm.name, arm.cap)) for arm in arms]
        config = read_config(row.config, None, old)
        config = config._replace(arms=tuple(map(_added, arms[: len(config.arms)])))
        if floor is not None:
            config = with_limits(config, {"floor": floor}, old)
        with open_reader(url) as reader:
            begun, history = _history(reader, row.number, arms, len(config.arms))
        made = store.create(new, config.written(), config.arms, config.rounds, begun, history)
        count = store.head(made.number)
        if count != store.head(row.number):
            raise StoreError(f"{new!r} has {count:,} events, and {old!r} had {store.head(row.number):,}")
        return count
    finally:
        store.close()


def _added(arm: StoredArm) -> AddArm:
    return AddArm(arm.name, arm.cap, arm.window, arm.about)


def _history(
    reader: TableReader, bandit: int, arms: list[StoredArm], first: int
) -> tuple[float, list[Requests]]:
    """Return when a bandit was made, and the requests that store again what came after its `first` arms."""
    rows = heapq.merge(*(_rows(reader, kind, bandit) for kind in _TABLES), key=attrgetter("seq"))
    founding = list(itertools.islice(rows, first))
    return founding[0].at, [
        Requests(list(_requests(together, arms)), at, skew=math.inf)  # what was accepted once is again
        for at, together in itertools.groupby(rows, key=attrgetter("at"))
    ]


_TABLES: dict[type[Any], str] = {DecisionRow: "decision", PieceRow: "piece", ChangeRow: "change"}


def _rows(reader: TableReader, kind: Any, bandit: int) -> Iterator[Any]:
    query = f"SELECT {quoted(kind._fields)} FROM {_TABLES[kind]} WHERE bandit = $1 ORDER BY seq"
    for chunk in reader.chunks(query, bandit):
        yield from map(kind._make, chunk)


def _requests(rows: Iterator[Any], arms: list[StoredArm]) -> Iterator[StoreRequest]:
    batch: list[DecisionRow] = []
    for row in rows:
        if batch and not (isinstance(row, DecisionRow) and row.part == len(batch)):
            yield _decisions(batch)
            batch = []
        if isinstance(row, DecisionRow):
            batch.append(row)
        elif isinstance(row, PieceRow):
            yield NewPiece(
                row.decision, row.value, row.age if row.stated else None, key=row.key, stream=row.stream
            )
        elif row.kind == Kind.CLOSE:
            yield CloseDecision(row.subject)
        elif row.kind == Kind.ADD_ARM:
            yield _added(arms[row.subject])
        else:
            yield RetireArm(row.subject)
    if batch:
        yield _decisions(batch)


def _decisions(batch: list[DecisionRow]) -> NewDecisions:
    contexts = tuple(row.context for row in batch if row.context is not None)
    propensities = tuple(row.propensity for row in batch)
    return NewDecisions(
        arms=tuple(row.arm for row in batch),
        windows=tuple(row.window for row in batch),
        seen=batch[0].seen,
        key=batch[0].key,
        salt=batch[0].salt,
        propensities=() if None in propensities else propensities,
        contexts=contexts or None,
    )
