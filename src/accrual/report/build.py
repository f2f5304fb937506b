"""Write the report on the paper from a folder of rows."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from accrual.experiments import rows
from accrual.report import data as stored
from accrual.report.figures import pictures
from accrual.report.page import page
from accrual.report.statements import Statement, statements
from accrual.report.tables import PaperLine, csv_text, disagreements, printed

PAGE = "report.html"
TABLES = "tables.csv"
FIGURES = "figures"


@dataclass(frozen=True)
class Report:
    """What was written, and what it says."""

    page: Path
    printed: list[PaperLine]
    disagreements: list[str]
    statements: list[Statement]


def build(folder: Path) -> Report:
    """Write ``report.html``, ``tables.csv`` and ``figures/`` from the rows in `folder`."""
    data = stored.load(folder)
    drawn = pictures(data)
    checked = statements(data)
    figures = folder / FIGURES
    figures.mkdir(exist_ok=True)
    names = {f"{picture.name}.{ending}" for picture in drawn for ending in ("svg", "png")}
    for old in figures.iterdir():  # figures of settings that are no longer asked for
        if old.name not in names:
            old.unlink()
    for picture in drawn:
        rows.write(figures / f"{picture.name}.svg", picture.svg)
        rows.write(figures / f"{picture.name}.png", picture.png)
    rows.write(folder / TABLES, csv_text(data).encode())
    tools = {name: version(name) for name in ("matplotlib", "pyarrow")}
    rows.write(folder / PAGE, page(data, drawn, checked, tools).encode())
    return Report(folder / PAGE, printed(data), disagreements(data), checked)
