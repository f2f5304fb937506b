"""How every connection to a PostgreSQL database is made, and a pool of connections for the store."""

from __future__ import annotations

from typing import Any

from accrual.core.errors import InputError, need
from accrual.store.address import Address
from accrual.store.base import one_line
from accrual.store.schema import READ_VERSION, VERSION_TABLE

# For libpq, unless the address says otherwise: a server that is gone is noticed within a minute.
_DEFAULTS = {
    "connect_timeout": 30, "keepalives_idle": 30, "keepalives_interval": 10, "tcp_user_timeout": 60_000
}  # fmt: skip
_POOL_TIMEOUT = 10.0  # seconds to wait for a connection of the pool, and to go on trying to make one

# Settings of the connections of a store. An acknowledgement means durable, so commits must wait for the disk,
# and each statement of an append must see what was committed before it. An append holds a lock while the
# client works: if the client has stopped or is cut off, the server ends that transaction. A connection plans
# a query once, perhaps while the tables are empty, and they grow; so only the plan that looks each thing up
# by its index is allowed.
_SETTINGS = """
SELECT set_config('synchronous_commit', 'on', FALSE) WHERE current_setting('synchronous_commit') = 'off';
SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED;
SET statement_timeout = '60s';
SET idle_in_transaction_session_timeout = '20s';
SET enable_seqscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_bitmapscan = off;
SET enable_material = off;
SET enable_memoize = off;
SET plan_cache_mode = force_generic_plan
"""


def connect(address: Address) -> Any:
    """Return a new connection, on which every statement is a transaction unless one is begun.

    Queries have $1, $2, ... where values go.
    """
    arguments = _arguments(address)
    psycopg = need("psycopg", "postgres")
    try:
        connection = psycopg.connect(**arguments)
    except psycopg.Error as error:
        raise InputError(f"cannot open {address}: {one_line(error)}") from None
    connection.server_cursor_factory = psycopg.RawServerCursor
    return connection


def open_pool(address: Address, connections: int) -> Any:
    """Return a pool of at most so many connections for a store."""
    return need("psycopg_pool", "postgres").ConnectionPool(
        kwargs=_arguments(address), min_size=1, max_size=connections, num_workers=1, open=True,
        configure=_configure, timeout=_POOL_TIMEOUT, reconnect_timeout=_POOL_TIMEOUT,
    )  # fmt: skip


def _arguments(address: Address) -> dict[str, Any]:
    """Return the arguments with which the driver connects."""
    psycopg = need("psycopg", "postgres")
    try:
        given = psycopg.conninfo.conninfo_to_dict(address.place)
    except psycopg.Error as error:
        raise InputError(f"cannot open {address}: {one_line(error)}") from None
    return {**_DEFAULTS, **given, "autocommit": True, "cursor_factory": psycopg.RawCursor}


def _configure(connection: Any) -> None:
    connection.execute(_SETTINGS)
    # All whole numbers are sent as one type: otherwise each mixture of types would be planned by itself.
    connection.adapters.register_dumper(int, need("psycopg.types.numeric", "postgres").Int8Dumper)


def version_of(connection: Any) -> str | None:
    """Return the schema version of a database; None where there are no tables of accrual."""
    ((found,),) = connection.execute("SELECT to_regclass($1)::TEXT", [VERSION_TABLE])
    return None if found is None else str(connection.execute(READ_VERSION).fetchone()[0])
