"""Checksums; and on SQLite a log-structured index of keys in place of two B-trees.

On SQLite every row gets a checksum, every block and snapshot a digest (`accrual.store.sums`). The unique
indexes of keys go: `accrual.store.key_index` finds keys at the same cost whether they are random or grow.
What is in these tables follows from the others, so it is filled in by the code that upgrades.

Never change this file once it is released: databases were made by it.
"""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_SQLITE = [
    *(
        f"ALTER TABLE {table} ADD COLUMN sum INTEGER NOT NULL DEFAULT 0"
        for table in ("piece", "decision", "change", "arm", "head", "bandit", "api_key")
    ),
    "ALTER TABLE block ADD COLUMN digest BLOB",
    "CREATE TABLE seal (name TEXT PRIMARY KEY NOT NULL, sum INTEGER NOT NULL) STRICT",
    "DROP INDEX piece_key",
    "DROP INDEX decision_key",
    """
    CREATE TABLE key_run (
        bandit INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        filter BLOB NOT NULL,
        digest BLOB NOT NULL,
        PRIMARY KEY (bandit, seq)
    ) STRICT
    """,
    """
    CREATE TABLE key_page (
        bandit INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        page INTEGER NOT NULL,
        body BLOB NOT NULL,
        digest BLOB NOT NULL,
        PRIMARY KEY (bandit, seq, page)
    ) STRICT
    """,
]


def upgrade() -> None:
    dialect = op.get_context().dialect.name
    op.execute(f"ALTER TABLE snapshot ADD COLUMN digest {'BLOB' if dialect == 'sqlite' else 'BYTEA'}")
    if dialect == "sqlite":
        for statement in _SQLITE:
            op.execute(statement)
