"""Bandits in PostgreSQL, for many workers at once."""

from __future__ import annotations

from accrual.store.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
