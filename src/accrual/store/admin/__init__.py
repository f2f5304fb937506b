"""What an operator does with a database of either kind: back up, restore, export, verify."""

from __future__ import annotations

from accrual.store.admin.backups import backup, restore
from accrual.store.admin.exports import export
from accrual.store.admin.verification import verify

__all__ = ["backup", "export", "restore", "verify"]
