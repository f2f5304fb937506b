"""The rows of the catalog: one import for each policy.

`accrual.policy.catalog.CATALOG`, the names in `accrual` itself, and the tests that every policy must pass
follow from these lines.
"""

# ruff: noqa: PLC0414  (the alias says that the name may be imported from here)
from accrual.policy.age_imed import AgeIMED as AgeIMED
from accrual.policy.age_kl import AgeKL as AgeKL
from accrual.policy.age_lin_ts import AgeLinTS as AgeLinTS
from accrual.policy.age_prior import AgePrior as AgePrior
from accrual.policy.age_ts import AgeTS as AgeTS
from accrual.policy.age_ucb import AgeUCB as AgeUCB
from accrual.policy.delayed_ucb1 import DelayedUCB1 as DelayedUCB1
from accrual.policy.imed import IMED as IMED
from accrual.policy.klucb import KLUCB as KLUCB
from accrual.policy.lin_ts import LinTS as LinTS
from accrual.policy.lin_ucb import LinUCB as LinUCB
from accrual.policy.thompson import ThompsonSampling as ThompsonSampling
from accrual.policy.tpucbew import TPUCBEW as TPUCBEW
from accrual.policy.tpucbfr import TPUCBFR as TPUCBFR
from accrual.policy.tpucbfrg import TPUCBFRG as TPUCBFRG
from accrual.policy.ucb1 import UCB1 as UCB1
