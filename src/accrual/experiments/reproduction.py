"""The paper's experiments, run: what `accrual paper` leaves in its folder for a report to read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from accrual.core.errors import need, whole
from accrual.core.random import ROUND_MOST, RUN_MOST
from accrual.experiments import rows
from accrual.experiments.blocks import cut_block, make_problem
from accrual.experiments.cells import Cell, code_hash, on_device, versions
from accrual.experiments.figure_curves import curves_of
from accrual.experiments.paper_settings import BLOCKS, HORIZON, RUNS, SEED, PaperBlock, PaperSetting, select
from accrual.experiments.runner import Executor, Local, Summary, alone, fill
from accrual.problem import Problem


@dataclass(frozen=True)
class PaperOptions:
    """What to run, and where."""

    out: Path
    only: Sequence[str] = ()
    runs: int = RUNS
    horizon: int = HORIZON
    executor: Executor = field(default_factory=Local)
    fresh: bool = False
    spotify: Path | None = None
    device: str = "cpu"
    settings: list[PaperSetting] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", select(self.only))
        whole("runs", self.runs, 1, RUN_MOST)
        whole("horizon", self.horizon, 100, ROUND_MOST)

    @property
    def command(self) -> str:
        """The command that gives these numbers, whatever the folder and the machine."""
        words = ["accrual paper", *(f"--only {word}" for word in self.only)]
        words += [f"--runs {self.runs}"] if self.runs != RUNS else []
        words += [f"--horizon {self.horizon}"] if self.horizon != HORIZON else []
        words += [f"--device {self.device}"] if self.device != "cpu" else []
        words += ["--spotify PATH"] if self.spotify is not None else []
        return " ".join(words)


def run(options: PaperOptions) -> Summary:
    """Compute what is missing and leave cells, curves and manifest in ``options.out``."""
    need("pyarrow.parquet", "frames")
    blocks = dict.fromkeys(block for setting in options.settings for block in setting.blocks)
    problems = {
        name: make_problem(name, options.spotify)
        for name in dict.fromkeys(BLOCKS[block].problem for block in blocks)
    }
    plan = {block: _cut(BLOCKS[block], problems[BLOCKS[block].problem], options) for block in blocks}
    with alone(options.out) as store:
        summary = fill(
            [cell for part in plan.values() for cell in part], store, options.executor, options.fresh
        )
        rows.write_curves(options.out / rows.CURVES, curves_of(options.settings, problems, options.horizon))
        manifest = _manifest(options, plan, problems)
        rows.write(options.out / rows.MANIFEST, (rows.canonical(manifest) + "\n").encode())
    return summary


def _cut(block: PaperBlock, problem: Problem, options: PaperOptions) -> list[Cell]:
    if options.device != "cpu":  # a GPU takes no longer for all runs than for a few
        block = replace(block, runs_per_cell=options.runs)
    return on_device(cut_block(block, problem, options.horizon, options.runs), options.device)


def _manifest(
    options: PaperOptions, plan: dict[str, list[Cell]], problems: dict[str, Problem]
) -> dict[str, Any]:
    return {
        "format": rows.FORMAT,
        "command": options.command,
        "horizon": options.horizon,
        "runs": options.runs,
        "seed": SEED,
        "code": code_hash(),
        "versions": versions(),
        "settings": [_entry(setting, options, problems) for setting in options.settings],
        "blocks": {block: [cell.name for cell in part] for block, part in plan.items()},
    }


def _entry(setting: PaperSetting, options: PaperOptions, problems: dict[str, Problem]) -> dict[str, Any]:
    problem = problems[BLOCKS[setting.blocks[0]].problem]
    data = None
    if setting.id == "spotify":
        data = "real" if options.spotify is not None else "synthetic"
    return {
        "id": setting.id,
        "title": setting.title + (" (synthetic sample)" if data == "synthetic" else ""),
        "blocks": setting.blocks,
        "data": data,
        "window": problem.window,
        "groups": problem.groups,
        "arms": problem.arms,
        "means": problem.means.tolist(),
        "learners": [
            {
                "label": learner.label,
                "kind": learner.kind,
                "printed": setting.printed.get(learner) if options.horizon == HORIZON else None,
            }
            for learner in setting.learners
        ],
    }
