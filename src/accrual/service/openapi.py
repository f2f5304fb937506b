"""The description: what the framework knows of its routes, and the two that it does not carry."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from accrual.service.messages import BANDIT
from accrual.service.refusals import KINDS, MEDIA_TYPE, ProblemDocument
from accrual.service.traffic_routes import DecisionsIn, DecisionsOut, PieceOut, Pieces

_SCHEMAS = "#/components/schemas/"
_TEXT = """
Bandits whose reward for one decision arrives in pieces over time. Ask for a decision, show its arm, and
send what it earns as it comes: each piece with the decision's id. What has been answered is durable.

Errors are problem documents (RFC 9457); a program should go by the end of their `type`.
"""


def openapi_document(app: FastAPI) -> dict[str, Any]:
    """The whole document."""
    found = get_openapi(
        title="accrual",
        version=version("accrual"),
        summary="Decisions whose reward arrives in pieces",
        description=_TEXT.strip(),
        routes=app.routes,
    )
    schemas: dict[str, Any] = found["components"]["schemas"]
    wanted = (DecisionsIn, DecisionsOut, Pieces, PieceOut, list[PieceOut], ProblemDocument)
    shapes, parts = msgspec.json.schema_components(wanted, ref_template=_SCHEMAS + "{name}")
    schemas.update(parts)
    decisions_in, decisions_out, pieces, piece_out, results, _ = shapes
    made = found["paths"].setdefault("/v1/bandits/{bandit}/decisions", {})
    text = "Make decisions. With a key, the same again gives the same decisions."
    made["post"] = _operation("decide", text, decisions_in, decisions_out)
    made["post"]["requestBody"]["required"] = False
    found["paths"]["/v1/bandits/{bandit}/pieces"] = {
        "post": _operation(
            "observe",
            "Store pieces: one, or a list of up to 1,000. One that cannot be stored is a problem; in a "
            "list, each has its own status.",
            pieces,
            {"anyOf": [piece_out, results]},
        )
    }
    for path, operations in found["paths"].items():
        for method, operation in operations.items():
            _complete(path, method, operation)
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    _link(found["paths"])
    found["components"]["securitySchemes"] = {
        "key": {"type": "http", "scheme": "bearer", "description": "A key of `accrual keys create`."}
    }
    return found


def _operation(id_: str, text: str, given: Any, told: Any) -> dict[str, Any]:
    return {
        "operationId": id_,
        "summary": id_.capitalize(),
        "description": text,
        "parameters": [
            {
                "name": "bandit", "in": "path", "required": True, "description": "A bandit's name.",
                "schema": {"type": "string", "pattern": BANDIT},
            }
        ],
        "requestBody": {"required": True, "content": {"application/json": {"schema": given}}},
        "responses": {"200": {"description": "Done.", "content": {"application/json": {"schema": told}}}},
    }  # fmt: skip


def _link(paths: dict[str, Any]) -> None:
    """What can be asked about what was just made."""
    at = "/v1/bandits/{bandit}"
    name = {"bandit": "$response.body#/name"}
    for status in ("200", "201"):
        paths["/v1/bandits"]["post"]["responses"][status]["links"] = {
            operation: {"operationId": operation, "parameters": name}
            for operation in ("decide", "getState", "addArm", "exportEvents")
        }
    same = {"bandit": "$request.path.bandit", "id": "$response.body#/decisions/0/id"}
    paths[f"{at}/decisions"]["post"]["responses"]["200"]["links"] = {
        operation: {"operationId": operation, "parameters": same}
        for operation in ("explainDecision", "closeDecision")
    }


def _complete(path: str, method: str, operation: dict[str, Any]) -> None:
    """What holds for all: who may call it, and how it may be refused."""
    public = not path.startswith(("/v1/", "/metrics"))
    operation["security"] = [] if public else [{"key": []}, {}]
    statuses = {400, 421, 500, 405, 431}
    if path == "/readyz":
        statuses |= {503}
    if not public:
        statuses |= {401, 403, 422, 429, 503}
        if "{" in path:
            statuses |= {404}
        if method == "post":
            statuses |= {404, 408, 409, 413, 415}
    for status in sorted(statuses):
        titles = sorted(kind.title for kind in KINDS.values() if kind.status == status)
        operation["responses"][str(status)] = {
            "description": "; ".join(titles),
            "content": {MEDIA_TYPE: {"schema": {"$ref": _SCHEMAS + "ProblemDocument"}}},
        }
