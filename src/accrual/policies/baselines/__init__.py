"""Policies of papers on delayed feedback that are compared with in simulations; none is in the catalog.

All of them wait for totals. They need to know more than a live bandit can tell them: the horizon, or that at
most as many decisions are pending as the window has rounds.
"""

from accrual.policies.baselines.phased_elimination import PhasedElimination as PhasedElimination
from accrual.policies.baselines.queued import QPMD as QPMD
from accrual.policies.baselines.tsallis_inf import DelayedTsallisINF as DelayedTsallisINF
