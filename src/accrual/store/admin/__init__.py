"""What an operator does with a database of either kind: back up, restore, export, verify."""

from accrual.store.admin.backups import backup as backup
from accrual.store.admin.backups import restore as restore
from accrual.store.admin.exports import export as export
from accrual.store.admin.verification import verify as verify
