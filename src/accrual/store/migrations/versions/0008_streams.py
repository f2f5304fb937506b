"""The stream of a piece: the number of the guardrail that it is of.

Pieces stored before this, and those of the reward, have none (NULL). PostgreSQL's function takes it where a
choice has how many decisions it makes: 0 for the reward, and a guardrail's number and one more otherwise.

Never change this file once it is released: databases were made by it.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_HERE = Path(__file__)

# What becomes of PostgreSQL's function, as revision 0006 left it.
_CHANGES = {
    "CREATE FUNCTION": "CREATE OR REPLACE FUNCTION",
    "-- how many of `arms` are a choice's": "-- how many of `arms` are a choice's; a piece's stream + 1",
    "SELECT u.place, u.decision, u.value, ": "SELECT u.place, u.decision, u.value, u.stream, ",
    "float8send(u.age + 0::FLOAT8)\n": (
        "float8send(u.age + 0::FLOAT8)\n"
        "                        || CASE WHEN u.stream IS NULL THEN ''::BYTEA ELSE int8send(u.stream) END\n"
    ),
    "SELECT g.place, g.decision, g.value, g.key, d.at": (
        "SELECT g.place, g.decision, g.value, g.key, nullif(g.count, 0) - 1 AS stream, d.at"
    ),
    "whens[i:j], names[i:j])\n": "whens[i:j], names[i:j], counts[i:j])\n",
    "AS g (decision, value, age, at, key, place)": "AS g (decision, value, age, at, key, count, place)",
    "WHEN p.value = k.value AND p.stated = k.stated AND (p.age = k.age OR NOT k.stated) THEN 1": (
        "WHEN p.value = k.value AND p.stream IS NOT DISTINCT FROM k.stream AND p.stated = k.stated\n"
        "                            AND (p.age = k.age OR NOT k.stated) THEN 1"
    ),
    "key, value, age, stated, at, late)": "key, value, age, stated, at, late, stream)",
    "f.value, f.age, f.stated, t, f.late": "f.value, f.age, f.stated, t, f.late, f.stream",
    "p.value = g.value AND p.stated = g.stated AND (p.age = g.age OR NOT g.stated) AS same": (
        "p.value = g.value AND p.stream IS NOT DISTINCT FROM nullif(g.count, 0) - 1\n"
        "                            AND p.stated = g.stated AND (p.age = g.age OR NOT g.stated) AS same"
    ),
    "subjects[i:j], amounts[i:j])\n": "subjects[i:j], amounts[i:j], counts[i:j])\n",
    "stated, decision, value, place)": "stated, decision, value, count, place)",
}


def _before() -> str:
    spec = importlib.util.spec_from_file_location("propensity", _HERE.with_name("0006_propensity.py"))
    assert spec is not None
    assert spec.loader is not None
    propensity: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(propensity)
    function: str = propensity._function()
    return function


def upgrade() -> None:
    dialect = op.get_context().dialect.name
    op.execute(f"ALTER TABLE piece ADD COLUMN stream {'INTEGER' if dialect == 'sqlite' else 'BIGINT'}")
    if dialect == "postgresql":
        function = _before()
        for old, new in _CHANGES.items():
            assert function.count(old) == 1, old
            function = function.replace(old, new)
        op.execute(function)
