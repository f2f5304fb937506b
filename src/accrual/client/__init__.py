"""A typed client of accrual's decision service: `Client` waits for each answer, `AsyncClient` is awaited.

The results are typed tuples. `InputError` says what cannot be sent, `ServiceError` what the service refused.
"""

from .asynchronous import AsyncClient
from .calls import Piece
from .errors import InputError, ServiceError
from .results import (
    Alarm,
    ArmState,
    BanditInfo,
    BanditState,
    ChangedArm,
    ContextWorth,
    Decision,
    Event,
    EventPage,
    Explanation,
    GuardedArm,
    Guardrail,
    PieceResult,
    Reason,
    Verdict,
)
from .sync import Client

__version__ = "0.1.0"

__all__ = [
    "Alarm",
    "ArmState",
    "AsyncClient",
    "BanditInfo",
    "BanditState",
    "ChangedArm",
    "Client",
    "ContextWorth",
    "Decision",
    "Event",
    "EventPage",
    "Explanation",
    "GuardedArm",
    "Guardrail",
    "InputError",
    "Piece",
    "PieceResult",
    "Reason",
    "ServiceError",
    "Verdict",
]
