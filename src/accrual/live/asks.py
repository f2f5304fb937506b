"""What may be asked of a bandit in one go: see `accrual.live.bandit.Bandit.submit`."""

from __future__ import annotations

from accrual.live.commit import Ask, Decide
from accrual.store.base import AddArm, Close, Pay, RetireArm

__all__ = ["AddArm", "Ask", "Close", "Decide", "Pay", "RetireArm"]
