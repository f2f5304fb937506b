"""Tables: what the paper prints, what the rows say, and whether the two agree."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass

from accrual.report.data import Data, LearnerRows, SettingRows

# Three significant digits are good to 0.5 % at worst, and a mean over 100 runs to about another
# 0.5 %, theirs and ours; 2.5 % leaves room for both and none for a different experiment.
TOLERANCE = 0.025


@dataclass(frozen=True)
class PaperLine:
    """One learner in one setting."""

    setting: str
    title: str
    learner: str
    paper: float | None
    ours: float
    error: float  # standard error of `ours`
    comparable: bool  # whether the paper's figure is for the same data

    @property
    def difference(self) -> float | None:
        """Relative to the paper's figure."""
        return None if self.paper is None else self.ours / self.paper - 1.0

    @property
    def agrees(self) -> bool | None:
        """Whether ours is within the tolerance; None where there is nothing to compare."""
        if self.difference is None or not self.comparable:
            return None
        return abs(self.difference) <= TOLERANCE


def lines(data: Data) -> list[PaperLine]:
    """Make a line for every learner of every setting."""
    return [
        line(setting, learner) for setting in data.settings.values() for learner in setting.learners.values()
    ]


def line(setting: SettingRows, learner: LearnerRows) -> PaperLine:
    """Give the line of one learner."""
    return PaperLine(
        setting.id,
        setting.title,
        learner.label,
        learner.printed,
        learner.final,
        learner.final_error,
        setting.data != "synthetic",
    )


def printed(data: Data) -> list[PaperLine]:
    """Give the lines that have a figure of the paper to compare with."""
    return [one for one in lines(data) if one.agrees is not None]


def disagreements(data: Data) -> list[str]:
    """Write one sentence for each printed figure that ours does not match."""
    return [
        f"{one.setting} {one.learner}: paper {one.paper:.3g}, ours {one.ours:.4g} ± {one.error:.2g}, "
        f"difference {100 * (one.difference or 0):+.1f} % (at most {100 * TOLERANCE:g} % agrees)"
        for one in printed(data)
        if one.agrees is False
    ]


def csv_text(data: Data) -> str:
    """Write all lines as CSV."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(
        ["setting", "learner", "paper", "ours", "standard_error", "difference_percent", "agrees", "runs"]
    )
    for one in lines(data):
        difference = "" if one.difference is None else f"{100 * one.difference:.2f}"
        agrees = {True: "yes", False: "no", None: ""}[one.agrees]
        if one.paper is not None and not one.comparable:
            agrees = "not comparable: synthetic data"
        error = "" if math.isnan(one.error) else f"{one.error:.1f}"
        paper = "" if one.paper is None else f"{one.paper:g}"
        rows.writerow(
            [
                one.setting,
                one.learner,
                paper,
                f"{one.ours:.1f}",
                error,
                difference,
                agrees,
                data.manifest["runs"],
            ]
        )
    return out.getvalue()
