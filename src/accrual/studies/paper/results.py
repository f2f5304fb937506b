"""What `accrual paper` left in a folder, read for the report."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from accrual.core.arrays import Floats, Ints
from accrual.core.errors import InputError
from accrual.runs import rows


@dataclass(frozen=True)
class LearnerRows:
    """One learner of a setting, with its regret in every run."""

    label: str
    kind: str  # decides its colour
    printed: float | None  # the paper's final regret
    rounds: Ints = field(repr=False)
    regret: Floats = field(repr=False)  # runs x rounds

    @cached_property
    def mean(self) -> Floats:
        return np.asarray(self.regret.mean(axis=0))

    @cached_property
    def error(self) -> Floats:
        """The standard error of the mean at each checkpoint; nan for a single run."""
        runs = len(self.regret)
        if runs < 2:
            return np.full(self.regret.shape[1], np.nan)
        return np.asarray(self.regret.std(axis=0, ddof=1) / np.sqrt(runs))

    @property
    def final(self) -> float:
        return float(self.mean[-1])

    @property
    def final_error(self) -> float:
        return float(self.error[-1])

    def at(self, round_: float) -> float:
        """Return the mean regret at a round, interpolated between the checkpoints."""
        return float(np.interp(round_, self.rounds, self.mean))

    def growth(self) -> tuple[float, float]:
        """Return the growth of regret per unit of ln t over the last tenfold of rounds, and its error.

        The error is nan for a single run.
        """
        start = self.rounds[-1] / 10
        before = np.array([np.interp(start, self.rounds, run) for run in self.regret])
        each = (self.regret[:, -1] - before) / np.log(10)
        error = float(each.std(ddof=1) / np.sqrt(len(each))) if len(each) > 1 else float("nan")
        return float(each.mean()), error


@dataclass(frozen=True)
class SettingRows:
    """One setting with its learners, by label."""

    id: str
    title: str
    data: str | None  # "real" or "synthetic" for a setting that is made from data
    window: int
    groups: int
    means: tuple[float, ...]
    learners: dict[str, LearnerRows]
    curves: tuple[rows.FigureCurve, ...]  # its bounds

    def kind(self, kind: str) -> LearnerRows | None:
        """Return the learner of that kind, if the setting has it."""
        return next((learner for learner in self.learners.values() if learner.kind == kind), None)


@dataclass(frozen=True)
class PaperResults:
    """Everything that a report is made from."""

    manifest: dict[str, Any] = field(repr=False)
    settings: dict[str, SettingRows]
    spreads: dict[str, list[rows.FigureCurve]] = field(repr=False)

    def starting(self, stem: str) -> list[SettingRows]:
        """Return the setting with this id, or the settings whose ids begin with it."""
        return [setting for id, setting in self.settings.items() if id == stem or id.startswith(f"{stem}/")]


def load(folder: Path) -> PaperResults:
    """Read a folder that `accrual paper` has filled."""
    manifest = rows.read_manifest(folder)
    curves = rows.read_curves(folder / rows.CURVES)
    blocks = {block: _block(folder, names) for block, names in manifest["blocks"].items()}
    settings = {}
    for entry in manifest["settings"]:
        stored = {label: part for block in entry["blocks"] for label, part in blocks[block].items()}
        settings[entry["id"]] = SettingRows(
            id=entry["id"],
            title=entry["title"],
            data=entry["data"],
            window=entry["window"],
            groups=entry["groups"],
            means=tuple(entry["means"]),
            learners={
                learner["label"]: LearnerRows(
                    learner["label"], learner["kind"], learner["printed"], *stored[learner["label"]]
                )
                for learner in entry["learners"]
            },
            curves=tuple(curve for curve in curves if curve.figure == entry["id"]),
        )
    spreads: dict[str, list[rows.FigureCurve]] = {}
    for curve in curves:
        if curve.kind == "spread":
            spreads.setdefault(curve.figure, []).append(curve)
    return PaperResults(manifest, settings, spreads)


def _block(folder: Path, names: list[str]) -> dict[str, tuple[Ints, Floats]]:
    """Return the rounds and the regret (runs x rounds) of each learner of a block, from all its cells."""
    cells = []
    for name in names:
        try:
            cells.append(rows.read_cell(folder / rows.CELLS / name))
        except FileNotFoundError:
            raise InputError(f"{folder / rows.CELLS / name} is missing; run accrual paper again") from None
    cells.sort(key=lambda cell: cell.runs.start)
    return {
        label: (cells[0].rounds, np.concatenate([cell.regret[p] for cell in cells]))
        for p, label in enumerate(cells[0].learners)
    }
