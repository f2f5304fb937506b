"""What a window that is too short costs any policy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from accrual.core.errors import InputError


def truncation_loss(means: npt.ArrayLike, tail: npt.ArrayLike, least: npt.ArrayLike = 0.0) -> float:
    """Return the most that a decision can lose because reward after the window is never seen.

    The arm with the largest mean *inside* the window is taken to be the best. If arm i has mean
    m_i there, and a share of its reward between `least` and `tail` comes later, this arm j loses at
    most ``max_i m_i / (1 - tail_i) - m_j / (1 - least_j)``. Nothing smaller holds for all such arms.

    Proof: arm i's full mean is m_i / (1 - t_i) with its share t_i, which grows with t_i; so the best
    arm has at most the first term and j at least the second, and both may happen at once.

    With one `tail` for all arms and full means at most M this is at most M (tail - least) /
    (1 - least): tails that are alike, however long, cost nothing.

    Parameters
    ----------
    means : array_like
        The arms' mean totals inside the window, 0 or more.
    tail : float or array_like
        The greatest share after the window, for all arms or for each.
    least : float or array_like
        The least.

    Returns
    -------
    float
        Infinite if `tail` is 1 for an arm other than j.

    Examples
    --------
    >>> round(truncation_loss([0.5, 0.48, 0.2], tail=0.1), 4)  # 0.48 / 0.9 - 0.5
    0.0333
    >>> truncation_loss([0.5, 0.48, 0.2], tail=0.1, least=0.1)
    0.0
    """
    try:
        seen = np.asarray(means, dtype=np.float64)
        high, low = (np.broadcast_to(np.asarray(x, dtype=np.float64), seen.shape) for x in (tail, least))
    except (TypeError, ValueError):
        raise InputError(
            "means, tail and least must be numbers; tail and least one, or one per arm"
        ) from None
    if seen.ndim != 1 or seen.size == 0 or not (np.isfinite(seen).all() and (seen >= 0).all()):
        raise InputError("means must be a flat list of numbers of 0 or more, one per arm")
    if not ((low >= 0) & (low <= high) & (high <= 1) & (low < 1)).all():
        raise InputError("a tail must be a share: 0 <= least <= tail <= 1, and least below 1")
    with np.errstate(divide="ignore", invalid="ignore"):
        most = np.where(high < 1, seen / (1.0 - high), np.inf)
    loss = 0.0
    for j in np.flatnonzero(seen == seen.max()):  # any of equals may be the one that is taken
        others = np.delete(most, j)
        loss = max(loss, float((others - seen[j] / (1.0 - low[j])).max(initial=0.0)))
    return loss
