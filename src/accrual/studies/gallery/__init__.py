"""The gallery: problems that are hard in different ways, and what policies do on them."""

from __future__ import annotations

from accrual.studies.gallery.contextual_problems import BESIDE, generate
from accrual.studies.gallery.gallery import ENTRIES, choose, cut_entry, select
from accrual.studies.gallery.page import GalleryLine, draw, lines

__all__ = ["BESIDE", "ENTRIES", "GalleryLine", "choose", "cut_entry", "draw", "generate", "lines", "select"]
