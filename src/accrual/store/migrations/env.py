"""Alembic's environment: revisions are written out as SQL, which `accrual.store.migrate` then runs."""

from __future__ import annotations

from alembic import context

context.configure(
    dialect_name=context.config.attributes["dialect"],
    version_table=context.config.attributes["version_table"],
    transactional_ddl=False,  # the caller has a transaction around all of it
)
context.run_migrations()
