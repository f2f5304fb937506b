"""What an operator does with a database of either kind: back up, restore, recover, export, verify."""

from __future__ import annotations

from accrual.store.admin.backups import backup, recover, restore
from accrual.store.admin.exports import export
from accrual.store.admin.verification import verify

__all__ = ["backup", "export", "recover", "restore", "verify"]
