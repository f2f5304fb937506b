"""The paper: its settings, the runner, the checks and the report page."""

from __future__ import annotations

from accrual.studies.paper.page import Report, build
from accrual.studies.paper.problems import NAMED_PROBLEMS, setting1, setting2
from accrual.studies.paper.runner import PaperOptions, run
from accrual.studies.paper.settings import HORIZON

__all__ = ["HORIZON", "NAMED_PROBLEMS", "PaperOptions", "Report", "build", "run", "setting1", "setting2"]
