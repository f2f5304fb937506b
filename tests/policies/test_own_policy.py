"""The policy that the documentation writes as an example passes the published suite."""

from own_policy import PieceMOSS

from accrual.testing import PolicySuite


class TestPieceMOSS(PolicySuite):
    def make_policy(self):
        return PieceMOSS()
