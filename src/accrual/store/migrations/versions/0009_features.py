"""Features that are added to a bandit later: an event of table `change` that carries what was declared.

SQLite cannot change what it checks of a column, so there the table is made anew. PostgreSQL's function takes
the feature's number where a closing has its decision, and what was declared where an arm has its name.

Never change this file once it is released: databases were made by it.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_HERE = Path(__file__)

_SQLITE = [
    "ALTER TABLE change RENAME TO change_before",
    """
    CREATE TABLE change (
        bandit INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        kind INTEGER NOT NULL CHECK (kind IN (2, 3, 4, 5)),
        subject INTEGER NOT NULL,
        at REAL NOT NULL,
        sum INTEGER NOT NULL DEFAULT 0,
        declared BLOB,
        PRIMARY KEY (bandit, seq),
        UNIQUE (bandit, kind, subject)
    ) STRICT, WITHOUT ROWID
    """,
    "INSERT INTO change SELECT bandit, seq, kind, subject, at, sum, NULL FROM change_before",
    "DROP TABLE change_before",
]

_POSTGRES = [
    "ALTER TABLE change ADD COLUMN declared BYTEA",
    "ALTER TABLE change DROP CONSTRAINT change_kind_check",
    "ALTER TABLE change ADD CONSTRAINT change_kind_check CHECK (kind IN (2, 3, 4, 5))",
]

# What becomes of PostgreSQL's function, as revision 0008 left it.
_CHANGES = {
    "a retiring arm; what a choice had seen": "a retiring arm; a new feature; what a choice had seen",
    "-- a key; an arm's name": "-- a key; an arm's name; a feature, as JSON",
    """            ELSE
                number_ := subjects[i];
                IF number_ < 0 OR""": """            ELSIF kinds[i] = 5 THEN
                number_ := subjects[i];
                SELECT count(*) AS known,
                    bool_or(c.subject = number_ AND c.declared <> convert_to(names[i], 'UTF8')) AS other
                INTO old FROM change c WHERE c.bandit = to_bandit AND c.kind = 5;
                IF number_ < 0 OR number_ > old.known THEN
                    state := 3;
                ELSE
                    state := CASE WHEN old.other THEN 2 ELSE 0 END;
                END IF;
            ELSE
                number_ := subjects[i];
                IF number_ < 0 OR""",
    """INSERT INTO change (bandit, seq, kind, subject, at)
                    VALUES (to_bandit, h.seq, kinds[i], number_, t);""": (
        """INSERT INTO change (bandit, seq, kind, subject, at, declared)
                    VALUES (to_bandit, h.seq, kinds[i], number_, t,
                        CASE kinds[i] WHEN 5 THEN convert_to(names[i], 'UTF8') END);"""
    ),
}


def _revision(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, _HERE.with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _function() -> str:
    streams = _revision("0008_streams")
    function: str = streams._before()
    for old, new in [*streams._CHANGES.items(), *_CHANGES.items()]:
        assert function.count(old) == 1, old
        function = function.replace(old, new)
    return function


def upgrade() -> None:
    dialect = op.get_context().dialect.name
    for statement in _SQLITE if dialect == "sqlite" else _POSTGRES:
        op.execute(statement)
    if dialect == "postgresql":
        op.execute(_function())
