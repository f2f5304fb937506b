"""A typed client of the decision service: `Client` waits for each answer, `AsyncClient` is awaited."""

from accrual.client.asynchronous import AsyncClient
from accrual.client.calls import Piece
from accrual.client.results import (
    ArmState,
    BanditInfo,
    BanditState,
    Decision,
    Event,
    EventPage,
    Explanation,
    PieceResult,
    Reason,
)
from accrual.client.retry import ServiceError
from accrual.client.sync import Client

__all__ = [
    "ArmState",
    "AsyncClient",
    "BanditInfo",
    "BanditState",
    "Client",
    "Decision",
    "Event",
    "EventPage",
    "Explanation",
    "Piece",
    "PieceResult",
    "Reason",
    "ServiceError",
]
