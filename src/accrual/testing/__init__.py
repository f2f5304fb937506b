"""Test suites that every policy, every reward law and every store must pass, the library's and your own."""

from typing import TYPE_CHECKING, Any

from accrual.testing.laws import LawSuite
from accrual.testing.policies import PolicySuite

if TYPE_CHECKING:
    from accrual.testing.stores import StoreSuite

__all__ = ["LawSuite", "PolicySuite", "StoreSuite"]


def __getattr__(name: str) -> Any:
    if name == "StoreSuite":  # late: it imports pytest, which the other suites do not need
        from accrual.testing.stores import StoreSuite

        return StoreSuite
    raise AttributeError(f"module 'accrual.testing' has no attribute {name!r}")
