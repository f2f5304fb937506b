"""AgeIMED and AgeTS, which learn what a decision pays at every age. Read `learning` first: both share it."""

from accrual.policies.age.imed import AgeIMED as AgeIMED
from accrual.policies.age.thompson import AgeTS as AgeTS
