"""Contexts of decisions and features of arms: checked, as bytes for a store, and encoded for a policy.

Only `accrual.live` uses this.
"""

from accrual.live.contexts.arm_features import AboutArms as AboutArms
from accrual.live.contexts.arm_features import about_bytes as about_bytes
from accrual.live.contexts.arm_features import about_of_each as about_of_each
from accrual.live.contexts.arm_features import about_text as about_text
from accrual.live.contexts.arm_features import checked_about as checked_about
from accrual.live.contexts.encoder import ContextEncoder as ContextEncoder
from accrual.live.contexts.encoder import ContextRows as ContextRows
from accrual.live.contexts.encoder import checked_contexts as checked_contexts
from accrual.live.contexts.encoder import numbers_of as numbers_of
from accrual.live.contexts.encoder import stored_contexts as stored_contexts
