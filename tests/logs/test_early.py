"""What early pieces tell about totals."""

import numpy as np
import pytest

from accrual.logs.early import share_told, told_from


def test_the_share_is_that_of_the_variance_within_arms():
    """Early pay of variance 1 and late pay of variance 3: a quarter; means of arms far apart change nothing.

    4,000 decisions of each arm: the standard error is 0.01, the tolerance four of them.
    """
    dice = np.random.default_rng(4)
    rows = [dice.normal(mean, (1.0, 0.0, 3**0.5), (4000, 3)) for mean in (0.0, 50.0)]
    share = share_told(rows)
    assert share is not None
    assert share == pytest.approx([0.25, 0.25, 1.0], abs=0.04)


def test_what_is_taken_back_later_is_told_only_afterwards():
    """The early pay says all, then nothing until the end: what counts is the age from which on it does."""
    share = np.array([0.2, 0.9, 0.7, 0.85, 1.0])
    assert told_from(share, 0.8) == 3
    assert told_from(share, 0.1) == 0


def test_totals_that_are_all_alike_tell_nothing():
    assert share_told([np.array([[1.0, 2.0], [2.0, 1.0]])]) is None
