"""Bandits in PostgreSQL, for many workers at once.

`PostgresBackend` is all that can be done with such a database; `PostgresStore` is its store; `connect` makes
a connection to any PostgreSQL database.
"""

from accrual.store.postgres.backend import PostgresBackend as PostgresBackend
from accrual.store.postgres.connection import connect as connect
from accrual.store.postgres.store import PostgresStore as PostgresStore
