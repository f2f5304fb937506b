"""The keys of the service.

Never change this file once it is released: databases were made by it.
"""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_WORDS = {
    "sqlite": {"REAL": "REAL", "BYTES": "BLOB", "END": "STRICT"},
    "postgresql": {"REAL": "DOUBLE PRECISION", "BYTES": "BYTEA", "END": ""},
}

_TABLE = """
    CREATE TABLE api_key (
        id TEXT PRIMARY KEY NOT NULL,
        name TEXT NOT NULL,
        scopes TEXT NOT NULL,
        digest {BYTES} NOT NULL,
        made {REAL} NOT NULL,
        ends {REAL}
    ) {END}
"""


def upgrade() -> None:
    op.execute(_TABLE.format(**_WORDS[op.get_context().dialect.name]))
