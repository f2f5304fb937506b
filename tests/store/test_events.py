"""Events hold what the rows of their tables hold, under the names of those."""

from typing import Any

import pytest

from accrual.store.base import StoredArm
from accrual.store.events import (
    EVENT_COLUMNS,
    EVENT_TYPES,
    NO_STREAM,
    NONE,
    ChangeRow,
    DecisionRow,
    Events,
    Kind,
    PieceRow,
    columns,
    events_of_rows,
    records,
)

DECISION = DecisionRow(
    bandit=1, id=4, seq=9, arm=2, at=3.5, window=80.0, seen=8, key=None, part=0,
    salt=77, propensity=0.25, context=None,
)  # fmt: skip
PIECE = PieceRow(
    bandit=1, seq=11, decision=4, key="k", value=0.5, age=1.5, stated=True, at=5.0, late=False, stream=2
)
ADDED = ChangeRow(bandit=1, seq=10, kind=Kind.ADD_ARM, subject=0, at=4.0)
CLOSED = ChangeRow(bandit=1, seq=12, kind=Kind.CLOSE, subject=4, at=6.0)
RETIRED = ChangeRow(bandit=1, seq=13, kind=Kind.RETIRE_ARM, subject=0, at=7.0)
ARM = StoredArm("jazz", 1.5, 60.0, False)
ROWS: dict[Kind, Any] = {
    Kind.DECISION: DECISION, Kind.ADD_ARM: ADDED, Kind.PIECE: PIECE, Kind.CLOSE: CLOSED,
    Kind.RETIRE_ARM: RETIRED,
}  # fmt: skip
EVENTS = columns(events_of_rows([DECISION], [PIECE], [ADDED, CLOSED, RETIRED], [ARM]))


@pytest.mark.parametrize("kind", Kind)
def test_each_field_of_an_event_is_where_its_declaration_says(kind: Kind) -> None:
    """Events made of rows have everything where `EVENT_COLUMNS`, which SQL is made from, has it."""
    row, place = ROWS[kind], [*ROWS].index(kind)
    _, sources = EVENT_COLUMNS[kind]
    assert EVENT_TYPES[kind]._fields == ("seq", "at", *sources)
    assert (EVENTS.seq[place], EVENTS.kind[place], EVENTS.at[place]) == (row.seq, kind, row.at)
    for column, none in NONE.items():
        source = sources.get(column)
        owner, name = (ARM, source.removeprefix("arm.")) if source and "." in source else (row, source)
        expected = none if name is None else getattr(owner, name)
        assert getattr(EVENTS, column)[place] == expected, column


def test_every_field_of_an_event_has_a_column() -> None:
    fields = {name for type_ in EVENT_TYPES.values() for name in type_._fields}
    assert fields == {*Events._fields} - {"kind"}


def test_columns_hold_what_the_records_hold() -> None:
    made = events_of_rows([DECISION], [PIECE], [ADDED, CLOSED, RETIRED], [ARM])
    again = records(EVENTS)
    assert (
        [type(event) for event in again] == [type(event) for event in made] == [*map(EVENT_TYPES.get, ROWS)]
    )
    assert again == made


def test_what_was_not_recorded_has_the_value_for_nothing() -> None:
    """A decision without a propensity, and a piece of the reward, which has no stream."""
    decision, piece = DECISION._replace(propensity=None), PIECE._replace(stream=None)
    events = columns(events_of_rows([decision], [piece], [], [ARM]))
    assert (events.propensity[0], events.stream[1]) == (0.0, NO_STREAM)
