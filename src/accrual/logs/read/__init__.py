"""Read files, folders, frames and databases into the validated tables of a log.

Sources are opened (`sources`, `databases`), their columns and times are found or guessed (`columns`, `times`,
`contexts`), and their rows are loaded and checked (`reading`, `load`, `oddity_checks`).
"""

from accrual.logs.read.columns import DECISION_GUESSES as DECISION_GUESSES
from accrual.logs.read.columns import JOINED_GUESSES as JOINED_GUESSES
from accrual.logs.read.columns import NOBODY as NOBODY
from accrual.logs.read.columns import PIECE_GUESSES as PIECE_GUESSES
from accrual.logs.read.columns import ambiguous as ambiguous
from accrual.logs.read.columns import assign as assign
from accrual.logs.read.columns import check_roles as check_roles
from accrual.logs.read.columns import column_named as column_named
from accrual.logs.read.columns import lacking as lacking
from accrual.logs.read.columns import number_expression as number_expression
from accrual.logs.read.columns import text_expression as text_expression
from accrual.logs.read.contexts import LogContexts as LogContexts
from accrual.logs.read.contexts import read_contexts as read_contexts
from accrual.logs.read.databases import fetch as fetch
from accrual.logs.read.databases import is_url as is_url
from accrual.logs.read.load import check_arms as check_arms
from accrual.logs.read.load import in_natural_order as in_natural_order
from accrual.logs.read.load import load_decisions as load_decisions
from accrual.logs.read.load import load_pieces as load_pieces
from accrual.logs.read.oddity_checks import OddityFacts as OddityFacts
from accrual.logs.read.oddity_checks import context_oddities as context_oddities
from accrual.logs.read.oddity_checks import oddities as oddities
from accrual.logs.read.reading import CheckedColumn as CheckedColumn
from accrual.logs.read.reading import Reading as Reading
from accrual.logs.read.reading import ReadingOptions as ReadingOptions
from accrual.logs.read.reading import Tables as Tables
from accrual.logs.read.reading import check_zones as check_zones
from accrual.logs.read.sources import TableSource as TableSource
from accrual.logs.read.sources import open_source as open_source
from accrual.logs.read.sources import run as run
from accrual.logs.read.start_stop import START_STOP_ROLES as START_STOP_ROLES
from accrual.logs.read.start_stop import has_start_stop as has_start_stop
from accrual.logs.read.start_stop import read_start_stop as read_start_stop
from accrual.logs.read.start_stop import survival_hint as survival_hint
from accrual.logs.read.times import TimeColumn as TimeColumn
from accrual.logs.read.times import TimeOptions as TimeOptions
from accrual.logs.read.times import quoted as quoted
