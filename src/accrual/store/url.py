"""A store from its address."""

from __future__ import annotations

from accrual.store.address import parse
from accrual.store.base import Store


def open_store(url: str) -> Store:
    """The store at `url`: ``sqlite:///plays.db`` or ``postgresql://user@host/name``.

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

        return SQLiteStore(address.place)
    from accrual.store.postgres import PostgresStore

    return PostgresStore(url)
