"""What early pieces tell about totals: the value of progressive feedback.

The name and the question are of McDonald et al. (Impatient bandits, 2501.07761), who ask how much a Gaussian
belief about an arm's mean gains. Here the question is one that a log of few arms can answer: of the variance
of totals between decisions of the same arm, what share is explained by what has come by an age? It is the
squared correlation of the two, pooled over arms.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from accrual.core.arrays import Floats


def share_told(rows: Sequence[Floats]) -> Floats | None:
    """Return for each step of the window the share of the variance of totals that is known at its end.

    Parameters
    ----------
    rows : sequence of array
        For each arm, what its closed decisions paid: decisions x steps.

    Returns
    -------
    ndarray or None
        None where totals do not differ between decisions of an arm.

    Examples
    --------
    >>> share_told([np.array([[1.0, 0.0], [1.0, 2.0], [3.0, 0.0], [3.0, 2.0]])])
    array([0.5, 1. ])
    """
    early, both = np.zeros((2, rows[0].shape[1]))  # sums of squares, and of products with the total
    for pay in rows:
        come = np.cumsum(pay, axis=1)
        come -= come.mean(axis=0)
        early += (come * come).sum(axis=0)
        both += (come * come[:, -1:]).sum(axis=0)
    if early[-1] <= 0.0:
        return None
    return np.asarray(np.divide(both**2, early * early[-1], out=np.zeros_like(both), where=early > 0.0))


def told_from(share: Floats, level: float) -> int:
    """Return the number of the first step after which the share is never below `level` again."""
    return int(np.flatnonzero(np.append(-np.inf, share) < level)[-1])
