"""Contexts of decisions and features of arms, as a ledger keeps them."""

from __future__ import annotations

from accrual.live.contexts.arm_features import (
    AboutArms,
    about_bytes,
    about_of_each,
    about_text,
    checked_about,
)
from accrual.live.contexts.contexts import (
    Floats,
    Stored,
    Told,
    Visitors,
    checked_contexts,
    numbers_of,
    stored_contexts,
    told_by_requests,
    told_by_store,
)

__all__ = [
    "AboutArms",
    "Floats",
    "Stored",
    "Told",
    "Visitors",
    "about_bytes",
    "about_of_each",
    "about_text",
    "checked_about",
    "checked_contexts",
    "numbers_of",
    "stored_contexts",
    "told_by_requests",
    "told_by_store",
]
