"""Turn the tables of a log into estimates: passes, means and shares with intervals, the window, the tail.

`accrual.logs.fit` makes a fit of them. `estimate_tail` and `window_for` also serve users (docs/tails.md).
"""

from accrual.logs.estimate.clusters import cluster_numbers as cluster_numbers
from accrual.logs.estimate.cumulative_means import FollowedDecisions as FollowedDecisions
from accrual.logs.estimate.cumulative_means import arm_mean as arm_mean
from accrual.logs.estimate.cumulative_means import complete as complete
from accrual.logs.estimate.grids import EvenGrid as EvenGrid
from accrual.logs.estimate.grids import FineGrid as FineGrid
from accrual.logs.estimate.intervals import GroupEstimate as GroupEstimate
from accrual.logs.estimate.large_totals import FEW_PAYING as FEW_PAYING
from accrual.logs.estimate.passes import ArrivalCurve as ArrivalCurve
from accrual.logs.estimate.passes import FinalPass as FinalPass
from accrual.logs.estimate.passes import count_closed as count_closed
from accrual.logs.estimate.passes import final_pass as final_pass
from accrual.logs.estimate.passes import longest_followed as longest_followed
from accrual.logs.estimate.passes import survey as survey
from accrual.logs.estimate.passes import trace_curve as trace_curve
from accrual.logs.estimate.sample import draw_samples as draw_samples
from accrual.logs.estimate.sample import sample_size as sample_size
from accrual.logs.estimate.tail import Tail as Tail
from accrual.logs.estimate.tail import estimate_tail as estimate_tail
from accrual.logs.estimate.tail import payments as payments
from accrual.logs.estimate.tail import window_for as window_for
from accrual.logs.estimate.window import course_grid as course_grid
from accrual.logs.estimate.window import cut_window as cut_window
from accrual.logs.estimate.window import first_guess as first_guess
from accrual.logs.estimate.window import recommend as recommend
from accrual.logs.estimate.window import watched as watched
