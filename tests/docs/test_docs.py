"""Documentation keeps up: every command and option is described, and every example runs."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from accrual.cli import app
from accrual.policies.catalog import CATALOG

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
GUIDE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")


def section(command: str) -> str:
    """What the guide says of a command."""
    found = re.search(rf"^## accrual {command}\n(.*?)(?=^## |\Z)", GUIDE, re.M | re.S)
    assert found, f"docs/cli.md has no section '## accrual {command}'"
    return found[1]


def parameters(command: Any) -> list[Any]:
    """The parameters of a command, or of all actions of a group, each name once."""
    found = {parameter.name: parameter for action in getattr(command, "commands", {}).values()
             for parameter in action.params}  # fmt: skip
    return [*command.params, *found.values()]


def options() -> list[tuple[str, str]]:
    group = typer.main.get_command(app.app)
    return [
        (name, option)
        for name, command in group.commands.items()  # type: ignore[attr-defined]
        for parameter in parameters(command)
        for option in parameter.opts
        if parameter.param_type_name == "option" and option.startswith("--") and option != "--help"
    ]


@pytest.mark.parametrize("command", app.COMMANDS)
def test_every_command_has_a_section(command):
    assert section(command).strip()


@pytest.mark.parametrize(("command", "option"), options())
def test_every_option_has_a_row(command, option):
    assert re.search(rf"^\| `{option}[ `]", section(command), re.M), f"{command} {option}"


def test_the_guide_has_no_option_that_is_gone():
    described = re.findall(r"^\| `(--[a-z-]+)", GUIDE, re.M)
    assert sorted(described) == sorted(option for _, option in options())


def examples() -> dict[str, list[tuple[str, str]]]:
    """By page: (command line, printed lines) of every block that begins with ```console run."""
    found: dict[str, list[tuple[str, str]]] = {}
    for page in PAGES:
        for block in re.findall(r"^```console run\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S):
            for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
                line, _, printed = part.replace("\\\n", " ").partition("\n")
                found.setdefault(page.name, []).append((line, printed))
    return found


def same(shown: str, printed: str) -> bool:
    """Whether two texts agree word by word, figures to within 2 %.

    An example shows figures for a reader; on another processor a last bit may tip one choice of a
    simulation, which moves its figures by far less than that.
    """
    words = [[word for word in text.split() if word.strip("─")] for text in (shown, printed)]
    return len(words[0]) == len(words[1]) and all(map(_alike, *words))


def _alike(shown: str, printed: str) -> bool:
    try:
        a, b = (float(word.strip("()[]:;,.").replace(",", "")) for word in (shown, printed))
    except ValueError:
        return shown == printed
    return a == pytest.approx(b, rel=0.02)


@pytest.mark.parametrize("page", examples())
def test_examples_print_what_the_page_shows(page, capsys, tmp_path, monkeypatch):
    """In order and in one folder: a later command may read what an earlier one wrote."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)  # of this terminal: tables would be cut to it
    for line, shown in examples()[page]:
        name, *arguments = shlex.split(line)
        if name == "python":  # an example's script
            ran = subprocess.run([sys.executable, *arguments], check=True, capture_output=True, text=True)
            assert not shown.strip() or same(shown, ran.stdout), f"{page}, {line}, should show:\n{ran.stdout}"
            continue
        assert name == "accrual", f"{page} runs {name}"
        assert app.run(arguments) == 0, line
        printed = capsys.readouterr().out
        assert same(shown, printed), f"{page}, {line}, should show:\n{printed}"


def test_examples_are_found():
    assert sum(map(len, examples().values())) >= 5


def test_a_wrong_figure_in_an_example_is_noticed():
    assert same("a  1,000\n────\nb 2", "a 1,010\nb   2")
    assert not same("a 1,000", "a 1,100")
    assert not same("a 1,000", "b 1,000")
    assert not same("a 1,000", "a 1,000 b")


def test_the_policy_page_names_every_policy():
    page = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")
    for name in CATALOG:
        assert re.search(rf"^### {name}\b|^### .*\b{name}\b", page, re.M), f"docs/policies.md: {name}"
        assert re.search(rf"^\|.*`{name}\b", page, re.M), f"docs/policies.md has no table row for {name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_no_longer_than_a_person_reads_at_once(page):
    """The reference may be: cli.md has a section for each command."""
    most = {"README.md": 1_000, "cli.md": 10_000}.get(page.name, 3_000)
    assert len(page.read_text(encoding="utf-8").split()) <= most
