"""The service's pages keep up with the service, and the README's commands work."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.serving import Process

from accrual.service.metrics import Metrics
from accrual.service.refusals import KINDS
from accrual.service.settings import PREFIX, Settings

ROOT = Path(__file__).parents[2]
PAGE = "".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in ("service.md", "http.md"))


def rows(head: str) -> list[list[str]]:
    """The cells of the table whose first line begins so."""
    table = PAGE[PAGE.index(f"\n| {head}") + 1 :].split("\n\n", 1)[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def test_every_setting_with_its_default():
    told = {row[0].strip("`"): row for row in rows("setting")}
    assert list(told) == [setting.name for setting in dataclasses.fields(Settings)]
    for setting in dataclasses.fields(Settings):
        _, variable, default, _ = told[setting.name]
        assert variable == f"`{PREFIX}{setting.name.upper()}`"
        value = getattr(Settings(), setting.name)
        shown = default.strip("`").replace(",", "")
        if isinstance(value, bool):
            assert shown == str(value).lower()
        elif isinstance(value, int | float):
            assert float(shown) == value
        else:
            assert shown == (value or "")


def test_every_problem_with_its_status():
    told = {name: int(row[1]) for row in rows("`urn") for name in re.findall(r"`([a-z-]+)`", row[0])}
    assert told == {name: kind.status for name, kind in KINDS.items()}


def test_every_metric():
    told = {name for row in rows("name") for name in re.findall(r"`(accrual_[a-z_]+)", row[0])}
    page = Metrics().page().decode()
    kept = set(re.findall(r"^# HELP (\w+)", page, re.M)) - set(
        re.findall(r"^# HELP (\w+_created)", page, re.M)
    )
    assert told == kept


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl here")
def test_the_three_commands_of_the_readme(tmp_path):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^(curl .*)$", text, re.M)
    assert len(commands) == 3
    with Process(tmp_path, store="sqlite:///accrual.db") as process:
        process.ready()
        answers = []
        for command in commands:
            here = command.replace("http://127.0.0.1:8000", process.service.url)
            done = subprocess.run(here, shell=True, capture_output=True, text=True, check=True, timeout=300)
            answers.append(json.loads(done.stdout))
        assert (tmp_path / "accrual.db").exists()
    assert answers[0]["name"] == "plays"
    (decision,) = answers[1]["decisions"]
    assert decision["arm"] in ("jazz", "rock")  # drawn at random once in ten
    assert 0.0 < decision["propensity"] <= 1.0
    assert answers[2]["status"] == "stored"
