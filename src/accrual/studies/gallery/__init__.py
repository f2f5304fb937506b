"""The gallery: problems that are hard in different ways, and what policies do on them (`accrual.gallery`).

``accrual.gallery`` prints its problems, and ``accrual.gallery["sparse"]`` is one. `ENTRIES`, `problem` and
`select` come from `accrual.problems.gallery`. `policies`, `choose`, `cut_entry` and `play` compare policies
on an entry. `lines` and `draw` make the table and the picture. The modules `habits` and `listening` hold
what is compared with.
"""

from __future__ import annotations

import sys
from types import ModuleType

from accrual.problems.gallery import ENTRIES, Entry, problem, select
from accrual.problems.problem import Problem
from accrual.studies.gallery.comparison import (
    BESIDE,
    FLOOR,
    NO_CONTEXT,
    choose,
    cut_entry,
    play,
    policies,
    usual_rows,
)
from accrual.studies.gallery.table import GalleryLine, draw, lines

__all__ = [
    "BESIDE",
    "ENTRIES",
    "FLOOR",
    "NO_CONTEXT",
    "Entry",
    "GalleryLine",
    "choose",
    "cut_entry",
    "draw",
    "lines",
    "play",
    "policies",
    "problem",
    "select",
    "usual_rows",
]


class _Gallery(ModuleType):
    def __getitem__(self, name: str) -> Problem:
        return problem(name)

    def __repr__(self) -> str:
        width = max(map(len, ENTRIES))
        return "\n".join(f"{name.ljust(width)}  {entry.title}" for name, entry in ENTRIES.items())


sys.modules[__name__].__class__ = _Gallery
