"""Every policy of the catalog passes the published suite."""

from typing import Any

from accrual.policy.catalog import CATALOG
from accrual.testing import PolicySuite

SETTINGS: dict[str, dict[str, Any]] = {
    "AgeUCB": {"alpha": 4},
    "TPUCBEW": {"alpha": 4},
    "TPUCBFR": {"alpha": 6},
    "TPUCBFRG": {"alpha": 4, "spread": "begin"},
}


def _suite(name: str) -> type[PolicySuite]:
    def make_policy(self):
        return CATALOG[name](**SETTINGS.get(name, {}))

    return type(f"Test{name}", (PolicySuite,), {"make_policy": make_policy, "__module__": __name__})


# One class for each row of the catalog: a new policy is tested by being listed.
globals().update({f"Test{name}": _suite(name) for name in CATALOG})
