"""What the proofs share. Each comes in two sizes: a quick one, and a long one that is marked slow."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.proof.disk import compiled
from tests.proof.load import MEMORY

Say = Callable[[str], None]


@pytest.fixture
def say(record_property) -> Say:
    """Put a line of figures below the summary of the tests."""
    return lambda line: record_property("figures", line)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory, if there can be one."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        yield Path(name)


@pytest.fixture(scope="session")
def library(tmp_path_factory) -> Path:
    """The disk that keeps only what was synced."""
    built = compiled(tmp_path_factory.mktemp("disk"))
    if built is None:
        pytest.skip("no C compiler on this machine, or no Linux: power cuts and full disks are not tested")
    return built


def pytest_terminal_summary(terminalreporter) -> None:
    reports = terminalreporter.getreports("passed") + terminalreporter.getreports("failed")
    lines = [line for report in reports for name, line in report.user_properties if name == "figures"]
    if lines:
        terminalreporter.section("proofs")
        for line in dict.fromkeys(lines):
            terminalreporter.write_line(line)
