"""The paper: its settings, the runner, the checks and the report page (`accrual.paper`).

`setting1`, `setting2` and `spotify` make the problems; `write_sample` writes synthetic sessions. `run`
computes what `PaperOptions` say and leaves it in a folder; `build` writes the report page from that folder.
"""

from __future__ import annotations

from accrual.problems.paper import setting1, setting2
from accrual.studies.paper.music_sessions import spotify, write_sample
from accrual.studies.paper.page import Report, build
from accrual.studies.paper.runner import PaperOptions, run
from accrual.studies.paper.settings import HORIZON

__all__ = [
    "HORIZON",
    "PaperOptions",
    "Report",
    "build",
    "run",
    "setting1",
    "setting2",
    "spotify",
    "write_sample",
]
