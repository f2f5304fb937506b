"""The gallery: problems that are hard in different ways, and what policies do on them (`accrual.gallery`).

``accrual.gallery`` prints its problems, and ``accrual.gallery["sparse"]`` is one. `ENTRIES`, `problem` and
`select` come from `accrual.problems.gallery`. `policies`, `choose`, `cut_entry` and `play` compare policies
on an entry. `lines` and `draw` make the table and the picture. The modules `habits` and `listening` hold
what is compared with.
"""

from __future__ import annotations

import sys
from types import ModuleType

from accrual.problems.gallery import ENTRIES as ENTRIES
from accrual.problems.gallery import Entry as Entry
from accrual.problems.gallery import problem as problem
from accrual.problems.gallery import select as select
from accrual.problems.problem import Problem
from accrual.studies.gallery.comparison import BESIDE as BESIDE
from accrual.studies.gallery.comparison import FLOOR as FLOOR
from accrual.studies.gallery.comparison import NO_CONTEXT as NO_CONTEXT
from accrual.studies.gallery.comparison import choose as choose
from accrual.studies.gallery.comparison import cut_entry as cut_entry
from accrual.studies.gallery.comparison import play as play
from accrual.studies.gallery.comparison import policies as policies
from accrual.studies.gallery.comparison import usual_rows as usual_rows
from accrual.studies.gallery.table import GalleryLine as GalleryLine
from accrual.studies.gallery.table import draw as draw
from accrual.studies.gallery.table import lines as lines


class _Gallery(ModuleType):
    def __getitem__(self, name: str) -> Problem:
        return problem(name)

    def __repr__(self) -> str:
        width = max(map(len, ENTRIES))
        return "\n".join(f"{name.ljust(width)}  {entry.title}" for name, entry in ENTRIES.items())


sys.modules[__name__].__class__ = _Gallery
