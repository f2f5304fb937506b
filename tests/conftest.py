"""Settings that all tests share."""

from __future__ import annotations

import pytest
from hypothesis import settings

pytest.register_assert_rewrite("accrual.testing.stores")

# The same examples every time, and no time limit on one: a busy machine is not a failure.
settings.register_profile("accrual", derandomize=True, deadline=None)
settings.load_profile("accrual")
