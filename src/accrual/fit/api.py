"""`accrual.fit(...)`: find out in one call how a log's reward arrives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from accrual.fit.fit import fit_log
from accrual.fit.log import open_log
from accrual.fit.reading import ReadingOptions
from accrual.fit.schema import Fitted


def fit(
    decisions: Any,
    pieces: Any = None,
    columns: Mapping[str, str] | None = None,
    window: float | str | None = None,
    groups: int | None = None,
    cap: float | Mapping[str, float] | None = None,
    uniform: bool = False,
    **options: Unpack[ReadingOptions],
) -> Fitted:
    """Find out from a log how its reward arrives.

    Parameters
    ----------
    decisions : path, URL or data frame
        The decisions, or with no `pieces` everything in one table.
    pieces : path, URL or data frame, optional
    columns : mapping, optional
        Role to column name; what is not told is guessed from the names.
    window : number or text, optional
        Such as ``"60d"``; recommended unless given.
    groups : int, optional
        Equal parts of the window; recommended unless given.
    cap : number or mapping, optional
        The greatest total of one decision, for all arms or by name.
    uniform : bool
        Whether every arm had the same chance at each decision, for the worth of contexts (`context`).
    **options
        How the log is read: see `accrual.open_log`.

    Examples
    --------
    >>> import accrual as ac
    >>> import pandas as pd
    >>> rows = pd.DataFrame({
    ...     "id": range(60), "arm": ["a", "b"] * 30, "at": range(60), "value": [1.0, 2.0] * 30, "age": 3,
    ... })
    >>> fitted = ac.fit(rows, window=10, groups=2)
    >>> fitted
    Fitted(2 arms, 60 decisions, 60 pieces, window 10 in 2 groups)
    >>> fitted.spread.value
    (1.0, 0.0)
    """
    with open_log(decisions, pieces, columns, **options) as log:
        return fit_log(log, window, groups, cap, uniform)
