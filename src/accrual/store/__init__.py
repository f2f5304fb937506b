"""Decisions and pieces, durably: SQLite and PostgreSQL behind one protocol."""
