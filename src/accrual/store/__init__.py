"""Decisions and pieces, durably: in SQLite, PostgreSQL or memory, behind one contract.

Other rooms use `base` (requests, answers, `Store`), `events` (rows, and events in columns), `address`,
`backends` (open a store, its keys or its tables), `memory`, and `admin` (back up,
export, verify).
"""
