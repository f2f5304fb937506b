"""A piece's key comes first in the index that makes it unique, its decision last.

Pieces go to decisions in no order, so by decision each fell on a page of its own. Keys that grow as
they are made (numbers, times) now fall side by side; keys that are random cost what they did.

Never change this file once it is released: databases were made by it.
"""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("DROP INDEX piece_key")
    op.execute("CREATE UNIQUE INDEX piece_key ON piece (bandit, key, decision) WHERE key IS NOT NULL")
