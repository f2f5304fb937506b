"""A typed client of the decision service, plain and asynchronous."""

from accrual.client.awaited import AsyncClient
from accrual.client.calls import Decision, Piece, Result
from accrual.client.plain import Client
from accrual.client.retry import ServiceError

__all__ = ["AsyncClient", "Client", "Decision", "Piece", "Result", "ServiceError"]
