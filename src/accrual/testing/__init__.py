"""Published suites that every policy passes, the library's and yours."""

from accrual.testing.policies import PolicySuite

__all__ = ["PolicySuite"]
