"""What is known about an arm: a number for each feature of arms, each in 8 bytes.

Arms added before this, and those of bandits without features of arms, have none. PostgreSQL's function stays
as it is: the store adds what is known in the transaction that adds the arm.

Never change this file once it is released: databases were made by it.
"""

from __future__ import annotations

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    binary = {"sqlite": "BLOB", "postgresql": "BYTEA"}[op.get_context().dialect.name]
    op.execute(f"ALTER TABLE arm ADD COLUMN about {binary}")
