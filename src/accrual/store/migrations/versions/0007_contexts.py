"""Whom a decision was for: a number for each feature, each in 8 bytes.

Decisions made before this, and those of bandits without features, have none.

Never change this file once it is released: databases were made by it.
"""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    binary = {"sqlite": "BLOB", "postgresql": "BYTEA"}[op.get_context().dialect.name]
    op.execute(f"ALTER TABLE decision ADD COLUMN context {binary}")
