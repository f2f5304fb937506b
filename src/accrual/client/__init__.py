"""A typed client of accrual's decision service: `Client` waits for each answer, `AsyncClient` is awaited.

The answers are dataclasses; `accrual.client.results` has those that are parts of others. `InputError` says
what cannot be sent, `ServiceError` what the service refused.
"""

from .asynchronous import AsyncClient
from .errors import InputError, ServiceError
from .results import (
    BanditInfo,
    BanditState,
    ContextWorth,
    Decision,
    EventPage,
    Explanation,
    Piece,
    PieceResult,
    Verdict,
)
from .sync import Client

__version__ = "0.1.0"

__all__ = [
    "AsyncClient",
    "BanditInfo",
    "BanditState",
    "Client",
    "ContextWorth",
    "Decision",
    "EventPage",
    "Explanation",
    "InputError",
    "Piece",
    "PieceResult",
    "ServiceError",
    "Verdict",
]
