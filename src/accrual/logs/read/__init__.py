"""Read files, folders, frames and databases into the validated tables of a log.

Sources are opened (`sources`, `databases`), their columns and times are found or guessed (`columns`, `times`,
`contexts`), and their rows are loaded and checked (`reading`, `load`, `oddity_checks`).
"""

from __future__ import annotations

from accrual.logs.read.columns import (
    DECISION_GUESSES,
    JOINED_GUESSES,
    NOBODY,
    PIECE_GUESSES,
    ambiguous,
    assign,
    check_roles,
    column_named,
    lacking,
    number_expression,
    text_expression,
)
from accrual.logs.read.contexts import LogContexts, read_contexts
from accrual.logs.read.databases import fetch, is_url
from accrual.logs.read.load import check_arms, in_natural_order, load_decisions, load_pieces
from accrual.logs.read.oddity_checks import OddityFacts, context_oddities, oddities
from accrual.logs.read.reading import CheckedColumn, Reading, ReadingOptions, Tables, check_zones
from accrual.logs.read.sources import TableSource, open_source, run
from accrual.logs.read.start_stop import START_STOP_ROLES, has_start_stop, read_start_stop, survival_hint
from accrual.logs.read.times import TimeColumn, TimeOptions, quoted

__all__ = [
    "DECISION_GUESSES",
    "JOINED_GUESSES",
    "NOBODY",
    "PIECE_GUESSES",
    "START_STOP_ROLES",
    "CheckedColumn",
    "LogContexts",
    "OddityFacts",
    "Reading",
    "ReadingOptions",
    "TableSource",
    "Tables",
    "TimeColumn",
    "TimeOptions",
    "ambiguous",
    "assign",
    "check_arms",
    "check_roles",
    "check_zones",
    "column_named",
    "context_oddities",
    "fetch",
    "has_start_stop",
    "in_natural_order",
    "is_url",
    "lacking",
    "load_decisions",
    "load_pieces",
    "number_expression",
    "oddities",
    "open_source",
    "quoted",
    "read_contexts",
    "read_start_stop",
    "run",
    "survival_hint",
    "text_expression",
]
