"""What is known of a decision beside its arm: the propensity.

Decisions made before this have none, and it stays unknown (NULL). SQLite's blocks of events from before are
read as they are. PostgreSQL's function takes and gives one more array; it is made anew because its arguments
change.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_HERE = Path(__file__)

# What becomes of PostgreSQL's function, as revision 0004 left it.
_CHANGES = {
    "CREATE OR REPLACE FUNCTION": "CREATE FUNCTION",
    "    windows DOUBLE PRECISION[],\n": "    windows DOUBLE PRECISION[],\n    chances DOUBLE PRECISION[],\n",
    "OUT again BIGINT[]           -- the arms of choices made before, one after the other": (
        "OUT again BIGINT[],          -- the arms of choices made before, one after the other, and ...\n"
        "    OUT again_chances DOUBLE PRECISION[] -- ... their propensities"
    ),
    "array_agg(d.arm ORDER BY d.part) AS arms": (
        "array_agg(d.arm ORDER BY d.part) AS arms,\n"
        "                    array_agg(d.propensity ORDER BY d.part) AS chances"
    ),
    "again := again || old.arms;": (
        "again := again || old.arms;\n                    again_chances := again_chances || old.chances;"
    ),
    '"window", seen, key, part, salt)': '"window", seen, key, part, salt, propensity)',
    "u.part - 1, amounts[i]::BIGINT": "u.part - 1, amounts[i]::BIGINT, u.chance",
    "windows[taken + 1:taken + many])\n": (
        "windows[taken + 1:taken + many],\n                    chances[taken + 1:taken + many])\n"
    ),
    'AS u (arm, "window", part)': 'AS u (arm, "window", chance, part)',
}


def _function() -> str:
    spec = importlib.util.spec_from_file_location("salt", _HERE.with_name("0004_salt.py"))
    assert spec is not None
    assert spec.loader is not None
    salt = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(salt)
    function = _HERE.with_name("0001_append.sql").read_text(encoding="utf-8")
    for old, new in [*salt._CHANGES.items(), *_CHANGES.items()]:
        assert function.count(old) == 1, old
        function = function.replace(old, new)
    return function


def upgrade() -> None:
    dialect = op.get_context().dialect.name
    number = {"sqlite": "REAL", "postgresql": "DOUBLE PRECISION"}[dialect]
    op.execute(f"ALTER TABLE decision ADD COLUMN propensity {number}")
    if dialect == "postgresql":
        op.execute("DROP FUNCTION accrual_append")
        op.execute(_function())
