"""Events hold what the rows of their tables hold, under the names of those."""

from collections.abc import Callable
from typing import Any

import pytest

from accrual.core.jit.compiler import python_function
from accrual.live.kernels import folding
from accrual.store.base import StoredArm
from accrual.store.events import (
    ChangeRow,
    DecisionRow,
    Kind,
    change_event,
    columns,
    decision_event,
    event_column,
)

DECISION = DecisionRow(
    bandit=1, id=4, seq=9, arm=2, at=3.5, window=80.0, seen=8, key=None, part=0,
    salt=77, propensity=0.25, context=None,
)  # fmt: skip
ADDED = ChangeRow(bandit=1, seq=10, kind=Kind.ADD_ARM, subject=0, at=4.0)
ARM = StoredArm("jazz", 1.5, 60.0, False)


@pytest.mark.parametrize(
    ("field", "place", "value"),
    [
        (folding.decision_salt, 0, DECISION.salt),
        (folding.decision_window, 0, DECISION.window),
        (folding.new_arm_cap, 1, ARM.cap),
        (folding.new_arm_window, 1, ARM.window),
    ],
)
def test_a_field_of_an_event_is_that_of_its_row(field: Callable[..., Any], place: int, value: float) -> None:
    events = columns([decision_event(DECISION), change_event(ADDED, [ARM])])
    assert python_function(field)(events, place) == value


def test_a_field_that_a_kind_of_event_does_not_have_is_no_column() -> None:
    with pytest.raises(ValueError, match="not enough values"):
        event_column(Kind.PIECE, "salt")
