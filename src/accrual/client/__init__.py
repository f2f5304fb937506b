"""A typed client of the decision service, plain and asynchronous."""

from accrual.client.asynchronous import AsyncClient
from accrual.client.calls import Decision, Piece, PieceResult
from accrual.client.retry import ServiceError
from accrual.client.sync import Client

__all__ = ["AsyncClient", "Client", "Decision", "Piece", "PieceResult", "ServiceError"]
