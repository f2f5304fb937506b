"""The salt of a decision's draws: which worker's, so that two workers do not draw the same numbers.

Decisions made before this have salt 0, which is what they were drawn with.

Never change this file once it is released: databases were made by it.
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

# What becomes of PostgreSQL's function: a choice's salt comes where a piece has its value.
_CHANGES = {
    "CREATE FUNCTION": "CREATE OR REPLACE FUNCTION",
    "-- a piece's value; an arm's cap": "-- a piece's value; an arm's cap; a choice's salt",
    '"window", seen, key, part)': '"window", seen, key, part, salt)',
    "names[i], u.part - 1": "names[i], u.part - 1, amounts[i]::BIGINT",
}


def upgrade() -> None:
    dialect = op.get_context().dialect.name
    whole = {"sqlite": "INTEGER", "postgresql": "BIGINT"}[dialect]
    op.execute(f"ALTER TABLE decision ADD COLUMN salt {whole} NOT NULL DEFAULT 0")
    if dialect == "postgresql":
        function = Path(__file__).with_name("0001_append.sql").read_text(encoding="utf-8")
        for old, new in _CHANGES.items():
            assert function.count(old) == 1, old
            function = function.replace(old, new)
        op.execute(function)
