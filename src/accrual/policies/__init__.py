"""The policies, one import for each: a new policy is one file (or folder) and one line here.

`accrual.policies.catalog`, the names in `accrual` itself, and the tests that every policy must pass read this
list. Other rooms also use `base` (what a policy is), `catalog` (policies by name), `contexts` (policies that
choose by contexts), `clusters` and `floor`.
"""

from accrual.policies.age import AgeIMED as AgeIMED
from accrual.policies.age import AgeTS as AgeTS
from accrual.policies.age_lin import AgeLinTS as AgeLinTS
from accrual.policies.age_prior import AgePrior as AgePrior
from accrual.policies.age_ucb import AgeUCB as AgeUCB
from accrual.policies.gaussian_filter import GaussianFilter as GaussianFilter
from accrual.policies.imed import IMED as IMED
from accrual.policies.klucb import KLUCB as KLUCB
from accrual.policies.lin import LinTS as LinTS
from accrual.policies.lin import LinUCB as LinUCB
from accrual.policies.otf_lin import OTFLinTS as OTFLinTS
from accrual.policies.otf_lin import OTFLinUCB as OTFLinUCB
from accrual.policies.thompson import ThompsonSampling as ThompsonSampling
from accrual.policies.tpucbew import TPUCBEW as TPUCBEW
from accrual.policies.tpucbfrg import TPUCBFR as TPUCBFR
from accrual.policies.tpucbfrg import TPUCBFRG as TPUCBFRG
from accrual.policies.ucb1 import UCB1 as UCB1
from accrual.policies.ucb1 import DelayedUCB1 as DelayedUCB1
