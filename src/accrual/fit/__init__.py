"""From a log of decisions and pieces to the spread, the window, the caps and a problem.

The package itself can be called: ``accrual.fit("log.parquet")`` is `accrual.fit.api.fit`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    def __call__(self, *given: Any, **named: Any) -> Any:
        from accrual.fit.api import fit

        return fit(*given, **named)


sys.modules[__name__].__class__ = _Callable
