"""Contexts of decisions and features of arms: checked, as bytes for a store, and encoded for a policy.

Only `accrual.live` uses this.
"""

from __future__ import annotations

from accrual.live.contexts.arm_features import (
    AboutArms,
    about_bytes,
    about_of_each,
    about_text,
    checked_about,
)
from accrual.live.contexts.encoder import (
    ContextEncoder,
    ContextRows,
    checked_contexts,
    numbers_of,
    stored_contexts,
)

__all__ = [
    "AboutArms",
    "ContextEncoder",
    "ContextRows",
    "about_bytes",
    "about_of_each",
    "about_text",
    "checked_about",
    "checked_contexts",
    "numbers_of",
    "stored_contexts",
]
