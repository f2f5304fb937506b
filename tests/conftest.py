"""Settings that all tests share."""

from __future__ import annotations

import pytest
from hypothesis import settings

pytest.register_assert_rewrite("accrual.testing.stores")

# The same examples every time, and no time limit on one: a busy machine is not a failure.
settings.register_profile("accrual", derandomize=True, deadline=None)
settings.load_profile("accrual")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A browser that is not there must not go unnoticed."""
    skipped = terminalreporter.stats.get("skipped", [])
    if any("test_dashboard" in report.nodeid for report in skipped):
        from tests.browsing import NOTICE

        terminalreporter.write_sep("!", NOTICE, yellow=True)
