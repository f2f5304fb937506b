"""Settings that all tests share."""

from __future__ import annotations

import atexit
import gc
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# A process holds a million objects by the time it runs tests. Looked through as often as Python does unless
# told, they took a tenth of the time.
gc.set_threshold(20_000)

# readline, which pytest imports, tells every child process how wide a terminal is: tables would be cut to it.
os.environ.pop("COLUMNS", None)

# DuckDB's bindings (nanobind) list what they call leaks when a process ends, in many lines that hide the
# result of the tests. Registered first, this runs last.
atexit.register(lambda: os.dup2(os.open(os.devnull, os.O_WRONLY), 2))

pytest.register_assert_rewrite("accrual.testing.stores")

# The same examples every time, and no time limit on one: a busy machine is not a failure.
settings.register_profile("accrual", derandomize=True, deadline=None)
settings.load_profile("accrual")


@pytest.fixture
def cli(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """Run a command line in an empty folder: exit code, stdout, stderr."""
    from accrual.cli import app

    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        code = app.run(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


# They compile the same kernels of the same policies: by one process after the other, each is compiled once.
TOGETHER = (
    ("tests/live/test_bandit.py", "tests/live/test_ledger.py", "tests/policies/test_policies.py"),
    (
        "tests/policies/test_age_prior.py",
        "tests/policies/test_age_prior_proof.py",
        "tests/policies/test_age_history.py",
    ),
)
# They use kernels that the tests of other rooms compile: later, they find them on disk.
LATER = ("tests/docs/", "tests/service/", "tests/clients/", "tests/proof/")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give all tests of a file to one process, those of some files to the same one, and of some later."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return next((files[0] for files in TOGETHER if file in files), file)

        def _assign_work_unit(self, node: Any) -> None:
            if not any(self.assigned_work.values()):  # before the first
                for file in [file for file in self.workqueue if file.startswith(LATER)]:
                    self.workqueue.move_to_end(file)
            super()._assign_work_unit(node)

    return Scheduling(config, log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show that there was no browser, or no Node, so that it does not go unnoticed."""
    skipped = terminalreporter.stats.get("skipped", [])
    if any("test_dashboard" in report.nodeid for report in skipped):
        from tests.browsing import NOTICE

        terminalreporter.write_sep("!", NOTICE, yellow=True)
    for notice in {report.longrepr[2] for report in skipped if "test_typescript" in report.nodeid}:
        terminalreporter.write_sep("!", notice.removeprefix("Skipped: "), yellow=True)
