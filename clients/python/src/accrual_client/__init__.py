"""A typed client of accrual's decision service: `Client` waits for each answer, `AsyncClient` is awaited."""

from accrual_client.asynchronous import AsyncClient
from accrual_client.calls import Piece
from accrual_client.errors import InputError, ServiceError
from accrual_client.results import (
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
from accrual_client.sync import Client

__version__ = "0.1.0"

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
    "InputError",
    "Piece",
    "PieceResult",
    "Reason",
    "ServiceError",
]
