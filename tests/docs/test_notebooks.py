"""The notebooks of examples/ run from top to bottom, and are kept with small outputs."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


@pytest.mark.filterwarnings("default")  # of the packages that start the kernel; the kernel has its own
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_and_draws_what_the_file_shows(path):
    kept = nbformat.read(path, as_version=4)
    nbformat.validate(kept)
    run = NotebookClient(
        nbformat.from_dict(kept),
        timeout=600,
        startup_timeout=600,
        resources={"metadata": {"path": str(EXAMPLES)}},
    ).execute()
    assert [kinds(cell) for cell in run.cells] == [kinds(cell) for cell in kept.cells]


def kinds(cell: nbformat.NotebookNode) -> list[str]:
    """What a cell gives and draws; a slow machine also shows progress, which is not compared."""
    results = [output for output in cell.get("outputs", []) if output["output_type"] == "execute_result"]
    drawn = sum("image/png" in output.get("data", {}) for output in cell.get("outputs", []))
    return [kind for result in results for kind in sorted(result["data"])] + ["picture"] * drawn


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_small(path):
    assert path.stat().st_size < 150_000


def test_there_are_two():
    assert [path.stem for path in NOTEBOOKS] == ["log_to_live", "study"]
