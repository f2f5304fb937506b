"""The paper: its settings, the runner, the checks and the report page (`accrual.paper`).

`setting1`, `setting2` and `spotify` make the problems; `write_sample` writes synthetic sessions. `run`
computes what `PaperOptions` say and leaves it in a folder; `build` writes the report page from that folder.
"""

from accrual.problems.paper import setting1 as setting1
from accrual.problems.paper import setting2 as setting2
from accrual.studies.paper.music_sessions import spotify as spotify
from accrual.studies.paper.music_sessions import write_sample as write_sample
from accrual.studies.paper.page import Report as Report
from accrual.studies.paper.page import build as build
from accrual.studies.paper.runner import PaperOptions as PaperOptions
from accrual.studies.paper.runner import run as run
from accrual.studies.paper.settings import HORIZON as HORIZON
