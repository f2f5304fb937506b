"""Compare policies on the problem that a log was fitted to, or on the contexts of a log.

The command line takes `compare` apart, to play the cells anywhere: `set_up`, `comparison_policies`,
`comparison_cells`, `make_comparison`, `write_report`.
"""

from accrual.evaluate.compare.by_context import ContextComparison as ContextComparison
from accrual.evaluate.compare.by_context import compare_by_context as compare_by_context
from accrual.evaluate.compare.comparison import RANGE as RANGE
from accrual.evaluate.compare.comparison import Comparison as Comparison
from accrual.evaluate.compare.comparison import compare as compare
from accrual.evaluate.compare.comparison import conclusions as conclusions
from accrual.evaluate.compare.comparison import make_comparison as make_comparison
from accrual.evaluate.compare.page import PAGE as PAGE
from accrual.evaluate.compare.page import TABLE as TABLE
from accrual.evaluate.compare.page import write_report as write_report
from accrual.evaluate.compare.setup import BASELINE as BASELINE
from accrual.evaluate.compare.setup import comparison_cells as comparison_cells
from accrual.evaluate.compare.setup import comparison_policies as comparison_policies
from accrual.evaluate.compare.setup import notes as notes
from accrual.evaluate.compare.setup import set_up as set_up
from accrual.evaluate.compare.setup import usual_horizon as usual_horizon
