"""What a shell completes: the names of policies, settings and problems of the gallery.

A shell waits for the answer at every press of the tab key, so the names are read from the source: importing
what they name would import numba. A test compares them with what was imported.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).parents[1]


def policies() -> list[str]:
    """Return the names of all policies."""
    imports = [one for one in _source("policies/__init__.py") if isinstance(one, ast.ImportFrom)]
    return [name.name for one in imports for name in one.names]


def gallery() -> list[str]:
    """Return the names of the gallery's problems."""
    entries = _assigned("problems/gallery.py")["_LIST"].elts
    return [entry.args[0].value for entry in entries]


def settings() -> list[str]:
    """Return the names of the paper's settings and of the gallery's problems."""
    paper = _assigned("problems/paper.py")
    configs, scenarios = (ast.literal_eval(paper[name]) for name in ("CONFIGS", "SCENARIOS"))
    names = [f"setting2/c{config}/{scenario}" for config in configs for scenario in scenarios]
    return [*gallery(), *names]


def _source(path: str) -> list[ast.stmt]:
    return ast.parse((_PACKAGE / path).read_text(encoding="utf-8")).body


def _assigned(path: str) -> dict[str, Any]:
    """Return what a file assigns at its left margin, by name and not evaluated."""
    return {
        ast.unparse(target): statement.value
        for statement in _source(path)
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for target in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
    }
