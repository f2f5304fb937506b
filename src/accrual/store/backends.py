"""A store from its address."""

from __future__ import annotations

from accrual.store.address import parse
from accrual.store.base import Store


def open_store(url: str, readonly: bool = False) -> Store:
    """The store at `url`: ``sqlite:///plays.db`` or ``postgresql://user@host/name``.

    One process at a time may write to a SQLite file; any may open it with `readonly`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = open_store(f"sqlite:///{folder}/plays.db")
    ...     print(store.names())
    ...     store.close()
    []
    """
    address = parse(url)
    if address.dialect == "sqlite":
        from accrual.store.sqlite import SQLiteStore

        return SQLiteStore(address.place, readonly)
    from accrual.store.postgres import PostgresStore

    return PostgresStore(url)
