"""What the tests of the command line share."""

from __future__ import annotations

import pytest

from accrual.cli import app


@pytest.fixture
def cli(capsys, tmp_path, monkeypatch):
    """Run a command line in an empty folder: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        code = app.run(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call
