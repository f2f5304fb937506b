"""The problems of the paper's Settings 1 and 2.

Caps are ``window * zeta``. The paper's text prints 100 zeta, which is the same at a window of
100; at a window of 200 only window * zeta gives the paper's printed figures.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

import numpy as np

from accrual.core.errors import unknown, whole
from accrual.problems.laws import BetaLaw, Law, UniformLaw
from accrual.problems.problem import Problem

Scenario = Literal["uniform", "late", "early"]
SCENARIOS: tuple[Scenario, ...] = ("uniform", "late", "early")

ZETA = (1, 3, 6, 9, 12, 15, 18, 21, 22, 23)
CONFIGS = {1: (100, 10), 2: (100, 50), 3: (200, 20), 4: (200, 100)}  # window, groups


def setting1() -> Problem:
    """Make Setting 1: ten arms, window 100, twenty groups that pay uniformly up to their cap.

    Examples
    --------
    >>> float(setting1().means[-1])
    1150.0
    """
    return Problem(caps=_caps(100), window=100, groups=20, laws=UniformLaw())


def setting2(config: int, scenario: Scenario = "uniform") -> Problem:
    """Make Setting 2: Beta-distributed groups that pay evenly, late or early.

    Parameters
    ----------
    config : {1, 2, 3, 4}
        (window, groups) = (100, 10), (100, 50), (200, 20), (200, 100).
    scenario : {"uniform", "late", "early"}
        The paper's "uniform", 2.1 and 2.2.

    Examples
    --------
    >>> int(setting2(1, "late").group_means[0].argmax())
    9
    """
    window, groups = CONFIGS[whole("config", config, 1, 4)]
    return Problem(caps=_caps(window), window=window, groups=groups, laws=_law(groups, scenario))


NAMED_PROBLEMS: dict[str, Callable[[], Problem]] = {  # by the names that commands and files use
    "setting1": setting1,
    **{
        f"setting2/c{config}/{scenario}": partial(setting2, config, scenario)
        for config in CONFIGS
        for scenario in SCENARIOS
    },
}


def _law(groups: int, scenario: str) -> Law:
    if scenario not in SCENARIOS:
        raise unknown("scenario", scenario, SCENARIOS)
    if scenario == "uniform":
        return BetaLaw(1.0, 1.0)
    # Twos up to the plateau at `groups`, then flat; the other shape is the mirror image.
    rising = np.minimum(2 * np.arange(1, groups + 1), groups).astype(float)
    falling = rising[::-1]
    a, b = (rising, falling) if scenario == "late" else (falling, rising)
    return BetaLaw(tuple(a), tuple(b))


def _caps(window: int) -> list[float]:
    return [float(window * zeta) for zeta in ZETA]
