"""The events that an append adds to a log, from the rows it stores or from its requests and their answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from accrual.store.accept import NewRows
from accrual.store.base import (
    AddArm,
    AddFeature,
    Answer,
    CloseDecision,
    NewDecisions,
    NewPiece,
    RetireArm,
    Status,
    StoredArm,
    StoreRequest,
)
from accrual.store.event_schema import Event, Kind, change_event, decision_event, event_function, piece_event


def events_of_rows(rows: NewRows, arms: Sequence[StoredArm]) -> list[Event]:
    """Return the events of new rows, in the order of the log; `arms` are all there have been."""
    events = [piece_event(row) for row in rows.piece]
    if rows.decision or rows.change:
        events += [decision_event(row) for row in rows.decision]
        events += [change_event(row, arms) for row in rows.change]
        events.sort()
    return events


# An event from a request and its answer: where the columns of its table are in them.
_FROM_REQUEST = "request, answer"
_SAME = {"seq": "answer.seq", "at": "answer.at"}
_EVENTS: dict[type, Callable[..., Event]] = {
    NewPiece: event_function(
        Kind.PIECE,
        _FROM_REQUEST,
        {
            **_SAME,
            "decision": "request.decision",
            "value": "request.value",
            "age": "answer.age",
            "stream": "-1 if request.stream is None else request.stream",
        },
    ),
    CloseDecision: event_function(Kind.CLOSE, _FROM_REQUEST, {**_SAME, "subject": "request.decision"}),
    AddArm: event_function(
        Kind.ADD_ARM,
        _FROM_REQUEST,
        {**_SAME, "subject": "answer.number", "arm.cap": "request.cap", "arm.window": "request.window"},
    ),
    RetireArm: event_function(Kind.RETIRE_ARM, _FROM_REQUEST, {**_SAME, "subject": "request.arm"}),
    AddFeature: event_function(Kind.ADD_FEATURE, _FROM_REQUEST, {**_SAME, "subject": "request.number"}),
}
_DECISION_EVENT = event_function(
    Kind.DECISION,
    "request, answer, i, step",
    {
        "seq": "answer.seq + i", "at": "answer.at + step * i", "id": "answer.number + i",
        "arm": "answer.arms[i]", "salt": "request.salt", "window": "request.windows[i]",
        "propensity": "answer.propensities[i] or 0.0 if answer.propensities else 0.0",
    },
)  # fmt: skip


def events_of_answers(
    requests: Sequence[StoreRequest], answers: Sequence[Answer], step: float
) -> list[Event]:
    """Return the events that an append has added to the log, from its requests and their answers.

    Parameters
    ----------
    requests, answers : sequence
    step : float
        The time from one decision of a batch to the next: 1 in rounds, 0 by the clock.
    """
    events: list[Event] = []
    for request, answer in zip(requests, answers, strict=True):
        if answer.status is not Status.STORED:
            continue
        if isinstance(request, NewDecisions):
            events += [_DECISION_EVENT(request, answer, i, step) for i in range(len(answer.arms))]
        else:
            events.append(_EVENTS[type(request)](request, answer))
    return events
